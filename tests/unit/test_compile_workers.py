"""runtime.compile_workers: kernels compiled in child processes: requests, results and failures."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import minifuse as mf
from minifuse.core.errors import MinifuseError
from minifuse.runtime import compile_workers, kernel_files
from minifuse.runtime.compile_workers import MIN_KERNELS_FOR_WORKERS, compile_all, compile_in_processes, import_path
from minifuse.runtime.kernel_cache import KernelCache, KernelNotCompiled, MissingKernel


def build(name, text):
    """A compiler that any process finds here."""
    if "broken" in text:
        raise ValueError("it is broken")
    return text.encode()


def jobs(*texts):
    return {f"k_{k:024x}": MissingKernel(f"k_{k:024x}", text, build) for k, text in enumerate(texts)}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MINIFUSE_CACHE", str(tmp_path / "kernels"))
    return tmp_path / "kernels"


def missing(wanted):
    """The jobs whose kernels are not on disk."""
    return lambda: {name: job for name, job in wanted.items() if kernel_files.read_payload(name) is None}


def test_kernels_are_written_to_disk_and_counted(folder):
    wanted, told = jobs(*[f"text {k}" for k in range(MIN_KERNELS_FOR_WORKERS + 3)]), []
    assert compile_all(missing(wanted), 2, lambda done, total: told.append((done, total))) == MIN_KERNELS_FOR_WORKERS + 3
    assert told == [(k, MIN_KERNELS_FOR_WORKERS + 3) for k in range(1, MIN_KERNELS_FOR_WORKERS + 4)]
    assert {name: kernel_files.read_payload(name) for name in wanted} == {name: job.text.encode() for name, job in wanted.items()}
    assert compile_all(missing(wanted), 2) == 0


def test_few_kernels_start_no_process(folder, monkeypatch):
    monkeypatch.setattr(compile_workers, "start_worker", None)
    assert compile_all(missing(jobs(*"abc")), 8) == 0


def test_a_compiler_that_only_this_process_has_is_not_handed_over():
    assert import_path(MissingKernel("k", "", build)) == f"{__name__}:build"
    for other in (lambda name, text: b"", build.__call__, KernelCache().find):
        assert import_path(MissingKernel("k", "", other)) is None


def test_errors_of_the_compiler_are_reported(folder):
    with pytest.raises(MinifuseError, match="ValueError: it is broken"):
        compile_all(missing(jobs("a", "b", "broken", "c", "d")), 2)


def test_a_worker_that_dies_is_reported(folder, monkeypatch):
    monkeypatch.setattr(compile_workers, "WORKER_SCRIPT", "raise SystemExit(3)  # {path!r}")
    with pytest.raises(MinifuseError, match=r"ended with exit status|Broken pipe"):
        compile_all(missing(jobs(*"abcd")), 1)


def test_a_folder_that_cannot_be_written_is_reported(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MINIFUSE_CACHE", str(tmp_path / "file"))
    with pytest.raises(MinifuseError, match=r"cannot write to .*MINIFUSE_CACHE"):
        compile_all(lambda: jobs(*"abcd"), 1)


def test_an_interrupted_run_leaves_complete_kernels(folder):
    names = compile_in_processes(list(jobs(*[f"text {k}" for k in range(40)]).values()), 2)
    first = next(names)
    names.close()
    assert kernel_files.read_payload(first) is not None
    found = list(folder.iterdir())
    assert all(kernel_files.read_payload(path.stem) is not None for path in found)
    assert not [path for path in found if path.suffix == ".tmp"]
    assert len(found) < 80


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
def test_a_process_that_compiles_leaves_ctrl_c_to_its_starter():
    with compile_workers.start_worker() as process:
        process.stdin.write('["k", "text", "nowhere:build"]\n')
        process.stdin.flush()
        assert "ModuleNotFoundError" in process.stdout.readline()  # by now it listens
        process.send_signal(signal.SIGINT)
        process.stdin.write('["k", "text", "nowhere:build"]\n')
        process.stdin.flush()
        assert "ModuleNotFoundError" in process.stdout.readline()
    assert process.returncode == 0


def test_to_ask_compiles_nothing(folder):
    cache, text = KernelCache(), "def kernel():\n    pass\n"
    with cache.collect_missing() as wanted, pytest.raises(KernelNotCompiled):
        cache.find(text, "flavour", build, lambda name, payload: payload)
    ((name, job),) = wanted.items()
    assert job.text == f"def {name}():\n    pass\n"
    assert cache.stats()[:4] == (0, 0, 0, 0)
    assert cache.find(text, "flavour", build, lambda name, payload: payload) == job.text.encode()
    with cache.collect_missing() as wanted:
        cache.find(text, "flavour", build, lambda name, payload: payload)
        KernelCache().find(text, "flavour", build, lambda name, payload: payload)
    assert wanted == {}


def test_a_fused_function_is_compiled_before_it_is_called(folder):
    script = """
import minifuse as mf
@mf.fuse
def f(x, w):
    return tuple((mf.exp(x[k:] * w[k:]) + k).sum(0) for k in range(2)) + ((x[:, 1:] - 3).max(), x.T * 2, x.T.prod(1))
x = mf.ones(16, 16), mf.ones(16, 16)
wanted = len(f.plan(*x).kernels_to_compile())
compiled = f.compile(*x, processes=2)
here = mf.cache.stats()
f(*x)
print(wanted, compiled, here.in_memory == mf.cache.stats().in_memory, f.compile(*x))
"""
    found = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"PYTHONPATH": str(Path(mf.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
    )
    wanted, compiled, is_all, again = found.stdout.split()
    assert int(wanted) <= int(compiled) > 0
    assert (is_all, again) == ("True", "0")
