"""Which form a kernel takes over a nest of loops, its text, and what its launch must know.

Sizes take part in the choice alone: axes that are too short for a tile. They are in no text.
"""

from functools import lru_cache
from typing import NamedTuple

from ...kernels import Kernel, Nest, RawLoad, keyed
from ..emit import name_of
from .emit_keyed import KeyedSource
from .emit_raw import RawSource
from .emit_rows import RowSource
from .emit_tiles import TileSource, axis_across
from .emitter import CudaSource


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


def source_of(kernel: Kernel, rows: int, classes: tuple[str, ...], raws: tuple[str, ...]) -> CudaSource:
    """The text of a kernel that has no tiles."""
    if (found := keyed(kernel, rows, classes)) is not None:
        return KeyedSource(kernel, rows, classes, raws, found[0])
    if kernel.effects:
        return RawSource(kernel, rows, classes, raws)
    return RowSource(kernel, rows, classes, raws)


def picked_wide(source: CudaSource) -> tuple[str, ...]:
    """The raw operands of which four neighbours are taken at once, and the positions that say where in them."""
    found = [e for e in source.kernel.each(RawLoad) if source.is_wide and source.step_of(e) == "1"]
    places = [name_of(x) for x in map(source.beside, found) if x is not None]
    return tuple(dict.fromkeys([f"raw{e.index}" for e in found] + places))


@lru_cache(1024)
def _printed(kernel: Kernel, rows: int, classes: tuple[str, ...], across: int | None, raws: tuple[str, ...]) -> Printed:
    if across is None:
        source = source_of(kernel, rows, classes, raws)
        operands = {name: c for name, c in source.classes.items() if not name.startswith("base")}
        wide = tuple(name for name, c in operands.items() if source.is_wide and c[-1] == "1") + picked_wide(source)
        each = max(4 * source.groups, 1)
        held = sum(e.dtype.itemsize for e in source.held) if isinstance(source, RowSource) else 0
        return Printed(source.emit(), source.form, tuple(source.parameters()), wide, source.counted, each, held=held)
    tiles = TileSource(kernel, rows, classes, across)
    operands = {name: c for name, c in tiles.classes.items() if not name.startswith("base")}
    wide = tuple(name for name, c in operands.items() if tiles.is_wide and (c[-1] == "1" or name in tiles.tiled))
    return Printed(tiles.emit(), "tiles", tuple(tiles.parameters()), wide, 0, 1, across, tuple(tiles.tiled))
