"""Matrix products of float32 on tensor cores: "high" (tf32) and "medium" (bf16), compared with torch in the same precision.

Each player sets the precision for its own call and restores it. For "medium", torch on a GPU uses tf32 as well.
"""

from collections.abc import Callable, Sequence
from typing import Any

import minifuse as mf

from ..gpu import on_device
from ..row import US, Bench, Contest, Row, Target, Work, normal, speed

SQUARES = (1024, 2048, 4096, 4095, 8192)
TOLERANCES = {"high": 2e-3, "medium": 1.6e-2}  # four times the unit roundoff of tf32 and of bf16
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
        players = {US: with_precision(work, precision, arrays)}
        if "torch" in bench.peers:
            players["torch"] = torch_with_precision(
                bench.module("torch"), work, precision, bench.hand("torch", arrays, False)
            )
        exact = bench.exact(work, arrays)
        return Contest(players, exact, tolerance=TOLERANCES[precision], flops=2 * exact.size * arrays[0].shape[summed])

    return Row(f"{name}, {TYPES[precision]}", "gpu-tensor-cores", setup, tuple(targets))


def with_precision(work: Work, precision: str, arrays: Sequence[Any]) -> Callable[[], Any]:
    """Return a function that computes in this precision in minifuse."""

    def call() -> Any:
        with mf.use_float32_matmul_precision(precision):
            return work(*arrays)

    return call


def torch_with_precision(torch: Any, work: Work, precision: str, arrays: Sequence[Any]) -> Callable[[], Any]:
    """Return a function that computes in this precision in torch, and then restores "highest" for other rows."""

    def call() -> Any:
        torch.set_float32_matmul_precision(precision)
        try:
            return work(*arrays)
        finally:
            torch.set_float32_matmul_precision("highest")

    return call


def precision_rows(precision: str) -> list[Row]:
    """Return all rows of one precision."""
    targets = [speed("torch", 0.9)]
    n, big = 4096, (4096, 4096)
    return [
        *[product(f"{n} x {n} x {n}", precision, (n, n), (n, n), targets=targets * (n == 4096)) for n in SQUARES],
        product(f"a @ b.T, {n} x {n} x {n}", precision, big, big, lambda a, b: a @ b.T, targets=targets),
        product(f"a.T @ b, {n} x {n} x {n}", precision, big, big, lambda a, b: a.T @ b, 0, targets),
        product(f"a.T @ b.T, {n} x {n} x {n}", precision, big, big, lambda a, b: a.T @ b.T, 0, targets),
        product("64 products, 256 x 256 x 256", precision, (64, 256, 256), (64, 256, 256)),
        product("(64, 65536) @ (65536, 64)", precision, (64, 65536), (65536, 64)),
    ]


ROWS = [on_device(row) for precision in TYPES for row in precision_rows(precision)]
