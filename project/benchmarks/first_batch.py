"""The time until a network has learned from its first batch: data, model, and a training step, in a new process.

`python -m project.benchmarks.first_batch gpt cuda` prints seconds, kernels and memory as JSON; with `demo` in place of a
recipe, it trains the network of `minifuse demo` for one epoch. The import is not timed. MINIFUSE_CACHE is the folder of the
kernels on disk.
"""

import json
import re
import sys
import time
from pathlib import Path

DEMO = "demo"


def main(name: str, backend: str) -> None:
    """Do one training step."""
    from minifuse import cache
    from minifuse.cli.training import train_digits
    from minifuse.recipes import recipe_named
    from minifuse.training import Trainer

    start = time.perf_counter()
    if name == DEMO:
        train_digits(epochs=1, backend=backend)
    else:
        recipe = recipe_named(name)
        next(Trainer(recipe, recipe.settings.changed({"backend": backend})).advance(1))
    seconds, stats = time.perf_counter() - start, cache.stats()
    counts = {"kernels compiled": stats.compiled, "kernels from disk": stats.loaded} | memory()
    print(json.dumps({"seconds": seconds, "counts": counts}))


def memory() -> dict[str, int]:
    """Return the peak memory of this process on Linux, else None. (getrusage includes the parent.)"""
    path = Path("/proc/self/status")
    found = re.search(r"^VmHWM:\s*(\d+) kB", path.read_text(), re.MULTILINE) if path.exists() else None
    return {"MiB at most": int(found[1]) >> 10} if found else {}


if __name__ == "__main__":
    main(*sys.argv[1:])
