"""Task 2.5: train a network of tensors."""

from typing import TYPE_CHECKING

import numpy as np

from ..cases import among
from ..check import agreement, in_turn
from ..learning import (
    MIN_ACCURACY,
    accuracy,
    describe_layer,
    describe_network,
    draw_points,
    half_integers,
    layer_outputs,
    learning_check,
    network_output,
)
from ..questions.learning import Layer, Net, tensor_probabilities
from ..questions.task2_5 import (
    STEPS,
    Guesses,
    Parameters,
    Steps,
    ask_layer,
    ask_loss,
    ask_network,
    ask_step,
    drawn_parameters,
    initial_parameters,
    train_briefly,
    train_in_reverse,
)
from ..strided import Array
from ..student_process import StudentProcess
from ..task import Check, Effort, Mistake, Task
from ..verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

LAYER, DRAWN, NETWORK, LOSS, STEP, HONEST, LEARNS = (
    "a layer gives xs @ weights + biases, a row for each row",
    "weights and biases are drawn, and have the shapes that are asked for",
    "a network is linear, ReLU, linear, sigmoid",
    "the loss is the mean of -log(p of the right label), and goes backward",
    "a step goes against the derivatives, and lets go of them",
    "training keeps to the seed, the steps and the gradients",
    "it tells points right that it has not seen",
)


def layers() -> "SearchStrategy[Layer]":
    """Draw a layer and some points."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Layer:
        n, i, o = [draw(st.integers(1, 4)) for _ in "nio"]
        return Layer(half_integers(draw, i, o), half_integers(draw, o), half_integers(draw, n, i))

    return case()


def networks() -> "SearchStrategy[Net]":
    """Draw a network of two layers and some points."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Net:
        n, i, h = [draw(st.integers(1, 3)) for _ in "nih"]
        first = Layer(half_integers(draw, i, h), half_integers(draw, h), half_integers(draw, n, i))
        return Net(first, Layer(half_integers(draw, h, 1), half_integers(draw, 1), np.zeros((n, h))))

    return case()


def guesses() -> "SearchStrategy[Guesses]":
    """Draw (probabilities, labels), each of shape (points, 1). A network may be sure of a right label: then p is 0 or 1."""
    from hypothesis import strategies as st

    one = st.tuples(among(*[n / 10 for n in range(1, 10)], 1e-7, 1 - 1e-7), st.integers(0, 1).map(float))
    sure = among((1.0, 1.0), (0.0, 0.0))
    return st.lists(one | sure, min_size=1, max_size=6).map(lambda c: tuple(np.transpose(c)[..., None]))


