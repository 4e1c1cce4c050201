"""Device functions for groups of four elements: elements of a local array, and reductions."""

from ....simt import Array, cuda, word
from ....simt.arithmetic import RealNumber
from .base import BinaryFunction, device, intrinsic


@intrinsic("base_llvm.load4_strided", 1)
@word
def beside4(row: Array, i: int) -> tuple[RealNumber, ...]:
    """Load row[i] to row[i + 3], one after the other, from an array that the thread keeps in registers."""
    return tuple([row[i + k] for k in range(4)])


@device
def fold_of_column(
    op: BinaryFunction, a: RealNumber, b: RealNumber, c: RealNumber, d: RealNumber, parts: Array
) -> RealNumber:
    """Reduce four neighboring columns of each thread over the threads along y. Return the result of column y modulo 4."""
    step, x, y = cuda.blockDim.x, cuda.threadIdx.x, cuda.threadIdx.y
    place = 4 * y * step + x
    parts[place], parts[place + step], parts[place + 2 * step], parts[place + 3 * step] = a, b, c, d
    cuda.syncthreads()
    place = (y & 3) * step + x
    total = parts[place]
    for k in range(1, cuda.blockDim.y):
        total = op(total, parts[4 * k * step + place])
    return total


DEVICE_FUNCTIONS: dict[str, object] = {"beside4": beside4, "fold_of_column": fold_of_column}
