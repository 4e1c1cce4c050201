"""Find ranks that ask for different collectives, or that wait for a rank that never comes, by reading the board."""

from collections.abc import Collection
from itertools import groupby

from ..core.wording import format_count
from .board import ENDED, FAILED, Board, Call, Record, Row

STUCK_SECONDS = 1.0  # ranks that wait for each other are reported after this time


class Watcher:
    """Compare the rows of a board.

    Attributes
    ----------
    board : Board
        The board, which the watcher only reads.
    size : int
        The number of ranks.
    """

    def __init__(self, board: Board, size: int) -> None:
        self.board, self.size = board, size
        self._posts: list[int] = []
        self._since = 0.0
        self._suspected = ""

    def look(self, now: float, ended: Collection[int] = ()) -> str:
        """Return the fault that the board shows; "" without one.

        A fault is reported when two looks in a row show it, since a row can be read while it is being written.

        Parameters
        ----------
        now : float
            The time in seconds.
        ended : collection of int
            The ranks whose process has ended.
        """
        rows = [self.board.read(rank) for rank in range(self.size)]
        gone = {rank for rank, row in enumerate(rows) if row.state in (FAILED, ENDED)} | set(ended)
        if [row.posts for row in rows] != self._posts:
            self._posts, self._since = [row.posts for row in rows], now
        fault = self._mismatch(rows) or self._waiting(rows, gone, now - self._since > STUCK_SECONDS)
        is_confirmed, self._suspected = fault == self._suspected, fault
        return fault if is_confirmed else ""

    def look_twice(self) -> str:
        """Return the mismatch that the board shows; "" without one."""
        found = [self._mismatch([self.board.read(rank) for rank in range(self.size)]) for _ in range(2)]
        return found[0] if found[0] == found[1] else ""

    def _mismatch(self, rows: list[Row]) -> str:
        """Describe the first collective of a group that is not the same on its ranks."""
        posted: dict[tuple[int, int], dict[int, Record]] = {}
        for rank, row in enumerate(rows):
            for record in row.records:
                posted.setdefault((record.group, record.number), {})[rank] = record
        for (_, number), records in sorted(posted.items(), key=lambda item: item[0][1]):
            if len({record.history for record in records.values()}) > 1:
                calls = {rank: self.board.call(rank, record) for rank, record in records.items()}
                group = ", ".join(map(str, next(iter(calls.values())).ranks))
                return f"collective {number} of the ranks {group} is not the same on all of them\n" + format_calls(calls)
        return ""

    def _waiting(self, rows: list[Row], gone: set[int], is_stuck: bool) -> str:
        """Describe ranks that wait for one that has ended, or that all wait for each other."""
        waits = {}
        for rank, row in enumerate(rows):
            if row.is_inside and row.records and rank not in gone:
                call = self.board.call(rank, row.records[-1])
                waits[rank] = call, missing_ranks(call, row.records[-1], rows)
        lines = []
        for rank, (call, missing) in waits.items():
            for other in sorted(gone & missing):
                count = format_count(rows[other].posts, "collective")
                lines.append(f"rank {rank} waits in {format_call(call)}\n  for rank {other}, which ended after {count}")
        if lines:
            return "\n".join(lines)
        if is_stuck and len(waits) == self.size - len(gone) and all(missing for _, missing in waits.values()):
            for rank, (call, missing) in waits.items():
                others = ", ".join(map(str, sorted(missing)))
                lines.append(f"rank {rank} waits in {format_call(call)}\n  for rank {others}")
            return "the ranks wait for each other\n" + "\n".join(lines) if lines else ""
        return ""


def missing_ranks(call: Call, record: Record, rows: list[Row]) -> set[int]:
    """Return the ranks of a collective that have not posted it."""
    return {
        rank
        for rank in call.ranks
        if not any(other.group == record.group and other.number >= record.number for other in rows[rank].records)
    }


def format_calls(calls: dict[int, Call]) -> str:
    """Return what each rank asked for, with ranks that asked for the same in one line."""
    widest = max(len(call.arrays) for call in calls.values())
    at = next((k for k in range(widest) if len({tuple(call.arrays[k : k + 1]) for call in calls.values()}) > 1), 0)
    texts = sorted((format_call(call, at), rank) for rank, call in calls.items())
    merged = [([rank for _, rank in same], text) for text, same in groupby(texts, key=lambda pair: pair[0])]
    lines = []
    for ranks, text in sorted(merged):
        lines.append(f"  rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}: {text}")
    return "\n".join(lines)


def format_call(call: Call, at: int = 0) -> str:
    """Return a collective with one of its arrays, such as `all_reduce of float32 (3, 5) at train.py:12`."""
    arrays = call.arrays
    place = f" (array {at + 1} of {len(arrays)})" if len(arrays) > 1 else ""
    shown = f"{arrays[at]}{place}" if at < len(arrays) else f"{len(arrays)} arrays"
    return f"{call.op} of {shown} at {call.label}" if arrays else f"{call.op} at {call.label}"
