"""Matrix products: launches of the ladder's kernels and of broken ones, their loads and their hazards.

The kernels are the library's own. They run lane by lane, with smaller tiles than on a GPU, so that a picture shows several.
"""

import linecache
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from minifuse import simt
from minifuse.backends.cuda.matmul import ladder
from minifuse.core.errors import MinifuseError, SimtError

from . import memory
from .cited_facts import DERIVED, TRACED, Fact, Line
from .matmul_kernels import ALL_SAFEGUARDS, BROKEN, KERNELS, LADDER, TILES, kernel_name, make_tiled_matmul, shrink_tile

MAX_SIZE = 16  # of the rows, the columns and the summed dim


@dataclass(frozen=True)
class MatmulTrace:
    """One launch that computes out = a @ b."""

    name: str
    sizes: tuple[int, int, int]
    """Rows and columns of out, and the size of the summed dim."""
    tile: int
    kernel: Callable[..., Any]
    trace: simt.Trace
    a: np.ndarray
    b: np.ndarray
    out: np.ndarray
    """What the kernel wrote; elements that it did not write are 0."""

    @property
    def is_right(self) -> bool:
        """Whether `out` equals the result of NumPy: exactly, since all values are small integers."""
        return bool(np.array_equal(self.out, self.a @ self.b))


def trace_matmul(name: str, rows: int, columns: int, depth: int, tile: int = 4) -> MatmulTrace:
    """Trace a product of (rows, depth) and (depth, columns) by one of the kernels.

    Raises
    ------
    MinifuseError
        There is no such kernel, or a size is out of range.
    """
    if name not in KERNELS:
        raise MinifuseError(f"a kernel {name!r}; expected one of {', '.join(KERNELS)}")
    if tile not in TILES:
        raise MinifuseError(f"a tile of {tile}; expected one of {', '.join(map(str, TILES))}")
    for size, value in (("M", rows), ("N", columns), ("K", depth)):
        memory.check_range(size, value, 1, MAX_SIZE)
    random = np.random.default_rng(0)
    a, b = (random.integers(1, 4, shape).astype(np.float32) for shape in ((rows, depth), (depth, columns)))
    out = np.zeros((rows, columns), np.float32)
    grid, block = launch_sizes(name, rows, columns, tile)
    if name in BROKEN:
        kernel = make_tiled_matmul(tile, **{**ALL_SAFEGUARDS, **BROKEN[name]})
        trace = simt.trace(kernel, grid, block, out, a, b, rows, columns, depth)
    else:
        kernel = shrink_tile(name, tile)
        trace = simt.trace(kernel, grid, block, out.reshape(-1), a.reshape(-1), b.reshape(-1), rows, columns, depth)
    return MatmulTrace(name, (rows, columns, depth), tile, kernel, trace, a, b, out)


def launch_sizes(name: str, rows: int, columns: int, tile: int) -> tuple[tuple[int, int], tuple[int, ...]]:
    """Return the grid and the block of a kernel."""
    down, across = -(-rows // tile), -(-columns // tile)
    grid = (down, across) if name == "naive" else (across, down)
    return grid, (tile * TILES[tile],) if name == "strips" else (tile, tile)


def block_count(traced: MatmulTrace) -> int:
    """Return the number of blocks of the launch."""
    return int(np.prod(traced.trace.grid))


def loads_per_output(traced: MatmulTrace, space: str) -> float:
    """Return the number of loads from a memory space per element of out."""
    events = traced.trace.events
    is_there = np.array([info.space == space for info in traced.trace.arrays], bool)[events.array]
    rows, columns, _ = traced.sizes
    return int(np.count_nonzero(is_there & (events.kind == 0))) / (rows * columns)


def facts(traced: MatmulTrace) -> list[Fact]:
    """Return facts about the correctness of the product, its loads, and the lines with hazards."""
    threads, requests = traced.trace.threads, traced.trace.requests()
    known = [
        Fact("result", "right" if traced.is_right else "wrong", TRACED, "compared with NumPy's product"),
        Fact("blocks", f"{block_count(traced)} of {threads} threads", TRACED),
    ]
    if traced.trace.is_complete:
        known += [
            Fact(
                "global loads per output",
                f"{loads_per_output(traced, 'global'):.4g}",
                TRACED,
                "from global memory, of a and b",
            ),
            Fact(
                "shared loads per output",
                f"{loads_per_output(traced, 'shared'):.4g}",
                TRACED,
                "from shared memory, of the tiles",
            ),
            Fact("barriers per block", len(traced.trace.barriers) // block_count(traced), TRACED),
            Fact("sectors", int(requests.sectors.sum()), DERIVED, f"{int(requests.ideal_sectors.sum())} at best"),
        ]
    else:
        known.append(Fact("end", "early", TRACED, "an access out of bounds ended the launch; its counts mean nothing"))
    hazards = traced.trace.hazards()
    why = "" if hazards or traced.is_right else "no rule is broken, and yet out is wrong: compare results too"
    known.append(Fact("hazards", len(hazards) or "none", DERIVED, why))
    return known + [Fact(type(hazard).__name__, format_lines(hazard), DERIVED, str(hazard)) for hazard in hazards]


def format_lines(hazard: SimtError) -> str:
    """Format the source lines that have hazards."""
    return "  and  ".join(f"{line}: {linecache.getline(file, line).strip()}" for file, line in hazard.lines)


def compare_ladder(rows: int, columns: int, depth: int, tile: int) -> list[dict[str, Any]]:
    """Return the kernels of the ladder as rows, with the loads of each kernel per element of out."""
    traces = [trace_matmul(name, rows, columns, depth, tile) for name in LADDER]
    return [
        {
            "kernel": traced.name,
            "global": loads_per_output(traced, "global"),
            "shared": loads_per_output(traced, "shared"),
            "adds": ladder.LADDER[traced.name].reason,
        }
        for traced in traces
    ]


def lines(traced: MatmulTrace) -> list[Line]:
    """Return the source, with the number of hazards per line, or, without hazards, the sectors per line."""
    hazard_lines = [line for hazard in traced.trace.hazards() for _, line in hazard.lines]
    known = memory.lines(traced.trace, traced.kernel, () if hazard_lines else ("sectors",))
    counts = {number: (("fault", hazard_lines.count(number)),) for number in hazard_lines}
    return [Line(line.number, line.text, counts.get(line.number, line.counts)) for line in known]


def command(traced: MatmulTrace) -> str:
    """Return the terminal command that traces the same product."""
    rows, columns, depth = traced.sizes
    is_flat, texts = traced.name in LADDER, list[str]()
    for name, (down, across) in {"out": (rows, columns), "a": (rows, depth), "b": (depth, columns)}.items():
        texts.append(f"{name}={down * across if is_flat else f'{down},{across}'}:float32")
    texts += [f"M={rows}", f"N={columns}", f"K={depth}"]
    grid, block = (",".join(map(str, sizes)) for sizes in launch_sizes(traced.name, rows, columns, traced.tile))
    options = " ".join(f"--arg {text}" for text in texts)
    where = f"project/views/matmul_kernels.py:{kernel_name(traced.name, traced.tile)}"
    return f"minifuse trace {where} --grid {grid} --block {block} {options}"
