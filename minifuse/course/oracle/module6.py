"""Reference answers of module 6: the library's own programs of messages, and NumPy."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ...core.indexing import Shape
from ...engines.algorithms import ring_all_gather, ring_reduce_scatter
from ...engines.messages import Recv, Send
from ...engines.schedules import SCHEDULES
from ...engines.schedules import run_stage as run_library_stage
from ..ranks import Array, Group
from . import answers

Sender = Callable[[int, Array], None]
Receiver = Callable[[int], Array]


# Task 6.1


def drive(program: Any, send: Sender, receive: Receiver) -> Any:
    """Run a program of the library's, with functions for its messages."""
    received: Array | None = None
    while True:
        try:
            request = program.send(received)
        except StopIteration as stop:
            return stop.value
        received = None
        if isinstance(request, Send):
            send(request.to, request.data)
        elif isinstance(request, Recv):
            received = receive(request.source)


@answers
def chunk_bounds(count: int, size: int) -> list[tuple[int, int]]:
    """Cut a range as `np.array_split` does."""
    ends = np.cumsum([0, *map(len, np.array_split(np.arange(count), size))]).tolist()
    return list(pairwise(ends))


@answers
def reduce_scatter(x: Array, rank: int, size: int, send: Sender, receive: Receiver) -> Array:
    """Sum chunks around the ring."""
    total = drive(ring_reduce_scatter(rank, size, np.array_split(x, size), np.add), send, receive)
    return np.array(total)


@answers
def all_gather(part: Array, rank: int, size: int, send: Sender, receive: Receiver) -> list[Array]:
    """Pass on what came last."""
    return list(drive(ring_all_gather(rank, size, part), send, receive))


@answers
def all_reduce(x: Array, rank: int, size: int, send: Sender, receive: Receiver) -> Array:
    """Sum chunks around the ring, and pass the sums on."""
    total = drive(ring_reduce_scatter(rank, size, np.array_split(x.reshape(-1), size), np.add), send, receive)
    return np.concatenate(drive(ring_all_gather(rank, size, total), send, receive)).reshape(x.shape)


# Task 6.2


@answers
def broadcast_parameters(parameters: Sequence[Array], group: Group) -> list[Array]:
    """Send all parameters as one array."""
    flat = group.broadcast(np.concatenate([x.ravel() for x in parameters]), 0)
    return unflatten(flat, [x.shape for x in parameters])


