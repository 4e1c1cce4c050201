"""`minifuse doctor`: what this machine has, what is missing, and the line that installs it."""

import ctypes
import json as json_
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path
from textwrap import wrap

import numpy as np

from .. import __version__
from ..backends.cuda.device import driver
from ..core.errors import MinifuseError
from ..runtime.kernel_cache import cache, limit_nbytes
from ..tensors.creation import tensor

EXTRAS = {"rich": "cli", "typer": "cli", "scikit-learn": "cli", "streamlit": "app", "hypothesis": "test", "pytest": "test"}
NEEDED = ("numpy", "numba", "llvmlite")
OF_CUDA = ("numba-cuda", "cuda-core", "cuda-bindings")  # what drives a GPU
VECTORS = {"avx512f": "AVX-512: 16 float32 at once", "avx2": "AVX2: 8 float32 at once", "neon": "NEON: 4 float32 at once"}
CAPABILITY = 75, 76  # the driver's numbers for its attributes: the major and the minor part
BOLD, RED, GREEN = 1, 31, 32  # of ECMA-48
SHORTEST_LINE = 20  # characters beside the topics, however narrow the terminal is
REPORT = "report this with the output of `minifuse doctor --json`"


@dataclass(frozen=True)
class Finding:
    """One line of the report; `advice` says what to do where it is not `ok`. What is not `needed` may be missing."""

    topic: str
    found: str
    ok: bool = True
    advice: str = ""
    needed: bool = True


def examine(*, runs_kernels: bool = True) -> dict[str, list[Finding]]:
    """Look at everything that minifuse needs or can use: headings, and what stands under them.

    Without kernels it takes a few milliseconds, and says what is there, not whether it works.
    """
    return {
        "Python and the processor": [*machine(), *packages(), cache_folder(), *[kernel() for _ in range(runs_kernels)]],
        "CUDA": list(cuda(runs_kernels)),
    }


