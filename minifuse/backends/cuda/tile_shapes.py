"""The compile options of hand-written kernels, and the tile shapes of matrix multiplication."""

from collections.abc import Callable, Hashable
from typing import NamedTuple, TypeVar

import numpy as np

from .intrinsics.base import device

ITEMSIZE = {"f32": 4, "f64": 8, "i32": 4, "i64": 8, "u8": 1}  # bytes; bools are stored as bytes
Index = TypeVar("Index", int, np.ndarray)
MMA_DEPTH = {"tf32": 8, "bf16": 16}  # extent along k of one `mma.sync`


class GpuKernel(NamedTuple):
    """A kernel and the inputs of its compilation. Its name, constants and text identify it among all kernels."""

    name: str
    constants: tuple[Hashable, ...]
    function: Callable[..., None]
    signature: tuple[str, ...]  # types of the arguments; pointers start with *
    threads: int  # maximum in a block
    blocks: int = 1  # minimum per multiprocessor: bounds the registers of a thread
    shared: int = 0  # bytes of dynamic shared memory
    text: str = ""  # source of its generated functions
    is_arch_specific: bool = False  # compiled for one GPU architecture, since it uses instructions that others lack

    @property
    def source(self) -> str:
        """Return the text that identifies this kernel."""
        return f"# {self.name} {self.constants}\n{self.text}"


class TileShape(NamedTuple):
    """Tiling of a matrix product. A block computes a `tile`; a warp, a grid of `lanes`, computes a `warp` part of it."""

    tile: tuple[int, int, int]  # sizes along M and N, and the step along K
    stages: int  # tiles of each operand that shared memory contains at once
    warp: tuple[int, int]
    lanes: tuple[int, int]
    blocks: int  # minimum per multiprocessor

    @property
    def threads(self) -> int:
        """Return the number of threads of a block."""
        return self.tile[0] // self.warp[0] * (self.tile[1] // self.warp[1]) * 32

    @property
    def is_thin(self) -> bool:
        """Return True if operands are loaded directly into registers, not through tiles in shared memory."""
        return self.stages == 1

    def pad(self, element: str) -> int:
        """Return the elements of padding after each row of a transposed tile, so that its rows start in different banks."""
        return max(16 // ITEMSIZE[element], 1)

    def nbytes(self, element: str) -> int:
        """Return the bytes of shared memory that the tiles take, with padding."""
        return self.stages * self.tile[2] * (self.tile[0] + self.tile[1] + 2 * self.pad(element)) * ITEMSIZE[element]


LARGE = TileShape((128, 128, 32), 2, (64, 32), (8, 4), 2)
SMALL = TileShape((64, 128, 16), 3, (32, 64), (4, 8), 4)
MIDDLE = TileShape((64, 64, 32), 2, (32, 32), (4, 8), 4)
NARROW = TileShape((32, 64, 16), 4, (16, 32), (4, 8), 6)
WIDE = TileShape((64, 64, 16), 2, (32, 32), (8, 4), 3)
SLIM = TileShape((32, 64, 16), 3, (16, 32), (4, 8), 4)
FLOAT64_MMA = TileShape((128, 64, 16), 3, (64, 32), (8, 4), 2)  # float64 on tensor cores
# The shapes of each item size are those whose accumulators stay in registers.
SHAPES_BY_ITEMSIZE = {4: (LARGE, SMALL, MIDDLE, NARROW), 1: (SMALL, NARROW), 8: (WIDE, SLIM)}


@device
def swizzle(k: Index) -> Index:
    """Return the number that is xor-ed (`^`) with an element's index in its group of four, in row k of a swizzled tile."""
    return k // 8 % 4
