"""Task 6.2: data-parallel training."""

from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from ..cases import at_random
from ..check import agreement, check_each, in_turn
from ..questions.alone import ask_alone
from ..questions.calling import calls
from ..questions.task6_2 import (
    Averaging,
    Training,
    ask_averages,
    ask_broadcast,
    ask_trained,
    gradients_of,
    training_programs,
)
from ..rank_cases import draw_floats, has_kind, is_near, with_sizes
from ..ranks import Array, RankRun
from ..task import Mistake, Task
from ..verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

SHARED, BUCKETS, LAUNCHED, AVERAGED, TRAINED, ISOLATED = (
    "all ranks begin with the parameters of rank 0",
    "buckets take the last parameters first, and as many as they can hold",
    "the sum of a bucket begins when its last gradient is ready, in one order on all ranks",
    "gradients are averaged over the examples of all ranks",
    "all ranks end with the parameters of one device with the whole batches",
    "a rank computes from its own part and its messages alone",
)
Shape = tuple[int, ...]


def draw_shapes(chance: Random, count: int) -> list[Shape]:
    """Draw the shapes of parameters."""
    shapes: list[Shape] = [(4,), (2, 3), (1,), (7,), (3, 2), (5,), (2, 2, 2), (12,)]
    return [chance.choice(shapes) for _ in range(count)]


def draw_averaging(chance: Random, ranks: int, parameters: int, is_in_order: bool) -> Averaging:
    """Draw the gradients of all ranks in one step."""
    shapes = draw_shapes(chance, parameters)
    examples = [chance.choice([1, 2, 3, 5, 8, 0]) for _ in range(ranks)]
    examples[chance.randrange(ranks)] += 3
    orders = []
    for _ in range(ranks):
        order = list(range(len(shapes)))[::-1]
        if not is_in_order:
            chance.shuffle(order)
        orders.append(order)
    gradients = [[draw_floats(chance, *shape) * (count > 0) for shape in shapes] for count in examples]
    return Averaging(chance.choice([6, 10, 4, 20, 1000]), examples, gradients, orders)


def orderly() -> "SearchStrategy[Averaging]":
    """Draw a step in which the last gradient is ready first."""
    return with_sizes(partial(draw_averaging, is_in_order=True), (2, 3, 1), range(1, 5))


def averagings() -> "SearchStrategy[Averaging]":
    """Draw a step in which gradients are ready in another order on each rank."""
    return with_sizes(partial(draw_averaging, is_in_order=False), (2, 3, 1, 4), range(1, 7))


def large_averagings() -> "SearchStrategy[Averaging]":
    """Draw a step of many ranks with many parameters."""
    return at_random(lambda chance: draw_averaging(chance, chance.randint(8, 9), 24, False))


def sizes_and_limits() -> "SearchStrategy[tuple[list[int], int]]":
    """Draw (sizes, limit)."""

    def draw(chance: Random, count: int, limit: int) -> tuple[list[int], int]:
        return [chance.choice([1, 2, 3, 4, 5, 7, 9]) for _ in range(count)], limit

    return with_sizes(draw, range(10), range(1, 11))


def many_sizes() -> "SearchStrategy[tuple[list[int], int]]":
    """Draw the sizes of many parameters, and a limit."""
    return at_random(lambda chance: ([chance.randint(1, 5000) for _ in range(chance.randint(50, 90))], 6000))


def parameter_lists() -> "SearchStrategy[list[list[Array]]]":
    """Draw the parameters of all ranks."""

    def draw(chance: Random, ranks: int, count: int) -> list[list[Array]]:
        shapes = draw_shapes(chance, count)
        return [[draw_floats(chance, *shape) for shape in shapes] for _ in range(ranks)]

    return with_sizes(draw, (2, 3, 1, 4, 6), range(1, 6))


