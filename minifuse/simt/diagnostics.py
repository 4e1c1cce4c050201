"""Turn races and unwritten outputs of a trace into errors: the problem, its location, and a way to fix it.

`races` finds the races in the columns, `metrics` the unwritten elements. While the kernel runs, the machine detects reads
before writes, accesses out of bounds and barrier mismatches. Divergence is a metric, not a hazard (`metrics.divergence`).
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ..core.errors import IndexingError, RaceError, UnwrittenOutputError, short_file
from ..core.layout import Layout
from .bytecode_locations import Line
from .metrics import unwritten_elements
from .races import Race
from .record import ATOMIC, LOAD, STORE, ArrayInfo, Events, Instruction

Sizes = tuple[int, ...]
ACCESS_VERBS = {LOAD: "read", STORE: "written", ATOMIC: "atomically updated"}


class EventLabels(NamedTuple):
    """Readable labels of the rows of the event columns: lines, arrays, blocks and threads."""

    events: Events
    instructions: Sequence[Instruction]
    arrays: Sequence[ArrayInfo]
    grid: Sizes  # blocks along x, y, z
    block: Sizes  # threads along x, y, z

    def line(self, row: int) -> Line:
        """Return the file and line of an event."""
        instruction = self.instructions[int(self.events.instruction[row])]
        return instruction.file, instruction.line

    def array(self, row: int) -> ArrayInfo:
        """Return the array of an event."""
        return self.arrays[int(self.events.array[row])]

    def block_index(self, row: int) -> Sizes:
        """Return the index of the block, with as many numbers as the grid has dims."""
        return unravel_xyz(int(self.events.block[row]), self.grid)

    def thread_index(self, row: int) -> Sizes:
        """Return the index of the thread, with as many numbers as the block has dims."""
        return unravel_xyz(int(self.events.thread[row]), self.block)


def unravel_xyz(linear: int, sizes: Sizes) -> Sizes:
    """Convert a linear index of a block or thread to (x, y, z), without trailing dims of size 1.

    Examples
    --------
    >>> unravel_xyz(35, (16, 16, 1)), unravel_xyz(35, (64, 1, 1))
    ((3, 2), (35,))
    """
    index = []
    for size in sizes[: count_dims(sizes)]:
        linear, i = divmod(linear, size)
        index.append(i)
    return tuple(index)


def count_dims(sizes: Sizes) -> int:
    """Return the number of dims of a grid or block, without trailing dims of size 1, and at least 1."""
    return max((d + 1 for d, size in enumerate(sizes) if size > 1), default=1)


def format_index(index: Sizes) -> str:
    """Format an index as `5` or `(5, 0)`."""
    return str(index[0]) if len(index) == 1 else str(index)


def element_at(array: ArrayInfo, address: int) -> Sizes:
    """Return the index of the element of an array at a byte address.

    Examples
    --------
    >>> element_at(ArrayInfo("tile", "shared", 256, (4, 8), (32, 4), 4, "float32"), 256 + 3 * 32 + 4 * 4)
    (3, 4)
    """
    position = (address - array.base) // array.itemsize
    if len(array.shape) > 1:
        try:
            return Layout(array.shape, array.strides, 0).index(position * array.itemsize)
        except IndexingError:  # between elements: the access was through another array over the same memory
            pass
    stride = array.strides[0] if len(array.strides) == 1 and array.strides[0] else array.itemsize
    return (position * array.itemsize // stride + array.low,) if array.shape else ()


def find_race_errors(races: Iterable[Race], labels: EventLabels) -> list[RaceError]:
    """Return an error for each race."""
    return [_race_error(race, labels) for race in races]


def _race_error(race: Race, labels: EventLabels) -> RaceError:
    first, second = race.first, race.second
    array, events = labels.array(first), labels.events
    element = element_at(array, int(max(events.address[first], events.address[second])))
    block = labels.block_index(first)
    is_between_blocks = race.scope == "grid"
    accesses = [_format_access(row, labels, with_block=is_between_blocks) for row in (first, second)]
    epoch = None if is_between_blocks else int(events.epoch[first])
    epoch_text = "" if is_between_blocks else f", both in epoch {epoch} of block {format_index(block)}"
    message = f"{_format_element(array, element)}: {accesses[0]}, {accesses[1]}{epoch_text}; {_advice(race, labels)}."
    if race.same_value:
        message += " All of them wrote the same value, so the result is not affected; it is still a race."
    if race.elements > 1:
        message += f" In all, {race.elements} elements are affected."
    return RaceError(
        message,
        lines=(labels.line(first), labels.line(second)),
        array=array.name,
        element=element,
        block=block,
        threads=(labels.thread_index(first), labels.thread_index(second)),
        epoch=epoch,
    )


def _format_element(array: ArrayInfo, element: Sizes) -> str:
    element_text = f" element {format_index(element)}" if element else ""
    return f"{array.space} array '{array.name}'{element_text}"


def _format_access(row: int, labels: EventLabels, *, with_block: bool) -> str:
    file, line = labels.line(row)
    block = f" of block {format_index(labels.block_index(row))}" if with_block else ""
    verb = ACCESS_VERBS[int(labels.events.kind[row])]
    return f"{verb} by thread {format_index(labels.thread_index(row))}{block} at {short_file(file)}:{line}"


def _advice(race: Race, labels: EventLabels) -> str:
    """Return how to order the two accesses, or how to make their order irrelevant."""
    (first_file, first_line), (second_file, second_line) = labels.line(race.first), labels.line(race.second)
    is_one_line = (first_file, first_line) == (second_file, second_line)
    if is_one_line and race.kind != "write-write":
        or_barrier = "" if race.scope == "grid" else ", or read before a cuda.syncthreads() and write after it"
        occurrence = labels.events.occurrence
        if race.scope == "grid" and occurrence[race.first] != occurrence[race.second]:  # in a loop
            or_barrier = ", launch the kernel once for each iteration, or call cuda.cg.this_grid().sync() in each"
        return f"write to an array other than the one that is read{or_barrier}, or use cuda.atomic"
    if race.scope == "grid":
        if race.kind == "write-write":
            return "blocks run in any order: give each block its own element, or use cuda.atomic in all of them"
        return "blocks run in any order: use two launches, or cuda.cg.this_grid().sync() between the two"
    if is_one_line and race.kind == "write-write":
        return "let one thread write it, give each thread its own element, or use cuda.atomic"
    or_syncwarp = ", and so would a cuda.syncwarp(), as the threads are of one warp" if race.scope == "warp" else ""
    if first_file == second_file and first_line > second_line:
        return (
            f"a cuda.syncthreads() after line {first_line}, before line {second_line} runs again, would order them"
            f"{or_syncwarp}"
        )
    return f"a cuda.syncthreads() between the two lines would order them{or_syncwarp}"


def find_unwritten(labels: EventLabels) -> dict[str, int]:
    """Count the elements that no thread wrote, for each partly written array in global memory.

    This is a metric, not a hazard.
    """
    is_write = labels.events.kind != LOAD
    counts = {}
    for row in np.unique(labels.events.array[is_write]).tolist():
        info = labels.arrays[row]
        count = len(unwritten_elements(labels.events, info)) if info.space == "global" else 0
        if count:
            counts[info.name] = count
    return counts


def find_unwritten_errors(uninitialized_names: Iterable[str], labels: EventLabels) -> list[UnwrittenOutputError]:
    """Return an error for each output that was written in part.

    An output is an array that was uninitialized when the launch began (`device_array`) and that the kernel wrote to. Other
    arrays may keep their old elements on purpose, so `find_unwritten` only counts them. An array that the kernel
    does not write at all may be the output of another launch.
    """
    counts = find_unwritten(labels)
    outputs = [info for info in labels.arrays if info.space == "global" and info.name in {*uninitialized_names} & {*counts}]
    return [_unwritten_error(info, counts[info.name], labels) for info in outputs]


def _unwritten_error(info: ArrayInfo, count: int, labels: EventLabels) -> UnwrittenOutputError:
    first = int(unwritten_elements(labels.events, info)[0])
    element = tuple(int(i) for i in np.unravel_index(first, info.shape))
    size = int(np.prod(info.shape))
    return UnwrittenOutputError(
        f"{_format_element(info, element)}: no thread wrote it and {count - 1} more of {size} elements; "
        f"{int(np.prod(labels.grid))} blocks of {int(np.prod(labels.block))} threads were launched: "
        "check that they cover the shape, and check the guard",
        array=info.name,
        element=element,
    )
