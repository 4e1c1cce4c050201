"""Cache plans: least recently used eviction, with one limit in bytes for the plans of all tables.

There is one table for single operations and one for each fused function. Each table also has `fast_path`, a plain dictionary
from keys to functions that run a plan, so a repeated call costs one lookup. A lookup there does not record that the plan was
used. Therefore all `fast_path` dictionaries are cleared from time to time: the next call of each kind finds its plan in the
table, which records the use.

The environment variable `MINIFUSE_PLAN_LIMIT_MB` sets the limit (default 256), and `set_limit` changes it. The size of an
entry is an estimate.
"""

import os
from collections.abc import Callable, Hashable, Iterator, Mapping
from itertools import count
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import WeakSet

from ..core.errors import MinifuseError

DEFAULT_LIMIT_MB = 256
# After every limit / CLEARS_PER_LIMIT added bytes, the size of all plans is checked and the fast paths are cleared.
CLEARS_PER_LIMIT = 8
MAX_FRACTION = 1 - 1 / CLEARS_PER_LIMIT  # a check evicts above this fraction of the limit, since more plans follow
KEPT_FRACTION = 3 / 4  # an eviction shrinks the plans to this fraction of the limit

V = TypeVar("V")


class PlanStats(NamedTuple):
    """Number and size of the plans of all tables."""

    plans: int
    """How many plans are cached."""
    nbytes: int
    """Estimated bytes of all plans together."""
    limit: int
    """Limit in bytes for all plans together."""


class PlanEntry(Generic[V]):
    """A cached value, its size in bytes, and the time of its last use."""

    __slots__ = ("last_use", "nbytes", "value")

    def __init__(self, value: V, nbytes: int, last_use: int) -> None:
        self.value, self.nbytes, self.last_use = value, nbytes, last_use


class PlanTable(Mapping[Hashable, V]):
    """The plans of single operations, or of one fused function, by key."""

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __init__(self, cache: "PlanCache | None" = None) -> None:
        self.cache = cache or plan_cache
        self.entries: dict[Hashable, PlanEntry[V]] = {}
        self.fast_path: dict[Hashable, Callable[..., Any]] = {}
        self.cache.tables.add(self)

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(list(self.entries))

    def __getitem__(self, key: Hashable) -> V:
        entry = self.entries[key]
        entry.last_use = next(self.cache.clock)
        return entry.value

    def put(self, key: Hashable, value: V, nbytes: int) -> None:
        """Cache a value of about this many bytes. Other values are evicted if all together exceed the limit."""
        self.entries[key] = PlanEntry(value, nbytes, next(self.cache.clock))
        self.cache.evict(nbytes)

    def clear(self) -> None:
        """Evict all values."""
        self.entries.clear()
        self.fast_path.clear()


class PlanCache:
    """All tables, and the limit that they share."""

    def __init__(self) -> None:
        self.tables: WeakSet[PlanTable[Any]] = WeakSet()
        self.clock = count()
        self.own_limit: int | None = None
        self.added = 0  # bytes added since the fast paths were cleared

    @property
    def limit(self) -> int:
        """The limit in bytes for all plans together.

        Raises
        ------
        MinifuseError
            MINIFUSE_PLAN_LIMIT_MB is not a number, or is negative.
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
        """Set the limit for this process; None for the environment variable's limit. Evict plans that exceed it."""
        try:
            self.own_limit = None if megabytes is None else to_nbytes(megabytes)
        except (ValueError, OverflowError, TypeError):
            raise MinifuseError(
                f"set_plan_limit: got {megabytes!r}, expected a number of megabytes from 0 on; write {DEFAULT_LIMIT_MB}"
            ) from None
        self.evict(self.limit)

    def stats(self) -> PlanStats:
        """Count the plans of all tables and their bytes."""
        entries = [entry for table in list(self.tables) for entry in list(table.entries.values())]
        return PlanStats(len(entries), sum(entry.nbytes for entry in entries), self.limit)

    def evict(self, nbytes: int) -> None:
        """Count added bytes. If a check is due, clear the fast paths and evict the least recently used entries.

        The newest entry stays, even if it exceeds the limit alone.
        """
        limit = self.limit
        self.added += nbytes
        if self.added * CLEARS_PER_LIMIT < limit:
            return
        self.added = 0
        cached = [(entry, key, table) for table in list(self.tables) for key, entry in list(table.entries.items())]
        total = sum(entry.nbytes for entry, _, _ in cached)
        if total > limit * MAX_FRACTION:
            for entry, key, table in sorted(cached, key=lambda item: item[0].last_use)[:-1]:
                if total <= limit * KEPT_FRACTION:
                    break
                total -= entry.nbytes
                table.entries.pop(key, None)
        for table in list(self.tables):
            table.fast_path.clear()


def to_nbytes(megabytes: float) -> int:
    """Convert megabytes to bytes.

    Raises
    ------
    ValueError
        The number is negative or NaN.
    """
    nbytes = int(megabytes * 2**20)
    if nbytes < 0:
        raise ValueError
    return nbytes


plan_cache = PlanCache()
