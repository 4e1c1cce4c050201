"""Run operators with pairs of element types on one backend: `python -m tests.thorough.pairs parallel pow`.

A process of its own, since what is looked for ends the process: a missing symbol, a signal, an assertion of a compiler. It
prints how many pairs it ran. `pow:float64,int32` names one pair of an operator.

Of each pair the operator runs as it is, fused with other operators and a fold, and as a kernel of `mf.elementwise`. On
`ptx` the kernels are compiled for a GPU and not run.
"""

import sys

import numpy as np

import minifuse as mf
from minifuse.core.dtypes import DTYPES
from minifuse.core.errors import DTypeError
from minifuse.core.operators import TABLE
from minifuse.testing import assert_close
from tests.equivalence.meanings import is_condition, judge, kind_of, numpy_dtype, operands, view

BACKENDS = ["python", "parallel", "cuda", "ptx"]
SHAPE = (2, 5)
NUMBERS = {"a float": 2.5, "an int": 3, "a bool": True}  # of Python, beside an array
LARGEST_CANCELLED = 5.0  # operand of `gelu` that cancels
LEAST = 0.1  # a condition on 0 would ask whether a float32 underflows


def pairs(entry):
    """Return the names of all combinations of operands; of three operands the first or the last two have one type."""
    names = [dtype.name for dtype in DTYPES]
    if entry.arity == 1:
        return names
    return [f"{a},{b}" for a in [*names, *NUMBERS] for b in [*names, *NUMBERS] if not {a, b} <= {*NUMBERS}]


def inputs_of(entry, pair):
    """Return the operands of a pair as NumPy arrays and Python numbers."""
    kinds = pair.split(",")
    if entry.arity == 3:
        kinds = ["bool", *kinds] if is_condition(entry.name, 0) else [kinds[0], kinds[1], kinds[1]]
    recipes = [view(SHAPE)] * len(kinds)
    return [NUMBERS[kind] if kind in NUMBERS else operands(entry.name, kind, recipes)[k] for k, kind in enumerate(kinds)]


def check(entry, inputs):
    """Run the operator on operands; compare with NumPy."""
    tensors = [mf.tensor(x) if isinstance(x, np.ndarray) else x for x in inputs]
    try:
        y = entry(*tensors)
    except DTypeError:
        return  # that an operator is not made for a type is a result too
    common = np.result_type(*[x for k, x in enumerate(inputs) if not is_condition(entry.name, k)])
    arrays = [x if isinstance(x, np.ndarray) else np.asarray(x, common) for x in inputs]
    assert y.dtype.numpy == numpy_dtype(entry.name, *arrays), y.dtype
    expected = judge(entry.name, *[a.astype(np.float64) if y.dtype.is_float else a for a in arrays])
    kind = "transcendental" if kind_of(entry.name) == "exact" else kind_of(entry.name)
    assert_close(y, expected, kind, scale=LARGEST_CANCELLED, what=entry.name)
    with np.errstate(all="ignore"):  # infinities of division by 0, and their sums
        of_fused = np.where(expected > LEAST, 1, expected), (expected + 1).sum(-1)
    fused = mf.fuse(lambda *xs: (mf.where(entry(*xs) > LEAST, 1, entry(*xs)), (entry(*xs) + 1).sum(-1)))
    for found, wanted in zip(fused(*tensors), of_fused, strict=True):
        assert_close(found, wanted, "composed", scale=10 * LARGEST_CANCELLED, what=f"{entry.name}, fused")
    of_elements = (lambda a: entry(a), lambda a, b: entry(a, b), lambda a, b, c: entry(a, b, c))[entry.arity - 1]
    assert_close(
        mf.elementwise(of_elements)(*tensors), expected, kind, scale=LARGEST_CANCELLED, what=f"{entry.name} of elements"
    )


def compile_only(entry, inputs):
    """Compile the kernels of an operator for a GPU."""
    from tests.ptx.test_kernels_ptx import NEW, Case, kernels, ptx_of

    tensors = tuple(mf.tensor(x) if isinstance(x, np.ndarray) else x for x in inputs)
    try:
        found = [text for _, text in kernels(Case(entry, tensors))]
    except DTypeError:
        return
    for text in found:
        assert ".entry" in ptx_of(text, NEW)


def main(backend, *chosen):
    """Run the pairs of some operators on a backend."""
    count = 0
    with mf.use_backend("parallel" if backend == "ptx" else backend):
        for name, _, pair in (choice.partition(":") for choice in chosen):
            for each in [pair] if pair else pairs(TABLE[name]):
                try:
                    (compile_only if backend == "ptx" else check)(TABLE[name], inputs_of(TABLE[name], each))
                except Exception as error:
                    error.add_note(f"{name} of {each} on {backend}")
                    raise
                count += 1
    print(count)


if __name__ == "__main__":
    main(*sys.argv[1:])
