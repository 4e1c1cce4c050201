"""Error messages: a table of wrong calls, the class of each error, and the words that its message must contain.

A wrong call changes nothing: every row also compares its operands with copies made before.
"""

import pickle
import re
import sys
from inspect import getsourcelines
from math import inf, nan
from types import SimpleNamespace

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.python import PythonBackend
from minifuse.core import errors
from minifuse.core.errors import (
    BackendError,
    DTypeError,
    FuseError,
    GradientError,
    IndexingError,
    MinifuseError,
    NoDimsError,
    OverlapError,
    ShapeError,
    ViewError,
    short_file,
)


def operands():
    """Fresh ones for each row: a, b floats; i integers; m a mask; g wants a gradient; p on another backend."""
    return SimpleNamespace(
        a=mf.arange(6, dtype="float32").reshape(2, 3),
        b=mf.arange(4, dtype="float32"),
        v=mf.tensor([1.0, 2.0, 3.0]),
        d=mf.tensor([1.0, 2.0, 3.0], dtype="float64"),
        i=mf.tensor([1, 2, 3]),
        m=mf.tensor([True, False, True]),
        n=mf.tensor(3.0),
        g=mf.tensor([1.0, 2.0, 3.0], requires_grad=True),
        p=mf.ones(3, backend="python"),
        empty=mf.zeros(2, 0),
        wide=mf.tensor([5.0]).expand(3),
        read_only=mf.from_numpy(np.broadcast_to(np.float32(1), (3,)).view()),
    )


def state(tensors):
    """All that can change of the operands."""
    return {
        name: (x.detach().tolist(), x.meta, x.grad if x.grad is None else x.grad.tolist(), x.grad_fn)
        for name, x in vars(tensors).items()
    }


def check(call, error, parts):
    before = operands()
    tensors = operands()
    with pytest.raises(MinifuseError) as raised:
        call(tensors)
    assert type(raised.value) is error
    message = str(raised.value)
    for part in parts:
        assert part in message
    assert "<function" not in message  # no address means anything to a reader
    assert state(tensors) == state(before)


# Statements, so that the table can hold them.


def put(x, index, value):
    x[index] = value


def iadd(x, y):
    x += y


def itruediv(x, y):
    x /= y


def imul(x, y):
    x *= y


def twice(y):
    y.backward()
    y.backward()


def changed_after_use(x):
    hidden = x * 1.5
    y = (hidden * hidden).sum()
    with mf.no_grad():
        hidden += 1
    y.backward()


class Taken(PythonBackend):
    name = "parallel"