def draw_training(chance: Random, ranks: int, batches: int) -> Training:
    """Draw a run."""
    width, hidden = chance.randint(1, 3), chance.randint(1, 4)
    shapes = [(width, hidden), (hidden,), (hidden, 1), (1,)]
    counts = [[chance.choice([1, 2, 3, 5, 0]) for _ in range(ranks)] for _ in range(batches)]
    for count in counts:
        count[chance.randrange(ranks)] += 2
    parts = [
        [(draw_floats(chance, count[rank], width), draw_floats(chance, count[rank], 1)) for count in counts]
        for rank in range(ranks)
    ]
    parameters = [[draw_floats(chance, *shape) for shape in shapes] for _ in range(ranks)]
    return Training(chance.choice([3, 6, 100]), 0.25, parameters, parts)


def trainings() -> "SearchStrategy[Training]":
    """Draw a run."""
    return with_sizes(draw_training, (2, 3, 1, 4), (1, 2, 3))


def pairs() -> "SearchStrategy[tuple[Training, Training, int]]":
    """Draw two runs, and a rank of the first."""

    def draw(chance: Random, ranks: int, batches: int) -> tuple[Training, Training, int]:
        return draw_training(chance, ranks, batches), draw_training(chance, ranks, batches), chance.randrange(ranks)

    return with_sizes(draw, (2, 3, 4), (1, 2))


def describe_parameters(case: list[list[Array]]) -> str:
    """Return the parameters of all ranks as text."""
    return f"{len(case)} ranks, parameters of shapes {[x.shape for x in case[0]]}"


def describe_averaging(case: Averaging) -> str:
    """Return a step as text."""
    orders = case.orders if len(set(map(tuple, case.orders))) > 1 else case.orders[:1]
    shapes = [x.shape for x in case.gradients[0]]
    text = f"parts of {case.examples} examples, shapes {shapes}, limit {case.limit}"
    return f"{text}; gradients are ready in the order {' or '.join(map(str, orders))}"


def describe_training(case: Training) -> str:
    """Return a run as text."""
    counts = [[len(x) for x, _ in parts] for parts in case.parts]
    return f"{len(counts)} ranks, examples in each batch of each rank {counts}, limit {case.limit}"


def describe_pair(case: tuple[Training, Training, int]) -> str:
    """Return the first of two runs as text."""
    return f"rank {case[2]} of {describe_training(case[0])}"


def check_near(got: Any, expected: list[Array], whose: str) -> None:
    """Raise `Wrong` if arrays are not those expected, up to the rounding of sums in any order."""
    if type(got) is not list or len(got) != len(expected):
        raise Wrong(f"{whose} are no list of {len(expected)} arrays", got=got)
    for k, (one, right) in enumerate(zip(got, expected, strict=True)):
        if not is_near(one, right):
            raise Wrong(f"{whose}: number {k} is wrong", expected=right, got=one)


def check_bits(run: RankRun) -> None:
    """Raise `Wrong` if a rank has other bits than rank 0."""
    for rank, got in enumerate(run.results):
        if [x.tobytes() for x in got] != [x.tobytes() for x in run.results[0]]:
            raise Wrong(f"ranks 0 and {rank} have different arrays", kind="bits")


def check_shared(case: list[list[Array]], run: RankRun) -> None:
    """Raise `Wrong` if a rank does not have the parameters of rank 0."""
    for rank, got in enumerate(run.results):
        check_near(got, case[0], f"the parameters of rank {rank}")
    check_bits(run)


def greedy(case: tuple[list[int], int], is_first: bool = False, is_over: bool = False) -> list[list[int]]:
    """Return buckets; those of mistakes begin with the first parameter, or are closed only when they are over the limit."""
    sizes, limit = case
    buckets: list[list[int]] = []
    for k in range(len(sizes)) if is_first else range(len(sizes) - 1, -1, -1):
        held = sum(sizes[i] for i in buckets[-1]) if buckets else limit
        fits = held < limit if is_over else held + sizes[k] <= limit
        buckets = [*buckets[:-1], [*buckets[-1], k]] if buckets and fits else [*buckets, [k]]
    return buckets


def averages_of(case: Averaging) -> list[Array]:
    """Return the gradients, averaged over all examples."""
    weights = np.array(case.examples) / sum(case.examples)
    return [
        np.asarray(sum(w * x for w, x in zip(weights, parts, strict=True))) for parts in zip(*case.gradients, strict=True)
    ]


