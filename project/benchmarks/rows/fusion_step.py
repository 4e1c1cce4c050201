"""A training step as one fused call: the loss, its gradients and the update of all parameters, compared with torch.

The network is a perceptron for images of digits, 784-128-10, with relu and cross-entropy. It learns one batch of 64 by
gradient descent. Each step starts from the weights of the previous step; the first steps are checked. On a GPU, several
steps are synchronized together, as in training.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import minifuse as mf

from ..fused import EAGER, torch_compiled
from ..gpu import GpuBench
from ..row import US, Bench, Contest, Player, Row, speed

PIXELS, HIDDEN, CLASSES, BATCH = 784, 128, 10, 64
SHAPES = ((PIXELS, HIDDEN), (HIDDEN,), (HIDDEN, CLASSES), (CLASSES,))
RATE = 0.05
TOLERANCE = 1e-4  # of weights; each step starts from the rounded weights of the previous step
STEPS_ON_GPU = 10

Step = Callable[[], Any]


def forward(parameters: Sequence[Any], x: Any) -> Any:
    """Return the logits of a batch."""
    w1, b1, w2, b2 = parameters
    return (x @ w1 + b1).relu() @ w2 + b2


def training_step(parameters: Sequence[Any], optimizer: Any, loss: Callable[..., Any]) -> Callable[[Any, Any], None]:
    """Return a training step, written with methods that minifuse and torch share."""

    def step(x: Any, y: Any) -> None:
        optimizer.zero_grad()
        loss(forward(parameters, x), y).backward()
        optimizer.step()

    return step


def in_one_graph(torch: Any) -> Callable[..., None]:
    """Return a training step that torch.compile captures as one graph; it splits the usual code into three graphs."""

    def loss(parameters: Sequence[Any], x: Any, y: Any) -> Any:
        return torch.nn.functional.cross_entropy(forward(parameters, x), y)

    def step(parameters: Sequence[Any], x: Any, y: Any) -> None:
        gradients = torch.func.grad(loss)(parameters, x, y)
        for p, g in zip(parameters, gradients, strict=True):
            p.sub_(RATE * g)

    return step


def exact(count: int) -> Callable[..., Any]:
    """Return the weights of the first layer after some steps, with derivatives by hand."""

    def steps(x: Any, one_hot: Any, *parameters: Any) -> Any:
        w1, b1, w2, b2 = scaled(parameters)
        for _ in range(count):
            z = x @ w1 + b1
            h = np.maximum(z, 0)
            y = h @ w2 + b2
            p = np.exp(y - y.max(1, keepdims=True))
            g = (p / p.sum(1, keepdims=True) - one_hot) / len(x)
            gz = (g @ w2.T) * (z > 0)
            w1, b1, w2, b2 = (
                w - RATE * dw for w, dw in zip((w1, b1, w2, b2), (x.T @ gz, gz.sum(0), h.T @ g, g.sum(0)), strict=True)
            )
        return w1

    return steps


def scaled(parameters: Sequence[Any]) -> list[Any]:
    """Return parameters divided by the square root of the number of inputs of their layer."""
    return [p * n**-0.5 for p, n in zip(parameters, (PIXELS, PIXELS, HIDDEN, HIDDEN), strict=True)]


def setup(bench: Bench) -> Contest:
    """Return the contest of one step, or of several on a GPU; all players start from the same weights."""
    x, *numbers = [bench.normal(k, shape, "float32") for k, shape in enumerate([(BATCH, PIXELS), *SHAPES])]
    # A quick run limits all dims, and so the number of classes.
    labels = bench.rng.integers(0, numbers[-1].shape[0], x.shape[0])
    y, one_hot = bench.held(labels), bench.held(np.eye(numbers[-1].shape[0], dtype=np.float32)[labels])
    is_on_gpu = isinstance(bench, GpuBench)
    count = STEPS_ON_GPU if is_on_gpu and not bench.is_quick else 1

    def player(who: str) -> Player:
        data = bench.hand(who, [x, y, *numbers], gradients=False)
        step, weights = step_of(who, bench, data[:2], scaled(data[2:]))

        def play() -> Any:
            for _ in range(count):
                step()
            bench.settle()
            return weights

        return play

    peers = [who for who in ("torch", "torch.compile") if who in bench.peers]
    graphs = ["torch.compile, graphs"] if is_on_gpu and "torch.compile" in peers else []
    players = {who: player(who) for who in (US, EAGER, *peers, *graphs)}
    return Contest(players, bench.exact(exact(count), [x, one_hot, *numbers]), tolerance=TOLERANCE)


def step_of(who: str, bench: Bench, data: Sequence[Any], parameters: list[Any]) -> tuple[Step, Any]:
    """Return a function that does a step, and the weights of the first layer, which it changes."""
    if who.startswith("torch.compile"):
        torch: Any = bench.peers["torch.compile"]
        mode = "reduce-overhead" if who.endswith("graphs") else None
        work = torch_compiled(in_one_graph(torch), bench, mode)
        for p in parameters if mode else ():
            torch._dynamo.mark_static_address(p)  # a graph may write to it
        return lambda: work(parameters, *data), parameters[0]
    library: Any = bench.peers["torch"] if who == "torch" else mf
    for p in parameters:
        p.requires_grad_()
    loss = library.nn.functional.cross_entropy if who == "torch" else mf.nn.cross_entropy
    step = training_step(parameters, library.optim.SGD(parameters, lr=RATE), loss)
    work = mf.fuse(step) if who == US else step
    return lambda: work(*data), parameters[0]


NAME = f"perceptron {PIXELS}-{HIDDEN}-{CLASSES}, batch of {BATCH}"
TARGETS = (speed("torch.compile", 1), speed("torch", 1), speed(EAGER, 1))
ROWS = [Row(f"{NAME}: one step", "fusion-training", setup, TARGETS)]
GPU_ROWS = [Row(f"{NAME}: {STEPS_ON_GPU} steps", "gpu-fusion-training", setup, TARGETS)]
