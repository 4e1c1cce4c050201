"""Matrix products of float32 on tensor cores: "high" (tf32) and "medium" (bf16), beside torch in the same precision.

Each player sets the precision for its own call and restores it. In "medium", torch uses tf32 on a GPU, too.
"""

from collections.abc import Callable, Sequence
from typing import Any

import minifuse as mf

from ..gpu import on_device
from ..row import US, Bench, Contest, Row, Target, Work, normal, speed

SQUARES = (1024, 2048, 4096, 4095, 8192)
TOLERANCES = {"high": 2e-3, "medium": 1.6e-2}  # four half units of tf32 and of bf16
TYPES = {"high": "tf32", "medium": "bf16"}


def product(
    name: str,
    precision: str,
    a: tuple[int, ...],
    b: tuple[int, ...],
    work: Work = lambda a, b: a @ b,
    summed: int = -1,
    targets: Sequence[Target] = (),
) -> Row:
    """Return the row of a product of shapes a and b in a precision; `summed` is the dim of a that is summed over."""

    def setup(bench: Bench) -> Contest:
        arrays = normal(a, b)(bench)
        players = {US: ours(work, precision, arrays)}
        if "torch" in bench.peers:
            players["torch"] = torchs(bench.module("torch"), work, precision, bench.hand("torch", arrays, False))
        exact = bench.exact(work, arrays)
        return Contest(players, exact, tolerance=TOLERANCES[precision], flops=2 * exact.size * arrays[0].shape[summed])

    return Row(f"{name}, {TYPES[precision]}", "gpu-tensor-cores", setup, tuple(targets))


def ours(work: Work, precision: str, arrays: Sequence[Any]) -> Callable[[], Any]:
    """Return a call in this precision."""

    def call() -> Any:
        with mf.use_float32_matmul_precision(precision):
            return work(*arrays)

    return call


def torchs(torch: Any, work: Work, precision: str, arrays: Sequence[Any]) -> Callable[[], Any]:
    """Return a call in this precision, which restores the highest one for other rows."""

    def call() -> Any:
        torch.set_float32_matmul_precision(precision)
        try:
            return work(*arrays)
        finally:
            torch.set_float32_matmul_precision("highest")

    return call


def rows_in(precision: str) -> list[Row]:
    """Return all rows of one precision."""
    goal = [speed("torch", 0.9)]
    n, big = 4096, (4096, 4096)
    return [
        *[product(f"{n} x {n} x {n}", precision, (n, n), (n, n), targets=goal * (n == 4096)) for n in SQUARES],
        product(f"a @ b.T, {n} x {n} x {n}", precision, big, big, lambda a, b: a @ b.T, targets=goal),
        product(f"a.T @ b, {n} x {n} x {n}", precision, big, big, lambda a, b: a.T @ b, 0, goal),
        product(f"a.T @ b.T, {n} x {n} x {n}", precision, big, big, lambda a, b: a.T @ b.T, 0, goal),
        product("64 products, 256 x 256 x 256", precision, (64, 256, 256), (64, 256, 256)),
        product("(64, 65536) @ (65536, 64)", precision, (64, 65536), (65536, 64)),
    ]


ROWS = [on_device(row) for precision in TYPES for row in rows_in(precision)]
