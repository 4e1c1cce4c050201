"""Task 1.5: train a network of scalars."""

import math
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from ..check import CaseT, agreement, check_each, in_turn, same
from ..learning import (
    MIN_ACCURACY,
    accuracy,
    describe_layer,
    describe_network,
    draw_points,
    layer_outputs,
    learning_check,
    network_output,
)
from ..questions.learning import Layer, Net, Points, scalar_probabilities
from ..questions.task1_5 import (
    Guesses,
    Parameters,
    Steps,
    ask_layer,
    ask_layer_gradients,
    ask_loss,
    ask_network,
    ask_network_gradients,
    ask_step,
    initial_parameters,
    train,
)
from ..scalar_network_cases import certain, guesses, large_layers, large_networks, layers, networks, steps
from ..student import Student
from ..student_process import StudentProcess
from ..task import Check, Effort, Mistake, Task
from ..verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

LAYER, DRAWN, NETWORK, GRADIENTS, LOSS, STEP, LEARNS, HOW = (
    "a layer gives a weighted sum and a bias for each output",
    "weights and biases are drawn by random.uniform(-1, 1), each for itself",
    "a network is linear, ReLU, linear, sigmoid",
    "gradients reach the inputs and all parameters of a layer, and all parameters of a network",
    "the loss is the mean of -log(p of the right label), and goes backward",
    "a step goes downhill, and resets the gradients",
    "it tells points right that it has not seen",
    "it learns by gradients, from all points, in as many steps as are given, from weights that the seed draws",
)
SHORT_POINTS, SHORT_STEPS = 30, 8  # of a training that is only looked at
LESS = 0.3  # share of the usual number of cases


def numbers_of(case: Layer, with_biases: bool = True) -> list[float]:
    """Return the outputs of a layer as a list."""
    return [float(x) for x in layer_outputs(case, with_biases)]


def layer_gradients(case: Layer) -> list[Any]:
    """Return the gradients of weights, biases and inputs, if output j receives j + 1."""
    d = np.arange(1.0, len(case.biases) + 1)
    return [np.outer(case.xs, d).tolist(), d.tolist(), (case.weights @ d).tolist()]


def network_gradients(case: Net) -> list[Any]:
    """Return the gradients of weights and biases of both layers, if the output receives 1."""
    hidden, p = layer_outputs(case.first), network_output(case)
    d = p * (1 - p)
    back = (case.last.weights @ d) * (hidden > 0)
    first = [np.outer(case.first.xs, back).tolist(), back.tolist()]
    return [first, [np.outer(np.maximum(hidden, 0), d).tolist(), d.tolist()]]


def named_gradients(value: object, name: str) -> Iterator[tuple[str, object]]:
    """Yield (name, gradient) of the numbers in nested lists: ("weights[0][1]", 0.25)."""
    if not isinstance(value, list):
        yield name, value
        return
    for k, part in enumerate(value):
        yield from named_gradients(part, f"{name}[{k}]")


def gradients_check(
    cases: Callable[[], "SearchStrategy[CaseT]"],
    ask: Callable[[Student, CaseT], list[Any]],
    expect: Callable[[CaseT], list[Any]],
    names: Sequence[str],
    describe: Callable[[CaseT], str],
) -> Check:
    """Return a check of gradients, lists of numbers that have these names. The first that is wrong is named."""

    def by_name(answer: list[Any]) -> dict[str, object]:
        parts = [x for part in answer for x in part] if len(answer) < len(names) else answer
        return dict(pair for part, name in zip(parts, names, strict=True) for pair in named_gradients(part, name))

    def examine(case: CaseT, answer: list[Any]) -> None:
        found = by_name(answer)
        for name, expected in by_name(expect(case)).items():
            if not same(found.get(name), expected):
                message = f"{name} has the gradient {found.get(name)}"
                raise Wrong(message, expected=expected, got=found.get(name), kind="gradient")

    return check_each(GRADIENTS, cases, ask, examine, describe=describe, share=LESS)


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
    with np.errstate(divide="ignore"):
        return float((0.0 - np.sum(np.log(p))) / by), [float(-np.divide(s, x) / by) for s, x in zip(sign, p, strict=True)]


def describe_guesses(case: Guesses) -> str:
    """Describe outputs and labels."""
    return f"{len(case[0])} outputs {list(case[0][:8])}, labels {list(case[1][:8])}; (loss, gradients)"


def is_nan_where_certain(wrong: Wrong) -> bool:
    """Return whether the loss is nan, and one of the outputs is certain and right."""
    is_answer = isinstance(wrong.got, tuple) and isinstance(wrong.got[0], float)
    return is_answer and math.isnan(wrong.got[0]) and any(p == label for p, label in zip(*wrong.case, strict=True))


