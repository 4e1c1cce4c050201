"""Operations at all sizes: the fixed cost of a call, and the benefit of threads, caches and GPUs.

A row is one operation at one size, a curve all rows of an operation. Slow players are left out where a call would take
seconds. No player writes to its inputs, so all read the same arrays. On a GPU each call is synchronized; NumPy and
minifuse's CPU backend compute with copies of the inputs on the host.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import minifuse as mf

from ..fused import EAGER, fusing_players
from ..gpu import GpuBench
from ..row import US, Bench, Contest, Player, Row, Work, is_ours, jax_jit
from .fusion import array_chain, array_softmax
from .large import chain, numexpr_chain, numpy_chain, softmax

GROUP, GPU_GROUP = "sweeps", "gpu-sweeps"
EXPONENTS = range(8, 29, 2)  # log2 of the number of elements of the first operand
COMPARED = 1 << 22  # of a larger result, only about this many elements, equally spaced, are checked
WIDTH = 256  # elements per row of softmax
TORCH_COMPILE_STEP = 8  # torch.compile takes part only at multiples of this exponent, because it recompiles for each size
MAX_ISSUED_EXPONENT = 16  # up to this exponent, the host's part of a call dominates on a GPU
BUDGET_S = 0.25  # seconds for the rounds of a row
ON_HOST, ISSUED = f"{US}, parallel", f"{US}, not waited for"

Shapes = Callable[[int], tuple[tuple[int, ...], ...]]


class Operation(NamedTuple):
    """An operation that is measured at all sizes."""

    curve: str
    shapes: Shapes
    """Shapes of the operands, given the number of elements of the first."""
    works: Callable[[Bench, Any], dict[str, Work]]
    """The work of each player, given the bench and the row length."""
    exact: Work
    """The work on float64 arrays that the results are checked with."""
    until: Mapping[str, int]
    """The largest exponent of each slow player."""
    last: tuple[int, int] = (EXPONENTS[-1], EXPONENTS[-1])
    """The largest exponents of all players, on the CPU and on a GPU."""
    is_whole: bool = False
    """True if each element of the result depends on all operands, so that no part of the result can be checked alone."""
    is_positive: bool = False
    flops: Callable[..., int] | None = None
    rests: bool = False


def same_work(work: Work, numexpr: str = "") -> Callable[[Bench, Any], dict[str, Work]]:
    """Return a function that returns `work` for every player, because all libraries have its methods."""

    def works(bench: Bench, width: Any) -> dict[str, Work]:
        work_of = dict.fromkeys((US, "torch", "numpy", "cupy"), work) | {"jax": jax_jit(lambda np: work)}
        if numexpr and "numexpr" in bench.peers:
            evaluate = bench.peers["numexpr"].evaluate  # type: ignore[attr-defined]
            work_of["numexpr"] = lambda *inputs: evaluate(numexpr, dict(zip("abc", inputs, strict=False)))
        return work_of

    return works


def add(a: Any, b: Any) -> Any:
    """Return a + b, which reads two arrays and writes one."""
    return a + b


def total(x: Any) -> Any:
    """Return the sum of x, which reads one array."""
    return x.sum()


def product(a: Any, b: Any) -> Any:
    """Return the matrix product, which is limited by arithmetic."""
    return a @ b


def chain_works(bench: Bench, width: Any) -> dict[str, Work]:
    """Return each player's way to fuse the chain of eight operators."""
    return fusing_players(bench, chain, array_chain, width, chain) | {
        "numpy": array_chain(np, width),
        "cupy": array_chain(bench.peers.get("cupy", np), width),
        "numexpr": numexpr_chain,
    }


def softmax_works(bench: Bench, width: Any) -> dict[str, Work]:
    """Return each player's way to fuse the softmax of rows."""

    def rows(x: Any) -> Any:
        return x.softmax(1)

    works = fusing_players(bench, rows, array_softmax, width, rows) | {"numpy": softmax, "cupy": softmax}
    works.pop("cupy.fuse", None)  # it is a thousand times slower
    return works


