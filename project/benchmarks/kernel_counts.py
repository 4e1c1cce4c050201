"""How many kernels each of twenty functions becomes: of minifuse from its plans, of tinygrad and cupy.fuse as they run.

    python -m project.benchmarks.kernel_counts             prints what is kept
    python -m project.benchmarks.kernel_counts minifuse    counts ours, and keeps them
    python -m project.benchmarks.kernel_counts tinygrad    those of tinygrad, with any of its devices (DEV=PYTHON needs none)
    python -m project.benchmarks.kernel_counts cupy        those of cupy.fuse, on a GPU

Each library may live in an environment of its own; tinygrad needs NumPy beside it, and nothing of minifuse. A function that
a library cannot fuse is kept with the reason. A count is kept only where the results are right.
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


def counted(count: Callable[[Function, list[Any]], tuple[int, list[Any]]]) -> dict[str, Count]:
    """The kernels of each function, as `count` tells them beside the results; or why there are none.

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
    """A library cannot do it; says why."""


def of_minifuse(function: Function, inputs: Sequence[Any]) -> tuple[int, list[Any]]:
    """Kernels of the plan of a fused function, on the backend of the processor."""
    mf: Any = import_module("minifuse")
    tensors, fused = [mf.from_numpy(x) for x in inputs], mf.fuse(function.tensors)
    count = len(fused.plan(*tensors).steps)
    return count, [x.numpy() for x in results_of(fused, tensors)]


def of_tinygrad(function: Function, inputs: Sequence[Any]) -> tuple[int, list[Any]]:
    """Kernels that tinygrad runs for a function whose inputs are in memory already."""
    tinygrad: Any = import_module("tinygrad")
    tensors = [tinygrad.Tensor(x).realize() for x in inputs]
    results = results_of(function.tinygrad or function.tensors, tensors)
    tinygrad.GlobalCounters.reset()
    tinygrad.Tensor.realize(*results)
    return tinygrad.GlobalCounters.kernel_count, [x.numpy() for x in results]


def of_cupy(function: Function, inputs: Sequence[Any]) -> tuple[int, list[Any]]:
    """Kernels that cupy.fuse launches, as a stream sees them that is captured as a graph."""
    cupy: Any = import_module("cupy")
    with cupy.cuda.Stream(non_blocking=True) as stream:
        arrays = [cupy.asarray(x) for x in inputs]
        fused = cupy.fuse(kernel_name="fused")(function.arrays(cupy))
        given = function.views(cupy, *arrays) if function.views else arrays
        try:
            results = [cupy.asnumpy(x) for x in results_of(fused, given)]
        except Exception as error:
            raise CannotFuseError(in_a_line(error)) from error
        try:
            return kernels_of(lambda: fused(*given), stream), results
        except Exception as error:
            raise CannotFuseError(f"{NOT_COUNTED}: {in_a_line(error)}") from error


def in_a_line(error: Exception) -> str:
    """An error as a part of the record."""
    first, _, _ = str(error).partition("\n")
    return f"{type(error).__name__}: {first[:120]}"


def kernels_of(work: Callable[[], Any], stream: Any) -> int:
    """The kernels among what a call puts into a stream; nothing runs."""
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


COUNTERS = {"minifuse": of_minifuse, "tinygrad": of_tinygrad, "cupy": of_cupy}


def kept(path: Path = KEPT) -> dict[str, Any]:
    """What is on record: library -> version, date, and the count of each function."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {library: found[library] for library in COUNTERS if library in found}


def record(library: str, counts: dict[str, Count], path: Path = KEPT) -> None:
    """Keep the counts of a library in the place of older ones."""
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    found = kept(path) | {library: {"version": version(library), "date": date, "kernels": counts}}
    replace_content(path, json.dumps(found, indent=1) + "\n")


def version(library: str) -> str:
    """The version of a library, under the first of its names that is installed."""
    for package in PACKAGES[library]:
        try:
            return f"{package} {metadata.version(package)}"
        except metadata.PackageNotFoundError:
            continue
    return f"{library} {getattr(import_module(library), '__version__', 'of no version')}"


def table(found: dict[str, Any]) -> list[list[str]]:
    """A row for each function, under a head: what is on record of each library."""
    header = ["", *[{"cupy": "cupy.fuse"}.get(library, library) for library in found]]
    return [header, *[[f.name, *[cell(said["kernels"][f.name]) for said in found.values()]] for f in TWENTY]]


def facts(found: dict[str, Any]) -> list[str]:
    """Versions and dates, and why a library cannot fuse a function; a line each."""
    lines = [f"{said['version']}, {said['date']}" for said in found.values()]
    for library, said in found.items():
        lines += [f"{library}, {name}: {why}" for name, why in said["kernels"].items() if isinstance(why, str)]
    return lines


def cell(count: Count) -> str:
    """A count, or that there is none."""
    if isinstance(count, int):
        return str(count)
    return NOT_COUNTED if count.startswith(NOT_COUNTED) else "cannot"


def main(words: Sequence[str]) -> int:
    """Count, keep, and print."""
    if set(words) - set(COUNTERS):
        print(__doc__, file=sys.stderr)
        return 2
    for library in words:
        record(library, counted(COUNTERS[library]))
    found = kept()
    lines = table(found)
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
    for line in lines:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
    print("\n".join(facts(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