SHAPES = {
    "broadcast": (
        lambda o: o.a + o.b,
        ShapeError,
        "shapes (2, 3) and (4,) do not broadcast",
        "dim -1 has sizes 3 and 4",
        "equal or 1",
    ),
    "where broadcasts too": (lambda o: mf.where(o.m, o.a, o.b), ShapeError, "(3,) and (2, 3) and (4,) do not broadcast"),
    "matmul, inner sizes": (
        lambda o: o.a @ o.b[:, None],
        ShapeError,
        "matmul: inner sizes differ, rows of a have 3 elements (shape (2, 3)), columns of b have 4 (shape (4, 1))",
    ),
    "matmul of vectors": (
        lambda o: o.v @ o.b,
        ShapeError,
        "matmul: inner sizes differ, rows of a have 3 elements (shape (3,)), columns of b have 4 (shape (4,))",
    ),
    "matmul, 0-d": (lambda o: o.a @ o.n, ShapeError, "matmul: got shapes (2, 3) and ()", "use * for numbers"),
    "matmul, a number": (lambda o: 2 @ o.a, ShapeError, "matmul: got shapes () and (2, 3)", "use * for numbers"),
    "matmul, batch dims": (
        lambda o: mf.ones(2, 3, 4) @ mf.ones(5, 4, 2),
        ShapeError,
        "matmul",
        "(2, 3, 4)",
        "(5, 4, 2)",
        "(2,) and (5,) do not broadcast",
    ),
    "reshape, count": (lambda o: o.a.reshape(4, 2), ShapeError, "reshape: 6 elements do not fit (4, 2), which has 8"),
    "reshape, -1 left over": (
        lambda o: o.a.reshape(-1, 4),
        ShapeError,
        "reshape: 6 elements do not fit (-1, 4): 6 is not a multiple of 4",
    ),
    "reshape, two -1": (lambda o: o.a.reshape(-1, -1), ShapeError, "has 2 sizes of -1; only one may be -1"),
    "reshape, -1 beside 0": (
        lambda o: o.empty.reshape(-1, 0),
        ShapeError,
        "the -1 in (-1, 0) is ambiguous",
        "write the size",
    ),
    "reshape, negative": (lambda o: o.a.reshape(-2, -3), ShapeError, "(-2, -3) has a negative size", "one may be -1"),
    "reshape, float": (lambda o: o.a.reshape(2.0, 3), ShapeError, "sizes are integers, got 2.0 (float)"),
    "view, count": (lambda o: o.a.view(5), ShapeError, "6 elements do not fit (5,), which has 5"),
    "view, strides": (
        lambda o: o.a.T.view(6),
        ViewError,
        "(3, 2) with strides (1, 3) to (6,) is not a view",
        "dims 0 and 1 would have to merge",
        "write x.reshape(...), which copies",
    ),
    "expand, size": (
        lambda o: o.a.expand(4, 3),
        ShapeError,
        "expand: (2, 3) to (4, 3): dim 0 has size 2 and cannot become 4; only size 1 repeats",
    ),
    "expand, fewer dims": (lambda o: o.a.expand(3), ShapeError, "expand: (2, 3) to (3,) would drop dims"),
    "expand, -1 for a new dim": (
        lambda o: o.v.expand(-1, 3),
        ShapeError,
        "expand: (3,) to (-1, 3)",
        "-1 keeps the size of an existing dim",
    ),
    "permute, twice": (lambda o: o.a.permute(0, 0), ShapeError, "dims (0, 0) name dim 0 twice"),
    "permute, too few": (
        lambda o: o.a.permute(0),
        ShapeError,
        "permute: got 1 dims (0,) for shape (2, 3); name each of the 2 dims once",
    ),
    "transpose, range": (
        lambda o: o.a.transpose(0, 2),
        ShapeError,
        "dim 2 is out of range for a tensor of 2 dims; valid are -2 to 1",
    ),
    "mT of a vector": (lambda o: o.v.mT, ShapeError, "out of range for a tensor of 1 dims"),
    "sum, range": (lambda o: o.a.sum(2), ShapeError, "dim 2 is out of range for a tensor of 2 dims; valid are -2 to 1"),
    "sum, twice": (lambda o: o.a.sum((0, -2)), ShapeError, "dims (0, -2) name dim 0 twice"),
    "sum, float": (lambda o: o.a.sum(1.0), ShapeError, "a dim is an integer, got 1.0 (float)"),
    "sum, bool": (lambda o: o.a.sum(True), ShapeError, "a dim is an integer, got True (bool)"),
    "sum, 0-d": (lambda o: o.n.sum(0), ShapeError, "dim 0 is out of range for a tensor of 0 dims"),
    "softmax, range": (lambda o: o.a.softmax(-3), ShapeError, "dim -3 is out of range", "valid are -2 to 1"),
    "unsqueeze, range": (lambda o: o.a.unsqueeze(4), ShapeError, "dim 4 is out of range", "valid are -3 to 2"),
    "squeeze, range": (lambda o: o.a.squeeze(2), ShapeError, "dim 2 is out of range"),
    "flip, twice": (lambda o: o.a.flip(0, 0), ShapeError, "dims (0, 0) name dim 0 twice"),
    "flatten, order": (lambda o: o.a.flatten(1, 0), ShapeError, "start_dim 1 comes after end_dim 0"),
    "max of nothing": (lambda o: o.empty.max(), ShapeError, "max: shape (2, 0) has no elements"),
    "min of nothing along a dim": (lambda o: o.empty.min(1), ShapeError, "min: shape (2, 0) has no elements along dim 1"),
    "argmax of nothing": (lambda o: o.empty.argmax(), ShapeError, "argmax: shape (2, 0) has no elements to choose from"),
    "argmin of two dims": (lambda o: o.a.argmin((0, 1)), ShapeError, "a dim is an integer, got (0, 1) (tuple)"),
    "item of many": (
        lambda o: o.a.item(),
        ShapeError,
        "item: shape (2, 3) has 6 elements, expected 1; index it first, or use tolist()",
    ),
    "float of many": (lambda o: float(o.v), ShapeError, "shape (3,) has 3 elements, expected 1"),
    "truth of many": (
        lambda o: bool(o.v),
        ShapeError,
        "bool: shape (3,) has 3 elements, expected 1; use x.any() or x.all()",
    ),
    "truth of none": (lambda o: bool(o.empty), ShapeError, "bool: shape (2, 0) has 0 elements"),
    "len of 0-d": (lambda o: len(o.n), NoDimsError, "len: a 0-d array", "use x.item()"),
    "for over 0-d": (lambda o: list(o.n), NoDimsError, "0-d", "use x.item()"),
    "negative size": (lambda o: mf.zeros(2, -3), ShapeError, "shape (2, -3) has a negative size; sizes are 0 or more"),
    "size of text": (lambda o: mf.ones("2"), ShapeError, "sizes are integers, got '2' (str)"),
    "size of None": (lambda o: mf.ones(None), ShapeError, "sizes are integers, got None (NoneType)"),
    "arange, step 0": (
        lambda o: mf.arange(0, 3, 0),
        ShapeError,
        "start 0, stop 3, step 0 have no finite number of elements",
    ),
    "arange to infinity": (lambda o: mf.arange(inf), ShapeError, "stop inf", "no finite number of elements"),
    "ragged lists": (lambda o: mf.tensor([[1, 2], [3]]), ShapeError, "nested lists have different lengths", "pad them"),
    "ragged list added in place": (lambda o: iadd(o.v, [1, [2]]), ShapeError, "nested lists have different lengths"),
}

