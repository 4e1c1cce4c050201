"""A perceptron that learns handwritten digits: the same weights, batches and optimizer for all players.

minifuse and torch run eagerly, operation by operation, with autodiff. The derivatives of all other players are written by
hand: NumPy, Numba with an index per element, and plain Python, which trains on one batch instead of an epoch.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

import minifuse as mf

from ..by_hand import Arrays, Engine, Loops, Network
from ..row import US, Array, Bench, Contest, Row, speed

GROUP = "training"
SIZES = (64, 128, 10)  # pixels, hidden units, classes
BATCH = 64  # examples
RATE, MOMENTUM = 0.05, 0.9
TOLERANCE = 1e-4  # of weights after some thirty steps, each from the rounded weights of the previous step


def batches(bench: Bench, max_count: int | None) -> list[tuple[Array, Array]]:
    """Return shuffled batches of BATCH digits: the first `max_count`, or all if None."""
    x, y = [part.numpy() for part in mf.data.digits()]
    order = bench.rng.permutation(len(x))[: len(x) // BATCH * BATCH].reshape(-1, BATCH)
    return [(x[rows], y[rows]) for rows in order[: 2 if bench.is_quick and max_count is None else max_count]]


def weights(bench: Bench) -> list[Array]:
    """Return weights (outputs, inputs) and biases (outputs,) of two layers, initialized as in PyTorch."""
    shapes = [((outputs, inputs), (outputs,), inputs) for inputs, outputs in pairwise(SIZES)]
    return [
        bench.rng.uniform(-1, 1, shape).astype(np.float32) / np.float32(inputs**0.5)
        for weight, bias, inputs in shapes
        for shape in (weight, bias)
    ]


def learn(model: Any, optimizer: Any, loss: Callable[..., Any], data: Sequence[tuple[Any, Any]]) -> Any:
    """Do one pass over the batches, and return the weights of the first layer."""
    for x, y in data:
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()
    return model[0].weight


def with_minifuse(values: Sequence[Array], data: Sequence[tuple[Array, Array]]) -> Callable[[], Any]:
    """Return a function that does one pass in minifuse."""
    model = mf.nn.Sequential(mf.nn.Linear(*SIZES[:2]), mf.nn.ReLU(), mf.nn.Linear(*SIZES[1:]))
    with mf.no_grad():
        for parameter, value in zip(model.parameters(), values, strict=True):
            parameter.copy_(mf.from_numpy(value.copy()))
    optimizer = mf.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    return partial(learn, model, optimizer, mf.nn.cross_entropy, [(mf.from_numpy(x), mf.from_numpy(y)) for x, y in data])


def with_torch(values: Sequence[Array], data: Sequence[tuple[Array, Array]], torch: Any) -> Callable[[], Any]:
    """Return a function that does one pass in torch."""
    nn = torch.nn
    model = nn.Sequential(nn.Linear(*SIZES[:2]), nn.ReLU(), nn.Linear(*SIZES[1:]))
    with torch.no_grad():
        for parameter, value in zip(model.parameters(), values, strict=True):
            parameter.copy_(torch.from_numpy(value.copy()))
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    tensors = [(torch.from_numpy(x), torch.from_numpy(y)) for x, y in data]
    return partial(learn, model, optimizer, nn.functional.cross_entropy, tensors)


def by_hand(
    engine: Engine, values: Sequence[Array], data: Sequence[tuple[Array, Array]], dtype: Any = np.float32
) -> Callable[[], Array]:
    """Return a function that does one pass on an engine, with derivatives written by hand."""
    network = Network(engine, [value.astype(dtype) for value in values], RATE, MOMENTUM)
    one_hot = np.eye(SIZES[-1], dtype=dtype)
    prepared = [network.batch(x.astype(dtype), one_hot[y]) for x, y in data]

    def epoch() -> Array:
        network.epoch(prepared)
        return engine.array(network.weights[0])

    return epoch


def training(peers: Sequence[str], max_count: int | None = None) -> Callable[[Bench], Contest]:
    """Return the setup that trains on the first `max_count` batches, or all if None, in minifuse and some peers."""

    def setup(bench: Bench) -> Contest:
        data, values = batches(bench, max_count), weights(bench)
        makers: dict[str, Callable[[], Callable[[], Any]]] = {
            "torch": lambda: with_torch(values, data, bench.peers["torch"]),
            "numpy": lambda: by_hand(Arrays(), values, data),
            "indexed": lambda: by_hand(bench.peers["indexed"].Indexed(), values, data),
            "loops": lambda: by_hand(Loops(), values, data),
        }
        players = {US: with_minifuse(values, data)}
        players |= {who: make() for who, make in makers.items() if who in peers and who in bench.peers}
        exact = by_hand(Arrays(), values, data, np.float64)()
        return Contest(players, exact, tolerance=TOLERANCE, rests=True)

    return setup


ROWS = [
    Row(
        "an epoch of 28 batches of 64 digits",
        GROUP,
        training(["torch", "numpy", "indexed"]),
        (speed("torch", 1), speed("indexed", 50)),
    ),
    Row("one batch of 64 digits", GROUP, training(["torch", "loops"], max_count=1)),
]