def check_averages(case: Averaging, run: RankRun) -> None:
    """Raise `Wrong` if a rank has wrong averages, or other bits than rank 0."""
    expected = averages_of(case)
    parts = [np.array(x) for x in zip(*case.gradients, strict=True)]
    wrong = {
        "unweighted": [x.mean(0) for x in parts],
        "summed": [x.sum(0) for x in parts],
        "weighted": [np.tensordot(np.array(case.examples, float), x, 1) for x in parts],
    }
    for rank, got in enumerate(run.results):
        try:
            check_near(got, expected, f"the gradients of rank {rank}")
        except Wrong as failure:
            for kind, arrays in wrong.items():
                if are_near(got, arrays):
                    failure.kind = kind
            raise
    check_bits(run)


def are_near(got: Any, expected: list[Array]) -> bool:
    """Return whether arrays are those expected."""
    try:
        check_near(got, expected, "")
    except Wrong:
        return False
    return True


def check_launches(case: Averaging, run: RankRun) -> None:
    """Raise `Wrong` if a sum begins too early or too late, or there is another number of sums than of buckets."""
    if len(case.gradients) == 1:
        return
    sizes = [x.size for x in case.gradients[0]]
    buckets = greedy((sizes, case.limit))
    for rank, events in enumerate(run.events):
        first = next(k for k, event in enumerate(events) if event.name in ("ready", "finish"))
        if [e.array.size for e in events[:first] if e.name == "all_reduce"] not in ([], [1]):
            raise Wrong("the constructor may all-reduce one number, and no more", kind="calls")
        ready, sent = set[int](), list[int]()
        for k, event in enumerate(events[first:], first):
            if event.name == "all_reduce":
                sent.append(event.array.size)
                continue
            ready |= {event.other} if event.name == "ready" else set()
            begun = sum(e.name == "all_reduce" for e in events[first : next_note(events, k)])
            complete = next((n for n, bucket in enumerate(buckets) if not ready.issuperset(bucket)), len(buckets))
            if begun != complete:
                is_each = begun == len(ready) > complete and len(buckets) < len(sizes)
                raise Wrong(
                    f"rank {rank}: the gradients of {sorted(ready)} are ready, so the sums of the first {complete} of the "
                    f"buckets {buckets} have begun; got {begun} sums",
                    kind="each" if is_each else "early" if begun > complete else "late",
                )
        expected = [sum(sizes[i] for i in bucket) for bucket in buckets]
        if len(sent) != len(expected) or any(not b <= a <= b + 1 for a, b in zip(sent, expected, strict=True)):
            raise Wrong(f"rank {rank} sums arrays of {sent} elements; the buckets have {expected}", kind="calls")


def next_note(events: list[Any], k: int) -> int:
    """Return the place of the next note after place k."""
    return next((i for i in range(k + 1, len(events)) if events[i].name in ("ready", "finish")), len(events))


def trained(case: Training) -> list[Array]:
    """Return the parameters of one device with the whole batches."""
    parameters = case.parameters[0]
    for parts in zip(*case.parts, strict=True):
        whole = np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts])
        parameters = [x - case.rate * g for x, g in zip(parameters, gradients_of(parameters, whole), strict=True)]
    return parameters


def check_trained(case: Training, run: RankRun) -> None:
    """Raise `Wrong` if ranks do not have the parameters of one device, or begin more sums than they need."""
    for rank, got in enumerate(run.results):
        try:
            check_near(got, trained(case), f"the parameters of rank {rank}")
        except Wrong as failure:
            if any(not are_near(other, got) for other in run.results):
                failure.kind = "own start"
            raise
    check_bits(run)
    most = (len(greedy(([x.size for x in case.parameters[0]], case.limit))) + 1) * len(case.parts[0])
    for rank, events in enumerate(run.events):
        sums = sum(event.name == "all_reduce" for event in events)
        if sums > most:
            raise Wrong(f"rank {rank} begins {sums} sums; buckets need at most {most}", kind="calls")


def check_alone(case: tuple[Training, Training, int], answer: Any) -> None:
    """Raise `Wrong` if a rank alone, with the messages of another run, has another result."""
    together, alone = answer
    if [x.tobytes() for x in together] != [x.tobytes() for x in alone]:
        raise Wrong(
            "with the same part and the same messages, the rank returns something else after another run; a rank has no "
            "variables of other ranks",
            kind="alone",
        )


