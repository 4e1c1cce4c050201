"""Generated CPU kernels: their text, and the arguments that they unpack.

All have one signature, kernel(start, stop, args): a range of the first axis, and a packed buffer of addresses, numbers,
sizes and strides. So one compiled driver launches them all, on one thread or on many.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from ...core.dtypes import DType, bool_
from ...ir.kernel_ir import IndexValue, Kernel, KernelParameter, Load
from ..codegen.loop_emitter import Dialect, LoopEmitter, operand_name


class SerialLoops(Dialect):
    """The first axis runs over the range that the driver asks for."""

    reduces_columns = True
    has_tiles = True

    def loop(self, axis: int, is_row: bool, source: LoopEmitter) -> list[str]:
        """A plain loop."""
        return [f"for i{axis} in range({'start, stop' if axis == 0 else f'n{axis}'}):"]

    def load(self, place: str, dtype: DType) -> str:
        """The element; a bool is a byte in memory."""
        return f"({place} != 0)" if dtype is bool_ else place


@lru_cache(1024)
def kernel_text(kernel: Kernel, rows: int, classes: Sequence[str], raws: Sequence[str] = ()) -> str:
    """The text of a kernel: its functions, what it unpacks of the arguments, then the loops."""
    body = LoopEmitter(kernel, rows, classes, SerialLoops(), raws)
    return begin_kernel(body, range(1, body.axes)) + body.emit()


def begin_kernel(body: LoopEmitter, sizes: Iterable[int]) -> str:
    """The first line of a kernel; its functions, and what it unpacks, become the first lines of the body.

    Of the axes those are named whose `sizes` are passed.
    """
    kernel = body.kernel
    dtypes = [*[e.dtype for e in (*kernel.outputs, *kernel.find_all(Load))], *kernel.indexed_dtypes()]
    numbers, positions = kernel.find_all(KernelParameter), {operand_name(e) for e in kernel.find_all(IndexValue)}
    operands = zip([*body.classes, *body.raws], dtypes, strict=True)
    unpack = [(name, "args[{}]" if name in positions else f"pointer_{dtype.short}(args[{{}}])") for name, dtype in operands]
    unpack += [(f"p{p.index}", f"{p.dtype.short}({'numbers' if p.dtype.is_float else 'args'}[{{}}])") for p in numbers]
    unpack += [(f"n{axis}", "args[{}]") for axis in sizes]
    unpack += [
        (f"{name}_{axis}", "args[{}]")
        for name, c in (body.classes | body.raws).items()
        for axis, letter in enumerate(c)
        if letter == "s"
    ]
    for lines in body.functions():
        for line in lines:
            body.line(line)
    if any(p.dtype.is_float for p in numbers):
        body.line("numbers = pointer_f64(args)")
    for k, (name, value) in enumerate(unpack):
        body.line(f"{name} = {value.format(k)}")
    return "def kernel(start, stop, args):\n"
