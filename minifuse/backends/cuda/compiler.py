"""Compile Python kernels to cubins with Numba CUDA. No GPU is needed: the caller names the compute capability.

A kernel is generated text or a function (the matmul ladder). Its names are rebound to Numba's objects, Numba emits PTX, and
NVIDIA's linker turns it into machine code, which the kernel cache stores.
"""

import linecache
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import metadata
from inspect import CO_VARARGS
from pathlib import Path
from struct import unpack_from
from types import CellType, CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.errors import MissingPartError
from ...simt import cuda as simulated_cuda
from ...simt.rebind import numba_cuda_lock
from ..numba_type_cache import cached_operator_types
from .device.driver import require_numpy
from .intrinsics import base
from .intrinsics.base import Intrinsic
from .intrinsics.fast_math import FAST_FUNCTIONS
from .intrinsics.integers import INTEGER_FUNCTIONS
from .kernel_pickle import dump_kernel, load_kernel

if TYPE_CHECKING:
    from numba.core import types

PTX_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*\(")
VALUE_WITH_SIZE = 4  # format of an attribute in a cubin: its size and its value follow
FRAME_SIZE = VALUE_WITH_SIZE, 0x11  # format and number of the attribute with the size of the stack
CUBIN_SECTION = re.compile(rb"\0\.text\.([\w$]+)\0")  # the section of a kernel in a cubin
Capability = tuple[int, int] | tuple[int, int, str]  # with "a": may use instructions of this GPU only
INSTALL_COMMAND = 'pip install "minifuse[cuda13]", or "minifuse[cuda12]" for drivers before 580'
compile_target: ContextVar[Capability] = ContextVar("target", default=(9, 0))  # compute capability
_device_functions: dict[Capability, dict[FunctionType, object]] = {}  # device functions by compute capability


class PtxKernel(NamedTuple):
    """PTX, and the name of the kernel in it."""

    ptx: str
    entry: str


def numba_cuda() -> ModuleType:
    """Return the module numba.cuda of the package numba-cuda. Never cached: a script may replace it."""
    try:
        import numba_cuda  # noqa: F401  # the package, not the module of the same name in old Numbas

        with numba_cuda_lock:
            from numba import cuda
    except ImportError as error:
        raise MissingPartError(f"numba-cuda is not installed ({error}); run: {INSTALL_COMMAND}") from None
    require_numpy()
    return cuda


def compile_ptx(
    kernel: Callable[..., None], signature: Sequence[str], threads: int = 0, blocks: int = 0, cc: tuple[int, int] = (9, 0)
) -> PtxKernel:
    """Compile a kernel to PTX.

    Parameters
    ----------
    kernel
        A Python function that calls `intrinsics`.
    signature : sequence of str
        A type for each argument: f32, f64, i32, i64, u8, or a pointer such as *f32. Types beyond the named parameters are
        those of `*extra`.
    threads, blocks
        The maximum number of threads per block and the minimum number of blocks per multiprocessor, which limit the
        registers of a thread; 0 sets no limit.
    cc : (int, int)
        The compute capability.
    """
    ptx = compile_with_numba(kernel, signature, threads, blocks, cc, "ptx")
    entry = PTX_ENTRY.search(ptx)
    assert entry is not None
    return PtxKernel(ptx, entry.group(1))


def compile_with_numba(
    kernel: Callable[..., None], signature: Sequence[str], threads: int, blocks: int, cc: Capability, output: str
) -> Any:
    """Compile a kernel with Numba: to text as "ptx", or to input of the link-time optimizer as "ltoir"."""
    assert isinstance(kernel, FunctionType)
    with compiling_for(cc) as cuda, cached_operator_types():
        types = [numba_type(name) for name in signature]
        bounds = {"launch_bounds": (threads, blocks) if blocks else threads} if threads else {}
        if kernel.__code__.co_flags & CO_VARARGS:
            named = kernel.__code__.co_argcount
            types[named:] = [cuda.types.StarArgTuple.from_types(types[named:])]
        numba_signature, device_functions = cuda.types.void(*types), dict(_device_functions.get(cc, {}))
        try:
            rebound = rebind_for_numba(kernel, device_functions)
            code, _ = cuda.compile(rebound, numba_signature, device=False, abi="numba", output=output, cc=cc, **bounds)
        except (ImportError, OSError, missing_library_error()) as error:  # a library of the toolkit, or libdevice
            raise MissingPartError(f"a library of the CUDA toolkit is missing ({error}); run: {INSTALL_COMMAND}") from error
        _device_functions[cc] = {
            function: compiled for function, compiled in device_functions.items() if hasattr(function, "is_device")
        }
    return code


def missing_library_error() -> type[Exception]:
    """Return the type of the error for a library of the CUDA toolkit that is not found."""
    from cuda.pathfinder import DynamicLibNotFoundError

    error_type: type[Exception] = DynamicLibNotFoundError
    return error_type


def numba_type(name: str) -> "types.Type":
    """Return Numba's type of an argument."""
    element = getattr(base, name.lstrip("*")).compiled
    kind: types.Type = numba_cuda().types.CPointer(element) if name.startswith("*") else element
    return kind


@contextmanager
def compiling_for(cc: Capability) -> Iterator[ModuleType]:
    """Make Numba compile device functions for `cc` instead of the present GPU, which need not exist. Yield numba.cuda.

    Numba imports some of its modules when it compiles the first kernel, so no script may replace numba.cuda meanwhile.
    """
    with numba_cuda_lock:
        cuda = numba_cuda()
        from numba.cuda import dispatcher as module

        dispatcher: Any = module
        get_device, token = dispatcher.get_current_device, compile_target.set(cc)
        dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=cc)
        try:
            yield cuda
        finally:
            dispatcher.get_current_device = get_device
            compile_target.reset(token)


