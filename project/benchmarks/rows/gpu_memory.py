"""Memory-bound work on arrays of 256 MiB on a GPU, compared with a copy of as many bytes. The clock is the device's."""

from typing import Any

import numpy as np

from minifuse.compiler.plan import call

from ..gpu import on_device
from ..row import US, Inputs, Row, Work, every, formula, normal, speed, uniform
from .large import chain, numpy_chain, softmax, softmax_backward
from .large import numpy_softmax_backward as gradient

LONG = (1 << 26,)
TABLE = (8192, 8192)
WIDTH = TABLE[1:]


def transposed(x: Any, row: Any) -> Any:
    """Return x.T * 2 + row, which reads along columns and writes along rows."""
    return x.T * 2 + row


def with_indexed(name: str, group: str, inputs: Inputs, work: Work, arrays: Work | None = None, **options: Any) -> Row:
    """Return a row of `formula` that also runs on the peer "indexed", whose kernels have one thread per element."""
    others = {"indexed": work, **options.pop("others", {})}
    return formula(name, group, inputs, work, arrays, others=others, **options)


MEMORY = [
    with_indexed("a + b", "gpu-memory", normal(LONG, LONG), lambda a, b: a + b, targets=[speed("copy", 0.9)]),
    with_indexed("exp(a)", "gpu-memory", normal(LONG), lambda a: a.exp(), np.exp),
    with_indexed("a * 2.5", "gpu-memory", normal(LONG), lambda a: a * 2.5),
    with_indexed("x + row", "gpu-memory", normal(TABLE, WIDTH), lambda x, row: x + row),
    formula(
        "x.T * 2 + row, captured as one",
        "gpu-memory",
        normal(TABLE, WIDTH),
        transposed,
        others={US: lambda x, row: call(transposed, x, row)},
    ),
    with_indexed("x.T.contiguous()", "gpu-memory", normal(TABLE), lambda x: x.T.contiguous(), lambda x: x.T.copy()),
    with_indexed(
        "chain of 8, captured as one",
        "gpu-memory",
        normal(LONG, LONG, LONG),
        chain,
        numpy_chain,
        others={US: lambda a, b, c: call(chain, a, b, c)},
    ),
]
SUMS = [
    with_indexed("x.sum()", "gpu-sums", uniform(TABLE), lambda x: x.sum(), targets=[every(1)]),
    with_indexed("x.sum(0)", "gpu-sums", uniform(TABLE), lambda x: x.sum(0), targets=[every(1)]),
    with_indexed("x.sum(1)", "gpu-sums", uniform(TABLE), lambda x: x.sum(1), targets=[every(1)]),
    with_indexed("x.max(0)", "gpu-sums", uniform(TABLE), lambda x: x.max(0), others={"torch": lambda x: x.amax(0)}),
    with_indexed("x.max(1)", "gpu-sums", uniform(TABLE), lambda x: x.max(1), others={"torch": lambda x: x.amax(1)}),
]
SOFTMAX = [
    formula("x.softmax(1)", "gpu-softmax", normal(TABLE), lambda x: x.softmax(1), softmax),
    formula(
        "x.softmax(1), forward and backward",
        "gpu-softmax",
        normal(TABLE, TABLE),
        softmax_backward,
        exact=gradient,
        without=["cupy"],
        gradients=True,
    ),
]
ROWS = [*[on_device(row, beside_copy=True) for row in MEMORY], *[on_device(row) for row in (*SUMS, *SOFTMAX)]]
