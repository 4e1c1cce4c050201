"""runtime.compile_workers: kernels compiled in child processes: requests, results and failures."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest

import minifuse as mf
from minifuse.core.errors import MinifuseError
from minifuse.runtime import compile_workers, file_trust, kernel_files
from minifuse.runtime.compile_workers import (
    MIN_KERNELS_FOR_WORKERS,
    CompileServer,
    compile_all,
    compile_in_parallel,
    count_workers,
    encode_jobs,
    use_workers,
)
from minifuse.runtime.kernel_cache import KernelCache, KernelNotCompiled, MissingKernel, cache

posix = pytest.mark.skipif(os.name != "posix", reason="signals and forks are POSIX's")


def build(name, text):
    """A compiler that any process finds here."""
    if "broken" in text:
        raise ValueError("it is broken")
    if "slow" in text:
        time.sleep(0.1)
    return text.encode()


def build_facts(name, text):
    """A compiler whose output says where it runs."""
    return f"{os.getpid()} {os.environ['MINIFUSE_COMPILE_WORKERS']} {len([*Path('/proc/self/task').iterdir()])}".encode()


def build_number(name, text):
    """A compiler whose output is the number of its process."""
    return str(os.getpid()).encode()


def jobs(*texts, build=build):
    return {f"k_{k:024x}": MissingKernel(f"k_{k:024x}", text, build) for k, text in enumerate(texts)}


def texts(count, text="text"):
    return [f"{text} {k}" for k in range(count)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MINIFUSE_CACHE", str(tmp_path / "kernels"))
    return tmp_path / "kernels"


@pytest.fixture
def two_workers(monkeypatch):
    monkeypatch.setenv("MINIFUSE_COMPILE_WORKERS", "2")
    yield
    compile_workers.close_shared_server()


@pytest.fixture
def no_processes(monkeypatch):
    """Fail if a process is started."""
    monkeypatch.setattr(compile_workers, "CompileServer", None)
    monkeypatch.setattr(compile_workers, "_server", None)


def stored(wanted):
    return {name: kernel_files.read_payload(name) for name in wanted}


def missing(wanted):
    """The jobs whose kernels are not on disk."""
    return lambda: {name: job for name, job in wanted.items() if kernel_files.read_payload(name) is None}


def is_running(process):
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def wait_until(is_true, seconds=20):
    end = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.01)


def run_script(script, **environment):
    """Run a script in another process, and return what it prints."""
    environment = os.environ | {"PYTHONPATH": str(Path(mf.__file__).parents[1])} | environment
    command = [sys.executable, "-c", script]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120).stdout


# In advance: `minifuse warmup`


@pytest.mark.parametrize("processes", [1, 2])
def test_kernels_are_written_to_disk_and_counted(folder, processes):
    wanted, told = jobs(*texts(MIN_KERNELS_FOR_WORKERS + 3)), []
    assert compile_all(missing(wanted), processes, lambda *counts: told.append(counts)) == MIN_KERNELS_FOR_WORKERS + 3
    assert told == [(k, MIN_KERNELS_FOR_WORKERS + 3) for k in range(1, MIN_KERNELS_FOR_WORKERS + 4)]
    assert stored(wanted) == {name: job.text.encode() for name, job in wanted.items()}
    assert compile_all(missing(wanted), processes) == 0


def test_few_kernels_start_no_process(folder, no_processes):
    assert compile_all(missing(jobs(*texts(MIN_KERNELS_FOR_WORKERS - 1))), 8) == 0


def test_compilers_that_cannot_be_sent_stay_in_this_process():
    (sent,) = encode_jobs([MissingKernel("k", "", build)])[0]
    assert sent[0].build is build
    for other in (lambda name, text: b"", KernelCache().find):
        job = MissingKernel("k", "", other)
        assert encode_jobs([job]) == ([], [job])


def test_the_longest_kernels_are_sent_first():
    encoded, _ = encode_jobs([*jobs("x", "xxx", "xx").values()])
    assert [job.text for job, _ in encoded] == ["xxx", "xx", "x"]


def test_errors_of_the_compiler_are_reported(folder):
    with pytest.raises(MinifuseError, match="ValueError: it is broken"):
        compile_all(missing(jobs("a", "b", "broken", "c", "d")), 2)


def test_a_server_that_dies_is_reported(folder, monkeypatch):
    monkeypatch.setattr(compile_workers, "WORKER_SCRIPT", "raise SystemExit(3)  # {path!r}")
    with pytest.raises(MinifuseError, match=r"ended with exit status 3"):
        compile_all(missing(jobs(*"abcd")), 1)


def end_process(name, text):
    """A compiler that crashes."""
    if text == "crash":
        os._exit(3)
    return b""


@posix
def test_a_worker_that_dies_is_reported(folder):
    with pytest.raises(MinifuseError, match=r"ended with exit status 3"):
        compile_all(missing(jobs("crash", *"abcd", build=end_process)), 2)


def test_a_folder_that_cannot_be_written_is_reported(tmp_path, monkeypatch, no_processes):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MINIFUSE_CACHE", str(tmp_path / "file"))
    with pytest.raises(MinifuseError, match=r"cannot write to .*MINIFUSE_CACHE"):
        compile_all(lambda: jobs(*"abcd"), 1)


def test_an_interrupted_run_leaves_complete_kernels(folder):
    wanted = jobs(*texts(40, "slow"))
    cache.check()
    server = CompileServer(2, has_results=True)
    server.submit([data for _, data in encode_jobs([*wanted.values()])[0]], 2)
    first = next(server.results(40))
    server.close()
    assert kernel_files.read_payload(first) is not None
    wait_until(lambda: not [*folder.glob("*.lock")])
    time.sleep(0.3)  # workers that went on would compile more
    found = {path.stem for path in folder.glob("*.bin")}
    assert all(stored(found).values())
    assert not [*folder.glob("*.tmp")]
    assert len(found) < 20


@posix
def test_workers_leave_ctrl_c_to_their_parent(folder):
    cache.check()
    server = CompileServer(1, has_results=True)
    for k in range(2):
        job = MissingKernel(f"k_{k:024x}", "text", build)
        server.submit([data for _, data in encode_jobs([job])[0]], 1)
        assert [*server.results(1)] == [job.name]
        server.processes[0].send_signal(signal.SIGINT)
    assert server.is_running
    server.close()


# In a call: this process and workers


def test_missing_kernels_of_a_plan_are_compiled_together(folder, two_workers):
    wanted = jobs(*texts(12, "slow"))
    compile_in_parallel(wanted)
    assert stored(wanted) == {name: job.text.encode() for name, job in wanted.items()}
    assert not [*folder.glob("*.lock")]


def test_without_fork_each_worker_is_a_process_of_its_own(folder, two_workers, monkeypatch):
    """As on macOS and Windows."""
    module = "from minifuse.runtime import compile_server; compile_server.CAN_FORK = False; compile_server.serve()"
    script = compile_workers.WORKER_SCRIPT.partition("from ")[0] + module
    monkeypatch.setattr(compile_workers, "WORKER_SCRIPT", script)
    monkeypatch.setattr(compile_workers, "CAN_FORK", False)
    cache.check()
    wanted, server = jobs(*texts(8, "slow"), build=build_number), compile_workers.shared_server(2)
    assert len(server.processes) == 2
    server.submit([data for _, data in encode_jobs([*wanted.values()])[0]], 2)
    wait_until(lambda: all(stored(wanted).values()))
    assert {int(number) for number in stored(wanted).values()} == {process.pid for process in server.processes}


@posix
def test_workers_have_one_thread_and_start_no_workers(folder, two_workers):
    wanted = jobs(*texts(3), build=build_facts)
    server = compile_workers.shared_server(2)
    cache.check()
    server.submit([data for _, data in encode_jobs([*wanted.values()])[0]], 2)
    wait_until(lambda: all(stored(wanted).values()))
    processes, workers, threads = zip(*[facts.decode().split() for facts in stored(wanted).values()], strict=True)
    assert str(os.getpid()) not in processes
    assert len({*processes}) > 1
    assert {*workers} == {"0"}
    assert {*threads} == {"1"}


def test_a_server_serves_several_plans(folder, two_workers):
    for k in range(2):
        compile_in_parallel(jobs(*texts(4 + 4 * k)))
    server = compile_workers._server
    assert server.is_running
    compile_in_parallel(jobs(*texts(12)))
    assert compile_workers._server is server


def test_a_full_disk_is_found_at_the_first_kernel(folder, no_processes, monkeypatch):
    write_new, recorded = file_trust.write_new, Recorded()

    def full(path, data):
        if data.startswith(b"text"):  # the files that are tried first are empty
            raise OSError(errno.ENOSPC, "No space left on device")
        write_new(path, data)

    monkeypatch.setattr(file_trust, "write_new", full)
    compile_in_parallel(jobs(*texts(5), build=recorded))
    assert len(recorded.threads) == 1


def test_few_kernels_are_left_to_the_caller(folder, no_processes):
    wanted = jobs(*texts(MIN_KERNELS_FOR_WORKERS - 1))
    with use_workers(2):
        compile_in_parallel(wanted)
    assert not any(stored(wanted).values())


def test_without_workers_this_process_shares_the_work_with_others(folder, no_processes):
    wanted = jobs(*texts(5, "slow"))
    compiled = [MissingKernel(job.name, job.text, Recorded()) for job in wanted.values()]
    threads = [threading.Thread(target=compile_in_parallel, args=({job.name: job for job in compiled},)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert all(stored(wanted).values())
    compilers = [job.build.threads for job in compiled]
    assert [len(found) for found in compilers] == [1] * 5
    assert len({thread for (thread,) in compilers}) == 2


class Recorded:
    """A compiler that records the threads that it runs in: here they are like processes."""

    def __init__(self):
        self.threads = []

    def __call__(self, name, text):
        self.threads.append(threading.get_ident())
        return build(name, text)


def test_kernels_that_stay_in_memory_start_no_process(tmp_path, monkeypatch, two_workers, no_processes):
    monkeypatch.setenv("MINIFUSE_CACHE_LIMIT_MB", "0")
    compile_in_parallel(jobs(*texts(12)))
    monkeypatch.delenv("MINIFUSE_CACHE_LIMIT_MB")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MINIFUSE_CACHE", str(tmp_path / "file"))
    compile_in_parallel(jobs(*texts(12)))


def test_a_broken_kernel_does_not_stop_the_others(folder, two_workers):
    wanted = jobs("a", "b", "broken", "c", "d")
    compile_in_parallel(wanted)
    assert [job.text for name, job in wanted.items() if kernel_files.read_payload(name) is None] == ["broken"]


def test_without_a_living_server_this_process_compiles_all(folder, two_workers, monkeypatch):
    monkeypatch.setattr(compile_workers, "WORKER_SCRIPT", "raise SystemExit(3)  # {path!r}")
    wanted = jobs(*texts(5))
    compile_in_parallel(wanted)
    assert all(stored(wanted).values())


def test_a_failed_start_is_no_error(folder, two_workers, monkeypatch):
    def fail(*args, **options):
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(subprocess, "Popen", fail)
    compile_in_parallel(jobs(*texts(5)))
    assert compile_workers._server is None


def interrupt(name, text):
    raise KeyboardInterrupt


def test_ctrl_c_ends_the_workers(folder, two_workers):
    server = compile_workers.shared_server(2)
    only_here = {"k_" + 24 * "f": MissingKernel("k_" + 24 * "f", "text", lambda name, text: interrupt(name, text))}
    with pytest.raises(KeyboardInterrupt):
        compile_in_parallel(jobs(*texts(12, "slow")) | only_here)
    assert not server.is_running
    assert compile_workers._server is None


@posix
def test_an_idle_server_ends_and_is_started_again(folder, two_workers, monkeypatch):
    script = compile_workers.WORKER_SCRIPT.replace("serve()", "serve(0.05)")
    monkeypatch.setattr(compile_workers, "WORKER_SCRIPT", script)
    compile_in_parallel(jobs(*texts(4)))
    first = compile_workers._server
    first.processes[0].wait(20)
    compile_in_parallel(jobs(*texts(8)))
    assert compile_workers._server is not first
    assert all(stored(jobs(*texts(8))).values())


PARENT = """
import os, sys, time
sys.path[:] = {path!r}
from tests.unit.test_compile_workers import compile_workers, encode_jobs, jobs, texts, cache
cache.check()
server = compile_workers.CompileServer(2)
server.submit([data for _, data in encode_jobs([*jobs(*texts(300, "slow")).values()])[0]], 2)
print(server.processes[0].pid, flush=True)
time.sleep(60)
"""


@posix
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there are no files of processes")
@pytest.mark.parametrize("is_busy", [True, False])
def test_workers_end_when_their_parent_is_killed(folder, is_busy):
    command = [sys.executable, "-c", PARENT.format(path=sys.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        server = int(parent.stdout.readline())
        if is_busy:
            wait_until(lambda: len([*folder.glob("*.bin")]) > 3)
            children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
            assert len(children) == 2
        else:
            children = []
        parent.kill()
    wait_until(lambda: not any(map(is_running, [server, *children])))
    assert len([*folder.glob("*.bin")]) < 100


INTERRUPTED = """
import os, signal, sys
sys.path[:] = {path!r}
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that starts jobs with & ignores SIGINT in them
from tests.unit.test_compile_workers import compile_workers, jobs, texts
print(compile_workers.shared_server(2).processes[0].pid, flush=True)
compile_workers.compile_in_parallel(jobs(*texts(300, "slow")))
"""


@posix
def test_ctrl_c_in_a_terminal_ends_all_processes(folder, two_workers):
    """The terminal sends the signal to every process of the group."""
    command = [sys.executable, "-c", INTERRUPTED.format(path=sys.path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as parent:
        server = int(parent.stdout.readline())
        wait_until(lambda: len([*folder.glob("*.bin")]) > 10)
        os.killpg(parent.pid, signal.SIGINT)
        errors = parent.communicate(timeout=20)[1]
    assert errors.count("Traceback") == 1
    assert errors.rstrip().endswith("KeyboardInterrupt")
    wait_until(lambda: not has_processes(parent.pid))
    assert not is_running(server)
    assert len([*folder.glob("*.bin")]) < 100
    assert not [*folder.glob("*.tmp")]


def has_processes(group):
    """Return whether a process of a group exists."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@posix
