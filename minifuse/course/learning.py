"""What tasks demand of a network that learns: data that it has not seen, several seeds, steps that are counted."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np

from .engine import Engine
from .points import BORDERS, MARGIN
from .student import Student
from .task import Check, Effort, Wrong

Points = list[tuple[float, float]]
HELD_OUT = 200
ENOUGH = 0.9
"""Of the points that it has not seen. By chance it is one half: there are as many of each kind."""


def drawn(name: str, count: int, seed: int) -> tuple[Points, list[int]]:
    """Points of a set, anew for each seed, and their kinds; as many of one as of the other."""
    border, random = BORDERS[name], Random(f"{name} {seed}")
    points, labels = Points(), list[int]()
    while len(points) < count:
        point = (random.random(), random.random())
        kind = int(border(*point) > 0)
        if abs(border(*point)) >= MARGIN and labels.count(kind) < (count + 1) // 2:
            points.append(point)
            labels.append(kind)
    return points, labels


def share_right(said: Sequence[float], labels: Sequence[int]) -> float:
    """The part of all points that a network tells right."""
    return float(np.mean((np.asarray(said, float) > 0.5) == np.asarray(labels, bool)))


def learns(
    name: str,
    slot: str,
    sets: Sequence[str],
    probabilities: Callable[[Engine, Any, Points], Sequence[float]],
    *,
    count: int,
    steps: int,
    seeds: Sequence[int] = (0, 1),
) -> Check:
    """The demand that training leads to a network that tells held-out points apart, for each set and each seed.

    Parameters
    ----------
    name : str
        The demand, as a sentence.
    slot : str
        The function that trains: slot(engine, points, labels, steps, seed) gives a network.
    sets : sequence of str
        Of `points.BORDERS`.
    probabilities : function of (engine, network, points)
        What a network says of points.
    count, steps : int
        How many points it may learn from; how many losses may go backward.
    seeds : sequence of int
        For the points and for the training.
    """

    def run(student: Student, effort: Effort) -> None:
        for data in sets:
            for seed in seeds if effort.seed is None else [effort.seed + k for k in seeds]:
                one(student, data, seed)

    def one(student: Student, data: str, seed: int) -> None:
        engine = Engine(student)
        points, labels = drawn(data, count, seed)
        unseen, kinds = drawn(data, HELD_OUT, seed + 10_000)
        network = getattr(student, slot)(engine, list(points), list(labels), steps, seed)
        told = f"{slot}(engine, {count} points of {data!r}, labels, steps={steps}, seed={seed})"
        if engine.backwards > steps:
            raise Wrong(
                f"{engine.backwards} losses went backward; at most {steps} may",
                told=told,
                expected=f"at most {steps}",
                got=engine.backwards,
                kind="steps",
            )
        if network is None:
            raise Wrong(f"{slot} gives nothing; return the network", told=told, kind="nothing")
        said = probabilities(engine, network, unseen)
        right = share_right(said, kinds)
        if right < ENOUGH:
            seen = share_right(probabilities(engine, network, points), labels)
            raise Wrong(
                f"of {HELD_OUT} points that it has not seen, it tells {right:.0%} right; {ENOUGH:.0%} are wanted. Of those "
                f"that it was trained on: {seen:.0%}. Losses that went backward: {engine.backwards}",
                case=engine.backwards,
                told=told,
                expected=ENOUGH,
                got=right,
                link="train",
                kind="accuracy",
            )

    return Check(name, run)
