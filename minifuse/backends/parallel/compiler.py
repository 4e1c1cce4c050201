"""Generate the text of CPU kernels, and compile it to machine code.

All kernels have the signature kernel(start, stop, args): a range of the first axis, and a buffer of packed addresses,
numbers, sizes and strides. So one compiled driver launches all of them, on one thread or on several.

The text is completed to a Python file with imports and a decorator, compiled with Numba to an object file, and linked into
this process. The kernel cache stores the object file, so a second process only links it and does not even import Numba.
"""

import linecache
import os
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from symtable import symtable
from types import FunctionType
from typing import TYPE_CHECKING, Any

import llvmlite.binding as llvm

from ...core.dtypes import DType, bool_
from ...core.errors import CompileError
from ...ir.kernel_ir import IndexValue, Kernel, KernelParameter
from ...runtime.kernel_cache import cache as kernel_cache
from ..codegen.expression_printer import Dialect, ExpressionPrinter, operand_name
from ..codegen.loop_emitter import LoopEmitter
from ..codegen.nested_loops import NestedLoopEmitter, NestedLoops
from ..codegen.short_axes import Literals
from ..llvm_linker import VECTOR_BYTES, host_processor, link, needed_symbols
from ..numba_type_cache import cached_operator_types

if TYPE_CHECKING:
    from numba.core.codegen import AOTCodeLibrary
    from numba.core.compiler import CompilerBase

SIGNATURE = "void(int64, int64, CPointer(int64))"  # start, stop, args
IMPORT = "from numba import cfunc\n"
DECORATOR = f"""
@cfunc("{SIGNATURE}", error_model="numpy",
       fastmath={{"reassoc", "contract", "arcp", "afn"}})
"""
VOCABULARY_MODULE = "minifuse.backends.parallel.vector_math"
MICRO_KERNEL_MODULE = "minifuse.backends.parallel.micro_kernel"
MICRO_KERNEL_NAMES = {"shift", "turn_tile"}
BUILTIN_NAMES = {"range", "len", "min", "max", "int", "float", "bool"}  # Python's builtins, which Numba compiles
NUMBA_SETTINGS = """NUMBA_CPU_NAME NUMBA_CPU_FEATURES NUMBA_OPT NUMBA_LOOP_VECTORIZE NUMBA_SLP_VECTORIZE NUMBA_ENABLE_AVX
NUMBA_DISABLE_INTEL_SVML NUMBA_BOUNDSCHECK"""  # environment variables that change the machine code


def compile_kernel_text(text: str) -> int:
    """Return the address of a compiled kernel: from memory, from disk, or compiled now.

    Parameters
    ----------
    text : str
        `def kernel(start, stop, args):` and its body, in the Python that Numba compiles. It processes a range of the first
        axis; `args` points to the packed arguments, int64 each. Import lines may precede it. All other global names are
        imported from `vector_math`, except `range` and a few other builtins. In the file, the function is renamed to
        `k_<sha>`, after the hash of the text.

    Returns
    -------
    int
        Address of a C function `void(int64 start, int64 stop, int64 *args)`, valid until the process ends.

    Notes
    -----
    A pointwise kernel compiles in 40 to 60 ms, after 0.5 s once to import Numba. From disk it takes 0.4 ms, after 50 ms once
    to start LLVM.

    Examples
    --------
    >>> address = compile_kernel_text('''
    ... def kernel(start, stop, args):
    ...     for i in range(start, stop):
    ...         args[i] = 2 * i
    ... ''')
    """
    return kernel_cache.find(complete_source(text), compiler_fingerprint(), build_object, link_object)


@lru_cache(1024)
def complete_source(text: str) -> str:
    """Complete a kernel text to a Python file: imports, the decorator, the function."""
    module = symtable(text, "kernel", "exec")
    function = {table.get_name(): table for table in module.get_children()}["kernel"]
    imported = {symbol.get_name() for symbol in module.get_symbols() if symbol.is_imported()}
    tables = [function, *function.get_children()]
    read = {symbol.get_name() for table in tables for symbol in table.get_symbols() if symbol.is_global()}
    names = read - imported - BUILTIN_NAMES
    imports = IMPORT
    for source, known in ((MICRO_KERNEL_MODULE, MICRO_KERNEL_NAMES), (VOCABULARY_MODULE, names - MICRO_KERNEL_NAMES)):
        words = sorted(known.intersection(names))
        imports += f"\nfrom {source} import {', '.join(words)}\n" if words else ""
    before, definition, body = text.partition("def kernel(")
    return imports + before.lstrip("\n") + DECORATOR + definition + body


