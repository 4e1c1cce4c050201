"""Split a long pointwise kernel over few rows into launches over pieces of its longest dim.

The driver splits only the first axis of a kernel, and signals are handled when a chunk ends. So a kernel over two rows of
2^25 elements is split into launches of a few milliseconds; between launches Python handles signals.
"""

from collections.abc import Callable

from ...core.layout import Layout
from ...ir.kernel_ir import IndexValue, Kernel, Load
from ...ir.steps import Step
from ..base import Launcher
from .driver import MAX_CHUNK_WORK

MAX_CHUNKS_PER_ROW = 2  # a row with more work than this many times MAX_CHUNK_WORK is split


def count_pieces(row_work: float) -> int:
    """Return into how many pieces to split a pointwise kernel of several axes, given the work of one row."""
    return 1 + int(row_work / (MAX_CHUNKS_PER_ROW * MAX_CHUNK_WORK))


def load_pieces(load: Callable[[Step], Launcher], step: Step, kernel: Kernel, max_pieces: int) -> Launcher:
    """Return launch(*addresses of outputs, inputs and indexed operands, *numbers), which runs the kernel piece by piece.

    Parameters
    ----------
    load : function of a step
        Loads the kernel for a piece.
    step : Step
        The unsplit launch.
    kernel : Kernel
        Its kernel.
    max_pieces : int
        Split into at most this many pieces.
    """
    shape, (outputs, inputs) = step.shape, step.layouts()
    d = max(range(len(shape)), key=shape.__getitem__)
    loads = kernel.find_all(Load)
    units = [e.dtype.itemsize for e in kernel.outputs]
    units += [1 if isinstance(e, IndexValue) else e.dtype.itemsize for e in loads]
    strides = [layout.strides[d] * unit for layout, unit in zip([*outputs, *inputs], units, strict=True)]
    length = -(-shape[d] // max_pieces)

    def resize(layout: Layout, size: int) -> Layout:
        return Layout((*layout.shape[:d], size, *layout.shape[d + 1 :]), layout.strides, layout.offset)

    def load_piece(size: int) -> Launcher:
        piece, indexed_layouts = (*shape[:d], size, *shape[d + 1 :]), step.indexed_layouts()
        resized_outputs, resized_inputs = ([resize(x, size) for x in group] for group in (outputs, inputs))
        return load(Step.of_layouts(kernel, piece, (), resized_outputs, resized_inputs, indexed_layouts))

    starts = range(0, shape[d], length)
    launch_full, launch_last = load_piece(length), load_piece(shape[d] - starts[-1])
    launches = [(launch_full if start < starts[-1] else launch_last, [start * s for s in strides]) for start in starts]

    def launch_all(*values: float) -> None:
        for launch, offsets in launches:
            addresses = [value + offset for value, offset in zip(values, offsets, strict=False)]
            launch(*addresses, *values[len(offsets) :])

    return launch_all