def kernel_from_text(text: str, **functions: object) -> FunctionType:
    """Return a generated kernel as a Python function that can call `intrinsics` and these functions."""
    kernel: FunctionType = functions_from_text(text, **functions)["kernel"]
    return kernel


def functions_from_text(text: str, **functions: object) -> dict[str, Any]:
    """Execute a generated text, and return its functions by name, together with those that they may call."""
    filename = f"kernel_{sha256(text.encode()).hexdigest()[:8]}.py"
    linecache.cache[filename] = len(text), None, text.splitlines(True), filename  # lets messages and pictures show the lines
    namespace: dict[str, Any] = {
        **vars(base),
        **INTEGER_FUNCTIONS,
        **FAST_FUNCTIONS,
        **functions,
        "__name__": "minifuse.kernel",
    }
    exec(compile(text, filename, "exec"), namespace)  # this package generates the text, from names and integers
    return namespace


def rebind_for_numba(function: FunctionType, device_functions: dict[FunctionType, object] | None = None) -> FunctionType:
    """Return a copy of a function whose intrinsics, and those of all functions that it calls, are Numba's objects."""
    device_functions = {} if device_functions is None else device_functions
    names = {"__builtins__": __builtins__, "__name__": function.__module__}
    cells = tuple(CellType(_numba_object(cell.cell_contents, device_functions)) for cell in function.__closure__ or ())
    for name in _global_names(function.__code__) & function.__globals__.keys():
        names[name] = _numba_object(function.__globals__[name], device_functions)
    rebound = FunctionType(function.__code__, names, function.__name__, function.__defaults__, cells or None)
    rebound.__module__ = function.__module__
    return rebound


def _global_names(code: CodeType) -> set[str]:
    """Return the names that a function and its inner functions may read from its module."""
    return set(code.co_names).union(*[_global_names(c) for c in code.co_consts if isinstance(c, CodeType)])


def _numba_object(value: object, device_functions: dict[FunctionType, object]) -> object:
    """Return the object that Numba compiles in place of a value. Add new functions to `device_functions`."""
    if value is simulated_cuda:
        return numba_cuda()
    if isinstance(value, Intrinsic):
        return value.compiled
    if isinstance(value, FunctionType):
        if value not in device_functions:
            device_functions[value] = device_function(rebind_for_numba(value, device_functions))
        return device_functions[value]
    return value


def device_function(function: FunctionType) -> object:
    """Return a function that kernels can call."""
    return numba_cuda().jit(function, device=True)


def link_cubin(compiled: PtxKernel, cc: tuple[int, int]) -> bytes:
    """Assemble PTX, and return the name of the kernel, a line end, and the cubin."""
    from cuda.core import Linker, LinkerOptions, ObjectCode

    code = ObjectCode.from_ptx(compiled.ptx.encode())
    with_arch = LinkerOptions(arch=f"sm_{cc[0]}{cc[1]}")
    return compiled.entry.encode() + b"\n" + bytes(Linker(code, options=with_arch).link("cubin").code)


