"""Multi-tensor template: a block looks up its array in a table, and then runs the code for a single array.

`arrays` contains the index of each block's array. `table` has a row for each array: its addresses, its sizes, and the number
of blocks of the arrays before it. The text contains neither the number of arrays nor their sizes.
"""

from collections.abc import Sequence
from functools import lru_cache

from ....ir.kernel_ir import Kernel
from ..intrinsics.pointer_table import pointer_function
from .base import CudaSource
from .select import GeneratedKernel


class TableSource(CudaSource):
    """The text of a pointwise kernel over many arrays of one axis."""

    def parameters(self) -> list[tuple[str, str]]:
        """Return the arguments: the array of each block, the table, and numbers, which are the same for all arrays."""
        return [("arrays", "*i32"), ("table", "*i64"), *super().parameters()[len(self.stride_kinds) : -len(self.integers())]]

    def head(self) -> list[str]:
        """Emit the loads of the array's entries in the table, then the positions of the thread's elements."""
        dtypes = self.kernel.operand_dtypes()
        pointers = [f"{pointer_function(dtype)}(table, {moved(k)})" for k, dtype in enumerate(dtypes)]
        names = [*self.integers(), "before"]
        numbers = [f"table[{moved(len(dtypes) + k)}]" for k in range(len(names))]
        return [
            f"row = {len(dtypes) + len(names)} * arrays[cuda.blockIdx.x]  # where the table tells of this block's array",
            *[f"{name} = {pointer}" for name, pointer in zip(self.stride_kinds, pointers, strict=True)],
            f"{', '.join(names)} = {', '.join(numbers)}",
            "block = cuda.blockIdx.x - before  # counted from the first one of the array",
            *[line.replace("cuda.blockIdx.x", "block") for line in super().head()],
        ]


def moved(k: int) -> str:
    """Return the index of entry k in the table's row."""
    return f"row + {k}" if k else "row"


@lru_cache(1024)
def generate_multi_tensor_kernel(kernel: Kernel, classes: Sequence[str]) -> GeneratedKernel:
    """Generate a kernel over a table of arrays with these stride kinds.

    Examples
    --------
    >>> from minifuse.core.dtypes import float32
    >>> from minifuse.ir.kernel_ir import KernelParameter, Load
    >>> kernel = Kernel((Load(0, float32) * KernelParameter(0, float32),), ())
    >>> print(generate_multi_tensor_kernel(kernel, ("1", "1")).text.partition("    first")[0])
    def point(x0, p0):
        return x0 * p0
    <BLANKLINE>
    <BLANKLINE>
    def kernel(arrays, table, p0):
        row = 5 * arrays[cuda.blockIdx.x]  # where the table tells of this block's array
        out0 = f32_at(table, row)
        in0 = f32_at(table, row + 1)
        n0, fours, before = table[row + 2], table[row + 3], table[row + 4]
        block = cuda.blockIdx.x - before  # counted from the first one of the array
    <BLANKLINE>
    """
    source = TableSource(kernel, 0, classes)
    wide = tuple(name for name, c in source.stride_kinds.items() if source.is_wide and c == "1")
    return GeneratedKernel(source.emit(), "points", tuple(source.parameters()), wide, 0, max(4 * source.groups, 1))
