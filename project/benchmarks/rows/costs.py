"""How cost grows: with the length of what is captured, with the rank of tensors, and memory with their size.

Beside a function of so many operators stands the same work as ten functions of a tenth: where cost is linear, they take as
long. How time grows with size is what the sweeps say.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import minifuse as mf

from ..fused import EAGER
from ..memory_of_process import EXPONENTS
from ..row import US, Bench, Contest, Row, speed
from . import compiling
from .start import python

LENGTH, RANK, MEMORY = "costs-length", "costs-rank", "costs-memory"
LENGTHS = (10, 100, 1000)
TENTH = "ten of a tenth"
NEAR_LINEAR = 0.5  # ten functions of a tenth take at least so many times as long as one
RANKS = range(1, 9)
POINTS = 1 << 18  # elements at all ranks of the larger tensors


def chain_of(n: int) -> Callable[..., Any]:
    """A function of n operators, each of which needs the one before."""

    def chain(a: Any, b: Any) -> Any:
        y = a
        for _ in range(n // 2):
            y = y * a + b
        return y

    return chain


def parameters_of(n: int) -> Callable[..., Any]:
    """A function of n operators that need nothing of each other, as the updates of a network's parameters."""

    def updates(a: Any, b: Any) -> Any:
        return tuple(a * float(k) + b for k in range(n // 2))

    return updates


def steps_of(n: int) -> Callable[..., Any]:
    """The gradient of a chain: capture differentiates, and schedules both passes."""
    chain = chain_of(n // 3)

    def step(a: Any, b: Any) -> Any:
        return mf.grad(lambda a: chain(a, b).sum())(a)

    return step


KINDS = {"a chain": chain_of, "operators side by side": parameters_of, "a chain and its gradient": steps_of}


def captured(kind: str, n: int) -> Callable[[Bench], Contest]:
    """Capture and schedule a new function: all that a first call does but compiling, and running."""

    def setup(bench: Bench) -> Contest:
        make, inputs = KINDS[kind], [mf.ones(8), mf.ones(8)]
        length = min(n, 100) if bench.is_quick else n
        kernels = len(mf.fuse(make(length)).plan(*inputs).steps)
        players = {US: lambda: mf.fuse(make(length)).plan(*inputs)}
        if n > LENGTHS[0]:
            players[TENTH] = lambda: [mf.fuse(make(length // 10)).plan(*inputs) for _ in range(10)]
        return Contest(players, counts={"kernels": kernels})

    return setup


def ranked(shape: Sequence[int], is_turned: bool) -> Callable[[Bench], Contest]:
    """An addition of tensors of so many dims; turned, one of them has its dims in the other order."""

    def setup(bench: Bench) -> Contest:
        sizes = shape[::-1] if is_turned else shape
        a, b = bench.normal(0, shape, "float32"), bench.normal(1, sizes, "float32")
        turn = tuple(range(len(shape)))[::-1] if is_turned else tuple(range(len(shape)))

        def player(who: str) -> Callable[[], Any]:
            x, y = bench.hand(who, [a, b], gradients=False)
            y = y.transpose(turn) if isinstance(y, np.ndarray) else y.permute(*turn)
            return lambda: x + y

        there = [who for who in ("torch", "numpy") if who in bench.peers]
        return Contest({who: player(who) for who in (US, *there)}, bench.exact(lambda a, b: a + b.transpose(turn), [a, b]))

    return setup


def dims_of(rank: int) -> tuple[int, ...]:
    """A shape of POINTS elements: powers of two, as equal as can be."""
    bits = POINTS.bit_length() - 1
    return tuple(1 << (bits // rank + (k < bits % rank)) for k in range(rank))


def memory(exponent: int) -> Callable[[Bench], Contest]:
    """The chain of 8 and its gradient: seconds and memory of a call, fused and not, each in a process of its own."""

    def setup(bench: Bench) -> Contest:
        for how in ("fused", "eager"):
            if how not in bench.pool:
                bench.pool[how] = json.loads(python("-m", "project.benchmarks.memory_of_process", how))
        told = {how: bench.pool[how][str(exponent)] for how in ("fused", "eager")}
        counts = {"KiB": told["fused"][1], "KiB unfused": told["eager"][1], "KiB of an array": 4 << exponent >> 10}
        clocks: dict[str, Callable[[], float]] = {US: lambda: told["fused"][0], EAGER: lambda: told["eager"][0]}
        return Contest(clocks, is_clocked=True, counts=counts)

    return setup


LENGTH_ROWS = [
    Row(
        f"{kind}, {n} operators",
        LENGTH,
        captured(kind, n),
        (speed(TENTH, NEAR_LINEAR),) if n > LENGTHS[0] else (),
        curve=f"capture and schedule: {kind}",
        size=n,
    )
    for kind in KINDS
    for n in LENGTHS
]
RANK_ROWS = [
    Row(f"{title}, {rank} dims", RANK, ranked(shape(rank), is_turned), curve=title, size=rank)
    for title, shape, is_turned in (
        ("a + b of (2, 2, ...): the host", lambda rank: (2,) * rank, False),
        ("a + b turned round, 2^18 elements", dims_of, True),
    )
    for rank in RANKS
]
MEMORY_ROWS = [
    Row(f"{curve}, 2^{k}", MEMORY, memory(k), curve=curve, size=1 << k)
    for curve in ("chain of 8 and its gradient",)
    for k in EXPONENTS
]
ROWS = [*LENGTH_ROWS, *RANK_ROWS, *MEMORY_ROWS, *compiling.ROWS]
GPU_ROWS = compiling.GPU_ROWS
