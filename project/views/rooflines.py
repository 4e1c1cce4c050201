"""The roofline of a race: how fast a device can be at most, by the operators for each byte, and how near each player comes.

The roof is measured here on request. Before that, it is a saved one: of this very kind of machine if there is one, so that
shares can be given, else that of another machine, for its shape only.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from minifuse.backends.registry import get_backend
from minifuse.inspect.roofline import MachineLimits

from ..benchmarks import formatting, machine
from .race import OPERATIONS, Point, Race, Roofs, gpu_name, limiting_backend
from .saved_results import FOLDER

HEAD = ("roofs", "machine", "device", "date")
MACHINE = ("processor", "microarchitecture", "cores")  # equal values: the same kind of machine
OTHER_ROOF = "cpu-znver5.json"  # drawn where no saved roof is of this kind of machine


@dataclass(frozen=True)
class Roof:
    """The limits of a device, and where they come from."""

    name: str
    """The backend, or the name of another device."""
    gbytes_per_s: float
    gflops: float
    origin: str
    is_here: bool
    """True if it was measured on this machine, or on one of its kind, so that shares of it mean something."""

    def rate(self, intensity: float) -> float:
        """Return the largest possible GFLOP/s at a number of operators for each byte."""
        return min(self.gflops, self.gbytes_per_s * intensity)

    @property
    def ridge(self) -> float:
        """The operators for each byte from which on arithmetic is the limit, and not memory."""
        return self.gflops / self.gbytes_per_s


def intensity(operation: str, elements: int) -> float:
    """Return the operators for each byte."""
    chosen = OPERATIONS[operation]
    return chosen.work(elements) / chosen.nbytes(elements)


def reached(operation: str, elements: int, seconds: float) -> float:
    """Return the GFLOP/s of a call."""
    return OPERATIONS[operation].work(elements) / seconds / 1e9


def share(operation: str, point: Point, roof: Roof) -> float:
    """Return the reached share of a roof: above 1 where caches hold the data."""
    return reached(operation, point.elements, point.seconds) / roof.rate(intensity(operation, point.elements))


def roof_seconds(operation: str, elements: int, roof: Roof) -> float:
    """Return the least seconds of a call below a roof."""
    return OPERATIONS[operation].work(elements) / roof.rate(intensity(operation, elements)) / 1e9


def roofs_of(players: Sequence[str], measured: Roofs | None = None) -> dict[str, Roof]:
    """Return the roof of each limiting backend of the players: the measured one, or else a saved one."""
    found = dict[str, Roof]()
    for backend in dict.fromkeys(map(limiting_backend, players)):
        if limits := (measured or {}).get(backend):
            found[backend] = measured_roof(backend, limits)
        elif saved := saved_roof(backend):
            found[backend] = saved
    return found


def measured_roof(backend: str, limits: MachineLimits) -> Roof:
    """Return the roof that was measured."""
    return Roof(backend, limits.gbytes_per_s, limits.peak("float32") or 0.0, "measured here, just now", True)


def saved_roof(backend: str, folder: Path = FOLDER) -> Roof | None:
    """Return the newest saved roof of this kind of device, or else that of another processor; None for an unknown GPU."""
    is_host = get_backend(backend).is_host
    files = [(name, results) for name, results in files_with_roofs(folder) if ("device" not in results) == is_host]
    here = machine.describe() if is_host else {}
    same = [
        (name, results)
        for name, results in files
        if (
            all(results["machine"].get(key) == here.get(key) for key in MACHINE)
            if is_host
            else results["device"]["name"] == gpu_name(backend)
        )
    ]
    others = [(name, results) for name, results in files if name == OTHER_ROOF and is_host]
    if not same and not others:
        return None
    name, results = max(same or others, key=lambda pair: str(pair[1]["date"]))
    roofs, date = results["roofs"], results["date"][:10]
    device = results["machine"]["processor"] if is_host else results["device"]["name"]
    title = backend if same else f"{device}, another machine"
    return Roof(title, roofs["copy_gb_per_s"], roofs["fma_gflop_per_s"], f"saved in {name}, {date}, {device}", bool(same))


@cache
def files_with_roofs(folder: Path) -> tuple[tuple[str, dict[str, Any]], ...]:
    """Return the names and the heads of the saved results that contain a roof. Damaged files have none."""
    heads = list[tuple[str, dict[str, Any]]]()
    for path in sorted(folder.glob("*.json")):
        with suppress(OSError, ValueError, RecursionError, AttributeError):
            found = json.loads(path.read_text(encoding="utf-8"))
            if found.get("roofs"):
                heads.append((path.name, {key: found[key] for key in HEAD if found.get(key)}))
    return tuple(heads)


def largest_points(race: Race) -> list[Point]:
    """Return the point of each player at its largest size."""
    return [max((p for p in race.points if p.who == who), key=lambda p: p.elements) for who in race.players]


def shares(race: Race, points: Iterable[Point], roofs: Mapping[str, Roof]) -> Iterator[tuple[str, float, Roof]]:
    """Generate (player, share, roof) of points, where the roof is of this machine."""
    for point in points:
        roof = roofs.get(limiting_backend(point.who))
        if roof is not None and roof.is_here:
            yield point.who, share(race.operation, point, roof), roof


def sentence(race: Race, points: Iterable[Point], roofs: Mapping[str, Roof]) -> str:
    """Say how much of the roof players reach at some size; empty without a roof of this machine."""
    found = list(shares(race, points, roofs))
    which = "saved roof" if any(roof.origin.startswith("saved") for *_, roof in found) else "roof"
    return f"Of the {which}: {', '.join(f'{who} {part:.0%}' for who, part, _ in found)}." if found else ""


def describe(race: Race, roofs: Mapping[str, Roof]) -> str:
    """Describe the chart of the roofline: where its roofs come from, and how near each player comes at its largest size."""
    origins = "; ".join(f"roof of {roof.name}: {roof.origin}" for roof in roofs.values())
    reached = sentence(race, largest_points(race), roofs) or "Measure the roof (More) to see how near each player comes."
    return f"{race.operation}: rate over intensity; {origins or 'no roof is known'}. {reached}"


def chart_rows(race: Race) -> list[dict[str, Any]]:
    """Return each point as a row: player, operators for each byte, the rate with its quartiles, and its size."""
    return [
        {
            "who": p.who,
            "intensity": intensity(race.operation, p.elements),
            "rate": reached(race.operation, p.elements, p.seconds),
            "low": reached(race.operation, p.elements, p.high),
            "high": reached(race.operation, p.elements, p.low),
            "size": f"2^{p.elements.bit_length() - 1}",
            "time": formatting.duration(p.seconds),
        }
        for p in sorted(race.points, key=lambda p: race.players.index(p.who))
    ]


def roof_rows(race: Race, roofs: Mapping[str, Roof]) -> list[dict[str, Any]]:
    """Return the corners of each roof, from left of all points and the ridge to right of them."""
    found = [intensity(race.operation, p.elements) for p in race.points]
    return [
        {"who": f"roof of {roof.name}", "intensity": x, "rate": roof.rate(x)}
        for roof in roofs.values()
        for x in (min(*found, roof.ridge) / 4, roof.ridge, max(*found, roof.ridge) * 4)
    ]