def adds_in_the_logarithm(wrong: Wrong) -> bool:
    """Return whether loss and gradients are those of slightly larger probabilities."""
    (loss, gradients), (right, slopes), by = wrong.got, wrong.expected, len(wrong.case[0])
    shares = [a / b for a, b in zip(gradients, slopes, strict=True)]
    are_smaller = all(0 <= share <= 1 + 1e-12 for share in shares)
    likely = [share for share, slope in zip(shares, slopes, strict=True) if abs(slope) * by < 10]
    return are_smaller and min(likely, default=1.0) > 0.9 and -0.1 < loss <= right + 1e-12


def stepped(case: Steps, way: float = -1.0, lets_go: bool = True) -> Parameters:
    """Return values and gradients after a step."""
    return [(value + way * case[1] * (d or 0.0), None if lets_go else d) for value, d in case[0]]


def are_drawn(student: StudentProcess, effort: Effort) -> None:
    """Raise `Wrong` if the initial parameters of a layer are not what `random.uniform(-1, 1)` returns, in some order."""
    for inputs, outputs, seed in ((3, 4, 1), (1, 1, 2), (3, 4, 3), (5, 2, effort.seed or 4)):
        values = student.ask(initial_parameters, (inputs, outputs, seed))
        case_text, count = f"ScalarLinear(engine, {inputs}, {outputs}, Random({seed}))", (inputs + 1) * outputs
        if len(values) != count:
            raise Wrong(
                "a layer has another number of parameters",
                case_text=case_text,
                expected=f"{inputs} * {outputs} weights and {outputs} biases",
                got=len(values),
            )
        if len(set(values)) < count:
            raise Wrong(
                "parameters begin with equal numbers",
                case_text=case_text,
                expected=f"{count} that differ",
                got=values,
                kind="alike",
            )
        random = Random(seed)
        drawn = sorted(random.uniform(-1, 1) for _ in range(count))
        if not np.allclose(sorted(values), drawn, rtol=0, atol=1e-12):
            raise Wrong(
                f"parameters are not the first {count} numbers that random.uniform(-1, 1) returns",
                case_text=case_text,
                expected=f"{drawn}, in any order",
                got=sorted(values),
                kind="drawn",
            )


def learns_by_gradients(student: StudentProcess, effort: Effort) -> None:
    """Raise `Wrong` if training does not need the gradients, or not all points, or not the seed, or takes more steps."""
    seed = effort.seed or 0
    points, labels = draw_points("simple", SHORT_POINTS, seed)
    other = [1 - label for label in labels]
    case_text = f"train_scalar_network(engine, {SHORT_POINTS} points of 'simple', labels, steps={SHORT_STEPS}, seed)"
    begun = [trained(student, case_text, points, labels, 2, one) for one in (seed, seed + 1, seed)]
    if begun[0] == begun[1] or begun[0] != begun[2]:
        how = "two seeds lead to the same" if begun[0] == begun[1] else "one seed leads to two different"
        raise Wrong(f"{how} parameters; draw all that is random from Random(seed)", case_text=case_text, kind="seed")
    unseen, kinds = draw_points("simple", 200, seed + 10_000)
    misled = [trained(student, case_text, points, one, SHORT_STEPS, seed, -1.0) for one in (labels, other)]
    right = [accuracy(probabilities(network, unseen), kinds) for network in misled]
    if right[0] >= MIN_ACCURACY and 1 - right[1] >= MIN_ACCURACY:
        raise Wrong(
            f"with gradients of the other sign the network should learn the opposite, and it is right for {right[0]:.0%} of "
            "new points: something else than gradients has found its parameters",
            case_text=case_text,
            kind="beside",
        )
    points, labels = draw_points("simple", 80, seed)
    more, kinds_of_more = draw_points("simple", 50, seed + 1)
    labels = [*labels[:40], *[1 - label for label in kinds_of_more]]
    text = "90 points: the first 40 with the other labels than the last 50 would have there"
    network = trained(student, text, [*points[:40], *more], labels, 25, seed)
    if accuracy(probabilities(network, unseen), kinds) >= MIN_ACCURACY:
        raise Wrong("it has learnt the first points, and not the others", case_text=text, kind="some points")


def trained(
    student: StudentProcess, text: str, points: Points, labels: list[int], steps: int, seed: int, sign: float = 1.0
) -> Any:
    """Return the parameters of a trained network; raise `Wrong` for too many backward passes."""
    passes, network = student.ask(train, (points, labels, steps, seed, sign))
    if passes > steps:
        raise Wrong(
            f"{passes} losses went backward; at most {steps} may, in all engines together",
            case_text=text,
            expected=f"at most {steps}",
            got=passes,
            kind="steps",
        )
    return network


