"""The number of kernels of each of twenty functions: minifuse's from plans, tinygrad's and cupy.fuse's from runs.

    python -m project.benchmarks.kernel_counts             prints the recorded counts
    python -m project.benchmarks.kernel_counts minifuse    counts kernels of minifuse, and stores the counts
    python -m project.benchmarks.kernel_counts tinygrad    the same for tinygrad, on any device (DEV=PYTHON needs none)
    python -m project.benchmarks.kernel_counts cupy        the same for cupy.fuse, on a GPU

Each library may be in its own environment; tinygrad's needs NumPy but not minifuse. For a function that a library cannot
fuse, the reason is stored. A count is stored only if the results are right.
"""

import datetime
import json
import sys
from collections.abc import Callable, Sequence
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import numpy as np

from minifuse.runtime.atomic_files import replace_content

from .fusion_corpus import TWENTY, Function, results_of

KEPT = Path(__file__).parent / "results" / "kernel-counts.json"
TOLERANCE = 1e-4  # of float32; counting wants the right function, not the last digits
PACKAGES = {"minifuse": ("minifuse",), "tinygrad": ("tinygrad",), "cupy": ("cupy-cuda13x", "cupy-cuda12x", "cupy")}

NOT_COUNTED = "not counted"

Count = int | str  # or why there is none


def count_kernels(count: Callable[[Function, list[Any]], tuple[int, list[Any]]]) -> dict[str, Count]:
    """Return the number of kernels of each function, as `count` returns it, or the reason why there is none.

    Raises
    ------
    AssertionError
        A result is wrong.
    """
    found: dict[str, Count] = {}
    for function in TWENTY:
        inputs = function.inputs(np.random.default_rng(7))
        try:
            kernels, results = count(function, [x.copy() for x in inputs])
        except CannotFuseError as error:
            found[function.name] = str(error)
            continue
        check(function, inputs, results)
        found[function.name] = kernels
        print(f"{function.name}: {kernels}", file=sys.stderr, flush=True)
    return found


def check(function: Function, inputs: Sequence[Any], results: Sequence[Any]) -> None:
    """Compare results with those of NumPy in float64."""
    exact = function.exact(inputs)
    assert len(results) == len(exact), f"{function.name}: {len(results)} results, expected {len(exact)}"
    for x, y in zip(results, exact, strict=True):
        np.testing.assert_allclose(x, y, rtol=TOLERANCE, atol=TOLERANCE, err_msg=function.name)


class CannotFuseError(Exception):
    """A library cannot fuse a function; the message says why."""


def count_minifuse(function: Function, inputs: Sequence[Any]) -> tuple[int, list[Any]]:
    """Return the number of kernels in the plan of a fused function, on the CPU backend."""
    mf: Any = import_module("minifuse")
    tensors, fused = [mf.from_numpy(x) for x in inputs], mf.fuse(function.tensors)
    count = len(fused.plan(*tensors).steps)
    return count, [x.numpy() for x in results_of(fused, tensors)]


def count_tinygrad(function: Function, inputs: Sequence[Any]) -> tuple[int, list[Any]]:
    """Return the number of kernels that tinygrad runs, with inputs already in memory."""
    tinygrad: Any = import_module("tinygrad")
    tensors = [tinygrad.Tensor(x).realize() for x in inputs]
    results = results_of(function.tinygrad or function.tensors, tensors)
    tinygrad.GlobalCounters.reset()
    tinygrad.Tensor.realize(*results)
    return tinygrad.GlobalCounters.kernel_count, [x.numpy() for x in results]


