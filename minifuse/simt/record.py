"""The record of a launch: which lane accessed which byte at which line, as columns.

While the kernel runs, an access appends five values to a flat list, and a change of lane or epoch appends one segment. Both
are converted to columns in chunks. Everything that can be computed afterwards (occurrences, synthetic addresses) is computed
afterwards. `metrics` and `races` analyze the columns.
"""

from collections.abc import Iterable
from types import CodeType
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.errors import LimitError
from .bytecode_locations import CodeOffset, instruction_at, instruction_start
from .bytecode_locations import Instruction as Instruction

LOAD: Final = 0
STORE: Final = 1
ATOMIC: Final = 2

VALUES_PER_EVENT: Final = 5  # in the log: code, bytecode offset, tag, byte offset in the allocation, value
CHUNK_EVENTS: Final = 1 << 16  # events per conversion to columns, so that a long trace takes 50 bytes per event


class ArrayInfo(NamedTuple):
    """An array that a launch accesses. Accesses to a view that a kernel creates are attributed to the array."""

    name: str
    space: str  # 'global', 'shared' or 'const'
    base: int  # synthetic byte address of the first element
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # bytes
    itemsize: int
    dtype: str
    low: int = 0  # the index of the first element; not 0 for some pointers


class Barrier(NamedTuple):
    """One passage of a block through a barrier. A barrier of the grid has a row for each block."""

    block: int
    epoch: int  # epoch that the barrier ends
    instruction: int
    kind: str  # 'syncthreads', 'syncthreads_count', 'syncthreads_and', 'syncthreads_or' or 'grid'
    value: int  # result that the lanes receive; 0 for a barrier without a result


class Collective(NamedTuple):
    """One warp operation of the lanes of a mask, or a memory fence of one lane."""

    block: int
    warp: int
    instruction: int
    kind: str  # name of the operation: 'shfl_down_sync', 'syncwarp', ...
    mask: int
    occurrence: int  # how often these lanes had executed this instruction before
    epoch: int = 0  # barriers that the block had passed
    position: int = -1  # events recorded before it


class Events(NamedTuple):
    """The accesses of a launch in the order of execution: columns of equal length.

    A warp's request to memory consists of the events with equal (block, thread // 32, instruction, occurrence).
    """

    block: NDArray[np.int32]  # linear: x + y * gridDim.x + z * gridDim.x * gridDim.y
    thread: NDArray[np.int32]  # linear in its block
    instruction: NDArray[np.int32]  # row of the table of instructions
    occurrence: NDArray[np.int32]  # how often this lane had executed this instruction before
    epoch: NDArray[np.int32]  # barriers that the block had passed
    warp_epoch: NDArray[np.int32]  # syncwarps that the lane had passed
    array: NDArray[np.int32]  # row of the table of arrays
    kind: NDArray[np.uint8]  # LOAD, STORE or ATOMIC
    address: NDArray[np.int64]  # synthetic, bytes
    nbytes: NDArray[np.int32]
    value: NDArray[np.float64]  # of the first element: loaded, stored, or in memory after an atomic


EVENT_DTYPES: Final = Events(*map(np.dtype, (*["i4"] * 7, "u1", "i8", "i4", "f8")))  # type: ignore[arg-type]  # dtypes, not columns


