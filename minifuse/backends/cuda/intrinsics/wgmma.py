"""The words of products on Hopper's tensor cores: the copy engine, its barriers, and products of a warpgroup.

They are for compute capability 9.0 alone and have no meaning in the interpreter, whose tensor cores are those of
`fragments`. What Numba compiles them to is in `wgmma_code`.

A barrier here is 8 bytes of shared memory. It counts arrivals and bytes that are on their way; when all have come it changes
its phase, between 0 and 1, and who waits for the end of a phase goes on.
"""

from collections.abc import Sequence
from typing import Any, NoReturn

from ....core.errors import UnknownWordError
from .base import Word


def hardware(name: str, maker: str, *operands: Any) -> Word:
    """A word that only a GPU of compute capability 9.0 knows; `maker` of `wgmma_code` makes what Numba compiles it to."""

    def build() -> Any:
        from . import wgmma_llvm

        return getattr(wgmma_llvm, maker)(*operands)

    def meaning(*given: Any) -> NoReturn:
        raise UnknownWordError(
            f"{name} is an instruction of compute capability 9.0, which the interpreter does not know; it multiplies with "
            "`mma.sync`, see minifuse.backends.cuda.intrinsics.mma"
        )

    meaning.__name__ = name
    return Word(meaning, build)


# Barriers.

make_barrier = hardware("make_barrier", "on_two", "mbarrier.init.shared::cta.b64 [$0], $1;")
show_barriers = hardware("show_barriers", "statement", "fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;")
expect_bytes = hardware("expect_bytes", "on_two", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;")
arrive = hardware("arrive", "on_one", "mbarrier.arrive.shared::cta.b64 _, [$0];")
wait_for = hardware(  # labels belong to the braces around them
    "wait_for",
    "on_two",
    "{.reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1; @!done bra again;}",
)

# The copy engine: copy_box(to, tensor_map, x, y, inner, outer, barrier) brings the box that begins there to shared memory.

acquire_map = hardware("acquire_map", "acquire_map")
copy_box = hardware("copy_box", "copy_box")
shared_address = hardware("shared_address", "shared_address")

# The product of a warpgroup.

load_fragments = hardware("load_fragments", "load_fragments")
finish_products = hardware("finish_products", "finish_products")


def zeros(count: int) -> Word:
    """So many sums of a lane."""
    return hardware("zeros", "zeros", count)


def multiply_shared(kind: str, columns: int) -> Word:
    """acc = multiply(acc, a, b): started, and left to run while the product before it is waited for."""
    return hardware("multiply_shared", "multiply_shared", kind, columns)


def multiply_from_registers(columns: int) -> Word:
    """acc = multiply(acc, fragments, b): the same, of half a tile, whose left operand the lanes have loaded."""
    return hardware("multiply_from_registers", "multiply_from_registers", columns)


def arranged(pairs: Sequence[int], lanes: int) -> Word:
    """The sums in fours along columns of out; `pairs` of rows that neighbours share out."""
    return hardware("arranged", "arranged", tuple(pairs), lanes)


def store_fours(places: Sequence[tuple[int, int]], stored: str) -> Word:
    """Store sums in fours, whose rows and columns lie so far from the lane's first."""
    return hardware("store_fours", "store_fours", tuple(places), stored)


def registers(grow: bool, count: int) -> Word:
    """Take registers that another warpgroup gave back, up to `count` a lane, or give back what is above."""
    return hardware("registers", "statement", f"setmaxnreg.{'inc' if grow else 'dec'}.sync.aligned.u32 {count};")
