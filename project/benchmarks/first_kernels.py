"""The first calls of new functions: the seconds until each result is complete, and the number of compiled kernels.

`python -m project.benchmarks.first_kernels cuda` prints, as JSON, the first calls of some functions, and their first
calls with another size. MINIFUSE_CACHE is the folder of the kernels on disk. Another function is called before, untimed: it
starts the compiler or the kernel loader.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

FUNCTIONS = ("exp", "log1p", "sigmoid", "tanh", "sin", "sqrt", "erf")  # the first one is the untimed one
SIZE, OTHER_SIZE = 1024, 1000


def main(backend: str) -> None:
    """Call a separate function with each operator."""
    import minifuse as mf
    from minifuse import cache
    from minifuse.compiler.plan import call

    def chained(name: str) -> Callable[..., Any]:
        def chain(a: Any, b: Any) -> Any:
            return getattr(a * b + a, name)() * b - a

        return chain

    def seconds(chain: Callable[..., Any], size: int) -> float:
        a, b = mf.ones(size, backend=backend), mf.ones(size, backend=backend)
        mf.synchronize(backend)
        start = time.perf_counter()
        call(chain, a, b)
        mf.synchronize(backend)
        return time.perf_counter() - start

    chains = [chained(name) for name in FUNCTIONS]
    first = [seconds(chain, SIZE) for chain in chains][1:]
    other = [seconds(chain, OTHER_SIZE) for chain in chains][1:]
    stats = cache.stats()
    counts = {"kernels compiled": stats.compiled, "kernels from disk": stats.loaded}
    print(json.dumps({"first call": first, "new size": other, "counts": counts}))


if __name__ == "__main__":
    main(*sys.argv[1:])
