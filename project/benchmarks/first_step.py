"""The first training step of a process, and the first one with another batch size: their times and compiled kernels.

`python -m project.benchmarks.first_step` prints both as JSON. MINIFUSE_CACHE is the folder of the kernels on disk.
"""

import json
import time
from collections.abc import Callable
from typing import Any

ROWS, OTHER_ROWS = 64, 50


def main() -> None:
    """Create a network, and do one training step for each of two batch sizes."""
    import minifuse as mf
    from minifuse.optim import SGD

    model = mf.nn.Sequential(mf.nn.Linear(64, 128), mf.nn.ReLU(), mf.nn.Linear(128, 10))
    optimizer = SGD(model.parameters(), lr=0.05, momentum=0.9)

    def step(rows: int) -> None:
        optimizer.zero_grad()
        mf.nn.cross_entropy(model(mf.ones(rows, 64)), mf.zeros(rows, dtype=mf.int64)).backward()
        optimizer.step()

    print(json.dumps({"first step": observe(step, ROWS), "new size": observe(step, OTHER_ROWS)}))


def observe(step: Callable[[int], None], rows: int) -> dict[str, Any]:
    """Return the seconds of one step, and the numbers of kernels that it compiled and loaded."""
    from minifuse import cache

    before, start = cache.stats(), time.perf_counter()
    step(rows)
    seconds, after = time.perf_counter() - start, cache.stats()
    return {
        "seconds": seconds,
        "kernels compiled": after.compiled - before.compiled,
        "kernels from disk": after.loaded - before.loaded,
    }


if __name__ == "__main__":
    main()
