"""Task 4.6: optimizers."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import oracle
from ..cases import among
from ..check import agreement, in_turn
from ..engine import Engine
from ..questions.calling import calls
from ..questions.task4_6 import Run, Training, ask_gradients, ask_resumed, ask_steps, ask_training, train
from ..strided import Array
from ..task import Check, Mistake, Task

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

Schedule = tuple[int, int, int, float]
"""(step, steps, warmup, peak)."""
Steps = tuple[tuple[Array, ...], ...]
SGD_STEPS, ADAM_STEPS, LEFT_OUT, GRADIENTS, STATE, SCHEDULE, TRAINING = (
    "SGD adds weight decay to the gradient, and the gradient to its velocity",
    "Adam corrects the bias of both means, and adds epsilon to the root",
    "a parameter without a gradient is left out, and so is its state",
    "a step leaves gradients, zero_grad sets them to None",
    "a new optimizer continues from a state that was stored as JSON",
    "the rate grows in a line, and falls along half a cosine",
    "training ends at the target, with one backward pass a step",
)
FACTORS = (1.0, 1.0, 1e-7, 1e4)
"""Of gradients: near epsilon, and large."""


def draw_options(draw: "DrawFn", name: str) -> dict[str, Any]:
    """Draw the settings of an optimizer."""
    if name == "SGD":
        return {"momentum": draw(among(0.0, 0.5, 0.9)), "weight_decay": draw(among(0.0, 0.25, 0.01))}
    return {"betas": draw(among((0.9, 0.999), (0.5, 0.75), (0.0, 0.9))), "epsilon": draw(among(1e-8, 0.5, 1e-3))}


def draw_array(draw: "DrawFn", shape: Sequence[int], factor: float = 1.0) -> Array:
    """Draw an array of halves without zeros."""
    numbers = (np.arange(np.prod(shape)) * 7 + draw(among(*range(18)))) % 18 - 8.5
    return np.asarray(np.reshape(numbers, shape) * factor)


def runs(name: str, steps: tuple[int, ...] = (1, 2, 3, 5), has_none: bool = False, is_saved: bool = False) -> Any:
    """Draw an optimizer with one to three parameters, and the gradients of some steps."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Run:
        shapes = draw(st.lists(among((1,), (2,), (), (2, 3), (1, 2, 2)), min_size=1 + has_none, max_size=3))
        count = draw(among(*steps))
        factor = draw(among(*FACTORS))
        gradients = []
        for k in range(count):
            is_none = [has_none and draw(among(False, False, True)) for _ in shapes]
            if has_none and k == 0:
                is_none[-1] = True
            gradients.append(
                tuple(None if none else draw_array(draw, s, factor) for none, s in zip(is_none, shapes, strict=True))
            )
        rates = tuple(draw(among(0.5, 0.5, 1.0, 0.125)) for _ in range(count))
        values = tuple(draw_array(draw, shape) for shape in shapes)
        saved = draw(among(*range(1, count))) if is_saved else 0
        return Run(name, draw_options(draw, name), values, tuple(gradients), rates, saved)

    return case()


def long_runs(name: str) -> Any:
    """Draw runs of more steps than the others have."""
    from hypothesis import strategies as st

    def case(seed: int, count: int, options: dict[str, Any]) -> Run:
        draw = np.random.default_rng(seed).normal
        gradients = tuple((draw(size=(2, 2)),) for _ in range(count))
        return Run(name, options, (draw(size=(2, 2)),), gradients, (0.125,) * count)

    options = {"momentum": 0.9, "weight_decay": 0.01} if name == "SGD" else {"betas": (0.9, 0.999), "epsilon": 1e-8}
    return st.builds(case, st.integers(0, 99), st.integers(30, 40), st.just(options))