class Recorder:
    """Collect the events of one launch.

    Parameters
    ----------
    limit
        Events after which the launch ends with a LimitError; None for no limit.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self.arrays: list[ArrayInfo] = []
        self.barriers: list[tuple[int, int, CodeOffset, str, int]] = []
        self.collectives: list[tuple[int, int, CodeOffset, str, int, int, int]] = []
        self._bases: list[int] = []  # row of an array -> synthetic address of its allocation
        self._log: list[Any] = []  # VALUES_PER_EVENT for each event
        self._segments: list[tuple[int, ...]] = []  # first event, block, thread, epoch, warp epoch
        self._chunks: list[tuple[np.ndarray, ...]] = []
        self._count = 0  # events in the chunks
        self._codes: dict[int, tuple[int, CodeType]] = {}  # id -> (number, code), kept alive so that the id stays valid
        self._log_capacity = 0
        self._set_capacity()

    def add_array(self, info: ArrayInfo, allocation_base: int) -> int:
        """Add an array to the table, and return its row."""
        self.arrays.append(info)
        self._bases.append(allocation_base)
        return len(self.arrays) - 1

    def begin_segment(self, block: int, thread: int, epoch: int, warp_epoch: int) -> None:
        """Attribute the following events to this lane, in these epochs."""
        self._segments.append((len(self._log) // VALUES_PER_EVENT, block, thread, epoch, warp_epoch))

    def add(self, code: CodeType, offset_in_code: int, tag: int, offset: int, value: object) -> None:
        """Record one access of the current lane, at a byte offset in the allocation of the array in `tag`."""
        log = self._log
        log += (code, offset_in_code, tag, offset, value)
        if len(log) >= self._log_capacity:
            self._flush()

    @property
    def position(self) -> int:
        """The number of events recorded so far."""
        return self._count + len(self._log) // VALUES_PER_EVENT

    def _set_capacity(self) -> None:
        event_count = CHUNK_EVENTS if self.limit is None else min(CHUNK_EVENTS, self.limit + 1 - self._count)
        self._log_capacity = VALUES_PER_EVENT * event_count

    def _flush(self) -> None:
        """Convert the log to columns. Raise LimitError if there are more events than the limit."""
        log, segments = self._log, self._segments
        exceeds_limit = self.limit is not None and self._count + len(log) // VALUES_PER_EVENT > self.limit
        if exceeds_limit:
            del log[-VALUES_PER_EVENT:]
        if log:
            self._chunks.append(self._columns(log, segments))
            self._count += len(log) // VALUES_PER_EVENT
            log.clear()
            self._segments = [(0, *segments[-1][1:])]
        self._set_capacity()
        if exceeds_limit:
            raise LimitError(
                f"more than {self.limit} events; trace a smaller grid, or raise limit= (about 50 bytes per event)"
            )

    def _columns(self, log: list[Any], segments: list[tuple[int, ...]]) -> tuple[np.ndarray, ...]:
        count = len(log) // VALUES_PER_EVENT
        table = np.array(segments, np.int64)
        lengths = np.diff(table[:, 0], append=count)
        block, thread, epoch, warp_epoch = (np.repeat(column, lengths) for column in table[:, 1:].T)
        tag = np.array(log[2::VALUES_PER_EVENT], np.int64)
        code = self._number_codes(log[0::VALUES_PER_EVENT])
        code_offset = (code << 32) + np.array(log[1::VALUES_PER_EVENT], np.int64)
        offset = np.array(log[3::VALUES_PER_EVENT], np.int64)
        value = to_float64_column(log[4::VALUES_PER_EVENT], any(info.dtype.startswith("complex") for info in self.arrays))
        return block, thread, code_offset, epoch, warp_epoch, tag >> 16, tag & 3, offset, tag >> 2 & 0x3FFF, value

    def _number_codes(self, codes: list[CodeType]) -> NDArray[np.int64]:
        _, first, inverse = np.unique(
            np.fromiter(map(id, codes), np.int64, len(codes)), return_index=True, return_inverse=True
        )
        numbers = [self._code_number(codes[index]) for index in first.tolist()] or [0]
        return np.array(numbers, np.int64)[inverse]

    def _code_number(self, code: CodeType) -> int:
        return self._codes.setdefault(id(code), (len(self._codes), code))[0]

    def _instruction_key(self, code_offset: CodeOffset) -> int:
        return (self._code_number(code_offset[0]) << 32) + instruction_start(*code_offset)

    def finish(self) -> tuple[Events, list[Instruction], list[Barrier], list[Collective]]:
        """Return the events and the tables that they refer to. The recorder is empty afterwards."""
        if self._log:
            self._chunks.append(self._columns(self._log, self._segments))
            self._log.clear()
        chunks, self._chunks = self._chunks or [self._columns([], [(0,) * 5])], []
        block, thread, code_offset, epoch, warp_epoch, array, kind, offset, nbytes, value = map(
            np.concatenate, zip(*chunks, strict=True)
        )
        del chunks
        code_offset = self._move_to_instruction_starts(code_offset)
        synchronizations = [
            *(self._instruction_key(row[2]) for row in self.barriers),
            *(self._instruction_key(row[2]) for row in self.collectives),
        ]
        keys = np.unique(np.concatenate([np.unique(code_offset), np.array(synchronizations, np.int64)]))
        instructions, row_of_key = self._instruction_table(keys.tolist())
        instruction = np.array([row_of_key[key] for key in keys.tolist()] or [0], np.int64)[
            np.searchsorted(keys, code_offset)
        ]
        bases = np.array(self._bases or [0], np.int64)
        columns = (
            *(block, thread, instruction, count_occurrences(block, thread, instruction), epoch, warp_epoch),
            *(array, kind, bases[array] + offset, nbytes, round_to_dtype(value, array, self.arrays)),
        )
        events = Events(*(column.astype(dtype) for column, dtype in zip(columns, EVENT_DTYPES, strict=True)))
        barriers = [Barrier(*row[:2], row_of_key[self._instruction_key(row[2])], *row[3:]) for row in self.barriers]
        return events, instructions, barriers, self._collective_rows(row_of_key)

    def _move_to_instruction_starts(self, code_offset: NDArray[np.int64]) -> NDArray[np.int64]:
        """Move each code offset to the start of its instruction."""
        codes = dict(self._codes.values())
        keys, inverse = np.unique(code_offset, return_inverse=True)
        starts = [(key >> 32 << 32) + instruction_start(codes[key >> 32], key & 0xFFFF_FFFF) for key in keys.tolist()]
        return np.array(starts, np.int64)[inverse]

    def _instruction_table(self, keys: list[int]) -> tuple[list[Instruction], dict[int, int]]:
        """Return the instructions in source order, and the row of each key."""
        codes = dict(self._codes.values())
        pairs = [(instruction_at(codes[key >> 32], key & 0xFFFF_FFFF), key) for key in keys]
        pairs.sort(key=lambda pair: (pair[0].file, pair[0].line, pair[0].column, pair[0].offset, pair[1]))
        return [instruction for instruction, _ in pairs], {key: row for row, (_, key) in enumerate(pairs)}

    def _collective_rows(self, row_of_key: dict[int, int]) -> list[Collective]:
        counts: dict[tuple[int, ...], int] = {}
        rows = []
        for block, warp, code_offset, kind, mask, epoch, position in self.collectives:
            instruction = row_of_key[self._instruction_key(code_offset)]
            key = (block, warp, instruction, mask)
            counts[key] = counts.get(key, -1) + 1
            rows.append(Collective(block, warp, instruction, kind, mask, counts[key], epoch, position))
        return rows


def pack_tag(array: int, nbytes: int, kind: int) -> int:
    """Pack the row of an array, the number of bytes and the kind of access into one number."""
    return array << 16 | nbytes << 2 | kind


def to_float64_column(values: list[complex], has_complex: bool) -> NDArray[np.float64]:
    """Convert values to a float64 column. Complex numbers keep their real part."""
    numbers = (value.real for value in values) if has_complex else values
    return np.fromiter(numbers, np.float64, len(values))


def round_to_dtype(value: NDArray[np.float64], array: NDArray[np.int64], arrays: Iterable[ArrayInfo]) -> NDArray[np.float64]:
    """Round values to the dtype of their array: a value stored in a float32 array is rounded to float32."""
    for row, info in enumerate(arrays):
        dtype = np.dtype(info.dtype)
        is_in_array = array == row
        if dtype.kind == "f" and dtype.itemsize < 8:
            with np.errstate(all="ignore"):
                value[is_in_array] = value[is_in_array].astype(dtype)
        elif dtype.kind in "iu":
            value[is_in_array] = np.trunc(value[is_in_array])
        elif dtype.kind == "b":
            value[is_in_array] = value[is_in_array] != 0
    return value


def count_occurrences(block: np.ndarray, thread: np.ndarray, instruction: np.ndarray) -> NDArray[np.int64]:
    """Count for each event how often the same lane had executed the same instruction before."""
    if not len(block):
        return np.zeros(0, np.int64)
    key = (block * (int(thread.max()) + 1) + thread) * (int(instruction.max()) + 1) + instruction
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    rank = np.arange(len(key)) - np.repeat(starts, np.diff(starts, append=len(key)))
    occurrence = np.empty_like(rank)
    occurrence[order] = rank
    return occurrence
