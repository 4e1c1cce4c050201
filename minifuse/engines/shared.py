"""The shared engine: ranks of one host that exchange arrays through shared memory.

Each rank has an inbox, a region with a queue for each sender. A short message is stored in the queue; of a long one the
queue has the address of another region. `all_reduce` needs no messages: each rank sums one slice of the arrays of all, in
the order of ranks, so the sums have the bits of a loop over the ranks (see `staging`). The host's buffers are allocated in
memory that all ranks can read (see `shared_arena`).
"""

import atexit
import time
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from ..core.errors import DistributedError
from .base import RankGroup
from .board import ENDED, Board, digest
from .environment import Place
from .messages import Array, Combine
from .process import ProcessEngine
from .region import Region
from .shared_arena import SharedArena, leave_pool
from .staging import LINE_NBYTES, Concatenation, StagingArea
from .waiting import fence, wait_until

QUEUE_SLOTS = 64
SLOT_NBYTES = 1024
SLOT_DATA_AT = 64  # after the number of bytes and the address
MAX_AREAS = 64
ENDED_SECONDS = 1.0  # after which a rank waits no more for one that has ended
AREA_ENTRY_NBYTES = 64
QUEUES_AT = LINE_NBYTES + MAX_AREAS * AREA_ENTRY_NBYTES
QUEUE_NBYTES = 2 * LINE_NBYTES + QUEUE_SLOTS * SLOT_NBYTES


class SharedEngine(ProcessEngine):
    """Carry arrays through the memory of one host."""

    name = "shared"

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        if self.board is None:
            raise DistributedError(
                "the shared engine needs `minifuse launch`, which starts its ranks; across hosts, write --engine mpi"
            )
        self.inbox = Inbox(Region.create(QUEUES_AT + self.size * QUEUE_NBYTES))
        self.arena = SharedArena.reserve()
        self.arenas = {self.rank: self.arena}
        self.arena.serve_pool()
        self.board.publish(f"{self.inbox.region.address} {self.arena.region.address}")
        self.inboxes = {self.rank: self.inbox}
        self.sent = [0] * self.size
        self.received = [0] * self.size
        self.blocks: dict[int, list[MessageBlock]] = {rank: [] for rank in range(self.size)}
        self.regions: dict[str, Region] = {}
        self.ended_at: dict[int, float] = {}
        self.areas: dict[tuple[int, ...], StagingArea] = {}
        atexit.register(self.close)

    def send(self, to: int, data: np.ndarray) -> None:
        """Copy an array to where a rank can read it; wait only if that rank has not received many arrays before."""
        inbox, number = self.inbox_of(to), self.sent[to]
        wait_until(lambda: number - inbox.received(self.rank) < QUEUE_SLOTS, lambda: self.check(to))
        source = np.ascontiguousarray(data).view(np.uint8)
        address = ""
        if source.size <= SLOT_NBYTES - SLOT_DATA_AT:
            inbox.slot(self.rank, number)[SLOT_DATA_AT : SLOT_DATA_AT + source.size] = source
        else:
            block = self.find_block(to, source.size)
            block.memory[: source.size] = source
            block.free_after, address = number + 1, block.region.address
        inbox.put(self.rank, number, source.size, address)
        self.sent[to] = number + 1

    def recv(self, source: int, dtype: np.dtype[Any]) -> np.ndarray:
        """Wait for the next array of a rank, and return a copy."""
        number = self.received[source]
        wait_until(lambda: self.inbox.sent(source) > number, lambda: self.check(source))
        nbytes, address = self.inbox.get(source, number)
        if address:
            if address not in self.regions:
                self.regions[address] = Region.open(address)
            data = self.regions[address].array(np.uint8, nbytes).copy()
        else:
            data = self.inbox.slot(source, number)[SLOT_DATA_AT : SLOT_DATA_AT + nbytes].copy()
        self.received[source] = number + 1
        self.inbox.free(source, number + 1)
        return data.view(dtype)

    def all_reduce(self, group: RankGroup, outputs: Sequence[Array], inputs: Sequence[Array], combine: Combine) -> None:
        """Combine each array over all ranks, in the order of ranks, and store it on all."""
        area = self.area_of(group)
        for _, same in groupby(zip(outputs, inputs, strict=True), key=lambda pair: pair[1].dtype):
            some_outputs, some_inputs = zip(*same, strict=True)
            with np.errstate(all="ignore"):  # inf and nan are results, as in kernels
                area.all_reduce(Concatenation(some_inputs), Concatenation(some_outputs), combine)
        self.note_end()

    def barrier(self, group: RankGroup) -> None:
        """Wait until all ranks of a group are here."""
        self.area_of(group).meet()
        self.note_end()

    def close(self) -> None:
        """Wait until the other ranks have received what this one sent, or end."""
        leave_pool()
        self.inbox.close()
        for rank, number in enumerate(self.sent):
            if number and rank != self.rank:
                inbox = self.inbox_of(rank)
                wait_until(lambda: inbox.is_closed or inbox.received(self.rank) >= number or self.has_ended(rank))  # noqa: B023
        for blocks in self.blocks.values():
            for block in blocks:
                block.region.close()
        self.sent = [0] * self.size
        self.blocks = {rank: [] for rank in range(self.size)}

    def inbox_of(self, rank: int) -> "Inbox":
        """Return the inbox of a rank, when that rank has made it."""
        if rank not in self.inboxes:
            board = self.require_board()
            wait_until(lambda: board.address_of(rank) != "", lambda: self.check(rank))
            self.inboxes[rank] = Inbox(Region.open(board.address_of(rank).split()[0]))
        return self.inboxes[rank]

    def arena_of(self, rank: int) -> SharedArena:
        """Return the memory of another rank's buffers."""
        if rank not in self.arenas:
            self.inbox_of(rank)  # waits for both addresses
            self.arenas[rank] = SharedArena(Region.open(self.require_board().address_of(rank).split()[1]))
        return self.arenas[rank]

    def area_of(self, group: RankGroup) -> StagingArea:
        """Return the staging area of a group, which its first rank makes."""
        if group.ranks not in self.areas:
            name, leader = digest(list(group.ranks)) >> 1, group.ranks[0]
            inbox = self.inbox_of(leader)
            if leader == self.rank:
                region = Region.create(StagingArea.nbytes(group.size))
                inbox.add_area(name, region.address)
            else:
                wait_until(lambda: inbox.find_area(name) != "", lambda: self.check(leader))
                region = Region.open(inbox.find_area(name))
            arenas = [self.arena_of(rank) for rank in group.ranks]
            self.areas[group.ranks] = StagingArea(region, group, arenas, self.check)
        return self.areas[group.ranks]

    def find_block(self, to: int, nbytes: int) -> "MessageBlock":
        """Return memory for a long message: a block whose last message has been received, or a new one."""
        received = self.inbox_of(to).received(self.rank)
        for block in self.blocks[to]:
            if block.free_after <= received and nbytes <= block.memory.size <= 4 * nbytes:
                return block
        block = MessageBlock(1 << (nbytes - 1).bit_length())
        self.blocks[to].append(block)
        return block

    def has_ended(self, rank: int) -> bool:
        """Return whether a rank has reached the end of its program."""
        return self.require_board().state(rank) == ENDED

    def check(self, rank: int) -> None:
        """Raise an error if this rank waits for one that has ended. The launcher knows more, if it is a collective."""
        if self.has_ended(rank):
            self.ended_at.setdefault(rank, time.monotonic())
            if time.monotonic() - self.ended_at[rank] > ENDED_SECONDS:
                raise DistributedError(f"rank {self.rank} waits for rank {rank}, which has ended")

    def require_board(self) -> Board:
        """Return the board."""
        assert self.board is not None
        return self.board


