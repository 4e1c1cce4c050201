"""Device functions for groups of four elements: vectorized loads and stores where addresses allow them, and reductions."""

from typing import Any

from ....simt import cuda, word
from . import base
from .base import device, intrinsic, load4, store4


@device
def load4_if(is_wide: Any, source: Any, i: Any) -> Any:
    """Load source[i] to source[i + 3], in one instruction if `is_wide`."""
    if is_wide:
        return load4(source, i)
    return source[i], source[i + 1], source[i + 2], source[i + 3]


@device
def store4_if(is_wide: Any, target: Any, i: Any, numbers: Any) -> None:
    """Store four numbers to target[i] ... target[i + 3], in one instruction if `is_wide`."""
    if is_wide:
        store4(target, i, numbers)
    else:
        target[i], target[i + 1], target[i + 2], target[i + 3] = numbers


def _beside4_llvm() -> Any:
    """Emit four loads. Numba's own indexing would test whether each index is negative."""
    from llvmlite import ir
    from numba.core import types

    def beside4(typingctx: Any, row: Any, i: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            at = builder.gep(base.data_pointer(context, builder, row, values[0]), [values[1]])
            places = [builder.gep(at, [ir.Constant(ir.IntType(64), k)]) for k in range(4)]
            return context.make_tuple(builder, signature.return_type, [builder.load(place) for place in places])

        four: Any = types.UniTuple  # untyped
        return four(row.dtype, 4)(row, i), emit

    return beside4


@intrinsic(_beside4_llvm)
@word
def beside4(row: Any, i: Any) -> Any:
    """Load row[i] to row[i + 3], one after the other, from an array that the thread keeps in registers."""
    return tuple([row[i + k] for k in range(4)])


@device
def fold_of_column(op: Any, a: Any, b: Any, c: Any, d: Any, parts: Any) -> Any:
    """Reduce four neighboring columns of each thread over the threads along y. Return the result of column y modulo 4."""
    step, x, y = cuda.blockDim.x, cuda.threadIdx.x, cuda.threadIdx.y
    place = 4 * y * step + x
    parts[place], parts[place + step], parts[place + 2 * step], parts[place + 3 * step] = a, b, c, d
    cuda.syncthreads()
    place = (y & 3) * step + x
    found = parts[place]
    for k in range(1, cuda.blockDim.y):
        found = op(found, parts[4 * k * step + place])
    return found


DEVICE_FUNCTIONS: dict[str, Any] = {
    "load4_if": load4_if,
    "store4_if": store4_if,
    "beside4": beside4,
    "fold_of_column": fold_of_column,
}
