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


def hopper_intrinsic(name: str, compiled: str, *operands: object) -> Intrinsic[Any]:
    """Return an intrinsic of compute capability 9.0 for which Numba compiles `compiled`, see `base.intrinsic`."""

    @intrinsic(compiled, *operands)
    def python_semantics(*arguments: object) -> Any:
        raise UnknownWordError(
            f"{name}: the interpreter has no instructions of compute capability 9.0; "
            "use `mma.sync`, see minifuse.backends.cuda.intrinsics.mma"
        )

    python_semantics.__name__ = name
    return python_semantics


def hopper_statement(name: str, text: str, constraints: str = "") -> Intrinsic[None]:
    """Return an intrinsic for a PTX statement over its operands in order."""
    return hopper_intrinsic(name, "gemm_llvm.statement", text, constraints)


# Barriers.

make_barrier = hopper_statement("make_barrier", "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r")
publish_barriers = hopper_statement(
    "publish_barriers", "fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;"
)
expect_bytes = hopper_statement("expect_bytes", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r")
arrive = hopper_statement("arrive", "mbarrier.arrive.shared::cta.b64 _, [$0];", "r")
wait_barrier = hopper_statement(  # labels are local to the enclosing braces
    "wait_barrier",
    "{.reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1; @!done bra again;}",
    "r,r",
)

# The copy engine: copy_box(to, tensor_map, x, y, inner, outer, barrier) copies the box at (x, y, ...) to shared memory. The
# barrier counts its bytes. `acquire_map` makes the host's last write of a tensor map visible.

acquire_map = hopper_statement("acquire_map", "fence.proxy.tensormap::generic.acquire.gpu [$0], 128;", "l")
copy_box = hopper_statement(
    "copy_box",
    "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [$0], [$1, {$2, $3, $4, $5}], [$6];",
    "r,l,r,r,r,r,r",
)
shared_address = hopper_intrinsic("shared_address", "wgmma_llvm.shared_address")

# The product of a warpgroup.

load_fragments = hopper_intrinsic("load_fragments", "wgmma_llvm.load_fragments")
finish_products = hopper_intrinsic("finish_products", "wgmma_llvm.finish_products")


def multiply_shared(kind: str, columns: int) -> Intrinsic[Accumulators]:
    """Return the intrinsic acc = multiply(acc, a, b). It starts a product and waits for the previous one."""
    return hopper_intrinsic("multiply_shared", "wgmma_llvm.multiply_shared", kind, columns)


def multiply_from_registers(columns: int) -> Intrinsic[Accumulators]:
    """Return the intrinsic acc = multiply(acc, fragments, b), over half a tile, with the left operand in registers."""
    return hopper_intrinsic("multiply_from_registers", "wgmma_llvm.multiply_from_registers", columns)


def exchange_pairs(pairs: Sequence[int], lanes: int) -> Intrinsic[Accumulators]:
    """Return an intrinsic that exchanges sums with the lane xor `lanes`, to give each lane four adjacent columns of out."""
    return hopper_intrinsic("exchange_pairs", "wgmma_llvm.exchange_pairs", tuple(pairs), lanes)


def store_vectors(places: Sequence[tuple[int, int]]) -> Intrinsic[None]:
    """Return an intrinsic that stores sums in groups of four, at `places`: (row, column) relative to the lane's first."""
    return hopper_intrinsic("store_vectors", "wgmma_llvm.store_vectors", tuple(places))


def set_max_registers(grow: bool, count: int) -> Intrinsic[None]:
    """Return an intrinsic that sets a lane's register limit to `count`. To `grow`, other warpgroups must shrink first."""
    return hopper_statement("set_max_registers", f"setmaxnreg.{'inc' if grow else 'dec'}.sync.aligned.u32 {count};")
