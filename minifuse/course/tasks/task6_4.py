"""Task 6.4: a pipeline of stages."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.wording import format_count
from ..check import agreement, check_each
from ..questions.alone import ask_alone
from ..questions.calling import calls
from ..questions.task6_4 import (
    Stages,
    apply_layer,
    ask_orders,
    ask_run,
    layer_gradients,
    loss_gradient_of,
    stage_programs,
)
from ..rank_cases import draw_floats, has_kind, is_near, with_sizes
from ..ranks import SEND, Array, RankRun
from ..task import Mistake, Task
from ..verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

BUBBLE, ORDER, MEMORY, TIME, GRADIENTS, FOLLOWED, ISOLATED = (
    "the idle share is that of the first and the last turns",
    "each microbatch goes forward once, and later backward once",
    "a stage keeps the activations of at most stages - stage microbatches",
    "no stage is idle for longer than the idle share",
    "each stage has the gradients of one device with the whole batch",
    "run_stage keeps to the order, and sends to neighbors only",
    "a stage computes from its own layers and its messages alone",
)
FORWARD_TIME, BACKWARD_TIME = 1, 2
Order = Sequence[tuple[str, int]]


def sizes() -> "SearchStrategy[tuple[int, int]]":
    """Draw (stages, microbatches), also fewer microbatches than stages."""
    return with_sizes(lambda _, stages, microbatches: (stages, microbatches), range(1, 7), range(1, 10))


def large_sizes() -> "SearchStrategy[tuple[int, int]]":
    """Draw many stages and microbatches."""
    return with_sizes(lambda _, stages, microbatches: (stages, microbatches), range(9, 17), range(20, 41))


def draw_stages(chance: Random, stages: int, microbatches: int) -> Stages:
    """Draw a network and a batch."""
    widths = [chance.randint(1, 3) for _ in range(stages + 1)]
    counts = [chance.randint(1, 3) for _ in range(microbatches)]
    return Stages(
        [(draw_floats(chance, a, b), draw_floats(chance, b)) for a, b in pairwise(widths)],
        [draw_floats(chance, count, widths[0]) for count in counts],
        [draw_floats(chance, count, widths[-1]) for count in counts],
    )


def networks() -> "SearchStrategy[Stages]":
    """Draw a network and a batch."""
    return with_sizes(draw_stages, (2, 3, 1, 4), range(1, 7))


def pairs() -> "SearchStrategy[tuple[Stages, Stages, int]]":
    """Draw two networks, and a stage of the first."""

    def draw(chance: Random, stages: int, microbatches: int) -> tuple[Stages, Stages, int]:
        return draw_stages(chance, stages, microbatches), draw_stages(chance, stages, microbatches), chance.randrange(stages)

    return with_sizes(draw, (2, 3, 4), range(1, 5))


def describe_sizes(case: tuple[int, int]) -> str:
    """Return the sizes of a pipeline as text."""
    return f"{format_count(case[0], 'stage')}, {format_count(case[1], 'microbatch', 'microbatches')}"


def format_order(order: Order) -> str:
    """Return an order as text: "F0 F1 B0 B1"."""
    return " ".join(f"{name[0].upper()}{k}" for name, k in order)


def describe(case: Stages) -> str:
    """Return a network as text."""
    return describe_sizes((len(case.weights), len(case.inputs)))


def describe_pair(case: tuple[Stages, Stages, int]) -> str:
    """Return the first of two networks as text."""
    return f"stage {case[2]} of {describe(case[0])}"


def check_order(case: tuple[int, int], orders: Any) -> None:
    """Raise `Wrong` if a stage leaves out a microbatch, or has it backward before forward."""
    stages, microbatches = case
    expected = sorted((name, k) for name in ("forward", "backward") for k in range(microbatches))
    for stage, order in enumerate(orders):
        if type(order) is list and (others := [step for step in order if type(step) is not tuple]):
            raise Wrong(f"stage {stage}: expected tuples, such as ('forward', 0); got {others[0]}", kind="no tuple")
        if type(order) is not list or sorted(order) != expected:
            is_ahead = microbatches < stages - stage and any(k >= microbatches for _, k in order)
            text = f": {format_order(order)}" if type(order) is list else ""
            raise Wrong(
                f"stage {stage} does not have each microbatch once forward and once backward{text}",
                got=order,
                kind="too many" if is_ahead else "left out",
            )
        for k in range(microbatches):
            if order.index(("forward", k)) > order.index(("backward", k)):
                raise Wrong(f"stage {stage} has microbatch {k} backward before forward", got=order, kind="reversed")


def check_memory(case: tuple[int, int], orders: Sequence[Order]) -> None:
    """Raise `Wrong` if a stage has too many microbatches that went forward and not yet backward."""
    stages, microbatches = case
    for stage, order in enumerate(orders):
        kept = np.cumsum([1 if name == "forward" else -1 for name, _ in order]).max(initial=0)
        most = min(stages - stage, microbatches)
        if kept > most:
            raise Wrong(
                f"stage {stage} keeps the activations of {kept} microbatches; {most} {'is' if most == 1 else 'are'} enough: "
                f"{format_order(order)}",
                got=list(orders),
                kind="memory",
            )


def runs_forward_first(is_so: Callable[[list[int], int, int], bool]) -> Callable[[Wrong], bool]:
    """Return a function that says whether stages keep too many microbatches, and `is_so` is True.

    Its arguments are the numbers of forward passes before the first backward pass of each stage, stages and microbatches.
    """

    def when(wrong: Wrong) -> bool:
        if wrong.kind != "memory":
            return False
        return is_so([[name for name, _ in order].index("backward") for order in wrong.got], *wrong.case)

    return when


def one_too_many(begins: list[int], stages: int, microbatches: int) -> bool:
    """Return whether each stage runs one microbatch more forward before its first backward pass than it has to."""
    return begins == [min(stages - stage + 1, microbatches) for stage in range(stages)]


def time_of(orders: Sequence[Order]) -> int:
    """Return when the last stage ends, if all begin as soon as they can; raise `Wrong` if they wait for each other."""
    ends: dict[tuple[int, str, int], int] = {}
    done, clocks = [0] * len(orders), [0] * len(orders)
    is_moving = True
    while is_moving:
        is_moving = False
        for stage, order in enumerate(orders):
            while done[stage] < len(order):
                name, k = order[done[stage]]
                source = stage - 1 if name == "forward" else stage + 1
                needed = ends.get((source, name, k)) if 0 <= source < len(orders) else 0
                if needed is None:
                    break
                time = FORWARD_TIME if name == "forward" else BACKWARD_TIME
                ends[stage, name, k] = clocks[stage] = max(clocks[stage], needed) + time
                done[stage] += 1
                is_moving = True
    if waiting := [stage for stage, order in enumerate(orders) if done[stage] < len(order)]:
        waits = ", ".join(f"stage {s} waits with {orders[s][done[s]]}" for s in waiting)
        raise Wrong(f"no stage can continue: {waits}", kind="deadlock")
    return max(clocks)


def check_time(case: tuple[int, int], orders: Sequence[Order]) -> None:
    """Raise `Wrong` if the pipeline takes more time than it has to."""
    stages, microbatches = case
    expected = (microbatches + stages - 1) * (FORWARD_TIME + BACKWARD_TIME)
    got = time_of(orders)
    if got > expected:
        is_one = got == stages * microbatches * (FORWARD_TIME + BACKWARD_TIME)
        raise Wrong(
            f"with {FORWARD_TIME} unit of time for a forward and {BACKWARD_TIME} for a backward pass, the pipeline takes "
            f"{got} units; expected {expected}; stage 0 runs {format_order(orders[0])}",
            got=list(orders),
            kind="one by one" if is_one else "slow",
        )


def whole(case: Stages) -> list[list[Array]]:
    """Return the gradients of all stages on one device with the whole batch."""
    values = [np.concatenate(case.inputs)]
    for w, b in case.weights:
        values.append(apply_layer(values[-1], w, b))
    d = loss_gradient_of(values[-1], np.concatenate(case.targets), len(values[0]))
    found: list[list[Array]] = []
    for (w, _), x, y in zip(case.weights[::-1], values[-2::-1], values[:0:-1], strict=True):
        d, gradients = layer_gradients(d, x, y, w)
        found.insert(0, gradients)
    return found


def check_gradients(case: Stages, run: RankRun) -> None:
    """Raise `Wrong` if a stage has wrong gradients."""
    last = whole(case._replace(inputs=case.inputs[-1:], targets=case.targets[-1:]))
    share = len(case.inputs[-1]) / sum(map(len, case.inputs))
    for stage, (got, expected) in enumerate(zip(run.results, whole(case), strict=True)):
        if not isinstance(got, list | tuple) or len(got) != 2:
            raise Wrong(f"stage {stage} does not return its list of two gradients", got=got)
        for name, one, right, of_last in zip(("w", "b"), got, expected, last[stage], strict=True):
            if not is_near(one, right):
                is_mean = is_near(one, right / len(case.inputs))
                kind = "last" if is_near(one, share * of_last) else "mean" if is_mean else ""
                raise Wrong(f"the gradient of {name} is wrong on stage {stage}", expected=right, got=one, kind=kind)


def check_followed(case: Stages, run: RankRun) -> None:
    """Raise `Wrong` if `run_stage` works in a worse order, or sends more than a message a microbatch to each neighbor."""
    size = len(case.weights), len(case.inputs)
    names = ("forward", "backward")
    orders = [[(event.name, event.other) for event in events if event.name in names] for events in run.events]
    for check in (check_order, check_memory, check_time):
        check(size, orders)
    for stage, events in enumerate(run.events):
        for to in range(len(case.weights)):
            sent = sum(event.name == SEND and event.other == to for event in events)
            most = len(case.inputs) if abs(to - stage) == 1 else 0
            if sent > most:
                raise Wrong(f"stage {stage} sends {sent} messages to stage {to}; it needs {most}", kind="messages")


def check_alone(case: tuple[Stages, Stages, int], answer: Any) -> None:
    """Raise `Wrong` if a stage alone, with the messages of another run, has another result."""
    together, alone = answer
    if [x.tobytes() for x in together] != [x.tobytes() for x in alone]:
        raise Wrong(
            "with the same layers and the same messages, the stage returns something else after another run; a stage has "
            "no variables of other stages",
            kind="alone",
        )


TASK = Task(
    id="6.4",
    title="Pipeline",
    file="pipeline.py",
    slots=("idle_share", "one_forward_one_backward", "run_stage"),
    points=6,
    text=(
        "Cut the depth of a network into stages, one for each rank, and a batch into microbatches, so that all stages work "
        "at the same time. Find the order in which a stage is never idle without need and keeps few activations, and run it."
    ),
    hints=(
        "Follow the first microbatch. Stage 0 can run it backward only when it has been through all stages and back. How "
        "many other microbatches can it run forward until then? And how many can the last stage?",
        "A stage first runs stages - 1 - stage microbatches forward. Then it takes turns: one forward, one backward. When "
        "no microbatch is left to go forward, it runs the others backward.",
        "docs/course/6.4-pipeline.md; docs/guide/distributed.md has pictures of both schedules.",
    ),
    reads=("docs/course/6.4-pipeline.md", "docs/guide/distributed.md"),
    checks=(
        agreement(
            BUBBLE,
            sizes,
            calls("idle_share"),
            lambda case: (case[0] - 1) / (case[1] + case[0] - 1),
            large=large_sizes,
            describe=describe_sizes,
        ),
        check_each(ORDER, sizes, ask_orders, check_order, large=large_sizes, describe=describe_sizes),
        check_each(MEMORY, sizes, ask_orders, check_memory, large=large_sizes, describe=describe_sizes),
        check_each(TIME, sizes, ask_orders, check_time, large=large_sizes, describe=describe_sizes),
        check_each(GRADIENTS, networks, ask_run, check_gradients, describe=describe, share=0.7),
        check_each(FOLLOWED, networks, ask_run, check_followed, describe=describe, share=0.5),
        check_each(
            ISOLATED, pairs, partial(ask_alone, "run_stage", stage_programs), check_alone, describe=describe_pair, share=0.2
        ),
    ),
    mistakes=(
        Mistake(
            "the idle share is that of the work, not of the time",
            "The time has microbatches + stages - 1 turns, of which stages - 1 are idle.",
            wrong_answer=lambda case: (case[0] - 1) / case[1],
            check=BUBBLE,
        ),
        Mistake(
            "all microbatches go forward before the first goes backward",
            "This is GPipe: as fast, but a stage keeps the activations of all microbatches.",
            when=runs_forward_first(lambda begins, _, microbatches: set(begins) == {microbatches}),
            check=MEMORY,
        ),
        Mistake(
            "each stage runs one microbatch too many ahead",
            "Before its first backward pass, a stage runs stages - 1 - stage microbatches ahead, and one more.",
            when=runs_forward_first(one_too_many),
            check=MEMORY,
        ),
        Mistake(
            "all stages begin with equally many forward passes",
            "The last stage can run its first microbatch backward at once. A stage has stages - 1 - stage others before.",
            when=runs_forward_first(lambda begins, *_: len(set(begins)) == 1),
            check=MEMORY,
        ),
        Mistake(
            "a stage runs ahead more microbatches than there are",
            "There may be fewer than stages - 1 - stage. Then all of them go forward first.",
            when=has_kind("too many"),
            check=ORDER,
        ),
        Mistake(
            "a microbatch begins when the one before is done",
            "Then one stage works and all others are idle. Run others forward until the first gradient comes back.",
            when=has_kind("one by one", "slow"),
            check=TIME,
        ),
        Mistake(
            "a stage waits for an array that nobody sends",
            "The next stage waits for each result, and the one before for each gradient. Send both as soon as they are "
            "there.",
            when=has_kind("deadlock"),
        ),
        Mistake(
            "the gradients are those of the last microbatch",
            "Add up the gradients of all microbatches.",
            when=has_kind("last"),
            check=GRADIENTS,
        ),
        Mistake(
            "gradients are divided by the number of microbatches",
            "loss_gradient is that of the mean over the whole batch, so the gradients of microbatches are added.",
            when=has_kind("mean"),
            check=GRADIENTS,
        ),
        Mistake(
            "a message is sent that nobody receives",
            "Each send needs a receive. Gradients of parameters stay on their stage.",
            when=has_kind("left over"),
        ),
    ),
)