def probabilities(network: Any, points: Points) -> list[float]:
    """Return the probabilities of a network that is given by its parameters."""
    first, last = [Layer(np.array(weights), np.array(biases), np.zeros(0)) for weights, biases in network]
    return [float(network_output(Net(first._replace(xs=np.array(point)), last))[0]) for point in points]


TASK = Task(
    id="1.5",
    title="Train a network of numbers",
    file="scalar_network.py",
    slots=("ScalarLinear", "ScalarNetwork", "scalar_loss", "scalar_step", "train_scalar_network"),
    points=5,
    text=(
        "A network is a function with numbers in it that can be changed. Write a layer, put two of them together, say how "
        "wrong the network is, and change each number a little against its gradient, again and again. What counts in the "
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
    reads=("docs/course/1.5-scalar-network.md", "docs/guide/training.md", "minifuse/optim/sgd.py"),
    checks=(
        agreement(LAYER, layers, ask_layer, numbers_of, large=large_layers, describe=describe_layer),
        Check(DRAWN, are_drawn),
        agreement(
            NETWORK,
            networks,
            ask_network,
            number_of,
            large=large_networks,
            describe=describe_network,
        ),
        in_turn(
            GRADIENTS,
            [
                gradients_check(layers, ask_layer_gradients, layer_gradients, ("weights", "biases", "xs"), describe_layer),
                gradients_check(
                    networks,
                    ask_network_gradients,
                    network_gradients,
                    [f"layers[{k}].{name}" for k in (0, 1) for name in ("weights", "biases")],
                    describe_network,
                ),
            ],
        ),
        in_turn(
            LOSS,
            [
                agreement(LOSS, guesses, ask_loss, loss_of, large=lambda: guesses(300), describe=describe_guesses),
                agreement(LOSS, certain, ask_loss, loss_of, describe=describe_guesses, share=LESS),
            ],
        ),
        agreement(
            STEP, steps, ask_step, stepped, describe=lambda c: f"(value, gradient) of parameters {list(c[0])}, rate {c[1]}"
        ),
        Check(HOW, learns_by_gradients),
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
            wrong_answer=lambda c: numbers_of(c._replace(weights=c.weights.T)),
            check=LAYER,
        ),
        Mistake(
            "all weights begin alike",
            "Hidden units that begin alike receive the same gradients, and stay alike for ever. Draw each one.",
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
            "the logarithm of the other label's probability is multiplied by 0",
            "Where that probability is 0, its logarithm is -inf, and 0 * -inf is nan. Choose one of the two logarithms "
            "by the label.",
            when=is_nan_where_certain,
            check=LOSS,
        ),
        Mistake(
            "a small number is added inside the logarithm",
            "Add nothing to a probability, and don't bound it. One of 1e-60 has a logarithm, too.",
            when=adds_in_the_logarithm,
            check=LOSS,
        ),
        Mistake(
            "a parameter is left out where it makes no difference",
            "Where an input is 0, or a ReLU returns 0, compute as anywhere else. Then the gradient is 0.0, and not None.",
            when=lambda w: w.kind == "gradient" and w.got is None and w.expected == 0,
            check=GRADIENTS,
        ),
        Mistake(
            "a gradient of 0.0 is taken for none",
            "`if p.grad` is false for 0.0, too. Ask whether it `is not None`.",
            wrong_answer=lambda c: [(p, 0.0 if d == 0 else None) for (p, _), (_, d) in zip(stepped(c), c[0], strict=True)],
            check=STEP,
        ),
        Mistake(
            "the step goes uphill",
            "The gradient points to where the loss grows. Go the other way.",
            wrong_answer=lambda c: stepped(c, way=1.0),
            check=STEP,
        ),
        Mistake(
            "gradients are left for the next step",
            "backward adds to what has been gathered. After a step, begin anew: grad = None.",
            wrong_answer=lambda c: stepped(c, lets_go=False),
            check=STEP,
        ),
        Mistake(
            "nothing goes backward",
            "Without loss.backward() no parameter has a gradient, and a step changes nothing.",
            when=lambda w: w.kind == "accuracy" and w.case == 0,
            check=LEARNS,
        ),
        Mistake(
            "the parameters are found beside the engine",
            "Whatever the engine does, the network is right: no gradient was needed. Let each step follow the gradients of "
            "a loss.",
            when=lambda w: w.kind == "beside",
            check=HOW,
        ),
        Mistake(
            "seed or steps are not what was given",
            "Random(seed) draws the weights and chooses the points, and at most `steps` losses go backward.",
            when=lambda w: w.kind in ("seed", "steps"),
            check=HOW,
        ),
    ),
)