DTYPES = {
    "complex number": (lambda o: o.v + 1j, DTypeError, "expected a tensor or a real number, got complex (1j)"),
    "complex data": (lambda o: mf.tensor([1j]), DTypeError, "complex128", "expected real numbers"),
    "complex array": (
        lambda o: o.v * np.ones(3, complex),
        DTypeError,
        "complex128",
        "float32, float64, int8, int16, int32, int64, uint8, bool",
    ),
    "complex dtype": (
        lambda o: mf.zeros(2, dtype=complex),
        DTypeError,
        "complex",
        "use one of float32, float64, int8, int16, int32, int64, uint8, bool",
    ),
    "float16": (
        lambda o: mf.tensor(np.ones(2, np.float16)),
        DTypeError,
        "float16 (shape (2,)) is not supported",
        "array.astype(",
    ),
    "uint16": (
        lambda o: mf.tensor(np.ones(2, np.uint16)),
        DTypeError,
        "uint16 (shape (2,)) is not supported",
        "array.astype(",
    ),
    "datetime": (
        lambda o: mf.tensor(np.array(["2020-01-01"], "M8[D]")),
        DTypeError,
        "datetime64[D]",
        "expected real numbers",
    ),
    "text": (lambda o: mf.tensor("abc"), DTypeError, "<U3", "expected real numbers"),
    "list of text": (lambda o: mf.tensor(["a", "b"]), DTypeError, "<U1 (shape (2,))", "expected real numbers"),
    "None": (lambda o: mf.tensor(None), DTypeError, "object (shape ())", "expected real numbers"),
    "None in a list": (lambda o: mf.tensor([1, None]), DTypeError, "object (shape (2,))", "expected real numbers"),
    "object array": (
        lambda o: mf.tensor(np.array([1, "a"], object)),
        DTypeError,
        "object (shape (2,))",
        "expected real numbers",
    ),
    "unknown name": (
        lambda o: mf.zeros(2, dtype="float"[::-1]),
        DTypeError,
        "dtype 'taolf' is not supported; use one of float32, float64, int8, int16, int32, int64, uint8, bool",
    ),
    "name of a smaller float": (
        lambda o: mf.zeros(2, dtype="float16"),
        DTypeError,
        "dtype 'float16' is not supported; use one of float32",
    ),
    "integer beyond int64": (lambda o: mf.tensor(2**70), DTypeError, "int64"),
    "integer beyond int32": (lambda o: mf.tensor([1, 2**40], dtype="int32"), DTypeError, "int32"),
    "nan as an integer": (lambda o: mf.tensor([nan], dtype=int), DTypeError, "nan", "int64"),
    "from_numpy of a list": (lambda o: mf.from_numpy([1, 2]), DTypeError, "expected a NumPy array, got list; use mf.tensor"),
    "from_numpy of float16": (lambda o: mf.from_numpy(np.ones(2, np.float16)), DTypeError, "float16", "array.astype("),
    "from_numpy of foreign bytes": (lambda o: mf.from_numpy(np.ones(2, ">f4")), DTypeError, ">f4", "array.astype("),
    "from_numpy of a record": (
        lambda o: mf.from_numpy(np.zeros(3, [("a", "u1"), ("b", "f4")])["b"]),
        ViewError,
        "strides (5,) (bytes) are not multiples of the size of float32; pass array.copy()",
    ),
    "from_dlpack of a number": (lambda o: mf.from_dlpack(3), DTypeError, "from_dlpack", "int"),
    "zeros_like of a list": (lambda o: mf.zeros_like([1, 2]), DTypeError, "list", "tensor"),
    "full of a list": (lambda o: mf.full((2,), [1, 2, 3]), DTypeError, "full", "list"),
    "full of text": (lambda o: mf.full((2,), "a"), DTypeError, "real number"),
    "arange of text": (lambda o: mf.arange("3"), DTypeError, "arange", "str"),
    "random integers": (
        lambda o: mf.rand(2, dtype=int),
        DTypeError,
        "rand: got dtype int64, expected a float type; use float32 or float64",
    ),
    "text as an operand": (lambda o: o.v + "a", DTypeError, "expected a tensor or a real number, got str ('a')"),
    "None as an operand": (lambda o: o.v * None, DTypeError, "expected a tensor or a real number, got NoneType (None)"),
    "list as an operand": (
        lambda o: o.v.__add__([1, 2, 3]),
        DTypeError,
        "got list ([1, 2, 3]); wrap arrays and lists in mf.tensor",
    ),
    "operator on a list": (
        lambda o: mf.exp([1.0, 2.0]),
        DTypeError,
        "got list ([1.0, 2.0]); wrap arrays and lists in mf.tensor",
    ),
    "compared with text": (lambda o: o.v < "a", DTypeError, "expected a tensor or a real number, got str ('a')"),
    "Scalar beside a tensor": (lambda o: mf.Scalar(1.0) + o.v, DTypeError, "Tensor", "Scalar"),
    "tensor beside a Scalar": (lambda o: o.v + mf.Scalar(1.0), DTypeError, "got Scalar (Scalar(1.0))"),
    "Scalar of text": (lambda o: mf.Scalar("a"), DTypeError, "expected a real number, got str ('a')"),
    "Scalar and text": (lambda o: mf.Scalar(1.0) + "a", DTypeError, "got str ('a')"),
    "Scalar bit by bit": (lambda o: mf.Scalar(1.0) & 1, DTypeError, "and_", "expected integers and bools"),
    "neg of bools": (
        lambda o: -o.m,
        DTypeError,
        "neg: got bool, expected numbers; convert bools first, as in x.to(mf.int64)",
    ),
    "sub of bools": (lambda o: o.m - o.m, DTypeError, "sub: got bool, expected numbers", "x.to(mf.int64)"),
    "floordiv of bools": (lambda o: o.m // o.m, DTypeError, "floordiv: got bool, expected numbers", "x.to(mf.int64)"),
    "bools to a power": (lambda o: o.m**o.m, DTypeError, "pow: got bool, expected numbers", "x.to(mf.int64)"),
    "bools squared": (lambda o: o.m**True, DTypeError, "pow: got bool, expected numbers", "x.to(mf.int64)"),
    "& of floats": (lambda o: o.v & o.v, DTypeError, "and_: got float32, expected integers and bools"),
    "~ of floats": (lambda o: ~o.v, DTypeError, "invert: got float32, expected integers and bools"),
    "where, a float condition": (
        lambda o: mf.where(o.v, o.v, 0),
        DTypeError,
        "where: got a condition of float32, expected bool; compare first, as in x != 0",
    ),
    "where, an integer condition": (
        lambda o: mf.where(o.i, o.v, 0),
        DTypeError,
        "where: got a condition of int64, expected bool; compare first",
    ),
    "integer to a negative power": (
        lambda o: o.i**-1,
        DTypeError,
        "pow: an integer to the power -1 is not an integer; convert first, as in x.to(mf.float32)",
    ),
    "clip without bounds": (lambda o: o.v.clip(), DTypeError, "clip: got neither low nor high; give at least one of them"),
    "clip of a number without bounds": (
        lambda o: mf.clip(1.0),
        DTypeError,
        "clip: got neither low nor high; give at least one of them",
    ),
    "np.exp with out=": (
        lambda o: np.exp(o.v, out=np.ones(3)),
        DTypeError,
        "np.exp(..., out=): got ndarray",
        "write y[...] = np.exp(...)",
    ),
    "np.add with where=": (lambda o: np.add(o.v, 1, where=np.ones(3, bool)), DTypeError, "np.add(..., where=", "np.where"),
    "np.subtract.accumulate": (
        lambda o: np.subtract.accumulate(o.v),
        DTypeError,
        "np.subtract.accumulate",
        "np.asarray(x)",
    ),
    "unsupported ufunc": (
        lambda o: np.spacing(o.v),
        DTypeError,
        "np.spacing is not in minifuse",
        "np.asarray(x)",
    ),
    "requires_grad of integers": (
        lambda o: o.i.requires_grad_(),
        DTypeError,
        "requires_grad: got int64, expected a float type; convert it with x.to(mf.float32)",
    ),
    "created with requires_grad": (
        lambda o: mf.ones(2, dtype=bool, requires_grad=True),
        DTypeError,
        "requires_grad: got bool, expected a float type",
    ),
    "grad of integers": (
        lambda o: mf.grad(lambda x: x.sum())(o.i),
        DTypeError,
        "grad: argument 0 is a tensor of int64, expected a tensor of floats",
        "argnums",
    ),
    "grad of a number": (
        lambda o: mf.grad(lambda x: x)(3.0),
        DTypeError,
        "grad: argument 0 is float, expected a tensor of floats",
    ),
}

IN_PLACE = {
    "integers += float": (
        lambda o: iadd(o.i, 1.5),
        DTypeError,
        "add: cannot store a result of dtype float64 in a tensor of dtype int64; convert it first",
    ),
    "integers /= integer": (
        lambda o: itruediv(o.i, 2),
        DTypeError,
        "div: cannot store a result of dtype float64 in a tensor of dtype int64",
    ),
    "integers set to floats": (lambda o: put(o.i, 0, 1.5), DTypeError, "dtype float64 in a tensor of dtype int64"),
    "bools += integer": (
        lambda o: iadd(o.m, 1),
        DTypeError,
        "add: cannot store a result of dtype int64 in a tensor of dtype bool",
    ),
    "result larger than the target": (
        lambda o: iadd(o.v, o.a),
        ShapeError,
        "add: cannot store a result of shape (2, 3) in a tensor of shape (3,)",
        "write y = y + x",
    ),
    "another shape": (lambda o: imul(o.v, o.b), ShapeError, "shapes (3,) and (4,) do not broadcast"),
    "values of another shape": (
        lambda o: put(o.v, slice(None), o.b[:2]),
        ShapeError,
        "assign: cannot store a result of shape (2,) in a tensor of shape (3,)",
    ),
    "too long a list": (
        lambda o: put(o.v, slice(0, 2), [1, 2, 3]),
        ShapeError,
        "assign: cannot store a result of shape (3,) in a tensor of shape (2,)",
    ),
    "set to text": (lambda o: put(o.v, 0, "a"), DTypeError, "expected a tensor or a real number, got str ('a')"),
    "set to None": (lambda o: put(o.v, 0, None), DTypeError, "got NoneType (None)"),
    "set to a complex number": (lambda o: put(o.v, 0, 1j), DTypeError, "got complex (1j)"),
    "+= None": (lambda o: iadd(o.v, None), DTypeError, "got NoneType (None)"),
    "filled with None": (lambda o: o.v.fill_(None), DTypeError, "got NoneType (None)"),
    "expanded target": (
        lambda o: iadd(o.wide, 1),
        OverlapError,
        "in-place write to shape (3,) with strides (0,): several elements share one memory location",
        "write to x.clone()",
    ),
    "expanded target, set": (
        lambda o: put(o.wide, slice(1, None), 1.0),
        OverlapError,
        "several elements share one memory location",
        "write to x.clone()",
    ),
    "read-only memory": (lambda o: iadd(o.read_only, 1), OverlapError, "read-only memory (shape (3,)); write to x.clone()"),
    "leaf that wants a gradient": (
        lambda o: iadd(o.g, 1),
        GradientError,
        "an in-place operation is not recorded",
        "shape (3,) requires a gradient",
        "x = x + y instead of x += y",
        "mf.no_grad()",
    ),
    "element of such a leaf": (
        lambda o: put(o.g, 0, 1.0),
        GradientError,
        "an in-place operation is not recorded",
        "x = mf.where(mask, y, x) instead of x[...] = y",
        "mf.no_grad()",
    ),
    "value that wants a gradient": (
        lambda o: iadd(o.v, o.g),
        GradientError,
        "an in-place operation is not recorded",
        "shape (3,) requires a gradient",
    ),
    "relu_ of a leaf": (lambda o: o.g.relu_(), GradientError, "x = x.relu() instead of x.relu_()"),
    "zero_ of a leaf": (lambda o: o.g.zero_(), GradientError, "an in-place operation is not recorded", "mf.no_grad()"),
    "values of another backend": (
        lambda o: o.v.copy_(o.p),
        BackendError,
        "assign: operands are on two backends, parallel and python",
        'x.to("parallel")',
    ),
    "item set while captured": (lambda o: mf.source(lambda x: put(x, 0, 1) or x, o.v), FuseError, "in place"),
}

GRADIENTS = {
    "backward of many": (
        lambda o: (o.g * 2).backward(),
        GradientError,
        "got shape (3,) with 3 elements, expected one element",
        "call sum() or mean() first, or pass gradient=",
    ),
    "backward without requires_grad": (
        lambda o: o.v.sum().backward(),
        GradientError,
        "does not depend on anything that requires a gradient; set requires_grad=True",
    ),
    "backward under no_grad": (
        lambda o: mf.no_grad()(lambda: o.g.sum().backward())(),
        GradientError,
        "does not depend on anything that requires a gradient",
    ),
    "gradient of another shape": (
        lambda o: (o.g * 2).backward(o.b),
        GradientError,
        "gradient is float32 (4,), expected float32 (3,), as this tensor",
    ),
    "gradient of another dtype": (
        lambda o: (o.g * 2).backward(o.d),
        GradientError,
        "gradient is float64 (3,), expected float32 (3,), as this tensor",
    ),
    "gradient on another backend": (lambda o: (o.g * 2).backward(o.p), BackendError, "python", "parallel"),
    "gradient as a list": (
        lambda o: (o.g * 2).backward([1, 1, 1]),
        GradientError,
        "gradient is list, expected float32 (3,), as this tensor",
    ),
    "gradient as a number": (
        lambda o: (o.g * 2).sum().backward(2.0),
        GradientError,
        "gradient is float, expected float32 (), as this tensor",
    ),
    "changed after it was used": (
        lambda o: changed_after_use(o.g),
        GradientError,
        "shape (3,)",
        "needs was modified in place after it was used",
        "clone()",
    ),
    "requires_grad=False on a result": (
        lambda o: setattr(o.g * 2, "requires_grad", False),
        GradientError,
        "computed from others; use x.detach()",
    ),
    "grad of many": (
        lambda o: mf.grad(lambda x: x * 2)(o.v),
        GradientError,
        "grad: the function returned shape (3,), expected a tensor of one element",
        "sum() or mean()",
    ),
    "grad of a function without a result": (
        lambda o: mf.grad(lambda x: None)(o.v),
        GradientError,
        "the function returned NoneType",
    ),
    "grad by an argument that is not there": (
        lambda o: mf.grad(lambda x: x.sum(), argnums=1)(o.v),
        IndexingError,
        "argument 1",
        "called with 1",
    ),
    "backward of a Scalar that wants none": (
        lambda o: mf.Scalar(1.0, requires_grad=False).backward(),
        GradientError,
        "set requires_grad=True",
    ),
}

INDICES = {
    "nan": (
        lambda o: o.v[nan],
        IndexingError,
        "index nan (float) for dim 0",
        "only integers, slices, None and ... select",
        "int()",
    ),
    "float": (lambda o: o.a[0, 1.0], IndexingError, "index 1.0 (float) for dim 1", "convert it with int() first"),
    "text": (lambda o: o.v["x"], IndexingError, "index 'x' (str) for dim 0", "dims have no names"),
    "list": (lambda o: o.v[[0, 7]], IndexingError, "index: index 7 at [1] is out of range for dim 0 of size 3", "-3 to 2"),
    "bool": (lambda o: o.v[True], IndexingError, "index True (bool) for dim 0", "where(mask, x, y)"),
    "mask": (lambda o: o.a[o.m], IndexingError, "got a mask of shape (3,), expected (2,), the sizes of its dims"),
    "array": (lambda o: o.v[np.array([0.5, 1])], DTypeError, "got an index of float64, expected a tensor of int64"),
    "tensor of a float": (
        lambda o: o.v[o.n],
        IndexingError,
        "index: got a tensor of float32 of shape (), expected integers and no dims",
    ),
    "too many": (lambda o: o.a[0, 0, 0], IndexingError, "too many indices: 3 for shape (2, 3) of 2 dims"),
    "of 0-d": (lambda o: o.n[0], IndexingError, "too many indices: 1 for shape () of 0 dims"),
    "two ellipses": (lambda o: o.a[..., 0, ...], IndexingError, "got 2 `...` in an index"),
    "too large": (lambda o: o.a[0, 3], IndexingError, "index 3 is out of range for dim 1 of size 3; valid are -3 to 2"),
    "too small": (lambda o: o.a[-3], IndexingError, "index -3 is out of range for dim 0 of size 2; valid are -2 to 1"),
    "of no elements": (
        lambda o: o.empty[0, 0],
        IndexingError,
        "index 0 is out of range for dim 1 of size 0; it has no elements",
    ),
    "slice with step 0": (lambda o: o.v[::0], IndexingError, "got step 0, expected"),
    "slice of floats": (lambda o: o.v[:1.5], IndexingError, "bounds and step are integers or None, got 1.5 (float)"),
    "out of range in a store": (lambda o: put(o.v, 3, 1.0), IndexingError, "index 3 is out of range for dim 0 of size 3"),
    "a tensor as a Python index": (
        lambda o: [1, 2][o.n],
        IndexingError,
        "index: got a tensor of float32",
    ),
}

BACKENDS = {
    "two": (lambda o: o.v + o.p, BackendError, "add: operands are on two backends, parallel and python", 'x.to("parallel")'),
    "two in a product": (lambda o: o.p @ o.v, BackendError, "matmul", "operands are on two backends, python and parallel"),
    "two in place": (lambda o: iadd(o.v, o.p), BackendError, "operands are on two backends"),
    "unknown": (
        lambda o: mf.ones(2, backend="gpu"),
        BackendError,
        "backend 'gpu' does not exist; choose one of python, parallel",
    ),
    "unknown as a default": (
        lambda o: mf.set_default_backend("gpu"),
        BackendError,
        "backend 'gpu' does not exist; choose one of",
    ),
    "move to an unknown one": (
        lambda o: o.v.to("gpu"),
        BackendError,
        "to: got 'gpu', expected a dtype: float32",
        "or a backend: python, parallel",
    ),
    "name that is taken": (
        lambda o: mf.register_backend(Taken()),
        BackendError,
        "register_backend: a backend named 'parallel' exists; set another name",
    ),
    "source without a tensor": (lambda o: mf.source(lambda x: x, 3), FuseError, "tensor"),
    "source of a function that gives a number": (lambda o: mf.source(lambda x: 3, o.v), FuseError, "int", "tensor"),
}

TABLES = {
    "shapes": SHAPES,
    "dtypes": DTYPES,
    "in place": IN_PLACE,
    "gradients": GRADIENTS,
    "indices": INDICES,
    "backends": BACKENDS,
}
ROWS = [
    pytest.param(call, error, parts, id=f"{table}: {name}")
    for table, rows in TABLES.items()
    for name, (call, error, *parts) in rows.items()
]


@pytest.mark.parametrize(("call", "error", "parts"), ROWS)
def test_a_mistake_is_explained_and_changes_nothing(call, error, parts):
    check(call, error, parts)


def test_a_second_backward_explains_itself():
    x = mf.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(GradientError, match=r"freed its saved values; call backward\(retain_graph=True\) the first time"):
        twice((x * x).sum())
    assert x.grad.tolist() == [2, 4]  # the second call added nothing


def branching(x):
    if x.sum() > 0:
        return x
    return -x


def counting(x):
    for _ in range(x.sum()):
        x = x + 1
    return x


def converting(x):
    return x * float(x[0])


def leaving(x):
    return x + np.asarray(x)


@pytest.mark.parametrize(
    ("function", "line", "what", "advice"),
    [
        (branching, 1, "cannot branch on the value of an array of shape ()", "; use where(condition, a, b)"),
        (counting, 1, "cannot read the value of an array of shape ()", "mf.exp in place of math.exp"),
        (converting, 1, "cannot read the value of an array of shape ()", "mf.exp in place of math.exp"),
        (leaving, 1, "cannot read the value of an array of shape (3,)", "mf.exp in place of math.exp"),
    ],
)
def test_untraceable_calls_are_named_with_their_line(function, line, what, advice):
    with pytest.raises(FuseError) as raised:
        mf.source(function, mf.ones(3))
    place = f"{__file__}:{getsourcelines(function)[1] + line}: "
    assert str(raised.value).startswith(place + what)
    assert str(raised.value).endswith(advice)


ALL = [value for value in vars(errors).values() if isinstance(value, type) and value is not MinifuseError]


@pytest.mark.parametrize("error", ALL)
def test_every_error_is_also_the_built_in_one(error):
    assert issubclass(error, MinifuseError)
    assert any(base.__module__ == "builtins" and base not in (Exception, object) for base in error.__mro__[:-3])


def test_the_drawn_tree_is_the_tree():
    drawn = re.findall(r"^ {4}((?:[│ ] {3})*)[├└]── (\w+) +(?:\((\w+)\))?", errors.__doc__, re.MULTILINE)
    assert {name for _, name, _ in drawn} == {error.__name__ for error in ALL}
    above = [MinifuseError]
    for indent, name, built_in in drawn:
        error, depth = getattr(errors, name), 1 + len(indent) // 4
        assert above[depth - 1] in error.__bases__
        assert depth > 1 or {base.__name__ for base in error.__bases__} == {"MinifuseError", built_in}
        above[depth:] = [error]


@pytest.mark.parametrize("owner", [mf, mf.ones(1), mf.nn, mf.nn.functional, mf.nn.Linear(2, 3)], ids=lambda x: str(x)[:20])
def test_similar_names_are_searched_only_for_a_printed_message(owner, monkeypatch):
    searched = []

    def search(name, *rest, n=1):
        searched.append(name)
        return ["other"]

    monkeypatch.setattr("minifuse.functions.missing.get_close_matches", search)
    monkeypatch.setattr("minifuse.nn.module.get_close_matches", search)
    assert not hasattr(owner, "subtrct")
    assert not searched
    with pytest.raises(AttributeError) as raised:
        owner.subtrct  # noqa: B018
    assert "other" in str(raised.value)
    assert repr(pickle.loads(pickle.dumps(raised.value))) == repr(raised.value)
    assert searched


def name_cell(file):
    """Name the file of one cell, as IPython does in a kernel."""
    return ("Cell", "In[3]") if file == "/tmp/ipykernel_7/12.py" else None


def test_a_file_is_named_without_its_folders(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert short_file("/home/me/model.py") == short_file("C:\\me\\model.py") == "model.py"


def test_the_file_of_a_cell_is_named_as_the_cell(monkeypatch):
    shell = SimpleNamespace(compile=SimpleNamespace(format_code_name=name_cell))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert short_file("/tmp/ipykernel_7/12.py") == "In[3]"
    assert short_file("/home/me/model.py") == "model.py"


def test_an_old_ipython_names_files(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(compile=None)))
    assert short_file("/tmp/ipykernel_7/12.py") == "12.py"
