"""What a hand-written kernel is to the compiler, and how a matrix product is cut into tiles. Numbers only."""

from collections.abc import Callable
from typing import Any, NamedTuple

from .intrinsics.base import device

ITEMSIZE = {"f32": 4, "f64": 8, "i32": 4, "i64": 8, "u8": 1}  # bytes; bools are bytes
MMA_DEPTH = {"tf32": 8, "bf16": 16}  # k of one `mma.sync`


class GpuKernel(NamedTuple):
    """A kernel and what its compilation needs; name, constants and text tell it from all others."""

    name: str
    constants: tuple[Any, ...]
    function: Callable[..., None]
    signature: tuple[str, ...]  # types of the arguments; pointers with *
    threads: int  # of a block, at most
    blocks: int = 1  # on a multiprocessor at once, at least: bounds the registers of a thread
    shared: int = 0  # bytes of dynamic shared memory
    text: str = ""  # of the functions that were generated for it
    is_whole: bool = False  # compiled for one kind of GPU alone, with instructions that only that has

    @property
    def source(self) -> str:
        """All that tells it from other kernels."""
        return f"# {self.name} {self.constants}\n{self.text}"


class TileShape(NamedTuple):
    """How a product is cut: a block makes one `tile`, a warp a part of it, `lanes` lie so in a warp."""

    tile: tuple[int, int, int]  # along M, along N, and the step along K
    stages: int  # tiles on their way from memory at once
    warp: tuple[int, int]
    lanes: tuple[int, int]
    blocks: int  # on a multiprocessor

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.tile[0] // self.warp[0] * (self.tile[1] // self.warp[1]) * 32

    @property
    def is_thin(self) -> bool:
        """Whether operands go straight to registers, not through tiles in shared memory."""
        return self.stages == 1

    def pad(self, element: str) -> int:
        """Elements that follow each row of a tile which was turned over, so that its rows begin in other banks."""
        return max(16 // ITEMSIZE[element], 1)

    def nbytes(self, element: str) -> int:
        """Of shared memory that the tiles take, padding included."""
        return self.stages * self.tile[2] * (self.tile[0] + self.tile[1] + 2 * self.pad(element)) * ITEMSIZE[element]


LARGE = TileShape((128, 128, 32), 2, (64, 32), (8, 4), 2)
SMALL = TileShape((64, 128, 16), 3, (32, 64), (4, 8), 4)
MIDDLE = TileShape((64, 64, 32), 2, (32, 32), (4, 8), 4)
NARROW = TileShape((32, 64, 16), 4, (16, 32), (4, 8), 6)
WIDE = TileShape((64, 64, 16), 2, (32, 32), (8, 4), 3)
SLIM = TileShape((32, 64, 16), 3, (16, 32), (4, 8), 4)
FLOAT64_MMA = TileShape((128, 64, 16), 3, (64, 32), (8, 4), 2)  # of float64, by tensor cores
SHAPES_BY_ITEMSIZE = {
    4: (LARGE, SMALL, MIDDLE, NARROW),
    1: (SMALL, NARROW),
    8: (WIDE, SLIM),
}  # so that sums stay in registers


@device
def swizzle(k: Any) -> Any:
    """What the place of an element within its group of four is combined with (`^`) in row k of a mixed tile."""
    return k // 8 % 4
