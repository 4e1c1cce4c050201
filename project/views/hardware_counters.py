"""Hardware counters of a GPU for kernels that pages show, stored in docs/guide/counters-h200.json.

The file contains device and date; docs/guide/counters.md describes the measurement. The recorded launches are larger than
those of the pages, so numbers are compared per warp: all warps do the same. Without the file, nothing is shown.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from . import memory
from .cited_facts import MEASURED, Fact

FILE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "counters-h200.json"
PRODUCT, SIDE, TILE = "shared_tiles", 64, 32  # the recorded matmul kernel, the side of its square matrices and of its tiles
ON_GPU = ", on a GPU"
GLOBAL = {"global load sectors": "sectors", "global store sectors": "sectors of the store"}
SHARED = {"shared load wavefronts": "wavefronts", "shared load conflicts": "bank conflicts"}


@dataclass(frozen=True)
class Preset:
    """The choice on the memory page whose request a recorded kernel makes: 32 lanes with 4 bytes each."""

    space: str
    stride: int = 1
    offset: int = 0


PRESETS = {
    "stride_one": Preset("global"),
    "offset_one": Preset("global", offset=1),
    "stride_two": Preset("global", stride=2),
    "transposed_read": Preset("global", stride=64),
    "tile_column": Preset("shared"),
}


@dataclass(frozen=True)
class Recording:
    """The contents of the file."""

    device: str
    date: str
    counters: dict[str, dict[str, int]]
    """kernel -> name of the counter -> value"""


@cache
def load_recording(file: Path = FILE) -> Recording | None:
    """Load the recording; return None if the file does not exist."""
    if not file.is_file():
        return None
    recorded: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    counters = dict[str, dict[str, int]]()
    for row in recorded["rows"]:
        counters.setdefault(row["kernel"], {})[row["counter"]] = row["measured"]
    return Recording(recorded["device"], recorded["date"], counters)


def presets(known: Recording | None) -> dict[str, Preset]:
    """Return the recorded kernels that the memory page can show."""
    return {} if known is None else {name: preset for name, preset in PRESETS.items() if name in known.counters}


def kernel_of_global(dtype: str, stride: int, offset: int, count: int) -> str | None:
    """Return the recorded kernel that makes this global memory request."""
    return find_kernel(dtype, Preset("global", stride, offset), count)


def kernel_of_tile(dtype: str, width: int, reads_column: bool, count: int) -> str | None:
    """Return the recorded kernel that makes this shared memory request; it reads the columns one after the other."""
    return find_kernel(dtype, Preset("shared"), count) if width == memory.WARP and reads_column else None


def find_kernel(dtype: str, preset: Preset, count: int) -> str | None:
    """Return the kernel of a preset, if the whole warp takes part."""
    if dtype != "float32" or count != memory.WARP:
        return None
    return next((name for name, found in PRESETS.items() if found == preset), None)


def facts(kernel: str | None, known: Recording | None) -> list[Fact]:
    """Return the values of the hardware counters for a request of this kernel."""
    if known is None or kernel not in known.counters:
        return []
    counters = known.counters[kernel]
    warps = counters["global load requests"]  # each warp loads once
    names = SHARED if PRESETS[kernel].space == "shared" else GLOBAL
    return [
        Fact(
            f"{name}{ON_GPU}",
            f"{counters[counter] / warps:g}",
            MEASURED,
            f"{counter} of {kernel}: {counters[counter]:,} for {warps:,} warps; {source(known)}",
        )
        for counter, name in names.items()
    ]


def matmul_facts(name: str, known: Recording | None) -> list[Fact]:
    """Return the hardware counters of the library's tiled matmul, at the recorded size."""
    if known is None or name != PRODUCT or PRODUCT not in known.counters:
        return []
    counters, outputs = known.counters[PRODUCT], SIDE * SIDE
    loads = counters["global load requests"] * memory.WARP  # every lane takes part
    why = f"{loads:,} / {outputs:,}, of {SIDE} x {SIDE} x {SIDE} in tiles of {TILE}; {source(known)}"
    shown = [Fact(f"global loads per output{ON_GPU}", f"{loads / outputs:g}", MEASURED, why)]
    return shown + [
        Fact(f"{counter}{ON_GPU}", f"{counters[counter]:,}", MEASURED, f"of that product, {source(known)}")
        for counter in ("global load sectors", "shared load wavefronts")
    ]


def merge_facts(counted: Sequence[Fact], measured: Sequence[Fact]) -> list[Fact]:
    """Insert the facts of hardware counters after the facts that they confirm; append the other counters."""
    shown = list[Fact]()
    for fact in counted:
        shown += [fact, *[found for found in measured if found.name == fact.name + ON_GPU]]
    return shown + [fact for fact in measured if fact not in shown]


def source(known: Recording) -> str:
    """Return the source of the numbers."""
    return f"{known.device.partition(',')[0]}, {known.date}"


def sentence(known: Recording) -> str:
    """Explain what presets are."""
    return (
        f"Kernels with these requests ran under Nsight Compute on {source(known)}. Choose one: what the hardware counted "
        "then stands among the facts, under MEASURED."
    )