def square_shape(n: int) -> tuple[int, int]:
    """Return the shape of a square matrix with n elements."""
    return round(n**0.5), round(n**0.5)


OPERATIONS = (
    Operation("a + b", lambda n: ((n,),) * 2, same_work(add, "a + b"), add, {ON_HOST: 26}),
    Operation(
        "chain of 8, fused",
        lambda n: ((n,),) * 3,
        chain_works,
        numpy_chain,
        {"torch": 24, "numpy": 24, "numexpr": 24, EAGER: 26, ON_HOST: 26, "jax": 26},
    ),
    Operation("x.sum()", lambda n: ((n,),), same_work(total), total, {ON_HOST: 26}, is_whole=True, is_positive=True),
    Operation(
        f"softmax of rows of {WIDTH}",
        lambda n: ((n // WIDTH, WIDTH),),
        softmax_works,
        softmax,
        {"numpy": 24, EAGER: 26, ON_HOST: 26, "jax": 26},
    ),
    Operation(
        "a @ b, square",
        lambda n: (square_shape(n),) * 2,
        same_work(product),
        product,
        {ON_HOST: 22, "numpy": 22},
        (22, 28),
        is_whole=True,
        flops=lambda a, b: 2 * a.shape[0] * a.shape[1] * b.shape[1],
        rests=True,
    ),
)


def size_row(operation: Operation, exponent: int, group: str) -> Row:
    """Return the row of an operation at one size."""

    def setup(bench: Bench) -> Contest:
        shapes = [bench.cut(shape) for shape in operation.shapes(1 << exponent)]
        arrays = [bench.drawn(k, shape, operation.is_positive) for k, shape in enumerate(shapes)]
        works = operation.works(bench, np.float32(shapes[0][-1]))
        if exponent % TORCH_COMPILE_STEP:
            works.pop("torch.compile", None)
        if isinstance(bench, GpuBench):
            players = on_gpu(bench, works, arrays, exponent)
        else:
            present = [who for who in works if is_ours(who) or who in bench.peers]
            players = {who: partial(works[who], *bench.lend(who, arrays)) for who in present}
        players = {who: player for who, player in players.items() if exponent <= operation.until.get(who, exponent)}
        part = ... if operation.is_whole or arrays[0].size <= COMPARED else np.s_[:: -(arrays[0].size // COMPARED | 1)]
        return Contest(
            players,
            bench.exact(operation.exact, arrays, part),
            flops=operation.flops(*arrays) if operation.flops else 0,
            part=part,
            budget_s=BUDGET_S,
            rests=operation.rests,
        )

    return Row(f"{operation.curve}, 2^{exponent}", group, setup, curve=operation.curve, size=1 << exponent)


def on_gpu(bench: GpuBench, works: dict[str, Work], arrays: list[Any], exponent: int) -> dict[str, Player]:
    """Return players on the GPU, each call synchronized, and on the host; at small sizes also minifuse without waiting."""

    def synchronized(player: Player) -> Player:
        def play() -> Any:
            result = player()
            bench.settle()
            return result

        return play

    present = [who for who in works if (is_ours(who) or who in bench.peers) and who != "numpy"]
    players: dict[str, Player] = {who: synchronized(partial(works[who], *bench.lend(who, arrays))) for who in present}
    if exponent <= MAX_ISSUED_EXPONENT:
        players[ISSUED] = partial(works[US], *arrays)
    if exponent <= max(EXPONENTS) - 2:
        on_host = bench.lend("numpy", arrays)
        players[ON_HOST] = partial(works[US], *[mf.from_numpy(x) for x in on_host])
        if "numpy" in bench.peers:
            players["numpy"] = partial(works["numpy"], *on_host)
    return players


def rows(is_on_gpu: bool) -> list[Row]:
    """Return the rows of all sizes of all operations."""
    group = GPU_GROUP if is_on_gpu else GROUP
    return [size_row(operation, k, group) for operation in OPERATIONS for k in EXPONENTS if k <= operation.last[is_on_gpu]]


ROWS, GPU_ROWS = rows(False), rows(True)
