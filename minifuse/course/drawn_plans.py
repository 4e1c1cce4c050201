"""Graphs of the kinds of `plans`, drawn by a seed: other sizes, more layers, and two of them written in turns.

The bound is the cost of the oracle's schedule. A test searches all schedules of small graphs, and finds none that costs
less.
"""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from . import oracle
from .kernel_groups import count_bytes
from .plans import Plan, softmax

Pieces = Iterator[Any]
"""Yields after each statement, so that two functions can be written in turns; the last value is the output."""


def chain(random: Random, x: Any) -> Pieces:
    """Compute a chain of operations; a value on the way may be an output too."""
    y, kept, is_kept = x, None, random.random() < 0.5
    for _ in range(random.choice((4, 9, 14, 21))):
        y = random.choice((lambda y: y * 0.5, lambda y: -y, lambda y: y.exp(), lambda y: y + x, lambda y: y.maximum(x)))(y)
        kept = y if kept is None else kept
        yield (y, kept) if is_kept else y


def softmaxes(random: Random, x: Any) -> Pieces:
    """Compute the softmax of a softmax, a few times."""
    for _ in range(random.randint(1, 2)):
        x = softmax(x * random.uniform(0.1, 2.0))
        yield x


def diamonds(random: Random, x: Any, w: Any) -> Pieces:
    """Compute e + e @ w, a few times."""
    for _ in range(random.randint(1, 3)):
        e = x.exp() * 0.5
        yield e
        x = e + e @ w
        yield x


def late_value(random: Random, x: Any, w: Any) -> Pieces:
    """Compute e @ w + y, where e is at the end of a chain, and y is needed after the product only."""
    e, y = x.exp(), x * 0.5
    yield e
    for _ in range(random.choice((0, 1, 3, 10, 13))):
        e = e * random.uniform(0.1, 2.0)
        yield e
    yield e @ w + y


def layers(random: Random, x: Any, w: Any, b: Any) -> Pieces:
    """Compute a network of some layers."""
    for _ in range(random.randint(1, 6)):
        x = x @ w
        yield x
        x = (x + b).maximum(0.0)
        yield x


def gates(random: Random, x: Any, w: Any, v: Any) -> Pieces:
    """Multiply a product by the sigmoids of others."""
    y = x @ w
    yield y
    for _ in range(random.randint(1, 2)):
        y = y * (1.0 / ((-(x @ v)).exp() + 1.0))
        yield y
        v = w


def heads(random: Random, q: Any, k: Any, v: Any) -> Pieces:
    """Compute softmax(q @ k) @ v."""
    scores = q @ k
    yield scores
    scores = softmax(scores * 0.25)
    yield scores
    scores = scores @ v
    yield scores
    if random.random() < 0.5:
        yield scores + q


def blocks(random: Random, x: Any, w: Any) -> Pieces:
    """Normalize each row, multiply by w, and add x, once or twice."""
    for _ in range(random.randint(1, 2)):
        centred = x - x.sum() * 0.125
        yield centred
        x = centred / ((centred * centred).sum() * 0.125 + 0.1) @ w + x
        yield x


KINDS: dict[str, tuple[Callable[..., Pieces], str]] = {
    "a chain": (chain, "x"),
    "softmax": (softmaxes, "x"),
    "diamonds": (diamonds, "xw"),
    "a late value": (late_value, "xw"),
    "layers": (layers, "xwb"),
    "gates": (gates, "xww"),
    "attention": (heads, "xww"),
    "normalized rows": (blocks, "xw"),
}
"""Functions, and their arguments: x of shape (m, n), w of shape (n, n), b of shape (1, n)."""


SHORT = ("a chain", "softmax", "diamonds", "a late value", "attention")
"""Kinds of which two make a graph whose best schedule is soon found."""


def draw_plan(seed: int, count: int) -> Plan:
    """Draw a plan of one kind, or of two kinds of different sizes whose statements alternate."""
    random = Random(seed)
    names = [random.choice((*KINDS, "a late value") if count == 1 else SHORT) for _ in range(count)]
    sizes = random.sample(range(3, 12), 2 * count)
    shapes = [
        [{"x": (m, n), "w": (n, n), "b": (1, n)}[kind] for kind in KINDS[name][1]]
        for name, m, n in zip(names, sizes[::2], sizes[1::2], strict=True)
    ]
    inner = random.random()

    def function(*xs: Any) -> Any:
        given, again, running = list(xs), Random(inner), list[Pieces]()
        for name, own in zip(names, shapes, strict=True):
            running.append(KINDS[name][0](again, *[given.pop(0) for _ in own]))
        found = [None] * count
        left = list(range(count))
        while left:
            for k in list(left):
                try:
                    found[k] = next(running[k])
                except StopIteration:
                    left.remove(k)
        return tuple(y for one in found for y in (one if isinstance(one, tuple) else (one,)))

    plan = Plan(
        " and ".join(names), f"drawn with seed {seed}", function, tuple(shape for own in shapes for shape in own), 0, 0
    )
    graph = plan.graph()
    kernels = oracle.function("schedule")(graph)
    return plan._replace(launches=len(kernels), nbytes=count_bytes(graph, [kernel.nodes for kernel in kernels]))
