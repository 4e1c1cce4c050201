"""The interpreter's counts of memory traffic beside those of the hardware, for six kernels: python -m tests.cuda.counters

    python -m tests.cuda.counters --out counters.json      on a GPU with Nsight Compute: measure, write a file, print a table

Derived are the counts of `mf.simt.trace`, from addresses alone. Measured are the counters of ncu, which runs this module
once more, with --launch. Sectors are of 32 bytes; a wavefront is one pass over the banks of shared memory, and a conflict
one that fewer passes would have served.
"""

import argparse
import csv
import inspect
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from minifuse import simt
from minifuse.backends.cuda.intrinsics.base import cuda, f32
from minifuse.backends.cuda.launch_plan import LaunchPlan
from minifuse.backends.cuda.matmul.ladder import LADDER
from minifuse.simt.record import LOAD, STORE

ROOT = Path(__file__).parents[2]
TILE, BLOCK, N = 32, 256, 4096
METRICS = {
    "global load requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "global load sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "global store requests": "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "global store sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "shared load wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "shared load conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "shared store wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "shared store conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
}


# The kernels


def stride_one(out, a, n):
    """Neighbours: 32 lanes, 128 bytes, 4 sectors."""
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if i < n:
        out[i] = a[i]


def offset_one(out, a, n):
    """Neighbours that begin one element past a sector: 5 sectors."""
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if i < n:
        out[i] = a[i + 1]


def stride_two(out, a, n):
    """Every second element: 8 sectors, half of each unused."""
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if i < n:
        out[i] = a[2 * i]


def transposed_read(out, a, n):
    """A warp reads a column: 32 sectors, of each one element."""
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    row, column = i // n, i % n
    out[i] = a[column * n + row]


