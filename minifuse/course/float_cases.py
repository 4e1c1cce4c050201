"""Floats for checks: those at the ends, of every size, close to each other, and those that a student's file mentions."""

import ast
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from types import CodeType
from typing import NamedTuple

Numbers = tuple[float, ...]

ORDINARY = (0.0, 1.0, -1.0, 0.5, -2.0, 3.0, 7.0, 0.1, -0.3, 1 / 3, -math.pi, 49.0, 1e3, -12345.678)
SMALL = (-0.0, 5e-324, 1e-310, 2.3e-308, 1e-300, 1e-200, 1e-160, 1e-100, 1e-20, 1e-15, 1e-12, 1e-10, 1e-8, 1e-6, 1e-3)
LARGE = (1e5 + 0.1, 2.0**31, 1e10 / 3, 2.0**53 + 2, 1e20, 1e100, 1e160, 1e200, 1e300, 1e308, 1.7e308)
INFINITE = math.inf, -math.inf
EDGES = (*ORDINARY, *SMALL, *(-x for x in SMALL), *LARGE, *(-x for x in LARGE), *INFINITE)
HASH_PERIOD = 2.0**61  # x and x * HASH_PERIOD have the same hash, as have -1.0 and -2.0, and inf and 314159.0


def quarter(chance: Random, most: float = 10.0) -> float:
    """Draw a multiple of 1/4, which floats represent exactly."""
    return chance.randint(-round(4 * most), round(4 * most)) / 4


def sized(chance: Random, least: float, most: float) -> float:
    """Draw a positive or negative float whose size is anything between two powers of 10, each power being as likely."""
    return chance.choice((-1.0, 1.0)) * math.pow(10.0, chance.uniform(math.log10(least), math.log10(most)))


class Draw(NamedTuple):
    """A source of cases: a random generator, how many to draw of each sort, and the numbers in the student's file."""

    chance: Random
    number: int
    mentioned: Sequence[float] = ()


def singles(draw: Draw) -> list[float]:
    """Draw multiples of 1/4, edges, floats of every size, and numbers that the student's file mentions."""
    chance, count = draw.chance, draw.number
    xs = [quarter(chance) for _ in range(count)] + [sized(chance, 1e-3, 1e4) for _ in range(count)]
    beside = [math.nextafter(x, end) for x in draw.mentioned for end in INFINITE]
    return [*xs, *EDGES, *(sized(chance, 1e-300, 1e300) for _ in range(count)), *draw.mentioned, *beside]


def pairs(draw: Draw) -> list[Numbers]:
    """Draw pairs: multiples of 1/4, floats of every size, equal ones, opposite ones and neighbours."""
    chance, count, xs = draw.chance, draw.number, singles(draw)
    near = [(x, other) for x in xs for other in neighbours(chance, x)]
    free = [(quarter(chance), quarter(chance)) for _ in range(2 * count)]
    mixed = [(chance.choice(xs), chance.choice(xs)) for _ in range(4 * count)]
    known = [(x, y) for x in draw.mentioned for y in draw.mentioned]
    hashed = [(-1.0, -2.0), (math.inf, 314159.0), (-math.inf, -314159.0)]
    chosen = chance.sample(known, min(len(known), 8 * count))
    return [chance.choice((pair, pair[::-1])) for pair in (*free, *near, *mixed, *chosen, *hashed)]


def neighbours(chance: Random, x: float) -> Iterator[float]:
    """Yield what is easily taken for x: itself, its opposite, the next float, a close one, one of the same hash."""
    yield x
    yield -x
    if math.isfinite(x):
        yield math.nextafter(x, chance.choice(INFINITE))
        yield x * (1 + sized(chance, 1e-15, 1e-2))
        yield x + sized(chance, 1e-15, 1e-2)
        yield x * HASH_PERIOD if abs(x) < 1e280 else 0.0


def mentioned(path: Path) -> list[float]:
    """Return the numbers that a file mentions, and their opposites: a solution may treat just these differently."""
    found = dict[float, None]()

    def visit(code: CodeType) -> None:
        for value in code.co_consts:
            parts: Sequence[object] = value if isinstance(value, tuple) else (value,)
            for part in parts:
                if isinstance(part, CodeType):
                    visit(part)
                elif isinstance(part, int | float) and not isinstance(part, bool) and abs(part) <= 1e300:
                    found[float(part)] = found[-float(part)] = None

    try:
        visit(compile(ast.parse(path.read_bytes()), str(path), "exec"))  # compiled, so that -1 / 3 is one number; never run
    except (OSError, SyntaxError, ValueError):
        return []
    return list(found)