def machine() -> list[Finding]:
    """The processor, its vectors, its threads, and Python."""
    import llvmlite.binding as llvm

    from ..backends.parallel.driver import THREADS
    from ..backends.parallel.processors import cpu_quota

    features = llvm.get_host_cpu_features()
    vectors = next((words for name, words in VECTORS.items() if features.get(name)), "128-bit or none known")
    quota = cpu_quota()
    limit = "" if quota is None else f", a quota of {quota:g} processors"
    return [
        Finding("minifuse", __version__),
        Finding("Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
        Finding("processor", f"{llvm.get_host_cpu_name()}, {os.cpu_count()} cores{limit}, {THREADS} threads for kernels"),
        Finding("vectors", vectors),
    ]


def packages() -> list[Finding]:
    """What is installed, and what optional parts are not."""
    return [package(name) for name in NEEDED] + [package(name, extra, False) for name, extra in EXTRAS.items()]


def package(name: str, extra: str = "", needed: bool = True) -> Finding:
    """The version of a package, or the line that installs it."""
    try:
        return Finding(name, metadata.version(name), needed=needed)
    except metadata.PackageNotFoundError:
        line = f'pip install "minifuse[{extra}]"' if extra else "pip install minifuse"
        return Finding(name, "not installed", False, line, needed)


def cache_folder() -> Finding:
    """Report whether compiled kernels are kept on disk, and why not."""
    stats = cache.stats()
    if stats.folder is not None and not limit_nbytes():
        return Finding("kernel cache", "in memory only, since MINIFUSE_CACHE_LIMIT_MB is 0")
    try:
        cache.check()
    except MinifuseError as error:
        return Finding("kernel cache", str(error), False, "set MINIFUSE_CACHE to a folder of your own that can be written")
    assert stats.folder is not None
    return Finding("kernel cache", f"{at_home(stats.folder)}: {stats.on_disk} kernels, {stats.nbytes_on_disk / 1e6:.1f} MB")


def at_home(path: Path) -> str:
    """A path as a person writes it: the home folder is ~."""
    return f"~/{path.relative_to(Path.home())}" if path.is_relative_to(Path.home()) else str(path)


def kernel() -> Finding:
    """Whether a kernel compiles, runs, and is right."""
    start = time.perf_counter()
    error = error_of_a_kernel("parallel", 1000)
    ms = (time.perf_counter() - start) * 1e3
    return Finding(
        "a kernel", f"compiled or loaded, and run, in {ms:.0f} ms; largest relative error {error:.1e}", error < 1e-6, REPORT
    )


def error_of_a_kernel(backend: str, size: int) -> float:
    """The largest relative error of exp(2 x + 1), in one kernel of a backend."""
    x = np.linspace(-2, 2, size, dtype=np.float32)
    result = (tensor(x, backend=backend) * 2 + 1).exp().numpy()
    return float(np.max(np.abs(result / np.exp(x.astype(np.float64) * 2 + 1) - 1)))


# CUDA.


def cuda(runs_kernels: bool = True) -> Iterator[Finding]:
    """The driver, the GPUs, the packages, and whether kernels compile and run. No GPU is no fault."""
    found = driver.query_driver()
    if found.gpus:
        version = f"{found.version // 1000}.{found.version % 1000 // 10}"
        is_new = found.version >= driver.MIN_DRIVER_VERSION
        yield Finding("NVIDIA driver", f"for CUDA {version}", is_new, "update the driver: expected CUDA 12.0 or newer")
        for index in range(found.gpus):
            yield Finding(f"GPU {index}", name_of(index))
    else:
        yield Finding("GPU", f"none: {found.reason}")
    parts = [package(name, found.extra, bool(found.gpus)) for name in OF_CUDA]
    yield from parts if found.gpus else map(optional, parts)
    if parts[0].ok and not driver.is_numpy_supported():
        parts.append(
            Finding(
                "NumPy", f"{np.__version__}, too new for numba-cuda", False, driver.NUMPY_INSTALL_COMMAND, bool(found.gpus)
            )
        )
        yield parts[-1]
    lanes = package("greenlet", "simt", bool(found.gpus))
    yield lanes
    if runs_kernels and lanes.ok and parts[0].ok and parts[-1].ok:
        yield compilation()
    if runs_kernels and lanes.ok and (all(part.ok for part in parts) or not found.gpus):
        yield cuda_kernel(found)


def optional(part: Finding) -> Finding:
    """A package that only a GPU needs, on a machine that has none: it may be missing."""
    return part if part.ok else replace(part, found="not installed; only a GPU needs it", ok=True, advice="")


def name_of(index: int) -> str:
    """The name and compute capability of a GPU, from the driver's own library."""
    library = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    device, text, number = ctypes.c_int(), ctypes.create_string_buffer(128), ctypes.c_int()
    status = library.cuInit(0) or library.cuDeviceGet(ctypes.byref(device), index)
    if status or library.cuDeviceGetName(text, len(text), device):
        return "does not answer"
    parts = []
    for attribute in CAPABILITY:
        library.cuDeviceGetAttribute(ctypes.byref(number), attribute, device)
        parts.append(str(number.value))
    return f"{text.value.decode(errors='replace')}, compute capability {'.'.join(parts)}"


def compilation() -> Finding:
    """Whether a kernel of the library compiles; that needs no GPU."""
    start = time.perf_counter()
    try:
        from ..backends.cuda.compiler import compile_ptx
        from ..backends.cuda.matmul.ladder import LADDER

        rung = LADDER["coalesced"].kernel(32, 32, 32)
        compile_ptx(rung.function, rung.signature, rung.threads, rung.blocks)
    except Exception as error:  # whatever a damaged installation raises
        advice = f'pip install --force-reinstall "minifuse[{driver.query_driver().extra}]"'
        return Finding("to PTX", told(error), False, advice, bool(driver.query_driver().gpus))
    return Finding("to PTX", f"a kernel compiled for compute capability 9.0 in {(time.perf_counter() - start) * 1e3:.0f} ms")


def cuda_kernel(found: driver.DriverInfo) -> Finding:
    """Whether a kernel runs on the backend "cuda", and is right."""
    start = time.perf_counter()
    where = "by GPU 0" if found.gpus else "lane by lane in the interpreter (simulated)"
    try:
        error = error_of_a_kernel("cuda", 1000)
    except Exception as failure:  # a driver that does not start, a damaged package
        return Finding("a CUDA kernel", told(failure), False, REPORT)
    ms = (time.perf_counter() - start) * 1e3
    return Finding("a CUDA kernel", f"run {where} in {ms:.0f} ms; largest relative error {error:.1e}", error < 1e-6, REPORT)


def told(error: Exception) -> str:
    """An error in a line."""
    return f"{type(error).__name__}: {error}".partition("\n")[0]


def run(json: bool) -> int:
    """Print the report; the exit status is 1 where a needed part does not work."""
    sections = examine()
    findings = [finding for group in sections.values() for finding in group]
    if json:
        print(json_.dumps([asdict(f) for f in findings], indent=2))
    else:
        show(sections)
    return int(any(not f.ok and f.needed for f in findings))


def show(sections: dict[str, list[Finding]]) -> None:
    """Print the findings below their headings, as wide as the terminal; rich is not needed, since it may be missing."""
    width = max(len(f.topic) for group in sections.values() for f in group)
    before = " " * (width + 6)
    room = max(shutil.get_terminal_size().columns - 1, len(before) + SHORTEST_LINE)
    for k, (heading, group) in enumerate(sections.items()):
        print("\n" * (k > 0) + styled(heading, BOLD))
        for f in group:
            sign = styled("ok", GREEN) if f.ok else styled("--", RED)
            first, *more = wrap(f.found, room - len(before), break_on_hyphens=False) or [""]
            print(f"{sign}  {f.topic:<{width}}  {first}".rstrip(), *(before + line for line in more), sep="\n")
            if not f.ok:
                lines = wrap(f.advice, room - len(before), break_on_hyphens=False)
                print(*(before + styled(line, BOLD) for line in lines), sep="\n")


def styled(text: str, code: int) -> str:
    """Return text with the escape sequence of a style, where standard output is a terminal that shows it."""
    is_plain = not sys.stdout.isatty() or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb" or os.name == "nt"
    return text if is_plain else f"\x1b[{code}m{text}\x1b[0m"
