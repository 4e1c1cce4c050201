"""The first calls of new functions on a GPU: seconds of each until the result is there, and what was compiled for them.

`python -m project.benchmarks.first_kernels` prints both as JSON. The kernels on disk are those of MINIFUSE_CACHE. One more
function comes before, untimed: it starts the compiler, or what loads kernels.
"""

import json
import time
from typing import Any

FUNCTIONS = ("exp", "log1p", "sigmoid", "tanh", "sin", "sqrt", "erf")  # the first one is the untimed one


def main() -> None:
    """Call a function of its own with each operator."""
    import minifuse as mf
    from minifuse import cache
    from minifuse.graph.plan import call

    a, b = mf.ones(1024, backend="cuda"), mf.ones(1024, backend="cuda")

    def seconds(name: str) -> float:
        def chain(a: Any, b: Any) -> Any:
            return getattr(a * b + a, name)() * b - a

        mf.synchronize("cuda")
        start = time.perf_counter()
        call(chain, a, b)
        mf.synchronize("cuda")
        return time.perf_counter() - start

    found = [seconds(name) for name in FUNCTIONS][1:]
    stats = cache.stats()
    print(json.dumps({"seconds": found, "kernels compiled": stats.compiled, "kernels from disk": stats.loaded}))


if __name__ == "__main__":
    main()
