"""`minifuse doctor`: check this machine: what is installed, what is missing, and how to install it."""

import ctypes
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
from ..inspect.report import Line
from ..runtime.compile_workers import WORKERS_VARIABLE, count_workers
from ..runtime.kernel_cache import cache
from ..runtime.kernel_files import limit_nbytes
from ..tensors.creation import tensor
from .output import print_json, print_plain

EXTRAS = {"rich": "cli", "typer": "cli", "scikit-learn": "data", "streamlit": "app", "hypothesis": "test", "pytest": "test"}
REQUIRED_PACKAGES = ("numpy", "numba", "llvmlite")
CUDA_PACKAGES = ("numba-cuda", "cuda-core", "cuda-bindings")  # packages that run kernels on a GPU
VECTOR_EXTENSIONS = {
    "avx512f": "AVX-512: 16 float32 per instruction",
    "avx2": "AVX2: 8 float32 per instruction",
    "neon": "NEON: 4 float32 per instruction",
}
CAPABILITY_ATTRIBUTES = 75, 76  # attributes of the CUDA driver: major and minor version
MIN_LINE_LENGTH = 20  # characters beside the topics, also in narrow terminals
REPORT_ADVICE = "report this with the output of `minifuse doctor --json`"


@dataclass(frozen=True)
class DoctorFinding:
    """One line of the report. `advice` is the correction if it is not `ok`; `needed` is False for optional parts."""

    topic: str
    found: str
    ok: bool = True
    advice: str = ""
    needed: bool = True


def examine(*, runs_kernels: bool = True) -> dict[str, list[DoctorFinding]]:
    """Check everything that minifuse needs or can use, and return the findings by section.

    Without running kernels it takes a few milliseconds, and reports what is installed, not whether it works.
    """
    return {
        "Python and the processor": [
            *describe_machine(),
            *check_packages(),
            check_cache_folder(),
            *[check_kernel() for _ in range(runs_kernels)],
        ],
        "CUDA": list(check_cuda(runs_kernels)),
    }


