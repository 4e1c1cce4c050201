"""Operations at all sizes: the cost of a call, the benefit of threads, caches and GPUs.

A row is one operation at one size, and a curve all rows of an operation. Slow players stop at the size at which a call would
take seconds. Nothing is changed, so all players read the same numbers. On a GPU each call is synchronized, and NumPy and
minifuse's CPU backend compute with copies on the host.
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
EXPONENTS = range(8, 29, 2)  # of two: elements of the first operand
COMPARED = 1 << 22  # elements of a result that are compared: all, or equally spaced ones with the last one
WIDTH = 256  # of the rows of softmax
SELDOM = 8  # torch.compile takes part at every n-th exponent only, because it recompiles for each
SHORT = 16  # up to this exponent, the host's part of a call dominates on a GPU
BUDGET_S = 0.25
ON_HOST, ISSUED = f"{US}, parallel", f"{US}, not waited for"

Shapes = Callable[[int], tuple[tuple[int, ...], ...]]


class Operation(NamedTuple):
    """An operation that is measured at all sizes."""

    curve: str
    shapes: Shapes
    """Shapes of the operands, given the number of elements of the first."""
    works: Callable[[Bench, Any], dict[str, Work]]
    """The work of each player, given the players and the row length."""
    exact: Work
    until: Mapping[str, int]
    """The largest exponent of a slow player."""
    last: tuple[int, int] = (EXPONENTS[-1], EXPONENTS[-1])
    """The largest exponents, on a processor and on a GPU."""
    is_whole: bool = False
    """Whether each element of the result depends on all operands, so that no part can be computed separately."""
    is_positive: bool = False
    flops: Callable[..., int] | None = None
    rests: bool = False


def everyone(work: Work, numexpr: str = "") -> Callable[[Bench, Any], dict[str, Work]]:
    """Return the same expression for all players, since all libraries have its functions."""

    def works(bench: Bench, width: Any) -> dict[str, Work]:
        found = dict.fromkeys((US, "torch", "numpy", "cupy"), work) | {"jax": jax_jit(lambda np: work)}
        if numexpr and "numexpr" in bench.peers:
            evaluate = bench.peers["numexpr"].evaluate  # type: ignore[attr-defined]
            found["numexpr"] = lambda *inputs: evaluate(numexpr, dict(zip("abc", inputs, strict=False)))
        return found

    return works


def add(a: Any, b: Any) -> Any:
    """Add, which moves three arrays through memory."""
    return a + b


def total(x: Any) -> Any:
    """Sum, which reads one array."""
    return x.sum()


def product(a: Any, b: Any) -> Any:
    """Multiply matrices, which is limited by arithmetic."""
    return a @ b


def of_chain(bench: Bench, width: Any) -> dict[str, Work]:
    """Return the chain of eight operators, as each player fuses it."""
    return fusing_players(bench, chain, array_chain, width, chain) | {
        "numpy": array_chain(np, width),
        "cupy": array_chain(bench.peers.get("cupy", np), width),
        "numexpr": numexpr_chain,
    }


def of_softmax(bench: Bench, width: Any) -> dict[str, Work]:
    """Return the softmax of rows, as each player fuses it."""

    def rows(x: Any) -> Any:
        return x.softmax(1)

    found = fusing_players(bench, rows, array_softmax, width, rows) | {"numpy": softmax, "cupy": softmax}
    found.pop("cupy.fuse", None)  # a thousand times as slow
    return found


def side(n: int) -> tuple[int, int]:
    """Return the shape of a square matrix."""
    return round(n**0.5), round(n**0.5)


OPERATIONS = (
    Operation("a + b", lambda n: ((n,),) * 2, everyone(add, "a + b"), add, {ON_HOST: 26}),
    Operation(
        "chain of 8, fused",
        lambda n: ((n,),) * 3,
        of_chain,
        numpy_chain,
        {"torch": 24, "numpy": 24, "numexpr": 24, EAGER: 26, ON_HOST: 26, "jax": 26},
    ),
    Operation("x.sum()", lambda n: ((n,),), everyone(total), total, {ON_HOST: 26}, is_whole=True, is_positive=True),
    Operation(
        f"softmax of rows of {WIDTH}",
        lambda n: ((n // WIDTH, WIDTH),),
        of_softmax,
        softmax,
        {"numpy": 24, EAGER: 26, ON_HOST: 26, "jax": 26},
    ),
    Operation(
        "a @ b, square",
        lambda n: (side(n),) * 2,
        everyone(product),
        product,
        {ON_HOST: 22, "numpy": 22},
        (22, 28),
        is_whole=True,
        flops=lambda a, b: 2 * a.shape[0] * a.shape[1] * b.shape[1],
        rests=True,
    ),
)


def size_row(of: Operation, exponent: int, group: str) -> Row:
    """Return the row of one size."""

    def setup(bench: Bench) -> Contest:
        shapes = [bench.cut(shape) for shape in of.shapes(1 << exponent)]
        arrays = [bench.drawn(k, shape, of.is_positive) for k, shape in enumerate(shapes)]
        works = of.works(bench, np.float32(shapes[0][-1]))
        if exponent % SELDOM:
            works.pop("torch.compile", None)
        if isinstance(bench, GpuBench):
            players = on_gpu(bench, works, arrays, exponent)
        else:
            there = [who for who in works if is_ours(who) or who in bench.peers]
            players = {who: partial(works[who], *bench.lend(who, arrays)) for who in there}
        players = {who: player for who, player in players.items() if exponent <= of.until.get(who, exponent)}
        part = ... if of.is_whole or arrays[0].size <= COMPARED else np.s_[:: -(arrays[0].size // COMPARED | 1)]
        return Contest(
            players,
            bench.exact(of.exact, arrays, part),
            flops=of.flops(*arrays) if of.flops else 0,
            part=part,
            budget_s=BUDGET_S,
            rests=of.rests,
        )

    return Row(f"{of.curve}, 2^{exponent}", group, setup, curve=of.curve, size=1 << exponent)


def on_gpu(bench: GpuBench, works: dict[str, Work], arrays: list[Any], exponent: int) -> dict[str, Player]:
    """Add the GPU's players, each call synchronized; one without synchronization; and the host's players."""

    def waiting(player: Player) -> Player:
        def play() -> Any:
            result = player()
            bench.settle()
            return result

        return play

    there = [who for who in works if (is_ours(who) or who in bench.peers) and who != "numpy"]
    players: dict[str, Player] = {who: waiting(partial(works[who], *bench.lend(who, arrays))) for who in there}
    if exponent <= SHORT:
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
    return [size_row(of, k, group) for of in OPERATIONS for k in EXPONENTS if k <= of.last[is_on_gpu]]


ROWS, GPU_ROWS = rows(False), rows(True)
