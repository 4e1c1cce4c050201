"""The board: shared memory in which each rank posts its next collective, and which a watcher compares.

A rank posts before each collective: the operation, shapes, dtypes, and the line that called it. Nothing is sent. `minifuse
launch` reads the board some fifty times a second, and names ranks that ask for different collectives, or that wait for a
rank which has ended (see `watcher`). The row of a rank has these parts:

    head      process id, state, number of posts, whether the rank is in a collective
    records   of the last posts: group, number of the collective in the group, hash of the group's collectives so far, text
    texts     the collectives that were posted, as JSON
    error     the traceback of a rank that failed
    address   a text that other ranks look up, such as where the rank receives messages
"""

import json
import os
import struct
from collections.abc import Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from types import FrameType
from typing import NamedTuple, Self

from .base import Request
from .region import Region

STARTING, RUNNING, FAILED, ENDED = range(4)
"""The states of a rank."""

HEAD = struct.Struct("<qqqq")
POST = struct.Struct("<qq")
POST_AT = 16  # bytes of the head before the number of posts
RECORD = struct.Struct("<Qqqq")
TEXT_LENGTH = struct.Struct("<q")
RECORD_NBYTES = RECORD.size
KEPT_RECORDS = 128
TEXT_NBYTES = 1 << 20  # more than the recent records need; untouched pages take no memory
ERROR_NBYTES = 1 << 16
RECORDS_AT = HEAD.size
TEXTS_AT = RECORDS_AT + KEPT_RECORDS * RECORD.size
ERROR_AT = TEXTS_AT + TEXT_NBYTES
ADDRESS_AT = ERROR_AT + ERROR_NBYTES
ROW_NBYTES = ADDRESS_AT + 256
LAUNCHER = struct.Struct("<q")  # the process id of the launcher, before the rows
pack_record, pack_post = RECORD.pack_into, POST.pack_into


class Record(NamedTuple):
    """A posted collective: its number in its group, a hash of it and all before it, and where its text is."""

    group: int
    number: int
    history: int
    text_at: int


class Row(NamedTuple):
    """The state of a rank, and its last records, the oldest first."""

    pid: int
    state: int
    posts: int
    is_inside: bool
    records: list[Record]


class Call(NamedTuple):
    """A collective, as the text of a record describes it."""

    op: str
    shapes: list[list[int]]
    dtypes: list[str]
    label: str
    ranks: list[int]

    @property
    def arrays(self) -> list[str]:
        """The dtype and the shape of each array."""
        return [f"{dtype} {tuple(shape)}" for shape, dtype in zip(self.shapes, self.dtypes, strict=True)]


class GroupHistory:
    """How many collectives this rank posted for a group, and a hash of them in order."""

    __slots__ = ("hash", "id", "number")

    def __init__(self, ranks: Sequence[int]) -> None:
        self.id, self.number, self.hash = digest(list(ranks)), 0, 0


class KnownRequest(NamedTuple):
    """A request that was posted before, and where its text is. `owners` are kept, since the key contains their ids."""

    owners: tuple[object, ...]
    history: GroupHistory
    fingerprint: int
    text_at: int