@cache
def compiler_fingerprint() -> str:
    """Return everything that determines the machine code, except the text of the kernel."""
    folder = Path(__file__).parent
    files = [
        *sorted(folder.rglob("*.py")),
        *sorted(folder.parent.glob("*.py")),
    ]  # the second list: files that the backends share
    sources = b"".join(map(Path.read_bytes, files))
    versions = [f"{package} {metadata.version(package)}" for package in ("numba", "llvmlite")]
    settings = [f"{name}={os.environ[name]}" for name in NUMBA_SETTINGS.split() if name in os.environ]
    return "\n".join(["cpu", *host_processor(), *versions, *settings, sha256(sources).hexdigest()])


def build_object(name: str, text: str) -> bytes:
    """Compile a kernel to bytes: the names of the external functions that it calls, a line end, an object file.

    Raises
    ------
    CompileError
        This process lacks one of these functions, or the vocabulary lacks that of a primitive operator.
    """
    filename = f"{name}.py"
    linecache.cache[filename] = len(text), None, text.splitlines(True), filename  # for Numba's error messages
    namespace: dict[str, object] = {
        "__name__": name,
        "cfunc": lambda signature, **options: lambda function: _compile(function, name, signature, options),
    }
    try:
        exec(compile(text.replace(IMPORT, "\n", 1), filename, "exec"), namespace)
    except ImportError as error:
        if error.name != VOCABULARY_MODULE:
            raise
        raise CompileError(
            f"{error}; a primitive operator needs a function of its name there, as 'An operator' in CONTRIBUTING.md says: "
            "add it, or write @operator in place of @primitive, and the body with other operators"
        ) from error
    code = namespace[name]
    assert isinstance(code, bytes)
    return code


def _compile(function: FunctionType, name: str, signature: str, options: dict[str, object]) -> bytes:
    """Compile like `numba.cfunc`, but to an object file, with a wrapper function of the given name that raises no errors.

    The module is not added to Numba's execution engine, which would end the process if a symbol is missing.
    """
    from llvmlite import ir
    from numba.core import compiler, registry, sigutils  # takes 0.5 s

    target, context = registry.cpu_target, registry.cpu_target.target_context
    arguments, result = sigutils.normalize_signature(signature)
    flags: Any = compiler.Flags()  # its attributes are descriptors without types
    target.options.parse_as_flags(flags, {**options, "nopython": True})
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    with cached_operator_types():
        library = _object_library()(context.codegen(), name)
        compiled = compiler.compile_extra(
            target.typing_context, context, function, arguments, result, flags, {}, library, _kernel_compiler()
        )
        inner = compiled.fndesc
        module = library.create_ir_module(name)
        kinds = [context.get_value_type(argument) for argument in arguments]
        wrapper = ir.Function(module, ir.FunctionType(ir.VoidType(), kinds), name)
        full_width = f'"prefer-vector-width"="{8 * VECTOR_BYTES}"'  # LLVM's default on many processors is half of it
        set.add(wrapper.attributes, full_width)  # llvmlite rejects unknown attributes otherwise
        builder = ir.IRBuilder(wrapper.append_basic_block())
        call_inner = context.call_conv.call_function
        call_inner(builder, context.declare_function(module, inner), result, arguments, wrapper.args)
        builder.ret_void()
        library.add_ir_module(module)
        library.get_function(inner.llvm_func_name).linkage = "internal"  # inlined into the wrapper, so not exported
        code: bytes = library.emit_native_object()
    names = needed_symbols(code, library.get_llvm_str())
    resolve_symbols(names)
    return " ".join(names).encode() + b"\n" + code


@cache
def _kernel_compiler() -> "type[CompilerBase]":
    """Return Numba's compiler without the passes that change nothing in a kernel: of arrays, constants, and literals."""
    from numba.core import typed_passes as typed
    from numba.core import untyped_passes as untyped
    from numba.core.compiler import CompilerBase
    from numba.core.compiler_machinery import PassManager

    passes = (
        *(untyped.TranslateByteCode, untyped.FixupArgs, untyped.IRProcessing, untyped.InlineClosureLikes),
        *(untyped.GenericRewrites, untyped.MakeFunctionToJitFunction, untyped.ReconstructSSA),
        *(typed.NopythonTypeInference, typed.PreLowerStripPhis, typed.NativeLowering, typed.NoPythonBackend),
    )

    class KernelCompiler(CompilerBase):
        """A compiler of kernels."""

        def define_pipelines(self) -> list[PassManager]:
            """Return the list of passes."""
            manager = PassManager("kernel")
            for step in passes:
                manager.add_pass(step, step.__name__)
            manager.finalize()
            return [manager]

    return KernelCompiler


