"""Copy tiles of transposed operands to blocks, where they are contiguous along the axis of the innermost loop.

Compilers do not vectorize loops that load or store each element of an operand at a distance from the last one. `turn_tile`
transposes squares in registers. Nor do they vectorize a loop of gathers whose stores might change what a later gather loads:
outputs are stored in blocks on the stack, which no gather can load.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from ...core.dtypes import DType
from .accumulators import AccumulatorPrinter

TILE_ROWS, TILE_COLUMNS = 16, 64  # of a tile, which has as many elements as a block
MIN_STAGED_BYTES = 4  # of an element: a square of smaller elements would have more rows than a tile
GATHERED_COLUMNS = 256  # of the blocks of outputs; as many as fit in the first cache with what is gathered
MAX_STAGED = 8  # operands of which a tile is copied: the copies of more would not fit in the first cache


@contextmanager
def stage_tile(
    emitter: AccumulatorPrinter,
    loads: Mapping[str, DType],
    outputs: Mapping[str, DType],
    axes: tuple[int, int],
    starts: tuple[str, str],
    sizes: tuple[str, str],
) -> Iterator[None]:
    """Copy a tile of each input that is contiguous along the first axis of a tile, and strided along the second, to a block.

    Such outputs are stored in blocks, which are copied at the end. `starts` and `sizes` are those of the tile.
    """
    a, b = axes

    def find_turned(operands: Mapping[str, DType]) -> list[str]:
        all_kinds = {
            name: emitter.stride_kinds[name]
            for name, dtype in operands.items()
            if dtype.itemsize >= MIN_STAGED_BYTES and emitter.is_pure
        }
        return [name for name, kinds in all_kinds.items() if kinds[a] == "1" and kinds[b] == "s"][:MAX_STAGED]

    def corner(name: str) -> str:
        return emitter.shifted(name, dict(zip(axes, starts, strict=True)))

    inputs, results = find_turned(loads), find_turned(outputs)
    for name in inputs + results:
        emitter.line(f"block_{name} = block_of_{(loads if name in inputs else outputs)[name].short}()")
        if name in inputs:
            emitter.line(f"turn_tile(block_{name}, {TILE_COLUMNS}, {corner(name)}, {name}_{b}, {sizes[0]}, {sizes[1]})")
        emitter.staged[name] = f"block_{name}[(i{a} - {starts[0]}) * {TILE_COLUMNS} + i{b} - {starts[1]}]"
    yield
    for name in results:
        emitter.line(f"turn_tile({corner(name)}, {name}_{b}, block_{name}, {TILE_COLUMNS}, {sizes[1]}, {sizes[0]})")
    for name in inputs + results:
        del emitter.staged[name]


@contextmanager
def stage_gathers(
    emitter: AccumulatorPrinter, outputs: Mapping[str, DType], outer: Sequence[str], axis: int
) -> Iterator[None]:
    """Open the outer loops, and the loop along the last axis, by blocks: outputs are stored on the stack, then copied."""
    start, stop = ("start", "stop") if axis == 0 else ("0", f"n{axis}")
    for name, dtype in outputs.items():
        emitter.line(f"block_{name} = block_of_{dtype.short}()")
    with emitter.block(*outer, f"for tile{axis} in range({start}, {stop}, {GATHERED_COLUMNS}):"):
        loop = f"for i{axis} in range(tile{axis}, min(tile{axis} + {GATHERED_COLUMNS}, {stop})):"
        elements = {name: f"block_{name}[i{axis} - tile{axis}]" for name in outputs}
        with emitter.block(loop):
            emitter.staged |= elements
            yield
            for name in outputs:
                del emitter.staged[name]
        with emitter.block(loop):
            for name, element in elements.items():
                emitter.line(f"{emitter.place(name)} = {element}")