def schedules(most: int = 12) -> "SearchStrategy[Schedule]":
    """Draw (step, steps, warmup, peak); steps may be over, and there may be no warm-up or nothing else."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Schedule:
        steps = draw(st.integers(1, most))
        warmup = draw(st.integers(0, steps))
        step = draw(st.integers(0, steps + 2) | st.sampled_from([0, warmup, max(warmup - 1, 0), steps - 1, steps]))
        return step, steps, warmup, draw(among(1.0, 0.5, 3e-4))

    return case()


TRAININGS: tuple[tuple[str, dict[str, Any], float, int], ...] = (
    ("SGD", {"rate": 0.5, "momentum": 0.9}, 0.1, 25),
    ("Adam", {"rate": 0.05}, 0.1, 25),
    ("SGD", {"rate": 0.1}, 10.0, 5),
    ("SGD", {"rate": 0.25, "momentum": 0.5}, 0.0, 4),
    ("SGD", {"rate": 0.25}, 0.0, 0),
)
"""(name, options, target, most): some reach the target, one is there at the start, and others take too many steps."""


def trainings(way: tuple[str, dict[str, Any], float, int]) -> "SearchStrategy[Training]":
    """Draw the training of a small network."""
    from hypothesis import strategies as st

    return st.integers(0, 99).map(lambda seed: network_training(*way, seed))


def network_training(name: str, options: dict[str, Any], target: float, most: int, seed: int) -> Training:
    """Return the training of a network of 3 hidden units on 12 points, with weights drawn by a seed."""
    draw = np.random.default_rng(seed).uniform
    xs = draw(-1, 1, (12, 2))
    labels = (xs[:, :1] + 0.1 * xs[:, 1:] > 0) * 1.0
    weights = (draw(-1, 1, (2, 3)), draw(-1, 1, 3), draw(-1, 1, (3, 1)), draw(-1, 1, 1))
    return Training(name, options, weights, xs, np.asarray(labels, np.float64), target, most)


def trained(case: Training, is_stale: bool = False) -> tuple[Any, ...]:
    """Return the right number of steps and backward passes; `is_stale` never sets gradients to None."""
    cls = oracle.function(case.name)
    if is_stale:
        cls = type("Stale", (cls,), {"zero_grad": lambda self: None})  # type: ignore[arg-type]  # a class
    return tuple(train(Engine(), cls, oracle.function("steps_until"), case))


def without_last_loss(case: Training) -> tuple[Any, ...]:
    """Return what a loop finds that does not compute the loss after the last step."""
    steps, losses, backwards = trained(case)
    return (None, case.most, case.most) if steps is None or steps == case.most else (steps, losses, backwards)


def simulate(
    case: Run,
    *,
    averages: bool = False,
    decay: bool = True,
    corrects: bool = True,
    epsilon_inside: bool = False,
    shares_steps: bool = False,
    none_is_zero: bool = False,
    forgets: bool = False,
) -> Steps:
    """Return the values after each step, in NumPy, possibly with a mistake."""
    values = [value.copy() for value in case.values]
    memory: list[list[Array]] = [[np.zeros_like(v), np.zeros_like(v)] for v in values]
    counts, found = [0] * len(values), []
    for step, (gradients, rate) in enumerate(zip(case.gradients, case.rates, strict=True)):
        if forgets and step == case.saved_after:
            memory, counts = [[np.zeros_like(v), np.zeros_like(v)] for v in values], [0] * len(values)
        for k, d in enumerate(gradients):
            if d is None and not none_is_zero:
                continue
            g = np.zeros_like(values[k]) if d is None else d
            counts[k] = step + 1 if shares_steps else counts[k] + 1
            if case.name == "SGD":
                g = g + case.options["weight_decay"] * values[k] * decay
                momentum = case.options["momentum"]
                memory[k][0] = momentum * memory[k][0] + (1 - momentum if averages else 1) * g
                change = memory[k][0]
            else:
                betas, epsilon = case.options["betas"], case.options["epsilon"]
                memory[k] = [b * m + (1 - b) * x for b, m, x in zip(betas, memory[k], (g, g * g), strict=True)]
                mean, square = [m / (1 - b ** counts[k] if corrects else 1) for b, m in zip(betas, memory[k], strict=True)]
                change = mean / (np.sqrt(square + epsilon) if epsilon_inside else np.sqrt(square) + epsilon)
            values[k] = values[k] - rate * change
        found.append(tuple(np.array(v) for v in values))
    return tuple(found)


def resumed(case: Run, **mistakes: bool) -> Steps:
    """Return the values after each step that follows the saved state."""
    return simulate(case, **mistakes)[case.saved_after :]


def kept_gradients(case: Run) -> object:
    """Return the gradients after a step, and Nones."""
    return case.gradients[0], (None,) * len(case.values)


def describe_run(case: Run) -> str:
    """Return a run as text."""
    shapes = ", ".join(str(v.shape) for v in case.values)
    options = "".join(f", {key}={value}" for key, value in case.options.items())
    first = [None if d is None else np.round(d, 9).tolist() for d in case.gradients[0]]
    saved = f"; the state is saved after step {case.saved_after}" if case.saved_after else ""
    values = [v.tolist() for v in case.values]
    return (
        f"{case.name}(rate={case.rates[0]}{options}), parameters of shape {shapes}: {values}; {len(case.gradients)} steps, "
        f"the first with gradients {first}{saved}"
    )


def describe_training(case: Training) -> str:
    """Return a training as text."""
    options = ", ".join(f"{key}={value}" for key, value in case.options.items())
    return (
        f"steps_until({case.name}(parameters, {options}), loss_of, target={case.target}, most={case.most}); "
        "(steps, losses computed, losses that went backward)"
    )


def both(name: str, has_none: bool = False, is_saved: bool = False) -> Check:
    """Return a check of SGD and Adam: with parameters without a gradient, or with a state that is saved."""
    ask, expect = (ask_resumed, resumed) if is_saved else (ask_steps, simulate)
    return in_turn(
        name,
        [
            agreement(
                name,
                partial(runs, kind, (2, 3, 4, 6), has_none, is_saved),
                ask,
                expect,
                describe=describe_run,
                share=0.6,
            )
            for kind in ("SGD", "Adam")
        ],
    )


def schedule(case: Schedule) -> float:
    """Return the right rate."""
    return float(oracle.function("warmup_cosine")(*case))


TASK = Task(
    id="4.6",
    title="Optimizers",
    file="optimizers.py",
    slots=("sqrt", "SGD", "Adam", "warmup_cosine", "steps_until"),
    points=6,
    text=(
        "A step against the gradient is right, and slow. Momentum adds up what the gradients agree about; Adam divides by "
        "their size. Write both, with a state for each parameter that can be saved and loaded, a learning rate with warm-up "
        "and cosine, and the loop that counts how many steps a training takes."
    ),
    hints=(
        "The state belongs to a parameter: keep a list of velocities, one for each parameter, and None before its first "
        "step. What has no gradient takes no step, so nothing of it changes, not even its number of steps.",
        "SGD: d = grad + weight_decay * value; velocity = momentum * velocity + d; value -= rate * velocity. Adam: m and v "
        "as in the docstring, each divided by 1 - beta ** t; epsilon is added to the finished root. For state_dict call "
        "tolist() on each tensor: lists are copies, and JSON knows them.",
        "docs/course/4.6-optimizers.md; minifuse/optim has the optimizers of the library.",
    ),
    reads=("docs/course/4.6-optimizers.md", "docs/guide/training.md"),
    checks=(
        agreement(
            SGD_STEPS, partial(runs, "SGD"), ask_steps, simulate, large=partial(long_runs, "SGD"), describe=describe_run
        ),
        agreement(
            ADAM_STEPS, partial(runs, "Adam"), ask_steps, simulate, large=partial(long_runs, "Adam"), describe=describe_run
        ),
        both(LEFT_OUT, has_none=True),
        in_turn(
            GRADIENTS,
            [
                agreement(
                    GRADIENTS, partial(runs, kind, (1,)), ask_gradients, kept_gradients, describe=describe_run, share=0.3
                )
                for kind in ("SGD", "Adam")
            ],
        ),
        both(STATE, has_none=True, is_saved=True),
        agreement(
            SCHEDULE,
            schedules,
            calls("warmup_cosine"),
            schedule,
            large=partial(schedules, 10**6),
            describe=lambda c: f"warmup_cosine(step={c[0]}, steps={c[1]}, warmup={c[2]}, peak={c[3]})",
        ),
        in_turn(
            TRAINING,
            [
                agreement(TRAINING, partial(trainings, way), ask_training, trained, describe=describe_training, share=0.04)
                for way in TRAININGS
            ],
        ),
    ),
    mistakes=(
        Mistake(
            "the velocity is an average of gradients",
            "With momentum 0.9 the velocity of a constant gradient grows to ten times that gradient: it is multiplied by "
            "momentum, and the gradient is added as it is.",
            wrong_answer=lambda c: simulate(c, averages=True),
            check=SGD_STEPS,
        ),
        Mistake(
            "weight decay is left out",
            "Before anything else, weight_decay * value is added to the gradient.",
            wrong_answer=lambda c: simulate(c, decay=False),
            check=SGD_STEPS,
        ),
        Mistake(
            "the bias of the means is not corrected",
            "m begins at 0, so after one step it is only (1 - beta1) * g. Divide by 1 - beta1 ** t, and v likewise.",
            wrong_answer=lambda c: simulate(c, corrects=False),
            check=ADAM_STEPS,
        ),
        Mistake(
            "epsilon is added below the root",
            "sqrt(v) + epsilon: for small gradients sqrt(v + epsilon) is much larger.",
            wrong_answer=lambda c: simulate(c, epsilon_inside=True),
            check=ADAM_STEPS,
        ),
        Mistake(
            "all parameters share one number of steps",
            "A parameter that had no gradient before takes its first step now: its t is 1.",
            wrong_answer=lambda c: simulate(c, shares_steps=True),
            check=LEFT_OUT,
        ),
        Mistake(
            "no gradient counts as a gradient of 0",
            "With a velocity, a gradient of 0 still moves the parameter. None means: leave it out.",
            wrong_answer=lambda c: simulate(c, none_is_zero=True),
            check=LEFT_OUT,
        ),
        Mistake(
            "the state is no plain data",
            "v.tolist() makes nested lists of a tensor; p.engine.values(lists) makes a tensor of them.",
            when=lambda w: w.kind == "state",
            check=STATE,
        ),
        Mistake(
            "a new optimizer begins anew",
            "Velocities, means and numbers of steps are the state: all of them are saved and loaded.",
            wrong_answer=lambda c: resumed(c, forgets=True),
            check=STATE,
        ),
        Mistake(
            "the first step has rate 0",
            "A step with rate 0 changes nothing. Step 0 has peak / warmup, and step warmup - 1 has peak.",
            wrong_answer=lambda c: c[3] * c[0] / c[2] if c[0] < c[2] else schedule(c),
            check=SCHEDULE,
        ),
        Mistake(
            "the loss after the last step is left out",
            "After `most` steps, compute the loss once more: the last step may have reached the target.",
            wrong_answer=without_last_loss,
            check=TRAINING,
        ),
        Mistake(
            "gradients of earlier losses are added",
            "backward adds to .grad. Call zero_grad before each backward pass, before the first one too.",
            wrong_answer=lambda c: trained(c, is_stale=True),
            check=TRAINING,
        ),
    ),
)