@cache
def _object_library() -> "type[AOTCodeLibrary]":
    """Return a class of Numba libraries that become object files and are not added to Numba's engine."""
    from numba.core.codegen import AOTCodeLibrary

    class ObjectLibrary(AOTCodeLibrary):
        """A Numba library for one object file."""

        def _finalize_final_module(self) -> None:
            """Mark the module as final, without adding it to the engine."""
            self._finalized = True

    return ObjectLibrary


def link_object(name: str, payload: bytes) -> int:
    """Link an object file into this process, and return the address of its function `name`.

    Raises
    ------
    CompileError
        The code calls functions that this process lacks.
    RuntimeError
        The object file is damaged, or does not define `name`.
    """
    names, _, code = payload.partition(b"\n")
    library = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
    for external, address in resolve_symbols(names.decode().split()).items():
        library.import_symbol(external, address)
    return link(library, [name])[name]


def resolve_symbols(names: Sequence[str]) -> dict[str, int]:
    """Return the address in this process of each function that machine code calls.

    Raises
    ------
    CompileError
        The process lacks one of them.
    """
    addresses = {name: llvm.address_of_symbol(name) for name in names}
    if None in addresses.values():
        from numba.core.registry import cpu_target

        cpu_target.target_context.refresh()  # registers Numba's own functions with LLVM
        addresses = {name: llvm.address_of_symbol(name) for name in names}
    if missing := [name for name, address in addresses.items() if address is None]:
        raise CompileError(
            f"the machine code of a kernel calls {', '.join(missing)}, which this process does not have; use another "
            'backend, such as "python", and report this with the output of `minifuse doctor`'
        )
    return addresses


class SerialLoops(Dialect):
    """Serial loops. The first axis runs over the range that the driver passes."""

    reduces_columns = True
    has_tiles = True
    splits_ranges = True

    def loop(self, axis: int, is_row: bool, source: ExpressionPrinter) -> list[str]:
        """Return a plain loop."""
        return [f"for i{axis} in range({'start, stop' if axis == 0 else f'n{axis}'}):"]

    def load(self, place: str, dtype: DType) -> str:
        """Return the element as it is; convert a bool, which is a byte in memory."""
        return f"({place} != 0)" if dtype is bool_ else place


@lru_cache(1024)
def kernel_text(
    kernel: Kernel, rows: int, stride_kinds: Sequence[str], raws: Sequence[str] = (), literals: Literals = ()
) -> str:
    """Return the text of a kernel: its functions, the unpacking of its arguments, then the loops."""
    emitter = LoopEmitter(kernel, rows, stride_kinds, SerialLoops(), raws, literals)
    return begin_kernel(emitter, range(1, emitter.axes)) + emitter.emit()


@lru_cache(1024)
def nested_kernel_text(kernel: Kernel, loops: NestedLoops, raws: Sequence[str] = ()) -> str:
    """Return the text of a kernel with nested reductions. It contains the sizes of short inner loops."""
    emitter = NestedLoopEmitter(kernel, loops, SerialLoops(), raws)
    return begin_kernel(emitter, range(1, emitter.axes)) + emitter.emit()


def begin_kernel(emitter: LoopEmitter, sized_axes: Iterable[int]) -> str:
    """Return the first line of a kernel. Its functions and the unpacking of its arguments become the first body lines.

    The sizes of `sized_axes` are passed as arguments. The text contains the literals of the emitter instead of arguments.
    """
    kernel = emitter.kernel
    numbers, positions = kernel.find_all(KernelParameter), {operand_name(e) for e in kernel.find_all(IndexValue)}
    operands = zip([*emitter.stride_kinds, *emitter.raws], kernel.operand_dtypes(), strict=True)
    unpack = [(name, "args[{}]" if name in positions else f"pointer_{dtype.short}(args[{{}}])") for name, dtype in operands]
    unpack += [(f"p{p.index}", f"{p.dtype.short}({'numbers' if p.dtype.is_float else 'args'}[{{}}])") for p in numbers]
    unpack += [(f"n{axis}", "args[{}]") for axis in sized_axes]
    unpack += [
        (f"{name}_{axis}", "args[{}]")
        for name, c in (emitter.stride_kinds | emitter.raws).items()
        for axis, kind in enumerate(c)
        if kind == "s"
    ]
    for lines in emitter.functions():
        for line in lines:
            emitter.line(line)
    if any(p.dtype.is_float for p in numbers):
        emitter.line("numbers = pointer_f64(args)")
    for k, (name, value) in enumerate(unpack):
        emitter.line(f"{name} = {emitter.literals.get(name, value.format(k))}")
    return "def kernel(start, stop, args):\n"
