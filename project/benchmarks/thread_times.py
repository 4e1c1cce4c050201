"""The times of the sweeps' operations in this process, at all sizes: with all threads, or with MINIFUSE_THREADS=1.

`python -m project.benchmarks.thread_times` prints curve -> exponent -> seconds as JSON. The number of threads is fixed when
a process starts, so a comparison runs several processes in turn.
"""

import json
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from .row import US, Bench
from .rows.sweeps import OPERATIONS, Operation
from .timer import calls_in_a_block, time_block

EXPONENTS = range(8, 23, 2)
BLOCKS = 3  # the fastest counts


def main() -> None:
    """Time minifuse alone."""
    print(json.dumps({of.curve: times(of) for of in OPERATIONS}))


def times(of: Operation) -> dict[int, float]:
    """Return the seconds of a call at each size."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench({}, np.random.default_rng(0), Path(folder))
        for exponent in EXPONENTS:
            shapes = of.shapes(1 << exponent)
            arrays = [bench.drawn(k, shape, of.is_positive) for k, shape in enumerate(shapes)]
            player = partial(of.works(bench, np.float32(shapes[0][-1]))[US], *bench.lend(US, arrays))
            player()
            calls = calls_in_a_block(player)
            found[exponent] = min(time_block(player, calls) for _ in range(BLOCKS))
    return found


if __name__ == "__main__":
    main()
