"""Answers of the quizzes on module 6, computed from the drawn numbers by NumPy or by brute force."""

import numpy as np

from minifuse.course import oracle
from minifuse.course.ranks import SEND, count_steps, run_ranks
from minifuse.course.tasks.task6_4 import time_of


def ring(slot, arrays):
    """The run of ranks that call a function of task 6.1, each with its array."""
    function = oracle.function(slot)
    programs = [lambda g, x=x: function(x, g.rank, g.size, g.send, g.receive) for x in arrays]
    return run_ranks(programs)


def first_sender(n):
    """The rank that sends the first message with elements of a chunk."""
    chunk = np.arange(n["size"]) == n["chunk"]
    run = ring("reduce_scatter", [np.where(chunk, 1, 0)] * n["size"])
    (rank,) = [k for k, events in enumerate(run.events) if events[0].array.sum() == 1]
    return rank


def passed_on(n):
    """The part that a rank sends in a step."""
    run = ring("all_gather", [np.array([rank]) for rank in range(n["size"])])
    return [event.array[0] for event in run.events[n["rank"]] if event.name == SEND][n["step"]]


def begun(n):
    """How many sums an averager begins when some gradients are ready."""

    def program(group):
        averager = oracle.function("GradientAverager")([(1,)] * 6, 2, 1, group)
        for k in [*n["ready"], "done", *set(range(6)).difference(n["ready"])]:
            if k == "done":
                group.note(k, 0)
            else:
                averager.ready(k, np.ones(1))
        return averager.finish()

    names = [event.name for event in run_ranks([program]).events[0]]
    return names[: names.index("done")].count("all_reduce") - 1  # without that of the examples


def order(n):
    """The order of a stage."""
    return oracle.function("one_forward_one_backward")(n["stage"], n["stages"], n["microbatches"])


def turns(stages, microbatches):
    """The turns of a pipeline, a forward and a backward pass each."""
    orders = [order({"stage": stage, "stages": stages, "microbatches": microbatches}) for stage in range(stages)]
    return time_of(orders) / 3


ANSWERS = {
    "6.1": {
        "steps": lambda n: count_steps(ring("all_reduce", [np.zeros(20)] * n["size"]).events),
        "sent_bytes": lambda n: sum(
            event.array.nbytes
            for event in ring("all_reduce", [np.zeros(n["count"], np.float32)] * n["size"]).events[0]
            if event.name == SEND
        ),
        "larger": lambda n: sum(
            len(part) > n["count"] // n["size"] for part in np.array_split(range(n["count"]), n["size"])
        ),
        "begins": first_sender,
        "second_round": passed_on,
        "same_bits": lambda n: "the sum of each chunk is computed once and copied",
    },
    "6.2": {
        "average": lambda n: np.concatenate(
            [np.full(c, g) for c, g in zip(n["examples"], n["gradients"], strict=True)]
        ).mean(),
        "buckets": lambda n: len(oracle.function("make_buckets")(n["sizes"], n["limit"])),
        "first": lambda n: oracle.function("make_buckets")([n["size"]] * n["count"], n["limit"])[0],
        "begun": begun,
        "hidden": lambda n: n["latency"] * sum(k % n["per"] != 0 for k in range(n["parameters"])),
        "no_examples": lambda n: "it takes part in each sum, with zeros",
    },
    "6.3": {
        "part": lambda n: np.split(np.empty((n["inputs"], n["hidden"])), n["size"], 1)[0].shape,
        "second_part": lambda n: np.split(np.empty((n["hidden"], n["outputs"])), n["size"])[0].shape,
        "elements": lambda n: np.empty((n["batch"], n["outputs"])).size,
        "bias": lambda n: n["sum"] + sum([n["bias"]] * n["size"]),
        "sums": lambda n: sum(1 for _ in range(n["blocks"]) for _ in ("forward", "backward")),
        "direction": lambda n: "it sums the gradients of all ranks",
    },
    "6.4": {
        "idle": lambda n: 1 - n["microbatches"] / turns(n["stages"], n["microbatches"]),
        "turns": lambda n: n["ms"] * turns(n["stages"], n["microbatches"]),
        "kept": lambda n: np.cumsum([1 if name == "forward" else -1 for name, _ in order(n)]).max(),
        "first_backward": lambda n: order(n | {"microbatches": 20}).index(("backward", 0)),
        "enough": lambda n: next(m for m in range(1, 999) if n["part"] * (n["stages"] - 1) == turns(n["stages"], m)),
        "why": lambda n: "memory for activations",
    },
}
