"""Networks of two layers, and what tasks demand of one that learns.

It is asked about data that it has not seen, after steps that are counted. What is drawn may be bad luck, so there is a
second try with another seed; who does not learn fails both.
"""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .engine import Engine
from .strided import Array
from .student import Student
from .task import Check, Effort
from .toy_points import BORDERS, MARGIN
from .verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

Points = list[tuple[float, float]]
HELD_OUT = 200
ENOUGH = 0.9
"""Of the points that it has not seen. By chance it is one half: there are as many of each kind."""
ALLOCATIONS = 100_000  # objects that are made before the collector looks at them, while a network is trained


class Layer(NamedTuple):
    """The parameters of a layer, and its inputs: of one point, or a row for each."""

    weights: Array
    biases: Array
    xs: Array


class Net(NamedTuple):
    """Two layers, and what the first is given."""

    first: Layer
    last: Layer


def numbers(draw: "DrawFn", *shape: int) -> Array:
    """Halves between -3 and 3."""
    from hypothesis import strategies as st

    count = int(np.prod(shape))
    return np.reshape(draw(st.lists(st.integers(-6, 6), min_size=count, max_size=count)), shape) / 2


def outputs_of(case: Layer, with_biases: bool = True) -> Array:
    """The outputs."""
    return case.xs @ case.weights + with_biases * case.biases


def said_by(case: Net, has_relu: bool = True, relu_at_the_end: bool = False) -> Array:
    """Evaluate a network."""
    hidden = outputs_of(case.first)
    output = (np.maximum(hidden, 0) if has_relu else hidden) @ case.last.weights + case.last.biases
    output = np.maximum(output, 0) if relu_at_the_end else output
    return 1 / (1 + np.exp(-output))


def told_layer(case: Layer) -> str:
    """A layer in words."""
    return f"weights {case.weights.tolist()}, biases {case.biases.tolist()}, xs {case.xs.tolist()}"


def told_network(case: Net) -> str:
    """Two layers in words."""
    return f"first layer: {told_layer(case.first)}; last layer: {told_layer(case.last).partition(', xs')[0]}"


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


@contextmanager
def few_collections() -> Iterator[None]:
    """Let the collector of garbage rest: a graph of numbers is freed without it, and it takes a third of the time."""
    before = gc.get_threshold()
    gc.set_threshold(ALLOCATIONS)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def learns(
    name: str,
    slot: str,
    sets: Sequence[str],
    probabilities: Callable[[Engine, Any, Points], Sequence[float]],
    *,
    count: int,
    steps: int,
    seeds: tuple[int, int] = (0, 1),
) -> Check:
    """The demand that training leads to a network that tells held-out points apart, for each set and one of the seeds.

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
    seeds : tuple of two ints
        For the points and for the training. The second is tried where the first does not do.
    """

    def run(student: Student, effort: Effort) -> None:
        first, second = seeds if effort.seed is None else (effort.seed, effort.seed + 1)
        with few_collections():
            for data in sets:
                if one(student, data, first) is not None and (wrong := one(student, data, second)) is not None:
                    raise wrong

    def one(student: Student, data: str, seed: int) -> Wrong | None:
        """Return the failure of a network that does not tell enough points right. Whatever else is wrong is raised."""
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
        right = share_right(probabilities(engine, network, unseen), kinds)
        if right >= ENOUGH:
            return None
        seen = share_right(probabilities(engine, network, points), labels)
        return Wrong(
            f"of {HELD_OUT} points that it has not seen, it tells {right:.0%} right; {ENOUGH:.0%} are wanted, and the first "
            f"seed did no better. Of those that it learnt from: {seen:.0%}. Losses that went backward: {engine.backwards}",
            case=engine.backwards,
            told=told,
            expected=ENOUGH,
            got=right,
            link="train",
            kind="accuracy",
        )

    return Check(name, run)