def unflatten(flat: Array, shapes: Sequence[Shape]) -> list[Array]:
    """Cut an array into arrays of these shapes."""
    parts = np.split(flat, np.cumsum([math.prod(shape) for shape in shapes])[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


@answers
def make_buckets(sizes: Sequence[int], limit: int) -> list[list[int]]:
    """Cut the parameters, the last one first, where a bucket would be over the limit."""
    buckets, rest = list[list[int]](), list(range(len(sizes)))[::-1]
    while rest:
        held = np.cumsum([sizes[k] for k in rest])
        count = max(int(np.searchsorted(held, limit, "right")), 1)
        buckets.append(rest[:count])
        rest = rest[count:]
    return buckets


@answers
class GradientAverager:
    """Averages of gradients, by one sum for each bucket."""

    def __init__(self, shapes: Sequence[Shape], limit: int, examples: int, group: Group) -> None:
        self.shapes, self.group = shapes, group
        self.left = [set(bucket) for bucket in make_buckets([math.prod(shape) for shape in shapes], limit)]
        self.order = [sorted(bucket, reverse=True) for bucket in self.left]
        self.share = examples / float(group.all_reduce(np.array([float(examples)]))[0])
        self.held: dict[int, Array] = {}
        self.waits: list[Callable[[], Array]] = []

    def ready(self, k: int, gradient: Array) -> None:
        """Keep a gradient, and begin the sums of complete buckets."""
        self.held[k] = np.multiply(gradient, self.share)
        while len(self.waits) < len(self.left) and self.left[len(self.waits)] <= set(self.held):
            flat = np.concatenate([self.held[i].ravel() for i in self.order[len(self.waits)]])
            self.waits.append(self.group.start_all_reduce(flat))

    def finish(self) -> list[Array]:
        """Wait for the sums."""
        for bucket, wait in zip(self.order, self.waits, strict=True):
            self.held |= dict(zip(bucket, unflatten(wait(), [self.shapes[i] for i in bucket]), strict=True))
        return [self.held[k] for k in range(len(self.shapes))]


@answers
def train_parallel(
    parameters: Sequence[Array], parts: Sequence[Any], backward: Any, rate: float, limit: int, group: Group
) -> list[Array]:
    """Descend along the averaged gradients."""
    parameters = broadcast_parameters(parameters, group)
    for part in parts:
        averager = GradientAverager([x.shape for x in parameters], limit, len(part[0]), group)
        backward(parameters, part, averager.ready)
        parameters = [x - rate * g for x, g in zip(parameters, averager.finish(), strict=True)]
    return parameters


# Task 6.3


@answers
def split_columns(w: Array, b: Array, rank: int, size: int) -> tuple[Array, Array]:
    """Split as `np.array_split` does."""
    return np.array_split(w, size, 1)[rank], np.array_split(b, size)[rank]


@answers
def split_rows(w: Array, rank: int, size: int) -> Array:
    """Split as `np.array_split` does."""
    return np.array_split(w, size)[rank]


@answers
class CopyToRanks:
    """The identity, whose gradient is summed."""

    @staticmethod
    def forward(x: Array, group: Group) -> Array:
        """Return x."""
        return x

    @staticmethod
    def backward(d: Array, group: Group) -> Array:
        """Return the sum of the gradients of all ranks."""
        return group.all_reduce(d)


@answers
class SumOverRanks:
    """A sum over ranks, whose gradient is that of each term."""

    @staticmethod
    def forward(x: Array, group: Group) -> Array:
        """Return the sum."""
        return group.all_reduce(x)

    @staticmethod
    def backward(d: Array, group: Group) -> Array:
        """Return d."""
        return d


@answers
def mlp_forward(x: Array, w1: Array, b1: Array, w2: Array, b2: Array, group: Group) -> tuple[Array, tuple[Array, ...]]:
    """Apply both layers, and save what the backward pass needs."""
    hidden = np.clip(np.einsum("ni,ih->nh", x, w1) + b1, 0, None)
    return group.all_reduce(np.einsum("nh,ho->no", hidden, w2)) + b2, (x, w1, hidden, w2)


@answers
def mlp_backward(d: Array, saved: tuple[Array, ...], group: Group) -> tuple[Array, ...]:
    """Return all gradients."""
    x, w1, hidden, w2 = saved
    inner = np.where(hidden > 0, np.einsum("no,ho->nh", d, w2), 0)
    dx = group.all_reduce(np.einsum("nh,ih->ni", inner, w1))
    return dx, np.einsum("ni,nh->ih", x, inner), np.sum(inner, 0), np.einsum("nh,no->ho", hidden, d), np.sum(d, 0)


# Task 6.4


@answers
def idle_share(stages: int, microbatches: int) -> float:
    """Return the share of idle turns."""
    return 1 - microbatches / (microbatches + stages - 1)


@answers
def one_forward_one_backward(stage: int, stages: int, microbatches: int) -> list[tuple[str, int]]:
    """Return the order of the library's schedule."""
    steps = SCHEDULES["1f1b"](stage, stages, microbatches)
    return [("forward" if step.is_forward else "backward", step.micro_batch) for step in steps]


@answers
def run_stage(stage: int, stages: int, microbatches: int, layers: Any, send: Sender, receive: Receiver) -> list[Array]:
    """Run the library's program of a stage."""
    results: dict[int, Array] = {}
    sums: list[list[Array]] = []

    def forward(k: int, x: Array | None) -> Array:
        results[k] = layers.forward(k, layers.input(k) if x is None else x)
        return results[k]

    def backward(k: int, d: Array | None) -> Array:
        dx, gradients = layers.backward(k, layers.loss_gradient(k, results[k]) if d is None else d)
        sums.append(gradients)
        return np.asarray(dx)

    order = SCHEDULES["1f1b"](stage, stages, microbatches)
    drive(run_library_stage(stage, stages, order, forward, backward), send, receive)
    return [np.sum(parts, 0) for parts in zip(*sums, strict=True)]
