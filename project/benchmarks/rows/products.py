"""Matrix products of square and skinny matrices, vectors, batches, and transposed operands."""

from collections.abc import Mapping, Sequence
from importlib import import_module

from ..by_hand import Engine
from ..peers import OWN
from ..row import Array, Row, Target, Work, formula, normal, speed

GROUP = "matmul"
MAX_INDEXED_SIZE = 512  # largest side of matrices that the index loop multiplies too


def product(
    name: str,
    a: tuple[int, ...],
    b: tuple[int, ...],
    work: Work = lambda a, b: a @ b,
    *,
    summed: int = -1,
    dtype: str = "float32",
    targets: Sequence[Target] = (),
    others: Mapping[str, Work] | None = None,
) -> Row:
    """Return a row that multiplies matrices of shapes a and b; `summed` is the dim of a that is summed over."""
    return formula(
        name,
        GROUP,
        normal(a, b, dtype=dtype),
        work,
        flops=lambda y, x, _: 2 * y.size * x.shape[summed],
        rests=True,
        targets=targets,
        others=others,
    )


def square(n: int, dtype: str = "float32", targets: Sequence[Target] = ()) -> Row:
    """Return a row of square matrices. An index loop, a thousand times slower, also multiplies the small matrices."""
    others = {"indexed": by_index} if n <= MAX_INDEXED_SIZE else {}
    return product(f"{n} x {n} x {n}, {dtype}", (n, n), (n, n), dtype=dtype, targets=targets, others=others)


def by_index(a: Array, b: Array) -> Array:
    """Return the product by the engine that computes one output index at a time, as in courses."""
    engine: Engine = import_module(OWN["indexed"]).Indexed()
    return engine.array(engine.matmul(engine.matrix(a), engine.matrix(b)))


ROWS = [
    square(256),
    square(512),
    square(1024, targets=[speed("numpy", 1)]),
    square(2048),
    square(1024, "float64"),
    product("(4096, 64) @ (64, 64)", (4096, 64), (64, 64)),
    product("(64, 4096) @ (4096, 64)", (64, 4096), (4096, 64)),
    product("(4096, 1024) @ (1024,)", (4096, 1024), (1024,)),
    product("(64, 32, 32) @ (64, 32, 32)", (64, 32, 32), (64, 32, 32)),
    product("a.T @ b, 1024 x 1024 x 1024", (1024, 1024), (1024, 1024), lambda a, b: a.T @ b, summed=0),
    product("a @ b.T, 1024 x 1024 x 1024", (1024, 1024), (1024, 1024), lambda a, b: a @ b.T),
]