class Board:
    """The rows of all ranks, and the right to write that of one rank.

    Examples
    --------
    >>> import sys
    >>> board = Board.create(2)
    >>> first = Board.open(board.address, rank=0)
    >>> first.post(Request("all_reduce", ((3, 5),), ("float32",)), (0, 1), sys._getframe())
    >>> row = board.read(0)
    >>> row.is_inside, board.call(0, row.records[-1]).arrays
    (True, ['float32 (3, 5)'])
    """

    def __init__(self, region: Region, rank: int = 0) -> None:
        self.region, self.rank = region, rank
        self.address, self.memory = region.address, region.memory
        self.row = row_at(rank)
        self.posts = self.text_end = 0
        self.known: dict[tuple[int, int, int, int], KnownRequest] = {}
        self.groups: dict[tuple[int, ...], GroupHistory] = {}

    @classmethod
    def create(cls, size: int) -> Self:
        """Create a board of so many ranks, with this process as the launcher."""
        board = cls(Region.create(row_at(size)))
        LAUNCHER.pack_into(board.memory, 0, os.getpid())
        return board

    @classmethod
    def open(cls, address: str, rank: int) -> Self:
        """Open the board as a rank, and post that the rank runs."""
        board = cls(Region.open(address), rank)
        HEAD.pack_into(board.memory, board.row, os.getpid(), RUNNING, 0, 0)
        return board

    @property
    def launcher(self) -> int:
        """The process id of the launcher."""
        (pid,) = LAUNCHER.unpack_from(self.memory, 0)
        return int(pid)

    def post(self, request: Request, ranks: tuple[int, ...], caller: FrameType) -> None:
        """Post the next collective of this rank; call `done` when it is over.

        Parameters
        ----------
        request : Request
            What all ranks must ask for alike. Pass the same object each time: it is described once.
        ranks : tuple of int
            The group; the same object each time.
        caller : frame
            The frame that called it, whose line may differ between ranks.
        """
        key = (id(request), id(ranks), id(caller.f_code), caller.f_lasti)
        _, history, fingerprint, text_at = self.known.get(key) or self._describe(key, request, ranks, caller)
        history.number = number = history.number + 1
        history.hash = chained = hash((history.hash, fingerprint))
        self.posts = posts = self.posts + 1
        place = self.row + RECORDS_AT + posts % KEPT_RECORDS * RECORD_NBYTES
        pack_record(self.memory, place, history.id, number, chained, text_at)
        pack_post(self.memory, self.row + POST_AT, posts, 1)

    def done(self) -> None:
        """Post that the collective is over."""
        pack_post(self.memory, self.row + POST_AT, self.posts, 0)

    def fail(self, error: str) -> None:
        """Post that this rank failed, with its traceback."""
        text = error.encode()[-ERROR_NBYTES + TEXT_LENGTH.size :]
        self._write(ERROR_AT, text)
        self._set_state(FAILED)

    def end(self) -> None:
        """Post that this rank reached the end of its program."""
        self._set_state(ENDED)

    def read(self, rank: int) -> Row:
        """Return what a rank posted."""
        row = row_at(rank)
        pid, state, posts, is_inside = HEAD.unpack_from(self.memory, row)
        first = max(1, posts - KEPT_RECORDS + 2)  # the next post overwrites the oldest record
        places = (row + RECORDS_AT + k % KEPT_RECORDS * RECORD.size for k in range(first, posts + 1))
        records = [Record(*RECORD.unpack_from(self.memory, place)) for place in places]
        return Row(pid, state, posts, bool(is_inside), records)

    def call(self, rank: int, record: Record) -> Call:
        """Return the collective of a record."""
        return Call(*json.loads(self._read(row_at(rank) + TEXTS_AT + record.text_at)))

    def error(self, rank: int) -> str:
        """Return the traceback that a rank posted; "" without one."""
        return self._read(row_at(rank) + ERROR_AT).decode(errors="replace")

    def publish(self, address: str) -> None:
        """Let other ranks look up an address of this one."""
        self._write(ADDRESS_AT, address.encode())

    def address_of(self, rank: int) -> str:
        """Return the address that a rank published; "" before it did."""
        return self._read(row_at(rank) + ADDRESS_AT).decode()

    def state(self, rank: int) -> int:
        """Return the state of a rank."""
        return int(HEAD.unpack_from(self.memory, row_at(rank))[1])

    def _describe(
        self, key: tuple[int, int, int, int], request: Request, ranks: tuple[int, ...], caller: FrameType
    ) -> KnownRequest:
        """Write the text of a collective that was not posted before, and return where it is."""
        label = f"{Path(caller.f_code.co_filename).name}:{caller.f_lineno}"
        text = json.dumps([*request, label, ranks]).encode()
        if len(text) > TEXT_NBYTES // 4:
            text = json.dumps([f"{request.op} of {len(request.shapes)} arrays", [], [], label, ranks]).encode()
        if self.text_end + len(text) + TEXT_LENGTH.size > TEXT_NBYTES:
            self.text_end = 0
            self.known.clear()
        text_at = self.text_end
        self._write(TEXTS_AT + text_at, text)
        self.text_end += len(text) + TEXT_LENGTH.size
        history = self.groups.setdefault(ranks, GroupHistory(ranks))
        self.known[key] = found = KnownRequest((request, ranks, caller.f_code), history, digest(request), text_at)
        return found

    def _set_state(self, state: int) -> None:
        HEAD.pack_into(self.memory, self.row, os.getpid(), state, self.posts, 0)

    def _write(self, offset: int, text: bytes) -> None:
        start = self.row + offset
        self.memory[start + TEXT_LENGTH.size : start + TEXT_LENGTH.size + len(text)] = text
        TEXT_LENGTH.pack_into(self.memory, start, len(text))

    def _read(self, start: int) -> bytes:
        (length,) = TEXT_LENGTH.unpack_from(self.memory, start)
        return bytes(self.memory[start + TEXT_LENGTH.size : start + TEXT_LENGTH.size + length])


@cache
def join(address: str, rank: int) -> Board:
    """Open a board as a rank, once in a process."""
    return Board.open(address, rank)


def row_at(rank: int) -> int:
    """Return the byte at which the row of a rank begins; for the number of ranks, the size of the board."""
    return LAUNCHER.size + rank * ROW_NBYTES


def digest(description: Sequence[object]) -> int:
    """Return a hash of 64 bits that all ranks compute alike."""
    return int.from_bytes(blake2b(json.dumps(description).encode(), digest_size=8).digest(), "little")
