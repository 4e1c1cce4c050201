"""The words of products on Hopper's tensor cores: the copy engine, its barriers, and products of a warpgroup.

They are for compute capability 9.0 alone and have no meaning in the interpreter, whose tensor cores are those of
`fragments`. What Numba compiles them to is in `wgmma_code`.

A barrier here is 8 bytes of shared memory. It counts arrivals and bytes that are on their way; when all have come it changes
its phase, between 0 and 1, and who waits for the end of a phase goes on.
"""

from collections.abc import Sequence
from typing import Any, NoReturn

from ....core.errors import UnknownWordError
from .base import Intrinsic


def hopper_intrinsic(name: str, maker: str, *operands: Any) -> Intrinsic:
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
    return Intrinsic(meaning, build)


# Barriers.

make_barrier = hopper_intrinsic("make_barrier", "on_two", "mbarrier.init.shared::cta.b64 [$0], $1;")
publish_barriers = hopper_intrinsic(
    "show_barriers", "statement", "fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;"
)
expect_bytes = hopper_intrinsic("expect_bytes", "on_two", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;")
arrive = hopper_intrinsic("arrive", "on_one", "mbarrier.arrive.shared::cta.b64 _, [$0];")
wait_barrier = hopper_intrinsic(  # labels belong to the braces around them
    "wait_for",
    "on_two",
    "{.reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1; @!done bra again;}",
)

# The copy engine: copy_box(to, tensor_map, x, y, inner, outer, barrier) brings the box that begins there to shared memory.

acquire_map = hopper_intrinsic("acquire_map", "acquire_map")
copy_box = hopper_intrinsic("copy_box", "copy_box")
shared_address = hopper_intrinsic("shared_address", "shared_address")

# The product of a warpgroup.

load_fragments = hopper_intrinsic("load_fragments", "load_fragments")
finish_products = hopper_intrinsic("finish_products", "finish_products")


def zeros(count: int) -> Intrinsic:
    """So many sums of a lane."""
    return hopper_intrinsic("zeros", "zeros", count)


def multiply_shared(kind: str, columns: int) -> Intrinsic:
    """acc = multiply(acc, a, b): started, and left to run while the product before it is waited for."""
    return hopper_intrinsic("multiply_shared", "multiply_shared", kind, columns)


def multiply_from_registers(columns: int) -> Intrinsic:
    """acc = multiply(acc, fragments, b): the same, of half a tile, whose left operand the lanes have loaded."""
    return hopper_intrinsic("multiply_from_registers", "multiply_from_registers", columns)


def arranged(pairs: Sequence[int], lanes: int) -> Intrinsic:
    """The sums in fours along columns of out; `pairs` of rows that neighbours share out."""
    return hopper_intrinsic("arranged", "arranged", tuple(pairs), lanes)


def store_fours(places: Sequence[tuple[int, int]], stored: str) -> Intrinsic:
    """Store sums in fours, whose rows and columns lie so far from the lane's first."""
    return hopper_intrinsic("store_fours", "store_fours", tuple(places), stored)


def set_max_registers(grow: bool, count: int) -> Intrinsic:
    """Take registers that another warpgroup gave back, up to `count` a lane, or give back what is above."""
    return hopper_intrinsic("registers", "statement", f"setmaxnreg.{'inc' if grow else 'dec'}.sync.aligned.u32 {count};")
