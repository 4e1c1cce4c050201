"""NumPy's scalars and arrays as operands, wherever a Python number is allowed."""

import operator
from enum import IntEnum
from fractions import Fraction

import numpy as np
import pytest

import minifuse as mf
import minifuse.nn.functional as F  # noqa: N812  # PyTorch's users call it so
from minifuse.core.dtypes import DTYPES, as_number
from minifuse.core.operators import TABLE

BACKENDS = ["python", "parallel", "cuda"]
SCALARS = {
    True: [np.bool_(True), np.array(True)],
    2: [np.int64(2), np.int32(2), np.int8(2), np.uint8(2), np.array(2), Fraction(2)],
    1.5: [np.float64(1.5), np.float32(1.5), np.float16(1.5), np.longdouble(1.5), np.array(1.5), Fraction(3, 2)],
}
PAIRS = [(number, scalar) for number, scalars in SCALARS.items() for scalar in scalars if type(scalar) is not Fraction]
every_pair = pytest.mark.parametrize(("number", "scalar"), PAIRS, ids=lambda x: f"{type(x).__name__} {x}")
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=repr)
ARITHMETIC = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"]
BITS = ["and_", "or_", "xor", "lshift", "rshift"]
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]
NAMES = {"and_": "bitwise_and", "or_": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift"}


def of(dtype):
    return mf.tensor(np.array([[1, 2, 3], [4, 5, 6]]).astype(dtype.numpy))


def outcome(function, *inputs, **named):
    """What a call returns, as plain values, or the kind of its error."""
    try:
        y = function(*inputs, **named)
    except mf.MinifuseError as error:
        return type(error).__name__
    return tuple(map(plain, y)) if isinstance(y, tuple | list) else plain(y)


def plain(y):
    return (y.dtype, y.shape, repr(y.tolist())) if isinstance(y, mf.Tensor) else float(y)


@every_pair
def test_a_scalar_becomes_the_python_number(number, scalar):
    assert as_number(scalar) == number
    assert type(as_number(scalar)) is type(number)


def test_objects_that_are_no_numbers_are_left_alone():
    for x in ("a", None, 1j, np.complex128(1), np.timedelta64(3, "s"), np.datetime64("2020-01-01"), [1]):
        assert as_number(x) is x
    with pytest.raises(mf.DTypeError, match="got timedelta64"):
        mf.ones(2) + np.timedelta64(3, "s")


def test_other_real_numbers_are_operands():
    class Level(IntEnum):
        LOW = 2

    assert (mf.tensor([1, 2]) * Level.LOW).tolist() == [2, 4]
    assert (mf.tensor([1.0, 2.0]) * Fraction(1, 2)).tolist() == [0.5, 1.0]
    assert (mf.tensor([1, 2]) * np.any([1, 0])).tolist() == [1, 2]
    assert (mf.tensor([True, False]) & np.True_).tolist() == [True, False]
    mask = mf.tensor([True, False])
    assert mf.where(mask, np.True_, np.False_).tolist() == [True, False]


@pytest.mark.sampled(3, each="name")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", [*ARITHMETIC, *BITS, *COMPARISONS])
def test_operators_take_scalars_on_either_side(name, backend):
    function = getattr(operator, name)
    with mf.use_backend(backend):
        for dtype in (mf.float32, mf.int64, mf.bool_):
            x = of(dtype)
            for number, scalar in PAIRS:
                assert outcome(function, x, scalar) == outcome(function, x, number), (dtype, scalar)
                assert outcome(function, scalar, x) == outcome(function, number, x), (dtype, scalar)


@pytest.mark.sampled(2, each="name")
@every_dtype
@pytest.mark.parametrize("name", [f"i{name.rstrip('_')}" for name in [*ARITHMETIC, *BITS]])
def test_augmented_assignments_take_scalars(name, dtype):
    function = getattr(operator, name)
    for number, scalar in PAIRS:
        assert outcome(function, of(dtype), scalar) == outcome(function, of(dtype), number), scalar


@pytest.mark.sampled(8, each="name")
@every_pair
@pytest.mark.parametrize("name", TABLE)
def test_functions_of_the_table_take_scalars(name, number, scalar):
    entry, x = TABLE[name], of(mf.int64)
    if entry.arity == 1:
        accepted = entry.accepts_floats or not isinstance(number, float)
        if accepted and not isinstance(scalar, np.float32 | np.float16):  # of which NumPy's functions are coarser
            assert float(entry(scalar)) == pytest.approx(float(entry(number)), rel=1e-6)
        return
    mask = mf.tensor([True, False, True])
    inputs = {2: [(x, None), (None, x)], 3: [(mask, None, x), (mask, None, None), (x > 2, x, None)]}[entry.arity]
    inputs = [*inputs, (x, 1, None), (x, None, 5)] if name == "clip" else inputs
    for places in inputs:
        with_scalar, with_number = ([new if p is None else p for p in places] for new in (scalar, number))
        assert outcome(entry, *with_scalar) == outcome(entry, *with_number), places


METHODS = {
    "sum": (1, True), "prod": (1, True), "max": (1, True), "min": (0, False), "any": (1, True), "all": (0, True),
    "mean": (1, True), "var": (1, 0, True), "std": (1, 1, False), "argmax": (1, True), "argmin": (0, False), "softmax": (1,),
    "log_softmax": (1,), "logsumexp": (1, True), "clip": (2, 4.5), "reshape": (3, 2), "view": (3, 2), "permute": (1, 0),
    "transpose": (0, 1), "expand": (2, 2, 3), "flatten": (0, 1), "unsqueeze": (1,), "squeeze": (0,), "flip": (1,),
    "unfold": (1, 2, 1), "__getitem__": (1,), "fill_": (2,), "copy_": (True,), "requires_grad_": (True,),
    "__contains__": (2,), "__pow__": (2,),
}  # fmt: skip


def each_as_scalar(arguments):
    """The same arguments, each number in turn as a scalar of NumPy and as an array of 0 dims."""
    for k, x in enumerate(arguments):
        if isinstance(x, bool | int | float):
            for scalar in (np.array(x)[()], np.array(x)):
                yield [*arguments[:k], scalar, *arguments[k + 1 :]]


@pytest.mark.parametrize("name", METHODS)
def test_methods_take_scalars_in_every_place(name):
    for arguments in each_as_scalar(METHODS[name]):
        call = operator.methodcaller(name, *arguments)
        assert outcome(call, of(mf.float32)) == outcome(operator.methodcaller(name, *METHODS[name]), of(mf.float32))


FUNCTIONS = {
    "full": (mf.full, (2, 2)), "full of bools": (mf.full, (2, True)), "zeros": (mf.zeros, (2, 3)), "ones": (mf.ones, (2,)),
    "arange": (mf.arange, (1, 7, 2)), "Scalar": (lambda x: mf.Scalar(x).data, (2.5,)),
    "Scalar * number": (lambda x: (mf.Scalar(2.0) * x).data, (2.5,)), "softmax": (mf.softmax, (of(mf.float32), 1)),
    "sums": (lambda x, d, k: mf.reduction(combine=mf.maximum, identity=0)(x, dim=d, keepdim=k), (of(mf.int64), 1, True)),
    "elementwise": (mf.elementwise(lambda x, y, z: x * y + z), (of(mf.float32), 2, 0.5)),
    "elementwise of numbers": (mf.elementwise(lambda x, y: x * y), (2, 0.5)),
    "np.reshape": (np.reshape, (of(mf.float32), 6)), "np.split": (np.split, (of(mf.float32), 3, 1)),
    "np.round": (np.round, (of(mf.float32), 1)), "np.tensordot": (np.tensordot, (of(mf.float32), of(mf.float32), 2)),
    "np.linalg.norm": (np.linalg.norm, (of(mf.float32), 3, 1)), "np.take": (np.take, (of(mf.float32), 1, 0)),
    "np.sum": (np.sum, (of(mf.float32), 1)), "np.clip": (np.clip, (of(mf.float32), 2, 4)),
    "np.where": (np.where, (True, of(mf.float32), 2)), "np.full_like": (np.full_like, (of(mf.float32), 2)),
    "np.diff": (np.diff, (of(mf.float32), 1, 0)), "np.triu": (np.triu, (of(mf.float32), 1)),
    "np.isclose": (np.isclose, (of(mf.float32), 2, 0.5, 0.5)), "np.dot": (np.dot, (2.5, of(mf.float32))),
    "F.conv2d": (F.conv2d, (mf.ones(1, 2, 6, 6), mf.ones(2, 1, 3, 3), None, 2, 1, 1, 2)),
    "F.avg_pool2d": (F.avg_pool2d, (mf.ones(1, 2, 6, 6), 2, 1, 1)), "F.layer_norm": (F.layer_norm, (of(mf.float32), 3)),
    "F.elu": (F.elu, (of(mf.float32), 1.5)), "F.dropout": (F.dropout, (of(mf.float32), 0.5, False)),
    "F.log_softmax": (F.log_softmax, (of(mf.float32), 1)),
}  # fmt: skip
DTYPE_OF_THE_NUMBER = {"full", "full of bools"}  # of which a scalar of NumPy says the dtype


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_take_scalars_in_every_place(name):
    function, arguments = FUNCTIONS[name]
    for changed in each_as_scalar(arguments):
        assert outcome(function, *changed) == outcome(function, *arguments), changed


def test_an_elementwise_function_computes_with_scalars_inside():
    f = mf.elementwise(lambda x: x * np.float64(2) + np.int64(1) - np.float32(0.5) + np.array(2))
    assert f(mf.tensor([1.0, 2.0])).tolist() == [4.5, 6.5]


def test_modules_take_sizes_of_numpy():
    n = np.int64(2)
    conv = mf.nn.Conv2d(n, n, np.int32(3), stride=n, padding=np.int8(1), groups=n)
    assert repr(conv) == "Conv2d(2, 2, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), groups=2)"
    assert mf.nn.LayerNorm(np.int64(3)).normalized_shape == (3,)


def test_a_fused_function_computes_with_scalars_inside():
    f = mf.fuse(lambda x: mf.where(x > np.int64(1), x * np.bool_(True), np.array(0)) & np.int64(6))
    assert f(mf.tensor([1, 2, 3])).tolist() == [0, 2, 2]


def test_an_integer_to_the_power_of_a_float_is_a_float():
    x = mf.tensor([2, 3])
    for two in (2.0, np.float64(2), np.float32(2), np.array(2.0)):
        assert (x**two).dtype is mf.float64
    assert (x**2).dtype is mf.int64
    with pytest.raises(mf.DTypeError, match="an integer to the power -1 is not an integer"):
        x ** np.int64(-1)


# Operators that Python has symbols for.


@pytest.mark.parametrize("dtype", ["int32", "int64", "bool"])
@pytest.mark.parametrize("name", BITS)
def test_bits_of_tensors_and_arrays_are_numpys(name, dtype):
    function, (a, b) = getattr(operator, name), (np.array([1, 6, 3]).astype(dtype), np.array([2, 1, 0]).astype(dtype))
    if dtype == "bool" and name in ("lshift", "rshift"):  # NumPy makes it an int8
        with pytest.raises(mf.DTypeError, match=f"{name}: got bool, expected integers"):
            function(mf.tensor(a), b)
        return
    expected = function(a, b)
    for found in (function(mf.tensor(a), mf.tensor(b)), function(mf.tensor(a), b), function(a, mf.tensor(b))):
        assert (found.dtype.numpy, found.tolist()) == (expected.dtype, expected.tolist())
    assert np.array_equal(getattr(np, NAMES[name])(a, mf.tensor(b)).numpy(), expected)


@pytest.mark.parametrize("name", ["xor", "lshift", "rshift", "and_", "or_"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats_have_no_bits_on_either_side(name, dtype):
    function, x = getattr(operator, name), mf.ones(2, dtype=dtype)
    for inputs in ((x, 3), (3, x), (x, np.array([1, 2])), (np.array([1, 2]), x), (np.int64(3), x)):
        with pytest.raises(mf.DTypeError, match=f"{name}: got float"):
            function(*inputs)


def test_the_result_of_a_shift_has_the_dtype_of_numpy():
    x = mf.tensor([1, 2], dtype="int32")
    assert (x << 3).dtype is mf.int32
    assert (x << mf.tensor([1, 2])).dtype is mf.int64
    assert (mf.tensor([True, False]) << 3).tolist() == [8, 0]


def test_the_plus_sign_copies_and_takes_no_bools():
    x = mf.tensor([1.0, -2.0], requires_grad=True)
    y = +x
    assert y.tolist() == [1.0, -2.0]
    assert y.detach().buffer is not x.buffer
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    assert (+mf.Scalar(3.0)).data == 3.0
    with pytest.raises(mf.DTypeError, match="pos: got bool"):
        +mf.tensor([True])


@pytest.mark.parametrize("name", ["xor", "lshift", "rshift"])
def test_scalars_are_floats_and_have_no_bits(name):
    with pytest.raises(mf.DTypeError, match=f"{name}: got float64, expected integers"):
        getattr(operator, name)(mf.Scalar(2.0), 1)