def test_a_forked_child_leaves_the_server_to_its_parent(folder, two_workers):
    server = compile_workers.shared_server(2)
    if not (child := os.fork()):
        try:
            is_forgotten = compile_workers._server is None
            server.close()
        finally:
            os._exit(0 if is_forgotten else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert server.is_running


# How many


@pytest.mark.parametrize(("setting", "count"), [("0", 0), ("5", 5), ("1000", compile_workers.MAX_WORKERS)])
def test_a_setting_limits_the_workers(setting, count, monkeypatch):
    monkeypatch.setenv("MINIFUSE_COMPILE_WORKERS", setting)
    assert count_workers() == count
    with use_workers(3):
        assert count_workers() == 3
        with use_workers(None):
            assert count_workers() == 3
    assert count_workers() == count


@pytest.mark.parametrize("setting", ["-1", "many", "2.5"])
def test_a_wrong_setting_is_refused(setting, monkeypatch):
    monkeypatch.setenv("MINIFUSE_COMPILE_WORKERS", setting)
    with pytest.raises(MinifuseError, match=r"MINIFUSE_COMPILE_WORKERS is .*write MINIFUSE_COMPILE_WORKERS=4, or"):
        count_workers()


@pytest.mark.parametrize(
    ("processors", "nbytes", "count"), [(16, 64 << 30, 15), (1, 64 << 30, 0), (16, 1 << 30, 4), (16, 0, 0), (16, None, 15)]
)
def test_processors_and_memory_limit_the_workers(processors, nbytes, count, monkeypatch):
    monkeypatch.delenv("MINIFUSE_COMPILE_WORKERS")
    monkeypatch.setattr(compile_workers, "count_processors", lambda: processors)
    monkeypatch.setattr(compile_workers, "available_nbytes", lambda: nbytes)
    assert count_workers() == count
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert count_workers() == 0


# Plans


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


def load(texts):
    """Load several kernels, one after the other, as a step does."""
    return [cache.find(f"def kernel():  # {text}", "", build, lambda name, payload: payload) for text in texts]


def test_all_kernels_of_a_plan_are_loaded(folder, two_workers):
    steps, before = [[f"a {k}", f"b {k}"] for k in range(5)], cache.stats()
    loaded = compile_workers.load_in_parallel([partial(load, step) for step in steps])
    assert [[payload.decode().partition("# ")[2] for payload in step] for step in loaded] == steps
    after = cache.stats()
    assert (after.compiled - before.compiled, after.loaded - before.loaded, after.on_disk) == (10, 0, 10)
    assert compile_workers._server is not None


def test_a_broken_kernel_raises_the_error_of_the_compiler(folder, two_workers):
    with pytest.raises(ValueError, match="it is broken"):
        compile_workers.load_in_parallel([partial(load, [text]) for text in ("a", "b", "broken", "c")])


FUSED = """
import sys
import minifuse as mf
from minifuse.runtime import compile_workers
@mf.fuse
def f(x, w):
    return tuple((mf.exp(x[k:] * w[k:]) + k).sum(0) for k in range(2)) + ((x[:, 1:] - 3).max(), x.T * 2, x.T.prod(1))
x = mf.ones(16, 16), mf.ones(16, 16)
"""
REPORT = """
stats = mf.cache.stats()
print(*[y.sum().item() for y in f(*x)])
print(stats.compiled, stats.loaded, compile_workers._server is not None, len(sys.modules))
"""


def test_a_fused_function_is_compiled_before_it_is_called(folder):
    script = """
wanted = len(f.plan(*x).kernels_to_compile())
compiled = f.compile(*x, processes=2)
here = mf.cache.stats()
f(*x)
print(wanted, compiled, here.in_memory == mf.cache.stats().in_memory, f.compile(*x))
"""
    wanted, compiled, is_all, again = run_script(FUSED + script).split()
    assert int(wanted) <= int(compiled) > 0
    assert (is_all, again) == ("True", "0")


def test_only_the_first_process_starts_workers(folder, tmp_path):
    script = FUSED + "f(*x)" + REPORT
    values, counts = run_script(script, MINIFUSE_COMPILE_WORKERS="1").splitlines()
    compiled, loaded, has_server, _ = counts.split()
    assert int(compiled) > 2
    assert (loaded, has_server) == ("0", "True")
    again, without = (run_script(script, MINIFUSE_COMPILE_WORKERS=x).splitlines() for x in ("1", "0"))
    assert again[1].split()[:3] == ["0", compiled, "False"]
    assert again == without, "the same modules are imported"
    alone = run_script(script, MINIFUSE_COMPILE_WORKERS="0", MINIFUSE_CACHE=str(tmp_path / "other")).splitlines()
    assert alone[1].split()[:3] == [compiled, "0", "False"]
    assert values == again[0] == alone[0]


def test_a_number_of_processes_overrides_the_setting(folder):
    script = FUSED + "print(f.compile(*x, processes={}) > 2, compile_workers._server is not None)"
    assert run_script(script.format(1), MINIFUSE_COMPILE_WORKERS="1").split() == ["True", "False"]
    cache.clear()
    assert run_script(script.format(2), MINIFUSE_COMPILE_WORKERS="0").split() == ["True", "True"]
