"""A backend as somebody else would write it: four methods with NumPy, and no look at how the others do it."""

import numpy as np

from minifuse.backends.base import Backend, identity_for
from minifuse.core.dtypes import BY_NUMPY
from minifuse.core.operators import Operator

NAMES = {"sub": "subtract", "mul": "multiply", "div": "divide", "mod": "remainder", "floordiv": "floor_divide"} | {
    "neg": "negative", "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
    "ge": "greater_equal", "and_": "bitwise_and", "or_": "bitwise_or", "pow": "power",
}  # fmt: skip


def compute(op, *arrays):
    """op of every element: at once where NumPy can, else one after the other."""
    scalar = op.body if isinstance(op, Operator) else op
    whole = getattr(np, NAMES.get(op.name, op.name), scalar) if isinstance(op, Operator) else op
    try:
        return whole(*arrays)
    except (TypeError, ValueError):  # only numbers can branch, and only they can be integers to a negative power
        values = [scalar(*xs) for xs in zip(*[a.reshape(-1) for a in arrays], strict=True)]
        return np.array(values).reshape(arrays[0].shape)


class Stranger(Backend):
    """NumPy, one operation at a time."""

    name = "stranger"

    def map(self, op, a, out):
        """out[i] = op(a[i])."""
        with np.errstate(all="ignore"):
            out.array()[...] = compute(op, a.array())

    def zip(self, op, a, b, out):
        """out[i] = op(a[i], b[i])."""
        with np.errstate(all="ignore"):
            out.array()[...] = compute(op, a.array(), b.array())

    def reduce(self, op, a, out, dims):
        """out[i] = the fold of a[i] along dims."""
        start = identity_for(op, BY_NUMPY[a.data.dtype])
        name = getattr(op, "name", "")
        fold = getattr(np, NAMES.get(name, name), None) or np.frompyfunc(op, 2, 1, identity=start)
        with np.errstate(all="ignore"):
            out.array()[...] = fold.reduce(a.array(), axis=tuple(dims), keepdims=True, initial=start)

    def matmul(self, a, b, out):
        """out[..., m, n] = sum over k of a[..., m, k] * b[..., k, n]."""
        with np.errstate(all="ignore"):
            np.matmul(a.array(), b.array(), out=out.array())
