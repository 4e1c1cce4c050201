"""How cost grows: time with the length of a captured function and with the rank of tensors, memory with their size.

A function of n operators is compared with ten functions of n / 10: if cost is linear, both take equally long. `sweeps`
measures how time grows with size.
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
from .start import run_python

LENGTH, RANK, MEMORY = "costs-length", "costs-rank", "costs-memory"
LENGTHS = (10, 100, 1000)  # operators
TENTH = "ten of a tenth"
NEAR_LINEAR = 0.5  # at least: the time of ten functions of a tenth of the length, divided by the time of one function
RANKS = range(1, 9)
POINTS = 1 << 18  # elements of the larger tensors, at each rank


def chain_of(n: int) -> Callable[..., Any]:
    """Return a function of n operators, each of which depends on the previous operator."""

    def chain(a: Any, b: Any) -> Any:
        y = a
        for _ in range(n // 2):
            y = y * a + b
        return y

    return chain


def updates_of(n: int) -> Callable[..., Any]:
    """Return a function of n independent operators, like the updates of a network's parameters."""

    def updates(a: Any, b: Any) -> Any:
        return tuple(a * float(k) + b for k in range(n // 2))

    return updates


def gradient_of(n: int) -> Callable[..., Any]:
    """Return the gradient of a chain, a function of about n operators in its forward and backward passes."""
    chain = chain_of(n // 3)

    def gradient(a: Any, b: Any) -> Any:
        return mf.grad(lambda a: chain(a, b).sum())(a)

    return gradient


KINDS = {"a chain": chain_of, "operators side by side": updates_of, "a chain and its gradient": gradient_of}


def capture_setup(kind: str, n: int) -> Callable[[Bench], Contest]:
    """Return the setup that captures and schedules a new function, without compiling or running it."""

    def setup(bench: Bench) -> Contest:
        make, inputs = KINDS[kind], [mf.ones(8), mf.ones(8)]
        length = min(n, 100) if bench.is_quick else n
        kernels = len(mf.fuse(make(length)).plan(*inputs).steps)
        players = {US: lambda: mf.fuse(make(length)).plan(*inputs)}
        if n > LENGTHS[0]:
            players[TENTH] = lambda: [mf.fuse(make(length // 10)).plan(*inputs) for _ in range(10)]
        return Contest(players, counts={"kernels": kernels})

    return setup


def addition_setup(shape: Sequence[int], is_transposed: bool) -> Callable[[Bench], Contest]:
    """Return the setup that adds two tensors of this shape. If `is_turned`, one of them is the transpose of a tensor."""

    def setup(bench: Bench) -> Contest:
        sizes = shape[::-1] if is_transposed else shape
        a, b = bench.normal(0, shape, "float32"), bench.normal(1, sizes, "float32")
        order = tuple(range(len(shape)))[::-1] if is_transposed else tuple(range(len(shape)))

        def player(who: str) -> Callable[[], Any]:
            x, y = bench.hand(who, [a, b], gradients=False)
            y = y.transpose(order) if isinstance(y, np.ndarray) else y.permute(*order)
            return lambda: x + y

        peers = [who for who in ("torch", "numpy") if who in bench.peers]
        return Contest({who: player(who) for who in (US, *peers)}, bench.exact(lambda a, b: a + b.transpose(order), [a, b]))

    return setup


def dims_of(rank: int) -> tuple[int, ...]:
    """Return a shape with POINTS elements, whose sizes are powers of two and as equal as possible."""
    bits = POINTS.bit_length() - 1
    return tuple(1 << (bits // rank + (k < bits % rank)) for k in range(rank))


def memory_setup(exponent: int) -> Callable[[Bench], Contest]:
    """Return the setup of time and memory of the chain of 8 and its gradient, fused and eager, in two processes."""

    def setup(bench: Bench) -> Contest:
        for mode in ("fused", "eager"):
            if mode not in bench.pool:
                bench.pool[mode] = json.loads(run_python("-m", "project.benchmarks.memory_of_process", mode))
        measured = {mode: bench.pool[mode][str(exponent)] for mode in ("fused", "eager")}
        counts = {"KiB": measured["fused"][1], "KiB unfused": measured["eager"][1], "KiB of an array": 4 << exponent >> 10}
        clocks: dict[str, Callable[[], float]] = {US: lambda: measured["fused"][0], EAGER: lambda: measured["eager"][0]}
        return Contest(clocks, is_clocked=True, counts=counts)

    return setup


LENGTH_ROWS = [
    Row(
        f"{kind}, {n} operators",
        LENGTH,
        capture_setup(kind, n),
        (speed(TENTH, NEAR_LINEAR),) if n > LENGTHS[0] else (),
        curve=f"capture and schedule: {kind}",
        size=n,
    )
    for kind in KINDS
    for n in LENGTHS
]
RANK_ROWS = [
    Row(f"{title}, {rank} dims", RANK, addition_setup(shape(rank), is_transposed), curve=title, size=rank)
    for title, shape, is_transposed in (
        ("a + b of (2, 2, ...): the host", lambda rank: (2,) * rank, False),
        ("a + b turned round, 2^18 elements", dims_of, True),
    )
    for rank in RANKS
]
MEMORY_ROWS = [
    Row(f"{curve}, 2^{k}", MEMORY, memory_setup(k), curve=curve, size=1 << k)
    for curve in ("chain of 8 and its gradient",)
    for k in EXPONENTS
]
ROWS = [*LENGTH_ROWS, *RANK_ROWS, *MEMORY_ROWS, *compiling.ROWS]
GPU_ROWS = compiling.GPU_ROWS
