"""The host cost of a call, with almost no work on the GPU. The clock is the host's."""

from functools import partial
from math import nan
from typing import Any

import numpy as np

import minifuse as mf
from minifuse.compiler.plan import Plan, call

from ..gpu import BACKEND
from ..row import US, Bench, Contest, Player, Row, formula, normal, within
from .host import multiply_sum_backward
from .large import chain, numpy_chain

GROUP = "gpu-host"
N = (1024,)
THREADS = 256
RAW = """extern "C" __global__ void add(float *out, const float *a, const float *b, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] + b[i];
}"""


def add(a: Any, b: Any) -> Any:
    """Return a + b."""
    return a + b


def launches(bench: Bench) -> Contest:
    """Return the contest of launches with prepared arguments, which is the minimal work per call."""
    arrays = normal(N, N)(bench)
    plan = Plan(add, arrays)
    bound = plan.backend.compile(plan.steps[0]).load()
    out = mf.full(N if not bench.is_quick else bench.cut(N), nan, backend=BACKEND)
    run = partial(bound.run, *bound.arguments([x.address for x in (out, *arrays)]))

    def launch() -> Any:
        run()
        return out

    players: dict[str, Player] = {US: launch}
    if "torch" in bench.peers:
        a, b = bench.hand("torch", arrays, False)
        players["torch"] = partial(bench.peers["torch"].add, a, b, out=bench.peers["torch"].empty_like(a))
    if "cupy" in bench.peers:
        players["cupy"] = raw_launch(bench.peers["cupy"], *bench.hand("cupy", arrays, False))
    return Contest(players, bench.exact(add, arrays))


def raw_launch(cupy: Any, a: Any, b: Any) -> Player:
    """Return a launch of the CUDA C kernel RAW by CuPy."""
    kernel, out = cupy.RawKernel(RAW, "add"), cupy.empty_like(a)
    grid, block, arguments = (-(-a.size // THREADS),), (THREADS,), (out, a, b, np.int64(a.size))

    def launch() -> Any:
        kernel(grid, block, arguments)
        return out

    return launch


ROWS = [
    Row("a prepared launch (torch: out=, CuPy: RawKernel)", GROUP, launches, (within(5, "us"),)),
    formula("a + b", GROUP, normal(N, N), add, targets=[within(7, "us")]),
    formula("a + b, recorded for gradients", GROUP, normal(N, N), add, without=["cupy"], gradients=True),
    formula(
        "chain of 8, captured as one",
        GROUP,
        normal(N, N, N),
        chain,
        numpy_chain,
        others={US: lambda a, b, c: call(chain, a, b, c)},
    ),
    formula(
        "(x * y).sum().backward()",
        GROUP,
        normal(N, N),
        multiply_sum_backward,
        exact=lambda x, y: y,
        without=["cupy"],
        gradients=True,
    ),
]
