"""Task 1.5: train a network of scalars."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ..check import agreement
from ..learning import describe_layer, describe_network, half_integers, layer_outputs, learning_check, network_output
from ..questions.learning import Layer, Net, scalar_probabilities
from ..questions.task1_5 import (
    Guesses,
    Parameters,
    Steps,
    ask_layer,
    ask_loss,
    ask_network,
    ask_step,
    initial_parameters,
)
from ..student_process import StudentProcess
from ..task import Check, Effort, Mistake, Task
from ..verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

LAYER, DRAWN, NETWORK, LOSS, STEP, LEARNS = (
    "a layer gives a weighted sum and a bias for each output",
    "weights and biases are drawn, each for itself",
    "a network is linear, ReLU, linear, sigmoid",
    "the loss is the mean of -log(p of the right label), and goes backward",
    "a step goes against the derivatives, and lets go of them",
    "it tells points right that it has not seen",
)


def layers() -> "SearchStrategy[Layer]":
    """Draw a layer with different numbers of inputs and outputs."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Layer:
        i, o = draw(st.integers(1, 3)), draw(st.integers(1, 3))
        return Layer(half_integers(draw, i, o), half_integers(draw, o), half_integers(draw, i))

    return case()


def networks() -> "SearchStrategy[Net]":
    """Draw a network of two layers."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Net:
        i, h = draw(st.integers(1, 2)), draw(st.integers(1, 3))
        first = Layer(half_integers(draw, i, h), half_integers(draw, h), half_integers(draw, i))
        return Net(first, Layer(half_integers(draw, h, 1), half_integers(draw, 1), np.zeros(h)))

    return case()


def guesses() -> "SearchStrategy[Guesses]":
    """Draw (probabilities, labels)."""
    from hypothesis import strategies as st

    one = st.tuples(st.integers(1, 9).map(lambda n: n / 10), st.integers(0, 1))
    return st.lists(one, min_size=1, max_size=4).map(lambda c: (tuple(p for p, _ in c), tuple(label for _, label in c)))


def steps() -> "SearchStrategy[Steps]":
    """Draw ((value, gradient) of each parameter, rate)."""
    from hypothesis import strategies as st

    halves = st.integers(-6, 6).map(lambda n: n / 2)
    return st.tuples(
        st.lists(st.tuples(halves, st.sampled_from([None, 1.0, -2.0, 4.0])), min_size=1, max_size=3).map(tuple),
        st.sampled_from([1.0, 0.5]),
    )


def numbers_of(case: Layer, with_biases: bool = True) -> list[float]:
    """Return the outputs of a layer as a list."""
    return [float(x) for x in layer_outputs(case, with_biases)]


def number_of(case: Net, has_relu: bool = True, relu_at_the_end: bool = False) -> float:
    """Return the probability of a network."""
    return float(network_output(case, has_relu, relu_at_the_end)[0])


def loss_of(
    case: Guesses, mean: bool = True, right: Callable[[float, int], float] | None = None
) -> tuple[float, list[float]]:
    """Return the loss, and the gradient of each output."""
    chosen = right or (lambda p, label: p if label else 1 - p)
    p, sign = [chosen(p, label) for p, label in zip(*case, strict=True)], [chosen(1, k) - chosen(0, k) for k in case[1]]
    by = len(p) if mean else 1
    return float(-np.sum(np.log(p)) / by), [float(-s / x / by) for s, x in zip(sign, p, strict=True)]


def stepped(case: Steps, way: float = -1.0, lets_go: bool = True) -> Parameters:
    """Return values and gradients after a step."""
    return [(value + way * case[1] * (d or 0.0), None if lets_go else d) for value, d in case[0]]


def are_drawn(student: StudentProcess, effort: Effort) -> None:
    """Raise `Wrong` if the initial parameters of a layer are not distinct."""
    values, other = student.ask(initial_parameters, (1, 2))
    case_text = "ScalarLinear(engine, 3, 4, Random(1))"
    if len(values) != 16:
        raise Wrong(
            "a layer has another number of parameters",
            case_text=case_text,
            expected="3 * 4 weights and 4 biases",
            got=len(values),
        )
    if len(set(values)) < 16 or values == other:
        raise Wrong(
            "parameters begin with equal numbers", case_text=case_text, expected="16 that differ", got=values, kind="alike"
        )


TASK = Task(
    id="1.5",
    title="Train a network of numbers",
    file="scalar_network.py",
    slots=("ScalarLinear", "ScalarNetwork", "scalar_loss", "scalar_step", "train_scalar_network"),
    points=5,
    text=(
        "A network is a function with numbers in it that can be changed. Write a layer, put two of them together, say how "
        "wrong the network is, and change each number a little against its derivative, again and again. What counts in the "
        "end is how many points it tells right that it has never seen. Here the kinds lie on two sides of a line, which 80 "
        "steps can find; task 2.5 has sets that no line separates, and the speed that they need."
    ),
    hints=(
        "The loss tells each number, through backward, in which direction it should not go. A step is a small one in the "
        "other direction; then the loss is asked anew.",
        "In each step: choose some of the points, ask the network about them, take the loss, call loss.backward(), call "
        "scalar_step(network.parameters(), rate). A rate of 0.5 to 1 and 6 to 10 hidden units do here.",
        "docs/guide/training.md trains with the library; the page Train of `minifuse app` shows how the rate and the "
        "number of hidden units change what is learnt.",
    ),
    reads=("docs/guide/training.md", "minifuse/optim/sgd.py"),
    checks=(
        agreement(LAYER, layers, ask_layer, numbers_of, describe=describe_layer),
        Check(DRAWN, are_drawn),
        agreement(
            NETWORK,
            networks,
            ask_network,
            number_of,
            describe=describe_network,
        ),
        agreement(
            LOSS,
            guesses,
            ask_loss,
            loss_of,
            describe=lambda c: f"outputs {list(c[0])}, labels {list(c[1])}; (loss, derivatives)",
        ),
        agreement(
            STEP, steps, ask_step, stepped, describe=lambda c: f"(value, derivative) of parameters {list(c[0])}, rate {c[1]}"
        ),
        learning_check(LEARNS, "train_scalar_network", ("simple", "diagonal"), scalar_probabilities, count=80, steps=80),
    ),
    mistakes=(
        Mistake(
            "the biases are left out",
            "An output is a weighted sum of the inputs, and one number more.",
            wrong_answer=lambda c: numbers_of(c, with_biases=False),
            check=LAYER,
        ),
        Mistake(
            "weights lie the other way round",
            "weights[i][j] leads from input i to output j: a list for each input.",
            when=lambda w: w.kind in ("IndexError", "ValueError"),
            check=LAYER,
        ),
        Mistake(
            "all weights begin alike",
            "Hidden units that begin alike receive the same derivatives, and stay alike for ever. Draw each one.",
            when=lambda w: w.kind == "alike",
            check=DRAWN,
        ),
        Mistake(
            "the ReLU between the layers is left out",
            "Two linear functions after each other are one linear function.",
            wrong_answer=lambda c: number_of(c, has_relu=False),
            check=NETWORK,
        ),
        Mistake(
            "there is a ReLU before the sigmoid",
            "The last output must be able to go below 0: its sigmoid is then below one half, which says kind 0.",
            wrong_answer=lambda c: number_of(c, relu_at_the_end=True),
            check=NETWORK,
        ),
        Mistake(
            "every point counts as one of kind 1",
            "For a point of kind 0, 1 - output is the probability of what is right.",
            wrong_answer=lambda c: loss_of(c, right=lambda p, label: p),
            check=LOSS,
        ),
        Mistake(
            "the loss is a sum, not a mean",
            "With a sum, twice as many points make steps twice as long.",
            wrong_answer=lambda c: loss_of(c, mean=False),
            check=LOSS,
        ),
        Mistake(
            "the step goes uphill",
            "The derivative says where the loss grows. Go the other way.",
            wrong_answer=lambda c: stepped(c, way=1.0),
            check=STEP,
        ),
        Mistake(
            "derivatives are left for the next step",
            "backward adds to what has been gathered. After a step, begin anew: grad = None.",
            wrong_answer=lambda c: stepped(c, lets_go=False),
            check=STEP,
        ),
        Mistake(
            "nothing goes backward",
            "Without loss.backward() no parameter has a derivative, and a step changes nothing.",
            when=lambda w: w.kind == "accuracy" and w.case == 0,
            check=LEARNS,
        ),
    ),
)
