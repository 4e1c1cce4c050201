"""What the first warp of a launch does, in order: its requests to memory, its shuffles and its barriers."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from minifuse.simt.metrics import SECTOR_BYTES
from minifuse.simt.record import LOAD as LOADED

from .schedules import DealtKernel
from .thread_timelines import kernel_lines

WARP = 32
READ, WRITE, COMBINE, WAIT = "reads", "writes", "combines", "waits"


@dataclass(frozen=True)
class WarpStep:
    """A request of the first warp to memory, its shuffles between two requests, or a barrier."""

    kind: str
    """READ, WRITE, COMBINE or WAIT."""
    line: int | None
    """The number of the line of the kernel."""
    array: str = ""
    """The name of the array in the text of the kernel; empty without a request."""
    space: str = ""
    """"global" or "shared"."""
    elements: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """(lane, its elements), for the lanes that take part."""
    fetched: frozenset[int] = frozenset()
    """The elements of all sectors that the request touches."""
    sectors: int = 0
    nbytes: int = 0
    """The bytes that the lanes ask for."""
    count: int = 1
    """The shuffles."""


def warp_steps(dealt: DealtKernel) -> list[WarpStep]:
    """Return the steps of warp 0 of block 0, in the order in which it runs them."""
    found = sorted([*requests(dealt), *shuffles(dealt), *barriers(dealt)], key=lambda pair: pair[0])
    steps = list[WarpStep]()
    combining = [number for number, text in kernel_lines(dealt.plan).items() if "= fold_along" in text]
    for kind, group in groupby([step for _, step in found], key=lambda step: step.kind):
        if kind != COMBINE:
            steps += group
            continue
        before = max((step.line for step in steps if step.line), default=0)
        line = next((number for number in combining if number > before), None)
        steps.append(WarpStep(COMBINE, line, count=sum(step.count for step in group)))
    return steps


def requests(dealt: DealtKernel) -> Iterator[tuple[tuple[int, int], WarpStep]]:
    """Yield the requests of the warp, each with its place in the order of events."""
    trace = dealt.trace
    events, of_request = trace.events, dict[tuple[int, int], list[int]]()
    for k in range(len(events.block)):
        if events.block[k] == 0 and events.thread[k] < WARP:
            of_request.setdefault((int(events.instruction[k]), int(events.occurrence[k])), []).append(k)
    for (instruction, _), ks in of_request.items():
        info = trace.arrays[events.array[ks[0]]]
        starts = {k: int(events.address[k]) - info.base for k in ks}
        elements = {
            int(events.thread[k]): tuple(
                range(starts[k] // info.itemsize, (starts[k] + int(events.nbytes[k])) // info.itemsize)
            )
            for k in ks
        }
        sectors = {
            unit
            for k in ks
            for unit in range(
                int(events.address[k]) // SECTOR_BYTES, (int(events.address[k] + events.nbytes[k]) - 1) // SECTOR_BYTES + 1
            )
        }
        yield (
            (ks[0], 1),
            WarpStep(
                READ if events.kind[ks[0]] == LOADED else WRITE,
                line_of(dealt, instruction),
                info.name,
                info.space,
                tuple(sorted(elements.items())),
                frozenset(fetched_elements(sectors, info)) if info.space == "global" else frozenset(),
                len(sectors) if info.space == "global" else 0,
                sum(int(events.nbytes[k]) for k in ks),
            ),
        )


def fetched_elements(sectors: set[int], info: Any) -> Iterator[int]:
    """Yield the elements of an array in these sectors."""
    for unit in sectors:
        first = (unit * SECTOR_BYTES - info.base) // info.itemsize
        yield from range(max(first, 0), first + SECTOR_BYTES // info.itemsize)


def shuffles(dealt: DealtKernel) -> Iterator[tuple[tuple[int, int], WarpStep]]:
    """Yield the shuffles of the warp. Their instructions are in the library, so they have no line of the kernel."""
    for x in dealt.trace.collectives:
        if (x.block, x.warp) == (0, 0) and x.mask:
            yield (x.position, 0), WarpStep(COMBINE, None)


def barriers(dealt: DealtKernel) -> Iterator[tuple[tuple[int, int], WarpStep]]:
    """Yield the barriers of the block."""
    events = dealt.trace.events
    for x in dealt.trace.barriers:
        if x.block == 0:
            later = ((events.block == 0) & (events.epoch > x.epoch)).nonzero()[0]
            yield (int(later[0]) if len(later) else len(events.block), 0), WarpStep(WAIT, line_of(dealt, x.instruction))


def line_of(dealt: DealtKernel, instruction: int) -> int | None:
    """Return the line of an instruction of the kernel; None if it is in a function of the library."""
    found = dealt.trace.instructions[instruction]
    return found.line if found.file == dealt.trace.file else None
