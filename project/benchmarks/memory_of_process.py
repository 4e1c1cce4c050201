"""The memory of a function at increasing sizes: the peak of the memory pool during a call, beside its inputs.

`python -m project.benchmarks.memory_of_process fused` prints exponent -> [seconds, KiB] as JSON; `eager` the same
without fusion.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

EXPONENTS = range(10, 25, 2)


def main(how: str) -> None:
    """Run the chain and its backward pass at each size."""
    import minifuse as mf

    from .rows.large import chain

    def step(a: Any, b: Any, c: Any) -> Any:
        return mf.grad(lambda a: chain(a, b, c).sum())(a)

    work: Callable[..., Any] = mf.fuse(step) if how == "fused" else step
    print(json.dumps({exponent: at_size(work, exponent) for exponent in EXPONENTS}))


def at_size(work: Callable[..., Any], exponent: int) -> tuple[float, int]:
    """Return the seconds of a call, and its peak KiB beside the inputs. Sizes rise, so the peak is that of this size."""
    import minifuse as mf

    mf.memory.trim()
    inputs = [mf.rand(1 << exponent) for _ in range(3)]
    held = mf.memory.stats().in_use
    work(*inputs)
    start = time.perf_counter()
    work(*inputs)
    return time.perf_counter() - start, (mf.memory.stats().peak - held) >> 10


if __name__ == "__main__":
    main(*sys.argv[1:])
