"""All-reduce between ranks of one host: the engines, and the function of the MPI library, from 1 KB to 64 MB.

`python -m project.benchmarks.all_reduce` starts two ranks of one thread for each engine in turn, several times, prints a
table and, with --save, stores it. Times are of rank 0, in microseconds: the least median of the runs, since others may use
the machine, and the least time of all. `in place` has one array, as gradients are summed; `apart` has two.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

SIZES = [1 << k for k in range(10, 27, 2)]
RUNS = 5
BYTES_PER_TURN = 1 << 28  # so that long arrays are summed a few times only
RESULTS = Path(__file__).parent / "results" / "devices"

Times = dict[str, dict[str, list[float]]]


def measure_rank() -> None:
    """Measure as a rank; rank 0 prints the times by way and size, as JSON."""
    from minifuse.engines.base import RankGroup
    from minifuse.engines.connect import connect
    from minifuse.engines.environment import Place

    place = Place.read()
    assert place is not None
    engine: Any = connect(place)
    world = RankGroup(tuple(range(engine.size)), engine.rank)
    times: dict[str, dict[int, list[float]]] = {}
    for nbytes in SIZES:
        x, out = new_array(nbytes), new_array(nbytes)
        ways: dict[str, Callable[[], Any]] = {
            f"{engine.name} in place": lambda x=x: engine.all_reduce(world, [x], [x], np.add),
            f"{engine.name} apart": lambda x=x, out=out: engine.all_reduce(world, [out], [x], np.add),
        }
        if engine.name == "mpi":
            ways["MPI_Allreduce in place"] = lambda x=x: engine.comm.Allreduce(engine.mpi.IN_PLACE, x)
            ways["MPI_Allreduce apart"] = lambda x=x, out=out: engine.comm.Allreduce(x, out)
        else:
            ways["memcpy"] = lambda x=x, out=out: np.copyto(out, x)
        for way, call in ways.items():
            found = []
            for _ in range(max(8, min(500, BYTES_PER_TURN // nbytes))):
                engine.barrier(world)
                start = time.perf_counter()
                call()
                found.append((time.perf_counter() - start) * 1e6)
            times.setdefault(way, {})[nbytes] = [median(found), min(found)]
            x[:] = 0
    if engine.rank == 0:
        print(json.dumps(times))


def new_array(nbytes: int) -> Any:
    """Return zeros in memory of the host's pool, as tensors are."""
    from minifuse.runtime.memory_pool import allocate, round_to_size_class

    x = np.asarray(allocate(round_to_size_class(nbytes))).view(np.float32)[: nbytes // 4]
    x[:] = 0
    return x


def main() -> None:
    """Start the ranks, and print and store what they measure."""
    from . import machine  # a rank runs this file as a script

    parser = argparse.ArgumentParser("python -m project.benchmarks.all_reduce", description=__doc__)
    parser.add_argument("--save", action="store_true", help="Store the times in the folder of results.")
    is_saved = parser.parse_args().save
    best: Times = {}
    load = machine.load()
    for _ in range(RUNS):
        for engine in ("shared", "mpi"):
            command = [sys.executable, "-m", "minifuse", "launch", "-n", "2", "--engine", engine, __file__]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            for way, times in json.loads(done.stdout).items():
                for size, found in times.items():
                    kept = best.setdefault(way, {}).setdefault(size, found)
                    best[way][size] = [min(pair) for pair in zip(kept, found, strict=True)]
    print(format_table(best))
    if is_saved:
        path = RESULTS / f"all-reduce-{machine.slug()}.json"
        results = {"machine": machine.describe(), "ranks": 2, "load before": load, "median and least us": best}
        path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def format_table(times: Times) -> str:
    """Return the medians as text, and how much longer MPI_Allreduce takes than the shared engine."""
    lines = ["KB        " + "".join(f"{way:>24}" for way in times) + "   ratio in place, apart"]
    for size in map(str, SIZES):
        ratios = [
            times[f"MPI_Allreduce {kind}"][size][0] / times[f"shared {kind}"][size][0] for kind in ("in place", "apart")
        ]
        row = "".join(f"{times[way][size][0]:24.1f}" for way in times)
        lines.append(f"{int(size) // 1024:<10}{row}   " + ", ".join(f"{ratio:.1f}" for ratio in ratios))
    return "\n".join(lines)


if __name__ == "__main__":
    from minifuse.engines.environment import Place

    measure_rank() if Place.read() else main()
