"""What a race says: places and ties by size, a sentence, facts, and the curves as rows."""

from collections.abc import Sequence
from typing import Any

from ..benchmarks import formatting
from . import rooflines
from .cited_facts import DERIVED, MEASURED, Fact
from .race import OPERATIONS, ROUNDS, Point, Race, Roofs, limiting_backend

Places = list[list[Point]]
"""The first place, the second, ...: points that share a place are a tie, by time."""


def places(points: Sequence[Point]) -> Places:
    """Order points of one size by time: those whose quartile intervals overlap, directly or through others, are a tie.

    So if two points have different places, their intervals do not overlap.
    """
    found, end = Places(), float("-inf")
    for point in sorted(points, key=lambda p: p.low):
        if point.low > end:
            found.append([])
        found[-1].append(point)
        end = max(end, point.high)
    return [sorted(group, key=lambda p: p.seconds) for group in found]


def points_at(race: Race, elements: int) -> list[Point]:
    """Return the points of a size."""
    return [point for point in race.points if point.elements == elements]


def sizes(race: Race) -> list[int]:
    """Return the sizes that were measured, in increasing order."""
    return sorted({point.elements for point in race.points})


def main_size(race: Race) -> int:
    """Return the largest size that as many players as possible reached in their time."""
    return max(sizes(race), key=lambda elements: (len(points_at(race, elements)), elements))


def power(elements: int) -> str:
    """Format a size as a power of two."""
    return f"2^{elements.bit_length() - 1}"


def describe_places(found: Places) -> str:
    """Say who was fastest, and who shares a place."""
    texts = list[str]()
    for k, group in enumerate(found):
        names = " and ".join(f"{p.who} {formatting.duration(p.seconds)}" for p in group)
        alone = "fastest is " if k == 0 and len(found) > 1 else ""
        texts.append(f"a tie of {names}" if len(group) > 1 else f"{alone}{names}")
    return ", then ".join(texts)


def sentence(race: Race, roofs: Roofs | None = None, elements: int | None = None) -> str:
    """Say who was fastest at a size (default: the main one), with ties, and how much of the roof each reaches."""
    at = elements or main_size(race)
    points = points_at(race, at)
    late = [who for who in race.players if who not in {p.who for p in points}]
    rest = f"; no time was left for {', '.join(late)}" if late else ""
    of_roof = rooflines.sentence(race, points, rooflines.roofs_of(race.players, roofs))
    return f"{race.operation} of {power(at)} elements: {describe_places(places(points))}{rest}. {of_roof}".rstrip()


def rows(race: Race, roofs: Roofs | None = None) -> list[dict[str, Any]]:
    """Return the curves as rows: player, elements, microseconds and their quartiles; a measured roof is a player."""
    found: list[dict[str, Any]] = [
        {"who": p.who, "elements": p.elements, "us": p.seconds * 1e6, "low": p.low * 1e6, "high": p.high * 1e6}
        for p in sorted(race.points, key=lambda p: race.players.index(p.who))
    ]
    for name, limits in (roofs or {}).items():
        if name in map(limiting_backend, race.players):
            roof = rooflines.measured_roof(name, limits)
            found += [
                {"who": f"roof of {name}", "elements": n, "us": rooflines.roof_seconds(race.operation, n, roof) * 1e6}
                for n in sizes(race)
            ]
    return found


def facts(race: Race, roofs: Roofs | None = None) -> list[Fact]:
    """Return facts about the machine, the order at the largest size, and how near each player comes to the roof."""
    chosen = OPERATIONS[race.operation]
    how = f"the median of {ROUNDS} rounds, {race.budget_s:g} s in all: a glance, no benchmark; a GPU is waited for"
    known = [Fact("machine", race.place, MEASURED, f"at {race.date}"), Fact("time", "of one call", MEASURED, how)]
    main = main_size(race)
    order = describe_places(places(points_at(race, main)))
    why = "those whose quartiles overlap share a place; measured again, they may change it"
    known.append(Fact(f"order at {power(main)}", order, MEASURED, why))
    known_roofs = rooflines.roofs_of(race.players, roofs)
    for point in rooflines.largest_points(race):
        rate = f"{chosen.nbytes(point.elements) / point.seconds / 1e9:,.1f} GB/s"
        if chosen.flops(point.elements):
            rate = f"{chosen.flops(point.elements) / point.seconds / 1e9:,.1f} GFLOP/s"
        times = (
            f"{formatting.duration(point.seconds)} ({formatting.duration(point.low)} to {formatting.duration(point.high)})"
        )
        known.append(Fact(point.who, rate, MEASURED, f"at {power(point.elements)} elements, in {times}"))
        for who, share, _ in rooflines.shares(race, [point], known_roofs):
            known.append(
                Fact(f"{who}: share of the roof", f"{share:.0%}", DERIVED, "above 100 % where caches hold the data")
            )
    for roof in known_roofs.values():
        limits = f"{roof.gbytes_per_s:,.1f} GB/s in a copy, {roof.gflops:,.0f} GFLOP/s of float32"
        known.append(Fact(f"roof of {roof.name}", limits, MEASURED, roof.origin))
    return known