def tile_column(out, a, n):
    """A tile is written by rows and read by columns: the 32 lanes want one bank."""
    tile = cuda.shared.array((TILE, TILE), f32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    tile[y, x] = a[y * n + x]
    cuda.syncthreads()
    out[y * n + x] = tile[x, y]


class Case(NamedTuple):
    """A kernel, how it is launched, and the arrays that it is launched on."""

    name: str
    kernel: Callable[..., None]
    grid: tuple[int, ...]
    block: tuple[int, ...]
    arrays: tuple[np.ndarray, ...]  # the output first
    numbers: tuple[int, ...]
    expected: np.ndarray  # what the output is then

    @property
    def signature(self) -> tuple[str, ...]:
        """Types of the arguments."""
        return (*["*f32"] * len(self.arrays), *["i64"] * len(self.numbers))

    def plan(self) -> LaunchPlan:
        """The launch, for the interpreter."""
        return LaunchPlan(self.kernel, self.grid, self.block, (*self.arrays, *self.numbers))


def cases() -> list[Case]:
    """The six kernels."""
    a = np.arange(2 * N, dtype="f4")
    side = 64
    square = a[: side * side].reshape(side, side)
    random = np.random.default_rng(0)
    left, right = random.integers(-3, 4, (2, side, side)).astype("f4")
    rung = LADDER["shared_tiles"]
    tile = a[: TILE * TILE].reshape(TILE, TILE)

    def line(kernel: Callable[..., None], expected: np.ndarray, n: int = N) -> Case:
        return Case(kernel.__name__, kernel, (N // BLOCK,), (BLOCK,), (np.zeros(N, "f4"), a), (n,), expected)

    return [
        line(stride_one, a[:N]),
        line(offset_one, a[1 : N + 1]),
        line(stride_two, a[::2]),
        line(transposed_read, square.T.reshape(-1), side),
        Case("tile_column", tile_column, (1,), (TILE, TILE), (np.zeros(TILE * TILE, "f4"), a), (TILE,), tile.T.reshape(-1)),
        Case(
            "shared_tiles",
            rung.function,
            rung.grid(side, side),
            rung.block,
            (np.zeros(side * side, "f4"), left.reshape(-1), right.reshape(-1)),
            (side, side, side),
            (left @ right).reshape(-1),
        ),
    ]


# Derived


def derived(case: Case) -> dict[str, int]:
    """The counts of the interpreter; it also checks what the kernel computes."""
    trace = simt.trace(case.plan())
    assert not trace.hazards(), trace.hazards()
    np.testing.assert_array_equal(case.arrays[0], case.expected, err_msg=case.name)
    found, spaces = trace.requests(), np.array([info.space for info in trace.arrays])
    counts = {}
    for word, kind in (("load", LOAD), ("store", STORE)):
        of_global = (found.kind == kind) & (spaces[found.array] == "global")
        of_shared = (found.kind == kind) & (spaces[found.array] == "shared")
        wavefronts = int(found.wavefronts[of_shared].sum())
        counts[f"global {word} requests"] = int(of_global.sum())
        counts[f"global {word} sectors"] = int(found.sectors[of_global].sum())
        counts[f"shared {word} wavefronts"] = wavefronts
        counts[f"shared {word} conflicts"] = wavefronts - int(found.ideal_wavefronts[of_shared].sum())
    return counts


# Measured


def launch() -> None:
    """Run each kernel once on the GPU, and check what it computes."""
    from minifuse.backends.cuda.geometry import LaunchGeometry
    from minifuse.backends.registry import get_backend

    device = get_backend("cuda").device
    if device.is_simulated:
        sys.exit("there is no GPU to count on")
    for case in cases():
        text = f"# {case.name}\n{inspect.getsource(case.kernel)}"
        threads = int(np.prod(case.block))
        loaded = device.load(text, lambda case=case: case.kernel, case.signature, threads)
        buffers = [device.allocate(array.nbytes) for array in case.arrays]
        for buffer, array in zip(buffers, case.arrays, strict=True):
            device.copy_in(array, buffer.address)
        grid, block = [(*sizes, 1, 1)[:3] for sizes in (case.grid, case.block)]
        device.prepare(loaded, LaunchGeometry(grid, block))(*[buffer.address for buffer in buffers], *case.numbers)
        out = np.empty_like(case.arrays[0])
        device.copy_out(buffers[0].address, out)
        np.testing.assert_array_equal(out, case.expected, err_msg=case.name)


def measured() -> dict[str, dict[str, int]]:
    """The counters of the hardware, of each kernel by name."""
    ncu = shutil.which("ncu")
    if ncu is None:
        sys.exit("ncu is not on the PATH; it is NVIDIA Nsight Compute, and comes with the CUDA toolkit")
    options = ["--csv", "--clock-control", "none", "--metrics", ",".join(METRICS.values())]
    command = [ncu, *options, sys.executable, "-m", "tests.cuda.counters", "--launch"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if found.returncode or "ERR_NVGPUCTRPERM" in found.stdout:
        sys.exit(f"ncu failed; counters may need root.\n{found.stdout[-2000:]}\n{found.stderr[-2000:]}")
    return parse(found.stdout, [case.name for case in cases()])


def parse(text: str, names: Sequence[str]) -> dict[str, dict[str, int]]:
    """What ncu wrote as CSV, between lines of its own: kernel -> counter -> value. Of several launches, the last."""
    lines = text.splitlines()
    start = next((k for k, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        raise ValueError(f"no table of ncu in:\n{text[-2000:]}")
    labels = {metric: label for label, metric in METRICS.items()}
    found: dict[str, dict[str, int]] = {}
    for row in csv.DictReader(line for line in lines[start:] if line.startswith('"')):
        name = next((name for name in names if name in row["Kernel Name"]), None)
        if name is not None and row["Metric Name"] in labels:
            value = round(float(row["Metric Value"].replace(",", "")))
            found.setdefault(name, {})[labels[row["Metric Name"]]] = value
    for name in names:
        lacking = METRICS.keys() - found.get(name, {}).keys()
        if lacking:
            raise ValueError(f"ncu gave no {', '.join(sorted(lacking))} of {name}")
    return found


# Together


def compare(hardware: dict[str, dict[str, int]]) -> list[dict[str, Any]]:
    """A row for each kernel and counter that either side has seen."""
    rows = []
    for case in cases():
        counts = derived(case)
        for label in METRICS:
            pair = counts[label], hardware[case.name][label]
            if any(pair):
                row = {"kernel": case.name, "counter": label, "derived": pair[0], "measured": pair[1]}
                rows.append(row | {"is_equal": pair[0] == pair[1]})
    return rows


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as Markdown."""
    lines = ["| kernel | counter | derived | measured | |", "|---|---|---:|---:|---|"]
    for row in rows:
        verdict = "equal" if row["is_equal"] else "differs"
        lines.append(f"| {row['kernel']} | {row['counter']} | {row['derived']:,} | {row['measured']:,} | {verdict} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and compare, or only launch."""
    parser = argparse.ArgumentParser(description="The interpreter's counts beside the hardware's.")
    parser.add_argument("--launch", action="store_true", help="only run the kernels: this is what ncu looks at")
    parser.add_argument("--out", type=Path, help="where the rows go, as JSON")
    chosen = parser.parse_args(arguments)
    if chosen.launch:
        launch()
        return
    rows = compare(measured())
    if chosen.out:
        found = {"device": device_name(), "date": date.today().isoformat(), "rows": rows}
        chosen.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(table(rows))


def device_name() -> str:
    """The GPU, and the versions that decide its machine code."""
    from minifuse.backends.cuda.compiler import version_of
    from minifuse.backends.cuda.device import driver
    from minifuse.backends.registry import get_backend

    version = driver.query_driver().version
    name = get_backend("cuda").device.name
    return f"{name}, driver for CUDA {version // 1000}.{version % 1000 // 10}, numba-cuda {version_of('numba-cuda')}"


if __name__ == "__main__":
    main()
