"""Call other machine code from a compiled kernel: the stages of a fused matmul, and the check for signals.

In `fused_gemm`, `FusedMatmul.encode` writes the numbers that describe a stage, and `PART_TEXT` reads them.
"""

from collections.abc import Sequence

from llvmlite import ir
from llvmlite.ir import Value
from numba.core import types
from numba.core.base import BaseContext
from numba.core.typing.context import Context
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

from .vector_emitter import I64, Lowering, VectorEmitter, const_i64, emitted_function


@emitted_function
def call_kernel(v: VectorEmitter, args: Value, kernel: Value, count: Value) -> None:
    """Call kernel(0, count, args), a compiled kernel at an address."""
    b = v.builder
    kind = ir.FunctionType(ir.VoidType(), [I64, I64, args.type])
    b.call(b.inttoptr(kernel, kind.as_pointer()), [const_i64(0), count, args])


@emitted_function
def call_stage(
    v: VectorEmitter,
    part: Value,
    values: Value,
    words: Value,
    place: Value,
    matrix: Value,
    row: Value,
    column: Value,
    rows: Value,
    columns: Value,
) -> None:
    """Run a stage on `rows` by `columns` points of a matrix of the batch, from (row, column) on.

    `place` points to element (row, column) of the stage's thread-local operand, if it has one. `words` is the
    encoded stage. All arguments are written to `part`, which is passed to the kernel whose address is the first word.
    """
    b = v.builder
    addresses = [b.ptrtoint(x, I64) for x in (values, words, place)]
    for k, value in enumerate((*addresses, matrix, row, column, rows, columns)):
        b.store(value, b.gep(part, [const_i64(k)]))
    kind = ir.FunctionType(ir.VoidType(), [I64, I64, part.type])
    b.call(b.inttoptr(b.load(words), kind.as_pointer()), [const_i64(0), const_i64(1), part])


@intrinsic
def is_stopped(typing: Context, function: types.Type, args: types.Type) -> tuple[Signature, Lowering]:
    """Return true if a signal stopped the driver's call with these arguments. `function` is the address of the check."""

    def emit(_: BaseContext, builder: ir.IRBuilder, signature: Signature, values: Sequence[Value]) -> Value:
        kind = ir.FunctionType(ir.IntType(1), [values[1].type])
        return builder.call(builder.inttoptr(values[0], kind.as_pointer()), [values[1]])

    return types.boolean(function, args), emit