def describe_machine() -> list[DoctorFinding]:
    """Report the processor, its vector instructions and threads, and Python."""
    import llvmlite.binding as llvm

    from ..backends.parallel.driver import THREADS
    from ..runtime.processors import cpu_quota

    features = llvm.get_host_cpu_features()
    vectors = next(
        (description for name, description in VECTOR_EXTENSIONS.items() if features.get(name)), "128-bit or none known"
    )
    quota = cpu_quota()
    quota_text = "" if quota is None else f", a quota of {quota:g} processors"
    return [
        DoctorFinding("minifuse", __version__),
        DoctorFinding("Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
        DoctorFinding(
            "processor", f"{llvm.get_host_cpu_name()}, {os.cpu_count()} cores{quota_text}, {THREADS} threads for kernels"
        ),
        DoctorFinding("vectors", vectors),
        check_compile_workers(),
    ]


def check_compile_workers() -> DoctorFinding:
    """Report how many processes compile the kernels of a call beside this one."""
    try:
        count = count_workers()
    except MinifuseError as error:
        return DoctorFinding("compile workers", str(error), False, f"unset {WORKERS_VARIABLE}")
    return DoctorFinding("compile workers", f"at most {count}" if count else "none: kernels are compiled in one process")


def check_packages() -> list[DoctorFinding]:
    """Report the installed packages, and missing optional ones."""
    return [check_package(name) for name in REQUIRED_PACKAGES] + [
        check_package(name, extra, False) for name, extra in EXTRAS.items()
    ]


def check_package(name: str, extra: str = "", needed: bool = True) -> DoctorFinding:
    """Report the version of a package, or the line that installs it."""
    try:
        return DoctorFinding(name, metadata.version(name), needed=needed)
    except metadata.PackageNotFoundError:
        line = f'pip install "minifuse[{extra}]"' if extra else "pip install minifuse"
        return DoctorFinding(name, "not installed", False, line, needed)


def check_cache_folder() -> DoctorFinding:
    """Report whether compiled kernels are kept on disk, and why not."""
    stats = cache.stats()
    if stats.folder is not None and not limit_nbytes():
        return DoctorFinding("kernel cache", "in memory only, since MINIFUSE_CACHE_LIMIT_MB is 0")
    try:
        cache.check()
    except MinifuseError as error:
        return DoctorFinding("kernel cache", str(error), False, "set MINIFUSE_CACHE to a folder that you can write to")
    assert stats.folder is not None
    return DoctorFinding(
        "kernel cache", f"{abbreviate_home(stats.folder)}: {stats.on_disk} kernels, {stats.nbytes_on_disk / 1e6:.1f} MB"
    )


def abbreviate_home(path: Path) -> str:
    """Abbreviate the home folder to ~."""
    return f"~/{path.relative_to(Path.home())}" if path.is_relative_to(Path.home()) else str(path)


def check_kernel() -> DoctorFinding:
    """Report whether a kernel compiles, runs, and returns the right result."""
    start = time.perf_counter()
    error = kernel_error("parallel", 1000)
    ms = (time.perf_counter() - start) * 1e3
    return DoctorFinding(
        "a kernel",
        f"compiled or loaded, and run, in {ms:.0f} ms; largest relative error {error:.1e}",
        error < 1e-6,
        REPORT_ADVICE,
    )


def kernel_error(backend: str, size: int) -> float:
    """Return the largest relative error of exp(2 x + 1), in one kernel of a backend."""
    x = np.linspace(-2, 2, size, dtype=np.float32)
    result = (tensor(x, backend=backend) * 2 + 1).exp().numpy()
    return float(np.max(np.abs(result / np.exp(x.astype(np.float64) * 2 + 1) - 1)))


# CUDA.


def check_cuda(runs_kernels: bool = True) -> Iterator[DoctorFinding]:
    """Report the driver, the GPUs, the packages, and whether kernels compile and run.

    A missing GPU is not an error. A GPU for which no package is installed is not one either, but the line that installs them
    is named.
    """
    info = driver.query_driver()
    if info.gpus:
        version = f"{info.version // 1000}.{info.version % 1000 // 10}"
        is_new = info.version >= driver.MIN_DRIVER_VERSION
        yield DoctorFinding("NVIDIA driver", f"for CUDA {version}", is_new, "update the driver: expected CUDA 12.0 or newer")
        for index in range(info.gpus):
            yield DoctorFinding(f"GPU {index}", describe_gpu(index))
    else:
        yield DoctorFinding("GPU", f"none: {info.reason}")
    parts = [check_package(name, info.extra) for name in CUDA_PACKAGES]
    uses_gpu = bool(info.gpus) and parts[0].ok
    parts = [replace(part, needed=uses_gpu) for part in parts]
    yield from parts if info.gpus else map(as_optional, parts)
    if parts[0].ok and not driver.is_numpy_supported():
        parts.append(
            DoctorFinding(
                "NumPy", f"{np.__version__}, too new for numba-cuda", False, driver.NUMPY_INSTALL_COMMAND, uses_gpu
            )
        )
        yield parts[-1]
    greenlet_finding = check_package("greenlet", "simt", uses_gpu)
    yield greenlet_finding
    if runs_kernels and greenlet_finding.ok and parts[0].ok and parts[-1].ok:
        yield check_compilation()
    if runs_kernels and greenlet_finding.ok and (all(part.ok for part in parts) or not info.gpus):
        yield check_cuda_kernel(info)


def as_optional(part: DoctorFinding) -> DoctorFinding:
    """Mark a missing package as optional, since this machine has no GPU."""
    return part if part.ok else replace(part, found="not installed; only a GPU needs it", ok=True, advice="")


def describe_gpu(index: int) -> str:
    """Return the name and compute capability of a GPU, from the library of the driver."""
    try:
        library = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError as error:
        return f"does not answer: {error}"
    device, text, number = ctypes.c_int(), ctypes.create_string_buffer(128), ctypes.c_int()
    status = library.cuInit(0) or library.cuDeviceGet(ctypes.byref(device), index)
    if status or library.cuDeviceGetName(text, len(text), device):
        return "does not answer"
    parts = []
    for attribute in CAPABILITY_ATTRIBUTES:
        library.cuDeviceGetAttribute(ctypes.byref(number), attribute, device)
        parts.append(str(number.value))
    return f"{text.value.decode(errors='replace')}, compute capability {'.'.join(parts)}"


def check_compilation() -> DoctorFinding:
    """Report whether a kernel of the library compiles, which needs no GPU."""
    start = time.perf_counter()
    try:
        from ..backends.cuda.compiler import compile_ptx
        from ..backends.cuda.matmul.ladder import LADDER

        rung = LADDER["coalesced"].kernel(32, 32, 32)
        compile_ptx(rung.function, rung.signature, rung.threads, rung.blocks)
    except Exception as error:  # whatever a damaged installation raises
        advice = f'pip install --force-reinstall "minifuse[{driver.query_driver().extra}]"'
        return DoctorFinding("to PTX", format_error(error), False, advice, bool(driver.query_driver().gpus))
    return DoctorFinding(
        "to PTX", f"a kernel compiled for compute capability 9.0 in {(time.perf_counter() - start) * 1e3:.0f} ms"
    )


def check_cuda_kernel(info: driver.DriverInfo) -> DoctorFinding:
    """Report whether a kernel runs on the cuda backend and returns the right result."""
    start = time.perf_counter()
    device = "by GPU 0" if info.gpus else "lane by lane in the interpreter (simulated)"
    try:
        error = kernel_error("cuda", 1000)
    except Exception as failure:  # a driver that does not start, a damaged package
        return DoctorFinding("a CUDA kernel", format_error(failure), False, REPORT_ADVICE)
    ms = (time.perf_counter() - start) * 1e3
    return DoctorFinding(
        "a CUDA kernel", f"run {device} in {ms:.0f} ms; largest relative error {error:.1e}", error < 1e-6, REPORT_ADVICE
    )


def format_error(error: Exception) -> str:
    """Format an error as one line."""
    return f"{type(error).__name__}: {error}".partition("\n")[0]


def run(json: bool) -> int:
    """Print the report; return 1 if a required part does not work."""
    sections = examine()
    findings = [finding for group in sections.values() for finding in group]
    if json:
        print_json([asdict(f) for f in findings])
    else:
        show(sections)
    return int(any(not f.ok and f.needed for f in findings))


def show(sections: dict[str, list[DoctorFinding]]) -> None:
    """Print the findings by section, as wide as the terminal, without rich, which may be missing."""
    print_plain(format_sections(sections, shutil.get_terminal_size().columns - 1))


def format_sections(sections: dict[str, list[DoctorFinding]], width: int) -> Iterator[Line]:
    """Yield the lines of the report, with the correction of a part below it."""
    topic_width = max(len(f.topic) for group in sections.values() for f in group)
    indent = " " * (topic_width + 6)
    text_width = max(width - len(indent), MIN_LINE_LENGTH)
    for k, (heading, group) in enumerate(sections.items()):
        yield from [[]] * (k > 0)
        yield [(heading, "bold")]
        for f in group:
            first, *rest = wrap(f.found, text_width, break_on_hyphens=False) or [""]
            yield [("ok", "green") if f.ok else ("--", "red"), (f"  {f.topic:<{topic_width}}  {first}".rstrip(), "")]
            yield from ([(indent + line, "")] for line in rest)
            if not f.ok:
                yield from ([(indent, ""), (line, "bold")] for line in wrap(f.advice, text_width, break_on_hyphens=False))
