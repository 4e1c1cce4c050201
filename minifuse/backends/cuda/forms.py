"""Which form a kernel takes over a nest of loops, its text, and what its launch must know.

Sizes take part in the choice alone: axes that are too short for a tile. They are in no text.
"""

from functools import lru_cache
from typing import NamedTuple

from ...kernels import Kernel, Nest
from .emit_raw import RawSource
from .emit_rows import RowSource
from .emit_tiles import TileSource, axis_across


class Printed(NamedTuple):
    """A kernel as text, and what its launch must know."""

    text: str
    form: str  # points, tiles, rows or columns
    parameters: tuple[tuple[str, str], ...]  # names and types, in the order of the launch
    wide: tuple[str, ...]  # operands that are taken four elements at a time
    counted: int  # leading axes that blocks share out
    each: int = 1  # elements that a thread takes along the last axis
    across: int | None = None  # the axis along which tiled operands have their neighbours
    tiled: tuple[str, ...] = ()  # operands that are turned over in shared memory
    held: int = 0  # bytes of an element of all operands that wait in shared memory for later sweeps


def printed(kernel: Kernel, nest: Nest, raws: tuple[str, ...] = ()) -> Printed:
    """The text of a kernel that runs over a nest; `raws` are the classes of the strides of raw operands."""
    return _printed(kernel, nest.rows, nest.classes, axis_across(kernel, nest), raws)


@lru_cache(1024)
def _printed(kernel: Kernel, rows: int, classes: tuple[str, ...], across: int | None, raws: tuple[str, ...]) -> Printed:
    if across is None:
        source = RawSource(kernel, rows, classes, raws) if raws else RowSource(kernel, rows, classes)
        operands = {name: c for name, c in source.classes.items() if not name.startswith("base")}
        wide = tuple(name for name, c in operands.items() if source.is_wide and c[-1] == "1")
        each = max(4 * source.groups, 1)
        held = sum(e.dtype.itemsize for e in source.held) if isinstance(source, RowSource) else 0
        return Printed(source.emit(), source.form, tuple(source.parameters()), wide, source.counted, each, held=held)
    tiles = TileSource(kernel, rows, classes, across)
    operands = {name: c for name, c in tiles.classes.items() if not name.startswith("base")}
    wide = tuple(name for name, c in operands.items() if tiles.is_wide and (c[-1] == "1" or name in tiles.tiled))
    return Printed(tiles.emit(), "tiles", tuple(tiles.parameters()), wide, 0, 1, across, tuple(tiles.tiled))
