"""Generate the text of CPU kernels: the loops, and the unpacking of their arguments.

All kernels have the signature kernel(start, stop, args): a range of the first axis, and a buffer of packed addresses,
numbers, sizes and strides. So one compiled driver launches all of them, on one thread or on several.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from ...core.dtypes import DType, bool_
from ...ir.kernel_ir import IndexValue, Kernel, KernelParameter
from ..codegen.loop_emitter import Dialect, LoopEmitter
from ..codegen.nest import operand_name
from ..codegen.nested_loops import NestedLoopEmitter, NestedLoops


class SerialLoops(Dialect):
    """Serial loops. The first axis runs over the range that the driver passes."""

    reduces_columns = True
    has_tiles = True

    def loop(self, axis: int, is_row: bool, source: LoopEmitter) -> list[str]:
        """Return a plain loop."""
        return [f"for i{axis} in range({'start, stop' if axis == 0 else f'n{axis}'}):"]

    def load(self, place: str, dtype: DType) -> str:
        """Return the element as it is; convert a bool, which is a byte in memory."""
        return f"({place} != 0)" if dtype is bool_ else place


@lru_cache(1024)
def kernel_text(kernel: Kernel, rows: int, stride_kinds: Sequence[str], raws: Sequence[str] = ()) -> str:
    """Return the text of a kernel: its functions, the unpacking of its arguments, then the loops."""
    emitter = LoopEmitter(kernel, rows, stride_kinds, SerialLoops(), raws)
    return begin_kernel(emitter, range(1, emitter.axes)) + emitter.emit()


@lru_cache(1024)
def nested_kernel_text(kernel: Kernel, loops: NestedLoops, raws: Sequence[str] = ()) -> str:
    """Return the text of a kernel with nested reductions. It contains the sizes of short inner loops."""
    emitter = NestedLoopEmitter(kernel, loops, SerialLoops(), raws)
    return begin_kernel(emitter, range(1, emitter.axes), emitter.literals) + emitter.emit()


def begin_kernel(emitter: LoopEmitter, sized_axes: Iterable[int], literals: Mapping[str, int] | None = None) -> str:
    """Return the first line of a kernel. Its functions and the unpacking of its arguments become the first body lines.

    The sizes of `sized_axes` are passed as arguments. `literals` are values that are in the text instead, by name.
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
        emitter.line(f"{name} = {(literals or {}).get(name, value.format(k))}")
    return "def kernel(start, stop, args):\n"