def count_cupy(function: Function, inputs: Sequence[Any]) -> tuple[int, list[Any]]:
    """Return the number of kernels that cupy.fuse launches, counted in a captured stream."""
    cupy: Any = import_module("cupy")
    with cupy.cuda.Stream(non_blocking=True) as stream:
        arrays = [cupy.asarray(x) for x in inputs]
        fused = cupy.fuse(kernel_name="fused")(function.arrays(cupy))
        given = function.views(cupy, *arrays) if function.views else arrays
        try:
            results = [cupy.asnumpy(x) for x in results_of(fused, given)]
        except Exception as error:
            raise CannotFuseError(format_error(error)) from error
        try:
            return kernels_of(lambda: fused(*given), stream), results
        except Exception as error:
            raise CannotFuseError(f"{NOT_COUNTED}: {format_error(error)}") from error


def format_error(error: Exception) -> str:
    """Format an error in a line for the record."""
    first, _, _ = str(error).partition("\n")
    return f"{type(error).__name__}: {first[:120]}"


def kernels_of(work: Callable[[], Any], stream: Any) -> int:
    """Return the number of kernels that a call adds to a captured stream; nothing runs."""
    driver: Any = import_module("cuda.bindings.driver")

    def checked(status: Any, *results: Any) -> Any:
        if status != driver.CUresult.CUDA_SUCCESS:
            raise RuntimeError(f"the driver says {status.name}")
        return results[0] if len(results) == 1 else results

    relaxed = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    checked(*driver.cuStreamBeginCapture(stream.ptr, relaxed))
    try:
        work()
    finally:
        graph = checked(*driver.cuStreamEndCapture(stream.ptr))
    _, count = checked(*driver.cuGraphGetNodes(graph))
    nodes, _ = checked(*driver.cuGraphGetNodes(graph, count)) if count else ([], 0)
    kinds = [checked(*driver.cuGraphNodeGetType(node)) for node in nodes[:count]]
    checked(*driver.cuGraphDestroy(graph))
    return kinds.count(driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL)


COUNTERS = {"minifuse": count_minifuse, "tinygrad": count_tinygrad, "cupy": count_cupy}


def load_counts(path: Path = KEPT) -> dict[str, Any]:
    """Return the recorded counts: library -> version, date, and the count of each function."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {library: found[library] for library in COUNTERS if library in found}


def store_counts(library: str, counts: dict[str, Count], path: Path = KEPT) -> None:
    """Store the counts of a library, in place of older ones."""
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    found = load_counts(path) | {library: {"version": version(library), "date": date, "kernels": counts}}
    replace_content(path, json.dumps(found, indent=1) + "\n")


def version(library: str) -> str:
    """Return the version of a library, under the first of its names that is installed."""
    for package in PACKAGES[library]:
        try:
            return f"{package} {metadata.version(package)}"
        except metadata.PackageNotFoundError:
            continue
    return f"{library} {getattr(import_module(library), '__version__', 'of no version')}"


def table(found: dict[str, Any]) -> list[list[str]]:
    """Return a header, and a row for each function with the count of each library."""
    header = ["", *[{"cupy": "cupy.fuse"}.get(library, library) for library in found]]
    return [header, *[[f.name, *[cell(said["kernels"][f.name]) for said in found.values()]] for f in TWENTY]]


def facts(found: dict[str, Any]) -> list[str]:
    """Return versions and dates, and why a library cannot fuse a function, a line each."""
    lines = [f"{said['version']}, {said['date']}" for said in found.values()]
    for library, said in found.items():
        lines += [f"{library}, {name}: {why}" for name, why in said["kernels"].items() if isinstance(why, str)]
    return lines


def cell(count: Count) -> str:
    """Format a count, or its absence."""
    if isinstance(count, int):
        return str(count)
    return NOT_COUNTED if count.startswith(NOT_COUNTED) else "cannot"


def main(words: Sequence[str]) -> int:
    """Count, store, and print."""
    if set(words) - set(COUNTERS):
        print(__doc__, file=sys.stderr)
        return 2
    for library in words:
        store_counts(library, count_kernels(COUNTERS[library]))
    found = load_counts()
    lines = table(found)
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
    for line in lines:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
    print("\n".join(facts(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
