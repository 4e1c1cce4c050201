"""The memory of remembered plans: one limit in bytes for all of them, the least recently used ones evicted first.

A table belongs to whoever plans: one for single operations, one for each fused function. Beside it, a table has `quick`, a
plain dictionary from keys to what runs, so that a repeated call costs one lookup and no bookkeeping. Calls that are found
there are not seen here. Therefore all quick dictionaries are emptied from time to time: the next call of each kind looks its
plan up in the table, which notes the use.

`MINIFUSE_PLAN_LIMIT_MB` sets the limit (default 256), `set_limit` changes it. The size of an entry is an estimate.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import WeakSet

from ..core.errors import MinifuseError

DEFAULT_LIMIT_MB = 256
CLEARS_PER_LIMIT = (
    8  # of the quick dictionaries, while as many bytes are added as the limit allows; there is no check between them
)
MAX_FRACTION = (
    1 - 1 / CLEARS_PER_LIMIT
)  # of the limit, that may be taken after a check: the rest is for what is added until the next one
KEPT_FRACTION = 3 / 4  # of the limit, that remains where entries are evicted

V = TypeVar("V")


class PlanStats(NamedTuple):
    """What all tables hold."""

    plans: int
    nbytes: int
    limit: int
    """Bytes that all plans together may take."""


class PlanEntry(Generic[V]):
    """A value, its size in bytes, and when it was last used."""

    __slots__ = ("nbytes", "used", "value")

    def __init__(self, value: V, nbytes: int, used: int) -> None:
        self.value, self.nbytes, self.used = value, nbytes, used


class PlanTable(Mapping[Any, V]):
    """The plans of one owner, by key."""

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __init__(self, cache: "PlanCache | None" = None) -> None:
        self.cache = cache or plan_cache
        self.entries: dict[Any, PlanEntry[V]] = {}
        self.fast_path: dict[Any, Callable[..., Any]] = {}
        self.cache.tables.add(self)

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self.entries))

    def __getitem__(self, key: Any) -> V:
        entry = self.entries[key]
        entry.used = next(self.cache.clock)
        return entry.value

    def put(self, key: Any, value: V, nbytes: int) -> None:
        """Remember a value of about so many bytes; other values are evicted where all take more than the limit."""
        self.entries[key] = PlanEntry(value, nbytes, next(self.cache.clock))
        self.cache.evict(nbytes)

    def clear(self) -> None:
        """Evict all values."""
        self.entries.clear()
        self.fast_path.clear()


class PlanCache:
    """All tables, and the limit of what they hold."""

    def __init__(self) -> None:
        self.tables: WeakSet[PlanTable[Any]] = WeakSet()
        self.clock = count()
        self.own_limit: int | None = None
        self.added = 0  # bytes, since the quick dictionaries were emptied

    @property
    def limit(self) -> int:
        """Bytes that all plans together may take.

        Raises
        ------
        MinifuseError
            MINIFUSE_PLAN_LIMIT_MB is not a number, or negative.
        """
        if self.own_limit is not None:
            return self.own_limit
        text = os.environ.get("MINIFUSE_PLAN_LIMIT_MB") or str(DEFAULT_LIMIT_MB)
        try:
            return to_nbytes(float(text))
        except (ValueError, OverflowError):
            raise MinifuseError(
                f"MINIFUSE_PLAN_LIMIT_MB is {text!r}, expected a number of megabytes; write {DEFAULT_LIMIT_MB}"
            ) from None

    def set_limit(self, megabytes: float | None) -> None:
        """Set the limit for this process; None for that of the environment. Plans beyond it are evicted now."""
        try:
            self.own_limit = None if megabytes is None else to_nbytes(megabytes)
        except (ValueError, OverflowError, TypeError):
            raise MinifuseError(
                f"set_plan_limit: got {megabytes!r}, expected a number of megabytes from 0 on; write {DEFAULT_LIMIT_MB}"
            ) from None
        self.evict(self.limit)

    def stats(self) -> PlanStats:
        """Count the plans of all tables, and their bytes."""
        entries = [entry for table in list(self.tables) for entry in list(table.entries.values())]
        return PlanStats(len(entries), sum(entry.nbytes for entry in entries), self.limit)

    def evict(self, nbytes: int) -> None:
        """Empty the quick dictionaries when it is time; evict what was not used for longest. The newest entry stays."""
        limit = self.limit
        self.added += nbytes
        if self.added * CLEARS_PER_LIMIT < limit:
            return
        self.added = 0
        held = [(entry.used, key, entry, table) for table in list(self.tables) for key, entry in list(table.entries.items())]
        total = sum(entry.nbytes for _, _, entry, _ in held)
        if total > limit * MAX_FRACTION:
            for _, key, entry, table in sorted(held, key=lambda found: found[0])[:-1]:
                if total <= limit * KEPT_FRACTION:
                    break
                total -= entry.nbytes
                table.entries.pop(key, None)
        for table in list(self.tables):
            table.fast_path.clear()


def to_nbytes(megabytes: float) -> int:
    """Return megabytes as bytes.

    Raises
    ------
    ValueError
        They are negative, or no number.
    """
    nbytes = int(megabytes * 2**20)
    if nbytes < 0:
        raise ValueError
    return nbytes


plan_cache = PlanCache()
