"""Partial runs of a suite: select the rows of a part, and merge their results into a file by row.

A part is written as k/n: row k and every n-th row after it. Each row of a merged file contains the device, the versions and
the date of its own measurement, since the parts of a file may be measured at different times.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from .row import Result, Row

T = TypeVar("T")


class Part(NamedTuple):
    """The k-th of n parts; k counts from 1."""

    k: int
    n: int

    def select(self, rows: Sequence[T]) -> list[T]:
        """Select row k and every n-th row after it. The n parts are disjoint, and contain all rows together."""
        return list(rows[self.k - 1 :: self.n])


def parse_part(text: str) -> Part:
    """Convert "k/n" to a part.

    Raises
    ------
    ValueError
        The text is not two integers with 1 <= k <= n.

    Examples
    --------
    >>> parse_part("2/5")
    Part(k=2, n=5)
    """
    k, _, n = text.partition("/")
    if not (k.isdecimal() and n.isdecimal() and 1 <= int(k) <= int(n)):
        raise ValueError(f"{text!r}: expected k/n with 1 <= k <= n, as in --part 2/5")
    return Part(int(k), int(n))


def read_results(path: Path, is_quick: bool) -> "Result | None":
    """Read the results that a part is merged into; None if there is no file.

    Raises
    ------
    ValueError
        The file is not complete JSON, or contains no results, or those of a quick run and this one is none, or vice versa.
    """
    if not path.exists():
        return None
    try:
        results: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        is_complete = {"rows", "quick", "date", "versions"} <= results.keys()
    except (ValueError, AttributeError) as error:
        raise ValueError(f"{path} is not complete JSON ({error}); remove it, or write to another file") from error
    if not is_complete:
        raise ValueError(f"{path} contains no results of a benchmark; remove it, or write to another file")
    if results["quick"] != is_quick:
        kinds = [f"a run with{'' if quick else 'out'} --quick" for quick in (results["quick"], is_quick)]
        raise ValueError(f"{path} contains {kinds[0]}, and {kinds[1]} cannot be merged into it; write to another file")
    return results


def merge(earlier: "Result | None", results: "Result", rows: "Sequence[Row]") -> "Result":
    """Replace rows of earlier results by those just measured, and keep the others.

    Parameters
    ----------
    earlier
        The contents of the file; None if there is none.
    results
        The results of a part. Entries of the head of the file, such as the load of the machine, are theirs.
    rows
        All rows of the suite: the rows of the file are in their order.
    """
    by_name = {name_of(row): row for run in (earlier, results) if run for row in with_origin(run)}
    order = {(row.group, row.name): k for k, row in enumerate(rows)}
    head = (earlier or {}) | results
    return head | {"rows": sorted(by_name.values(), key=lambda row: order.get(name_of(row), len(order)))}


def name_of(row: "Result") -> tuple[str, str]:
    """Return the group and the name of a row: together they are unique in a suite."""
    return row["group"], row["name"]


def with_origin(results: "Result") -> "list[Result]":
    """Return the rows of a run with the device, the versions and the date of the run, unless they contain their own."""
    device = results["device"]["name"] if "device" in results else results["machine"]["processor"]
    origin = {"device": device, "versions": results["versions"], "date": results["date"]}
    return [{**origin, **row} if "date" not in row else row for row in results["rows"]]