def compile_cubin(
    kernel: Callable[..., None], signature: Sequence[str], threads: int, blocks: int, cc: tuple[int, int]
) -> bytes:
    """Compile a kernel to machine code, in the format of `link_cubin`.

    `blocks` is the wanted number of blocks per multiprocessor. If registers do not suffice for it, so that some would be
    stored in memory, the kernel is compiled without this limit.
    """
    cubin = link_cubin(compile_ptx(kernel, signature, threads, blocks, cc), cc)
    if blocks and stack_bytes(cubin):
        cubin = link_cubin(compile_ptx(kernel, signature, threads, 0, cc), cc)
    return cubin


def compile_lto_cubin(
    kernel: Callable[..., None], signature: Sequence[str], threads: int, blocks: int, cc: tuple[int, int]
) -> bytes:
    """Compile a kernel for one GPU architecture only, such as sm_90a. Return the format of `link_cubin`.

    Code that is linked from PTX must be callable from other code. The assembler then ignores `setmaxnreg`, and serializes
    each `wgmma` that has too few registers. Link-time optimization knows that the kernel is the whole program.
    """
    from cuda.core import Linker, LinkerOptions, ObjectCode

    code = ObjectCode.from_ltoir(compile_with_numba(kernel, signature, threads, blocks, (*cc, "a"), "ltoir"))
    options = LinkerOptions(arch=f"sm_{cc[0]}{cc[1]}a", link_time_optimization=True)
    cubin = bytes(Linker(code, options=options).link("cubin").code)
    section = CUBIN_SECTION.search(cubin)
    assert section is not None
    return section.group(1) + b"\n" + cubin


def stack_bytes(cubin: bytes) -> int:
    """Return the bytes of stack of each thread of the kernel in a cubin, as `link_cubin` returns it.

    The section `.nv.info` is a list of attributes: a format, a number, and a size or a value of two bytes. The frame size is
    an attribute with the index of a symbol and the size, four bytes each.
    """
    elf = cubin[cubin.index(b"\n") + 1 :]
    start, count, names = (*unpack_from("<Q", elf, 0x28), *unpack_from("<2H", elf, 0x3C))
    sections = [unpack_from("<2I4Q2I2Q", elf, start + 64 * k) for k in range(count)]
    names_at, frame = sections[names][4], 0
    for section in sections:
        name = elf[names_at + section[0] : elf.index(b"\0", names_at + section[0])]
        at, end = section[4], section[4] + section[5]
        while name == b".nv.info" and at < end:
            kind, attribute, size = unpack_from("<2BH", elf, at)
            if (kind, attribute) == FRAME_SIZE:
                frame = max(frame, *unpack_from("<I", elf, at + 8))
            at += 4 + size * (kind == VALUE_WITH_SIZE)
    return frame


@dataclass(frozen=True)
class CubinCompiler:
    """Compiles one kernel to machine code. Other processes can do it, since the object can be pickled."""

    make_kernel: Callable[[], Callable[..., None]]
    signature: tuple[str, ...]
    threads: int
    min_blocks: int  # per multiprocessor
    capability: tuple[int, int]
    is_arch_specific: bool = False

    def __call__(self, name: str, text: str) -> bytes:
        """Return the payload for the kernel cache. The name and the text of the kernel have no effect."""
        kernel, limits = self.make_kernel(), (self.threads, self.min_blocks)
        if self.is_arch_specific:
            return compile_lto_cubin(kernel, self.signature, *limits, self.capability)
        return compile_cubin(kernel, self.signature, *limits, self.capability)

    def __reduce__(self) -> tuple[Callable[..., "CubinCompiler"], tuple[object, ...]]:
        """Return how to restore this object in another process."""
        options = self.signature, self.threads, self.min_blocks, self.capability, self.is_arch_specific
        return restore_compiler, (dump_kernel(self.make_kernel()), *options)


def restore_compiler(data: bytes, *options: Any) -> CubinCompiler:
    """Return the pickled compiler of a kernel."""
    return CubinCompiler(lambda: load_kernel(data), *options)


@cache
def compiler_fingerprint(cc: tuple[int, int]) -> str:
    """Return everything that determines the machine code, except the text of the kernel."""
    folder = Path(__file__).parent
    files = [
        *sorted(folder.rglob("*.py")),
        *sorted(folder.parent.glob("*.py")),
    ]  # the second list: files that the backends share
    sources = b"".join(path.read_bytes() for path in files)
    packages = ("numba-cuda", "llvmlite", "cuda-core", "cuda-bindings", "nvidia-nvvm", "nvidia-nvjitlink")
    versions = [f"{package} {version_of(package)}" for package in packages]
    return "\n".join(["cuda", f"sm_{cc[0]}{cc[1]}", *versions, sha256(sources).hexdigest()])


def version_of(package: str) -> str:
    """Return the version of an installed package, or "-" if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "-"
