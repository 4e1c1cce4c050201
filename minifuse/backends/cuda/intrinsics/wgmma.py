"""Intrinsics of Hopper's tensor cores: the copy engine, its barriers, and the matrix multiplication of a warpgroup.

They exist on compute capability 9.0 only and do not run in the interpreter, whose tensor cores are those of `mma`.
`wgmma_llvm` contains the code that Numba compiles.

A barrier here is 8 bytes of shared memory. It counts arrivals and pending bytes. When all of them have arrived, the barrier
changes its phase, between 0 and 1, and threads that wait for the end of the phase continue.
"""

from collections.abc import Sequence
from typing import Any

from ....core.errors import UnknownWordError
from .base import Intrinsic, intrinsic
from .gemm import Accumulators

ROW_BYTES = 128  # bytes of a row of a tile: 32 k in tf32, 64 in bf16


def hopper_intrinsic(name: str, maker: str, *operands: object) -> Intrinsic[Any]:
    """Return an intrinsic of compute capability 9.0 that Numba compiles with the function `maker` of `wgmma_llvm`."""

    @intrinsic(f"wgmma_llvm.{maker}", *operands)
    def python_semantics(*arguments: object) -> Any:
        raise UnknownWordError(
            f"{name}: the interpreter has no instructions of compute capability 9.0; "
            "use `mma.sync`, see minifuse.backends.cuda.intrinsics.mma"
        )

    python_semantics.__name__ = name
    return python_semantics


# Barriers.

make_barrier = hopper_intrinsic(
    "make_barrier", "statement_with_address_and_number", "mbarrier.init.shared::cta.b64 [$0], $1;"
)
publish_barriers = hopper_intrinsic(
    "publish_barriers", "statement", "fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;"
)
expect_bytes = hopper_intrinsic(
    "expect_bytes", "statement_with_address_and_number", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;"
)
arrive = hopper_intrinsic("arrive", "statement_with_address", "mbarrier.arrive.shared::cta.b64 _, [$0];")
wait_barrier = hopper_intrinsic(  # labels are local to the enclosing braces
    "wait_barrier",
    "statement_with_address_and_number",
    "{.reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1; @!done bra again;}",
)

# The copy engine: copy_box(to, tensor_map, x, y, inner, outer, barrier) copies the box at (x, y, ...) to shared memory.

acquire_map = hopper_intrinsic("acquire_map", "acquire_map")
copy_box = hopper_intrinsic("copy_box", "copy_box")
shared_address = hopper_intrinsic("shared_address", "shared_address")

# The product of a warpgroup.

load_fragments = hopper_intrinsic("load_fragments", "load_fragments")
finish_products = hopper_intrinsic("finish_products", "finish_products")


def multiply_shared(kind: str, columns: int) -> Intrinsic[Accumulators]:
    """Return the intrinsic acc = multiply(acc, a, b). It starts a product and waits for the previous one."""
    return hopper_intrinsic("multiply_shared", "multiply_shared", kind, columns)


def multiply_from_registers(columns: int) -> Intrinsic[Accumulators]:
    """Return the intrinsic acc = multiply(acc, fragments, b), over half a tile, with the left operand in registers."""
    return hopper_intrinsic("multiply_from_registers", "multiply_from_registers", columns)


def exchange_pairs(pairs: Sequence[int], lanes: int) -> Intrinsic[Accumulators]:
    """Return an intrinsic that exchanges sums with the lane xor `lanes`, to give each lane four adjacent columns of out."""
    return hopper_intrinsic("exchange_pairs", "exchange_pairs", tuple(pairs), lanes)


def store_vectors(places: Sequence[tuple[int, int]], stored: str) -> Intrinsic[None]:
    """Return an intrinsic that stores sums in groups of four, at `places`: (row, column) relative to the lane's first."""
    return hopper_intrinsic("store_vectors", "store_vectors", tuple(places), stored)


def set_max_registers(grow: bool, count: int) -> Intrinsic[None]:
    """Return an intrinsic that sets a lane's register limit to `count`. To `grow`, other warpgroups must shrink first."""
    return hopper_intrinsic(
        "set_max_registers", "statement", f"setmaxnreg.{'inc' if grow else 'dec'}.sync.aligned.u32 {count};"
    )
