"""Checks that a student's network of two layers learns.

The network is trained with a limited number of steps and evaluated on held-out points. Since random initial values may be
unlucky, a failure is tried again with a second seed.
"""

from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from .engine import Engine
from .questions.learning import Layer, Net, Points, train_and_apply
from .strided import Array
from .student_process import StudentProcess
from .task import Check, Effort
from .toy_points import BORDERS, MARGIN
from .verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

HELD_OUT = 200
MIN_ACCURACY = 0.9
"""On held-out points. Guessing gets one half: there are as many points of each kind."""


def half_integers(draw: "DrawFn", *shape: int) -> Array:
    """Draw multiples of one half between -3 and 3."""
    from hypothesis import strategies as st

    count = int(np.prod(shape))
    return np.reshape(draw(st.lists(st.integers(-6, 6), min_size=count, max_size=count)), shape) / 2


def layer_outputs(case: Layer, with_biases: bool = True) -> Array:
    """Return the outputs of a layer."""
    return case.xs @ case.weights + with_biases * case.biases


def network_output(case: Net, has_relu: bool = True, relu_at_the_end: bool = False) -> Array:
    """Return the output of a network."""
    hidden = layer_outputs(case.first)
    output = (np.maximum(hidden, 0) if has_relu else hidden) @ case.last.weights + case.last.biases
    output = np.maximum(output, 0) if relu_at_the_end else output
    return 1 / (1 + np.exp(-output))


def describe_layer(case: Layer) -> str:
    """Return a layer as text."""
    return f"weights {case.weights.tolist()}, biases {case.biases.tolist()}, xs {case.xs.tolist()}"


def describe_network(case: Net) -> str:
    """Return two layers as text."""
    return f"first layer: {describe_layer(case.first)}; last layer: {describe_layer(case.last).partition(', xs')[0]}"


def draw_points(name: str, count: int, seed: int) -> tuple[Points, list[int]]:
    """Draw points of a set with a seed, and their kinds: as many of kind 0 as of kind 1."""
    border, random = BORDERS[name], Random(f"{name} {seed}")
    points, labels = Points(), list[int]()
    while len(points) < count:
        point = (random.random(), random.random())
        kind = int(border(*point) > 0)
        if abs(border(*point)) >= MARGIN and labels.count(kind) < (count + 1) // 2:
            points.append(point)
            labels.append(kind)
    return points, labels


def accuracy(probabilities: Sequence[float], labels: Sequence[int]) -> float:
    """Return the fraction of points that a network classifies correctly."""
    return float(np.mean((np.asarray(probabilities, float) > 0.5) == np.asarray(labels, bool)))


def learning_check(
    name: str,
    slot: str,
    sets: Sequence[str],
    probabilities: Callable[[Engine, Any, Points], Sequence[float]],
    *,
    count: int,
    steps: int,
    seeds: tuple[int, int] = (0, 1),
) -> Check:
    """Return a check that trains a network on each set, and requires MIN_ACCURACY on held-out points for one of the seeds.

    Parameters
    ----------
    name : str
        The requirement, as a sentence.
    slot : str
        The function that trains: slot(engine, points, labels, steps, seed) returns a network.
    sets : sequence of str
        Names in `toy_points.BORDERS`.
    probabilities : function of (engine, network, points)
        A function of `questions`, which returns the network's probabilities for points.
    count, steps : int
        Number of training points; maximal number of backward passes.
    seeds : tuple of two ints
        For the points and for the training. The second is used if the first one fails.
    """

    def run(student: StudentProcess, effort: Effort) -> None:
        first, second = seeds if effort.seed is None else (effort.seed, effort.seed + 1)
        for data in sets:
            if train(student, data, first) is not None and (wrong := train(student, data, second)) is not None:
                raise wrong

    def train(student: StudentProcess, data: str, seed: int) -> Wrong | None:
        """Train a network; return the failure if its accuracy is too low, and raise any other one."""
        points, labels = draw_points(data, count, seed)
        unseen, kinds = draw_points(data, HELD_OUT, seed + 10_000)
        case_text = f"{slot}(engine, {count} points of {data!r}, labels, steps={steps}, seed={seed})"
        backwards, on_unseen, on_points = student.ask(
            partial(train_and_apply, slot, probabilities), (points, labels, steps, seed, unseen)
        )
        if backwards > steps:
            raise Wrong(
                f"{backwards} losses went backward; at most {steps} may",
                case_text=case_text,
                expected=f"at most {steps}",
                got=backwards,
                kind="steps",
            )
        if on_unseen is None:
            raise Wrong(f"{slot} returns None; return the network", case_text=case_text, kind="nothing")
        right = accuracy(on_unseen, kinds)
        if right >= MIN_ACCURACY:
            return None
        seen = accuracy(on_points, labels)
        return Wrong(
            f"the accuracy on {HELD_OUT} held-out points is {right:.0%}, expected {MIN_ACCURACY:.0%}; the first seed did no "
            f"better. On the training points: {seen:.0%}. Losses that went backward: {backwards}",
            case=backwards,
            case_text=case_text,
            expected=MIN_ACCURACY,
            got=right,
            link="train",
            kind="accuracy",
        )

    return Check(name, run)