class MessageBlock:
    """Memory of a long message, which is free again when the message has been received."""

    def __init__(self, nbytes: int) -> None:
        self.region = Region.create(nbytes)
        self.memory = self.region.array(np.uint8, nbytes)
        self.free_after = 0


class Inbox:
    """The queues in which a rank receives messages, one for each sender; and the staging areas that the rank made.

    A queue has the number of messages that were put into it, which the sender writes; the number of those that were
    received, which the owner writes; and a ring of slots.
    """

    def __init__(self, region: Region) -> None:
        self.region = region
        self.bytes = region.array(np.uint8, len(region.memory))
        self.words = memoryview(region.memory).cast("q")

    @property
    def is_closed(self) -> bool:
        """Whether the owner receives no more."""
        return self.words[0] != 0

    def close(self) -> None:
        """Tell senders that the owner receives no more."""
        self.words[0] = 1

    def sent(self, source: int) -> int:
        """Return how many messages a rank has put into its queue."""
        return self.words[queue_at(source) // 8]

    def received(self, source: int) -> int:
        """Return how many messages of a rank were received."""
        return self.words[(queue_at(source) + LINE_NBYTES) // 8]

    def slot(self, source: int, number: int) -> Array:
        """Return the bytes of a slot."""
        start = queue_at(source) + 2 * LINE_NBYTES + number % QUEUE_SLOTS * SLOT_NBYTES
        return self.bytes[start : start + SLOT_NBYTES]

    def put(self, source: int, number: int, nbytes: int, address: str) -> None:
        """Make a message visible to the owner."""
        slot = self.slot(source, number)
        slot[:8].view(np.int64)[0] = nbytes
        slot[8:SLOT_DATA_AT] = np.frombuffer(address.encode().ljust(SLOT_DATA_AT - 8, b"\0"), np.uint8)
        fence()
        self.words[queue_at(source) // 8] = number + 1

    def get(self, source: int, number: int) -> tuple[int, str]:
        """Return the size of a message, and the address of the region that has it; "" if the slot has it."""
        fence()
        slot = self.slot(source, number)
        return int(slot[:8].view(np.int64)[0]), slot[8:SLOT_DATA_AT].tobytes().rstrip(b"\0").decode()

    def free(self, source: int, count: int) -> None:
        """Note that so many messages of a rank were received."""
        fence()
        self.words[(queue_at(source) + LINE_NBYTES) // 8] = count

    def add_area(self, name: int, address: str) -> None:
        """Let the ranks of a group look up its staging area."""
        count = self.words[1]
        if count == MAX_AREAS:
            raise DistributedError(f"a rank can be the first of at most {MAX_AREAS} groups")
        start = LINE_NBYTES + count * AREA_ENTRY_NBYTES
        self.words[start // 8] = name
        text = address.encode().ljust(AREA_ENTRY_NBYTES - 8, b"\0")
        self.bytes[start + 8 : start + AREA_ENTRY_NBYTES] = np.frombuffer(text, np.uint8)
        fence()
        self.words[1] = count + 1

    def find_area(self, name: int) -> str:
        """Return the address of the staging area of a group; "" before it was made."""
        for k in range(self.words[1]):
            start = LINE_NBYTES + k * AREA_ENTRY_NBYTES
            if self.words[start // 8] == name:
                return self.bytes[start + 8 : start + AREA_ENTRY_NBYTES].tobytes().rstrip(b"\0").decode()
        return ""


def queue_at(source: int) -> int:
    """Return the byte of an inbox at which the queue of a sender begins."""
    return QUEUES_AT + source * QUEUE_NBYTES
