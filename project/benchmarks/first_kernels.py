"""The first calls of new functions: seconds of each until the result is there, and what was compiled for them.

`python -m project.benchmarks.first_kernels cuda` prints, as JSON, the first calls of some functions, and their first
calls with another size. The kernels on disk are those of MINIFUSE_CACHE. One more function comes before, untimed: it
starts the compiler, or what loads kernels.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

FUNCTIONS = ("exp", "log1p", "sigmoid", "tanh", "sin", "sqrt", "erf")  # the first one is the untimed one
SIZE, OTHER_SIZE = 1024, 1000


def main(backend: str) -> None:
    """Call a function of its own with each operator."""
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