def steps() -> "SearchStrategy[Steps]":
    """Draw ((value, gradient) of each parameter, rate)."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Steps:
        made = []
        for shape in draw(st.lists(st.sampled_from([(2,), (1, 3), (2, 2)]), min_size=1, max_size=2)):
            d = half_integers(draw, *shape) + 0.25 if draw(st.booleans()) else None
            made.append((half_integers(draw, *shape), d))
        return made, draw(st.sampled_from([1.0, 0.5, 0.01, 30.0]))

    return case()


def loss_of(case: Guesses, mean: bool = True, counts_zeros: bool = True) -> tuple[float, Array]:
    """Return the loss, and the gradient of the outputs."""
    outputs, labels = case
    right = np.where(labels == 1, outputs, 1 - outputs)
    counted = np.ones_like(right) if counts_zeros else labels
    by = len(outputs) if mean else 1
    return float(-(counted * np.log(right)).sum() / by), -np.where(labels == 1, 1, -1) * counted / right / by


def stepped(case: Steps, way: float = -1.0, lets_go: bool = True) -> Parameters:
    """Return values and gradients after a step."""
    far = way * STEPS * case[1]
    return [(value + far * (0 if d is None else d), None if lets_go else d) for value, d in case[0]]


def are_drawn(student: StudentProcess, effort: Effort) -> None:
    """Raise `Wrong` if the initial parameters of a layer are not distinct."""
    case_text = "TensorLinear(engine, 3, 4, Random(1))"
    one, two = student.ask(initial_parameters, (1, 2))
    got = [x.shape for x in one]
    if got != [(3, 4), (4,)]:
        raise Wrong("parameters have other shapes", case_text=case_text, expected="[(3, 4), (4,)]", got=got, kind="shapes")
    one, two = [np.concatenate([x.ravel() for x in values]) for values in (one, two)]
    if len(set(one)) < 16 or np.array_equal(one, two):
        raise Wrong(
            "parameters begin with equal numbers", case_text=case_text, expected="16 that differ", got=one, kind="alike"
        )


def check_draws(student: StudentProcess, effort: Effort) -> None:
    """Raise `Wrong` if a parameter is not -1 + 2 * u for a number u that the random generator has drawn for it alone."""
    for inputs, outputs, seed in ((3, 4, 1), (1, 7, 2), (20, 30, 3)):
        (weights, biases), drawn = student.ask(drawn_parameters, (inputs, outputs, seed))
        got, may = np.sort([*weights.ravel(), *biases.ravel()]), np.sort(2 * np.array(drawn) - 1)
        places = np.clip(np.searchsorted(may, got - 1e-9), 0, max(len(may) - 1, 0))
        if not len(may) or not np.allclose(may[places], got, 0, 1e-9) or len(set(places.tolist())) < len(got):
            raise Wrong(
                "a parameter is not a number of its own from random.uniform(-1, 1)",
                case_text=f"TensorLinear(engine, {inputs}, {outputs}, random)",
                kind="drawn",
            )


def check_training(student: StudentProcess, effort: Effort) -> None:
    """Raise `Wrong` if training ignores the seed or the number of steps, or learns from something else than gradients."""
    points, labels = draw_points("xor", 40, 5)
    for steps in (1, 7):
        text = f"train_tensor_network(engine, 40 points of 'xor', labels, steps={steps}, seed)"
        (backwards, one), (_, two), (_, other) = student.ask(train_briefly, (points, labels, steps, (3, 3, 4)))
        if backwards > steps:
            raise Wrong(f"{backwards} losses went backward; at most {steps} may", case_text=text, kind="steps")
        same_seed = all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
        if not same_seed or all(a.shape == b.shape and np.allclose(a, b) for a, b in zip(one, other, strict=True)):
            raise Wrong(
                "one seed gives one network, and another seed another one: draw all from Random(seed)",
                case_text=text,
                kind="seed",
            )
    unseen, kinds = draw_points("xor", 200, 10_005)
    _, found = student.ask(train_in_reverse, (points, labels, 100, 3, unseen))
    if found and accuracy(found, kinds) >= MIN_ACCURACY:
        raise Wrong(
            "the network learns although the gradients of its engine have the wrong sign, so it does not learn from "
            "loss.backward()",
            case_text="train_tensor_network(an engine with wrong gradients, 40 points of 'xor', labels, steps=100, seed=3)",
            kind="beside",
        )


def describe_step(case: Steps) -> str:
    """Return parameters as text."""
    pairs = [(value.tolist(), None if d is None else d.tolist()) for value, d in case[0]]
    return f"(value, derivative) of parameters {pairs}, rate {case[1]}"


TASK = Task(
    id="2.5",
    title="Train a network of tensors",
    file="tensor_network.py",
    slots=("TensorLinear", "TensorNetwork", "tensor_loss", "tensor_step", "train_tensor_network"),
    points=5,
    text=(
        "The network of task 1.5 again, over tensors: all points go through it in one call, and a layer is one "
        "matmul. It is so much faster that the points need no longer lie on both sides of a line: exclusive-or has to be "
        "learnt too."
    ),
    hints=(
        "Each row is a point. A layer multiplies all rows by the same weights, and adds the same biases to each: the shapes "
        "broadcast.",
        "Make constants of points and labels once; labels need the shape of the outputs, (points, 1). Then, in each step: "
        "network, loss, backward, step. A rate of 0.5 to 1 and 24 to 32 hidden units do here.",
        "docs/guide/training.md trains with the library, minifuse/nn/layers.py has its layers.",
    ),
    reads=("docs/course/2.5-tensor-network.md", "docs/guide/training.md", "minifuse/nn/layers.py"),
    checks=(
        in_turn(DRAWN, [Check(DRAWN, are_drawn), Check(DRAWN, check_draws)]),
        agreement(LAYER, layers, ask_layer, layer_outputs, describe=describe_layer),
        agreement(
            NETWORK,
            networks,
            ask_network,
            network_output,
            describe=describe_network,
        ),
        agreement(
            LOSS,
            guesses,
            ask_loss,
            loss_of,
            describe=lambda c: f"outputs {c[0].tolist()}, labels {c[1].tolist()}; (loss, derivatives)",
        ),
        agreement(STEP, steps, ask_step, stepped, describe=describe_step),
        Check(HONEST, check_training),
        learning_check(LEARNS, "train_tensor_network", ("split", "xor"), tensor_probabilities, count=100, steps=300),
    ),
    mistakes=(
        Mistake(
            "weights have shape (outputs, inputs)",
            "xs is (points, inputs); in xs @ weights, what stands inside must be equal: (inputs, outputs).",
            when=lambda w: w.kind == "shapes" and w.got == [(4, 3), (4,)],
            check=DRAWN,
        ),
        Mistake(
            "all weights begin alike",
            "Hidden units that begin alike receive the same derivatives, and stay alike for ever. Draw each one.",
            when=lambda w: w.kind == "alike",
            check=DRAWN,
        ),
        Mistake(
            "the biases are left out",
            "Each output has a bias, the same for every row.",
            wrong_answer=lambda c: layer_outputs(c, with_biases=False),
            check=LAYER,
        ),
        Mistake(
            "the ReLU between the layers is left out",
            "Two linear functions after each other are one linear function.",
            wrong_answer=lambda c: network_output(c, has_relu=False),
            check=NETWORK,
        ),
        Mistake(
            "there is a ReLU before the sigmoid",
            "The last output must be able to go below 0: its sigmoid is then below one half, which says kind 0.",
            wrong_answer=lambda c: network_output(c, relu_at_the_end=True),
            check=NETWORK,
        ),
        Mistake(
            "points of kind 0 do not count",
            "Where the label is 0, the network should say 0, and -log(1 - output) says how far it is from that.",
            wrong_answer=lambda c: loss_of(c, counts_zeros=False),
            check=LOSS,
        ),
        Mistake(
            "the loss is a sum, not a mean",
            "With a sum, twice as many points make steps twice as long.",
            wrong_answer=lambda c: loss_of(c, mean=False),
            check=LOSS,
        ),
        Mistake(
            "the step changes a name, not the parameter",
            "`value = value - ...` gives another thing the name value. The parameter's own is p.value.",
            wrong_answer=lambda c: stepped(c, way=0.0),
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
