"""Processes that use a GPU: what the second one need not compile, what is damaged on disk, what compute-sanitizer says."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from minifuse.runtime.kernel_files import MAGIC, checksum

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("gpu")]

ROOT = Path(__file__).parents[2]
PROGRAM = """
import minifuse as mf
x = mf.full((33, 65), 0.5, backend="cuda")
y = (mf.tanh(x * 2 + 1).softmax(1) @ x.T).sum(0)
print(round(float(y.sum().item()), 3))
stats = mf.cache.stats()
print(stats.compiled, stats.loaded)
"""


SEEN = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])  # what another process imports from


def run(folder, *command, seconds=300):
    """A process of its own, with this folder for its kernels; gives what it printed."""
    environment = {
        **os.environ,
        "MINIFUSE_CACHE": str(folder),
        "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
    }
    found = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False)
    assert found.returncode == 0, f"{found.stdout[-3000:]}\n{found.stderr[-3000:]}"
    return found.stdout


def program(folder):
    """(result, kernels compiled, kernels loaded) of the program."""
    result, counts = run(folder, sys.executable, "-c", PROGRAM).splitlines()[-2:]
    return (result, *map(int, counts.split()))


@pytest.fixture(scope="module")
def first(tmp_path_factory, gpu):
    """The folder of a process that has compiled its kernels, and what it printed."""
    folder = tmp_path_factory.mktemp("kernels")
    return folder, program(folder)


def copy(folder, target):
    shutil.copytree(folder, target)
    return sorted(target.glob("k_*.bin"))


def test_a_second_process_compiles_nothing(first):
    folder, (result, compiled, loaded) = first
    assert compiled > 0
    assert loaded == 0
    assert program(folder) == (result, 0, compiled)


def test_a_damaged_file_is_compiled_again(first, tmp_path):
    folder, (result, compiled, _) = first
    files = copy(folder, tmp_path / "kernels")
    files[0].write_bytes(files[0].read_bytes()[:-7])
    files[1].write_bytes(b"nothing")
    assert program(tmp_path / "kernels") == (result, 2, compiled - 2)
    assert program(tmp_path / "kernels") == (result, 0, compiled)


def test_an_intact_file_without_machine_code_is_compiled_again(first, tmp_path):
    """As after an update of the driver that no longer takes it."""
    folder, (result, compiled, _) = first
    for file in copy(folder, tmp_path / "kernels"):
        entry = file.read_bytes()[len(MAGIC) + 32 :].partition(b"\n")[0]
        payload = entry + b"\n" + b"\x7fELF and then nothing that a GPU knows" * 9
        file.write_bytes(MAGIC + checksum(file.stem, payload) + payload)
    assert program(tmp_path / "kernels") == (result, compiled, 0)


@pytest.mark.parametrize("tool", ["memcheck", "racecheck"])
def test_compute_sanitizer_finds_nothing(tool, tmp_path_factory):
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        pytest.skip("compute-sanitizer is not on the PATH; it comes with the CUDA toolkit")
    folder = tmp_path_factory.getbasetemp() / "sanitized"  # compiled once for both tools
    run(folder, sys.executable, "-m", "tests.cuda.sanitized")
    # cuda.core asks for the context before there is one; that is its own affair.
    options = ["--tool", tool, "--report-api-errors", "no", "--error-exitcode", "9"]
    out = run(folder, sanitizer, *options, sys.executable, "-m", "tests.cuda.sanitized", seconds=600)
    assert "all right" in out
    summary = next(line for line in out.splitlines() if "SUMMARY" in line)
    assert re.search(r"\b0 errors\b", summary), out[-3000:]


def test_compute_sanitizer_would_find_something(tmp_path):
    """A kernel that writes past its memory: so that silence means something."""
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        pytest.skip("compute-sanitizer is not on the PATH; it comes with the CUDA toolkit")
    options = ["--tool", "memcheck", "--report-api-errors", "no", "--error-exitcode", "9"]
    command = [sanitizer, *options, sys.executable, "-c", BROKEN]
    environment = {
        **os.environ,
        "MINIFUSE_CACHE": str(tmp_path),
        "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
    }
    found = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert found.returncode != 0
    assert "Invalid __global__ write" in found.stdout


BROKEN = """
from minifuse.backends.cuda.compiler import kernel_from_text
from minifuse.backends.cuda.geometry import LaunchGeometry
from minifuse.backends.registry import get_backend
text = "def kernel(out, n):\\n    out[n + cuda.threadIdx.x] = f32(1)\\n"
device = get_backend("cuda").device
loaded = device.load(text, lambda: kernel_from_text(text), ("*f32", "i64"), 32)
memory = device.allocate(4096)
device.prepare(loaded, LaunchGeometry((1, 1, 1), (32, 1, 1)))(memory.address, 1 << 40)
device.synchronize()
"""
