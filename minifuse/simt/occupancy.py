"""Theoretical occupancy: how many blocks of a kernel fit on a multiprocessor at once, and which resource limits them.

Theoretical occupancy follows from the sizes of the hardware alone. The number of warps that are active at run time depends
on the launch, and full occupancy is not always fastest. This file does not use traces.

References
----------
.. [1] NVIDIA, "CUDA C++ Programming Guide", technical specifications per compute capability.
.. [2] NVIDIA, CUDA Toolkit 13.0, cuda_occupancy.h: allocation units and the rules of rounding.
"""

from typing import Final, NamedTuple

from ..core.errors import SimtError
from .columnar import WARP_SIZE

KIB: Final = 1024
MAX_THREADS_PER_BLOCK: Final = 1024
MAX_REGISTERS_PER_THREAD: Final = 255
REGISTERS_PER_MULTIPROCESSOR: Final = 64 * KIB  # of 32 bits each
REGISTER_UNIT: Final = 256  # the registers of a warp are rounded up to a multiple of this
PARTITIONS_PER_MULTIPROCESSOR: Final = 4  # each has a quarter of the registers; a warp is in one of them


class Multiprocessor(NamedTuple):
    """The resources of a multiprocessor."""

    warps: int
    """Most resident warps."""
    blocks: int
    """Most resident blocks."""
    shared: int
    """Bytes of shared memory."""
    reserved: int
    """Bytes of shared memory that the system reserves for each block."""
    shared_unit: int
    """The shared memory of a block is rounded up to a multiple of this number of bytes."""


MULTIPROCESSORS: Final = {  # compute capability -> resources, from [1] and [2]
    (7, 0): Multiprocessor(64, 32, 96 * KIB, 0, 256),
    (7, 5): Multiprocessor(32, 16, 64 * KIB, 0, 256),
    (8, 0): Multiprocessor(64, 32, 164 * KIB, KIB, 128),
    (8, 6): Multiprocessor(48, 16, 100 * KIB, KIB, 128),
    (8, 7): Multiprocessor(48, 16, 164 * KIB, KIB, 128),
    (8, 9): Multiprocessor(48, 24, 100 * KIB, KIB, 128),
    (9, 0): Multiprocessor(64, 32, 228 * KIB, KIB, 128),
    (10, 0): Multiprocessor(64, 32, 228 * KIB, KIB, 128),
    (12, 0): Multiprocessor(48, 24, 100 * KIB, KIB, 128),
}


class Occupancy(NamedTuple):
    """The blocks and warps that a multiprocessor can run at once."""

    blocks: int
    """Number of blocks; 0 if the kernel cannot be launched."""
    warps: int
    """Number of warps."""
    fraction: float
    """`warps` divided by the number of warps that fit."""
    limits: dict[str, int]
    """Blocks that each resource allows: 'warps', 'blocks', 'shared' if any is used, 'registers' if known."""
    limited_by: tuple[str, ...]
    """The resources that allow the fewest blocks."""


def occupancy(
    threads: int, shared: int = 0, registers: int | None = None, capability: tuple[int, int] = (9, 0)
) -> Occupancy:
    """Compute how many blocks of a kernel fit on a multiprocessor at once.

    Parameters
    ----------
    threads : int
        Threads per block.
    shared : int
        Bytes of shared memory per block, static and dynamic.
    registers : int, optional
        Registers per thread, as the compiler reports them. None if unknown: registers are then no limit.
    capability : tuple of two ints
        The compute capability of the GPU.

    Raises
    ------
    SimtError
        The compute capability is not in the table, there is no thread, or a size is negative.

    Notes
    -----
    All shared memory is assumed to be available, because the driver configures it so for kernels that need it.

    Examples
    --------
    >>> occupancy(256, registers=32)
    Occupancy(blocks=8, warps=64, fraction=1.0, limits={'warps': 8, 'blocks': 32, 'shared': 228, 'registers': 8}, ...)
    >>> occupancy(128, shared=48 * 1024).limited_by
    ('shared',)
    """
    if capability not in MULTIPROCESSORS:
        capabilities = ", ".join(f"{major}.{minor}" for major, minor in MULTIPROCESSORS)
        raise SimtError(f"occupancy: got compute capability {capability}; expected one of {capabilities}")
    if threads < 1 or shared < 0 or (registers is not None and registers < 0):
        values = f"threads={threads}, shared={shared}, registers={registers}"
        raise SimtError(f"occupancy: expected at least one thread and no negative sizes, got {values}")
    processor = MULTIPROCESSORS[capability]
    warps = -(-threads // WARP_SIZE)
    limits = {"warps": processor.warps // warps if threads <= MAX_THREADS_PER_BLOCK else 0, "blocks": processor.blocks}
    if allocated := _round_up(shared + processor.reserved, processor.shared_unit):
        limits["shared"] = processor.shared // allocated
    if registers is not None:
        limits["registers"] = _warps_by_registers(registers) // warps
    blocks = min(limits.values())
    limited_by = tuple(name for name, limit in limits.items() if limit == blocks)
    return Occupancy(blocks, blocks * warps, blocks * warps / processor.warps, limits, limited_by)


def _warps_by_registers(registers: int) -> int:
    """Return how many warps the registers allow. All registers of a warp are in one partition."""
    if registers > MAX_REGISTERS_PER_THREAD:
        return 0
    registers_per_warp = _round_up(max(registers, 1) * WARP_SIZE, REGISTER_UNIT)
    return (
        REGISTERS_PER_MULTIPROCESSOR // PARTITIONS_PER_MULTIPROCESSOR // registers_per_warp * PARTITIONS_PER_MULTIPROCESSOR
    )


def _round_up(size: int, unit: int) -> int:
    return -(-size // unit) * unit
