"""Matrix products on a GPU in float32 without TF32, compared with cuBLAS through torch, and each kernel of the ladder."""

from collections.abc import Callable, Sequence
from math import nan
from typing import Any

import numpy as np

import minifuse as mf
from minifuse.backends.cuda.geometry import LaunchGeometry
from minifuse.backends.cuda.matmul.ladder import LADDER, RUNGS, Rung
from minifuse.simt import Pointer

from ..gpu import BACKEND, GpuBench, on_device
from ..row import US, Bench, Contest, Player, Row, Target, Work, formula, normal, speed

SQUARES = (512, 1024, 2048, 4000, 4095, 4096, 8192)
NUMBERS = {"f32": np.float32, "i64": int}  # kind in a kernel signature -> conversion of the argument
LADDER_SIZE, SLOW_SIZE = 2048, 1024  # side of the matrices; the naive kernel is measured at both


def product(
    name: str,
    a: tuple[int, ...],
    b: tuple[int, ...],
    work: Work = lambda a, b: a @ b,
    summed: int = -1,
    targets: Sequence[Target] = (speed("torch", 0.95),),
) -> Row:
    """Return a row that multiplies matrices of shapes a and b; `summed` is the dim of a that is summed over."""
    return formula(
        name,
        "gpu-matmul",
        normal(a, b),
        work,
        without=["cupy", "jax"],  # they call cuBLAS, as torch does
        flops=lambda y, x, _: 2 * y.size * x.shape[summed],
        targets=targets,
    )


def square(n: int) -> Row:
    """Return the row of a product of two square matrices."""
    return product(f"{n} x {n} x {n}", (n, n), (n, n), targets=[speed("torch", 0.95 if n % 64 else 1)])


def rung_row(rung: Rung, n: int) -> Row:
    """Return the row of a kernel of the ladder, launched directly."""

    def setup(bench: Bench) -> Contest:
        assert isinstance(bench, GpuBench)
        a, b = arrays = normal((n, n), (n, n))(bench)
        out = mf.full(a.shape, nan, backend=BACKEND)
        run = launch_of(rung, bench.device, out, a, b)

        def launch() -> Any:
            run()
            return out

        players: dict[str, Player] = {US: launch}
        if "torch" in bench.peers:
            x, y = bench.hand("torch", arrays, False)
            players["torch"] = lambda: x @ y
        return Contest(players, bench.exact(lambda a, b: a @ b, arrays), flops=2 * out.size * a.shape[1])

    return Row(f"{rung.name}, {n} x {n} x {n}", "gpu-ladder", setup)


def launch_of(rung: Rung, device: Any, out: Any, a: Any, b: Any) -> Callable[[], None]:
    """Return a compiled launch of a kernel of the ladder, for three dense matrices."""
    (rows, depth), columns = a.shape, b.shape[1]
    kernel = rung.kernel(rows, columns, depth)
    text = f"# {kernel.name} {kernel.constants}\n"
    loaded = device.load(text, lambda: kernel.function, kernel.signature, kernel.threads, kernel.blocks)
    across, down = rung.grid(rows, columns)
    block_x, block_y = (*rung.block, 1)[:2]
    run = device.prepare(loaded, LaunchGeometry((across, down, 1), (block_x, block_y, 1)), kernel.shared)
    addresses = [Pointer(x.address, 0, x.size, np.float32) if device.is_simulated else x.address for x in (out, a, b)]
    values = zip(rung.arguments(*addresses, rows, columns, depth), kernel.signature, strict=True)
    arguments = [NUMBERS.get(kind, lambda x: x)(x) for x, kind in values]
    return lambda: run(*arguments)


PRODUCTS = [
    *[square(n) for n in SQUARES],
    *[product(f"a.T @ b, {n} x {n} x {n}", (n, n), (n, n), lambda a, b: a.T @ b, 0) for n in (2048, 4096)],
    *[product(f"a @ b.T, {n} x {n} x {n}", (n, n), (n, n), lambda a, b: a @ b.T) for n in (2048, 4096)],
    product("a.T @ b.T, 4096 x 4096 x 4096", (4096, 4096), (4096, 4096), lambda a, b: a.T @ b.T, 0),
    product("64 products, 256 x 256 x 256", (64, 256, 256), (64, 256, 256)),
    product("(65536, 64) @ (64, 64)", (65536, 64), (64, 64)),
    product("(64, 65536) @ (65536, 64)", (64, 65536), (65536, 64)),
    product("(8, 4096) @ (4096, 4096)", (8, 4096), (4096, 4096)),
    product("(4096, 4096) @ (4096,)", (4096, 4096), (4096,)),
]
RUNG_ROWS = [rung_row(LADDER["naive"], SLOW_SIZE), *[rung_row(rung, LADDER_SIZE) for rung in RUNGS]]
ROWS = [on_device(row) for row in (*PRODUCTS, *RUNG_ROWS)]