TASK = Task(
    id="6.2",
    title="Data parallel",
    file="data_parallel.py",
    slots=("broadcast_parameters", "make_buckets", "GradientAverager", "train_parallel"),
    points=6,
    text=(
        "Each rank has a copy of the network and a part of each batch. Begin with equal parameters, average the gradients "
        "over all examples, and send them in buckets while the backward pass still computes the others. All ranks end with "
        "the parameters of one device that has the whole batches."
    ),
    hints=(
        "The gradient of a mean over all examples is the sum of the gradients of the parts, each times its share of the "
        "examples. With parts of equal sizes, and only then, the share is 1 / size.",
        "GradientAverager: all-reduce the number of examples in the constructor. `ready` stores a copy of the gradient, "
        "times the share; then, while the next bucket in order is complete, it begins its sum and keeps the function that "
        "waits. `finish` waits for each, and cuts it into the gradients of its parameters.",
        "docs/course/6.2-data-parallel.md; docs/guide/distributed.md has a picture of buckets.",
    ),
    reads=("docs/course/6.2-data-parallel.md", "docs/guide/distributed.md"),
    checks=(
        check_each(SHARED, parameter_lists, ask_broadcast, check_shared, describe=describe_parameters, share=0.4),
        agreement(BUCKETS, sizes_and_limits, calls("make_buckets"), greedy, large=many_sizes),
        in_turn(
            LAUNCHED,
            (
                check_each(LAUNCHED, orderly, ask_averages, check_launches, describe=describe_averaging, share=0.5),
                check_each(
                    LAUNCHED,
                    averagings,
                    ask_averages,
                    check_launches,
                    large=large_averagings,
                    describe=describe_averaging,
                    share=0.7,
                ),
            ),
        ),
        check_each(AVERAGED, averagings, ask_averages, check_averages, large=large_averagings, describe=describe_averaging),
        check_each(TRAINED, trainings, ask_trained, check_trained, describe=describe_training),
        check_each(
            ISOLATED,
            pairs,
            partial(ask_alone, "train_parallel", training_programs),
            check_alone,
            describe=describe_pair,
            share=0.3,
        ),
    ),
    mistakes=(
        Mistake(
            "buckets begin with the first parameter",
            "The backward pass has the gradient of the last parameter first. A bucket with the first one is complete only "
            "at the end.",
            wrong_answer=lambda case: greedy(case, is_first=True),
            check=BUCKETS,
        ),
        Mistake(
            "a bucket is closed only when it is over the limit",
            "Look before a parameter is added: with it, are there more elements than the limit?",
            wrong_answer=lambda case: greedy(case, is_over=True),
            check=BUCKETS,
        ),
        Mistake(
            "each gradient is sent by itself",
            "A message costs a latency, however short it is. Wait until the bucket is complete, and send one array.",
            when=has_kind("each"),
            check=LAUNCHED,
        ),
        Mistake(
            "sums begin at the end of the backward pass",
            "Then the network waits while all compute, and all wait while it sends. Begin in `ready`, as soon as a bucket "
            "is complete.",
            when=has_kind("late"),
            check=LAUNCHED,
        ),
        Mistake(
            "ranks begin their sums in different orders",
            "Gradients may be ready in another order on another rank. A complete bucket waits until those before it have "
            "begun.",
            when=has_kind("early", "mismatch", "each"),
            check=LAUNCHED,
        ),
        Mistake(
            "the mean over ranks is taken, not over examples",
            "A rank with 5 examples counts five times as much as a rank with 1.",
            when=has_kind("unweighted"),
            check=AVERAGED,
        ),
        Mistake(
            "gradients are summed, not averaged",
            "Divide by the number of examples of all ranks.",
            when=has_kind("summed", "weighted"),
            check=AVERAGED,
        ),
        Mistake(
            "ranks begin with different parameters",
            "Each has drawn its own. Call broadcast_parameters first.",
            when=has_kind("own start"),
            check=TRAINED,
        ),
    ),
    allows=frozenset({"numpy"}),
)
