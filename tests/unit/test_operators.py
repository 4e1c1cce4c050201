"""core.operators: the table, and single operators at poles, ties, ends of domains and NaN.

Equality of every operator with NumPy on every backend and layout is tested in `equivalence/`.
"""

import math
from itertools import product

import numpy as np
import pytest

import minifuse as mf
from minifuse.core import operators
from minifuse.core.dtypes import DTYPES
from minifuse.core.errors import CompileError, DTypeError, FuseError, GradientError, MinifuseError
from minifuse.core.operators import TABLE, minimum, operator, primitive, where
from minifuse.core.traceable import Traceable

ENTRIES = list(TABLE.values())
BACKENDS = ["python", "parallel"]
NUMPY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "floordiv": np.floor_divide,
    "mod": np.remainder, "pow": np.power, "neg": np.negative, "abs": np.abs,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "gt": np.greater, "le": np.less_equal,
    "ge": np.greater_equal, "isnan": np.isnan, "and_": np.bitwise_and, "or_": np.bitwise_or, "invert": np.invert,
    "xor": np.bitwise_xor, "lshift": np.left_shift, "rshift": np.right_shift, "pos": np.positive,
    "maximum": np.maximum, "minimum": np.minimum,
    "exp": np.exp, "log": np.log, "log1p": np.log1p, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "tanh": np.tanh,
}  # fmt: skip

# The table


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_entry_explains_itself(entry):
    assert entry.__doc__, f"add a docstring to {entry.name}: the reference and the table of operators print it"
    assert entry.__doc__.strip().endswith((".", ")", "x"))
    assert entry.name == entry.body.__name__
    assert repr(entry) == entry.name
    assert entry.cost >= 1


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_entry_is_a_function_of_the_module(entry):
    assert getattr(operators, entry.name) is entry


@pytest.mark.parametrize("entry", [e for e in ENTRIES if e.arity == 1])
def test_a_function_of_one_operand_is_a_method(entry):
    if entry.name in ("invert", "pos"):  # Python's own symbols alone
        assert ((~mf.tensor([1])).tolist(), (+mf.tensor([1])).tolist()) == ([-2], [1])
    else:
        assert hasattr(Traceable, entry.name)


def test_python_arithmetic_is_made_from_the_table():
    x = mf.Scalar(3.0)
    assert [v.item() for v in (x + 1, 1 + x, x - 1, 1 - x, x * 2, 2 * x, x / 2, 6 / x)] == [4, 4, 2, -2, 6, 6, 1.5, 2]
    assert [v.item() for v in (x // 2, 7 // x, x % 2, 7 % x, x**2, 2**x, -x, abs(-x))] == [1, 2, 1, 1, 9, 8, -3, 3]
    assert [bool(v) for v in (x < 3, x <= 3, x > 2, x >= 4)] == [False, True, True, False]


@pytest.mark.parametrize("entry", ENTRIES)
def test_the_number_of_operands_is_checked(entry):
    with pytest.raises(TypeError, match=f"{entry.name} takes {entry.arity} operand"):
        entry(*[1.0] * (entry.arity + 1))


@pytest.mark.parametrize("entry", [e for e in ENTRIES if e.identity is not None])
def test_an_identity_changes_nothing(entry):
    for dtype in DTYPES:
        if dtype.is_float and not entry.accepts_floats:
            continue
        identity = dtype.numpy.type(entry.identity_for(dtype))
        values = [False, True] if dtype is mf.bool_ else np.array([-3, 0, 1, 7]).astype(dtype.numpy)
        operator = entry.on_bools if dtype is mf.bool_ and entry.on_bools else entry
        if entry.name in ("and_", "or_") and dtype is not mf.bool_:
            continue  # they fold bools only
        for x in values:
            assert operator.body(identity, x) == x, (entry, dtype)


def test_operators_without_an_identity_say_who_has_one():
    with pytest.raises(DTypeError, match=r"sub has no identity, so it cannot reduce; use one of .*add.*maximum"):
        operators.sub.identity_for(mf.float32)


@pytest.mark.parametrize("entry", [e for e in ENTRIES if e.name in NUMPY])
def test_dtypes_are_numpys(entry):
    """For all pairs of element types and of Python numbers beside them."""
    kinds = [*DTYPES, bool, int, float]
    for combination in product(kinds, repeat=entry.arity):
        if all(isinstance(kind, type) for kind in combination):
            continue
        ones = [np.ones(1, kind.numpy) if kind in DTYPES else kind(1) for kind in combination]
        try:
            expected = NUMPY[entry.name](*ones).dtype
        except TypeError:
            expected = None
        is_of_bools = {*combination} <= {mf.bool_, bool}
        if expected == np.float16 or (expected == np.int8 and is_of_bools):  # what NumPy makes of bools and int8
            expected = None
        try:
            result = entry.result_dtype(*combination)[1].numpy
        except DTypeError:
            result = None
        if expected is None and result is not None:  # NumPy has no such loop, or a narrower type
            assert result == np.float64, (entry, combination)
            assert entry.result == "float"
        elif entry.result == "float" and combination[0] is not mf.float64 and expected == np.float32 != result:
            assert {kind for kind in combination if kind in DTYPES} <= {mf.bool_, mf.int8, mf.int16, mf.uint8}, (
                entry,
                combination,
            )
        else:
            assert result == expected, (entry, combination)


def test_python_numbers_alone_make_a_float32():
    assert operators.add.result_dtype(float, int) == (mf.float32, mf.float32)
    assert operators.add.result_dtype(int, int) == (mf.int64, mf.int64)


@pytest.mark.parametrize("name", ["lshift", "rshift"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bool"])
def test_only_integers_shift(name, dtype):
    x = mf.ones(1, dtype=dtype)
    with pytest.raises(DTypeError, match=f"{name}: got {dtype}, expected integers"):
        TABLE[name](x, x)


@pytest.mark.parametrize("name", ["sub", "neg", "pos", "floordiv", "mod", "pow"])
def test_bools_are_no_numbers(name):
    entry = TABLE[name]
    with pytest.raises(DTypeError, match=f"{name}: got bool, expected numbers; convert bools first"):
        entry(*[mf.tensor([True])] * entry.arity)


@pytest.mark.parametrize("name", ["and_", "or_", "xor", "invert"])
def test_floats_have_no_bits(name):
    entry = TABLE[name]
    with pytest.raises(DTypeError, match=f"{name}: got float64, expected integers and bools"):
        entry(*[mf.tensor([1.0], dtype="float64")] * entry.arity)


def test_sums_of_bools_are_logic_and_products_too():
    a, b = mf.tensor([True, True, False]), mf.tensor([True, False, False])
    assert (a + b).tolist() == [True, True, False]
    assert (a * b).tolist() == [True, False, False]
    assert mf.maximum(a, b).tolist() == [True, True, False]
    assert mf.minimum(a, b).tolist() == [True, False, False]


# Corners, on every backend, against NumPy in the same element type


def gradients(function, *arrays, backend):
    xs = [mf.tensor(a, dtype="float64", backend=backend, requires_grad=True) for a in arrays]
    function(*xs).sum().backward()
    return [x.grad.tolist() for x in xs]


@pytest.mark.parametrize("backend", BACKENDS)
def test_pow_at_zero_and_below(backend):
    a = np.array([0.0, 0.0, 0.0, -2.0, -2.0, -0.0, 2.0, 1.0, -1.0])
    b = np.array([0.0, 2.0, -1.0, 3.0, 0.5, -1.0, -3.0, np.nan, np.inf])
    with np.errstate(all="ignore"):
        expected = np.power(a, b)
    result = mf.tensor(a, backend=backend) ** mf.tensor(b, backend=backend)
    np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_gradient_of_pow_at_zero_and_below(backend):
    ga, gb = gradients(lambda a, b: a**b, [0.0, 0.0, 0.0, -2.0, 2.0], [0.0, 1.0, 2.0, 3.0, 3.0], backend=backend)
    assert ga == [0, 1, 0, 12, 12]
    assert gb[:3] == [0, 0, 0]  # 0 ** b is 0 on both sides
    assert math.isnan(gb[3])  # between integers, powers of -2 do not exist
    assert gb[4] == pytest.approx(8 * math.log(2))


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_integer_power_wraps_and_loses_its_fraction(backend):
    a, b = np.array([1, -1, -1, 2, 0, 3, 7]), np.array([-1, -1, -2, -1, -1, 4, 40])
    result = mf.tensor(a, backend=backend) ** mf.tensor(b, backend=backend)
    with np.errstate(over="ignore"):
        assert result.tolist() == [1, -1, 1, 0, 0, 81, int(np.power(np.int64(7), 40))]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integers_divide_by_zero_as_numpys(backend, dtype):
    a, b = np.array([7, -7, 7, -7, 5, 0], dtype), np.array([2, 2, -2, -2, 0, 0], dtype)
    with np.errstate(all="ignore"):
        expected = np.floor_divide(a, b), np.remainder(a, b)
    x, y = mf.tensor(a, backend=backend), mf.tensor(b, backend=backend)
    assert (x // y).tolist() == expected[0].tolist()
    assert (x % y).tolist() == expected[1].tolist()


@pytest.mark.parametrize("backend", BACKENDS)
def test_clip_keeps_both_ends_and_nan(backend):
    x = [-3.0, -1.0, 0.5, 2.0, 7.0, math.nan]
    result = mf.tensor(x, backend=backend).clip(-1, 2).tolist()
    assert result[:5] == [-1, -1, 0.5, 2, 2]
    assert math.isnan(result[5])
    (g,) = gradients(lambda x: x.clip(-1, 2), x, backend=backend)
    assert g[:5] == [0, 1, 1, 1, 0]  # at a tie with an end, all flows to x


def test_clip_with_one_end_with_arrays_and_of_numbers():
    x = mf.tensor([-3.0, 0.5, 7.0])
    assert x.clip(low=0).tolist() == [0, 0.5, 7]
    assert x.clip(high=0).tolist() == [-3, 0, 0]
    assert x.clip(mf.tensor([-1.0, 1.0, 0.0]), 2).tolist() == [-1, 1, 2]
    assert x.clip(2, 1).tolist() == [1, 1, 1]  # the upper end wins, as in NumPy
    assert mf.clip(5.0, 0, 1) == 1
    assert mf.clip(0.5, low=0) == 0.5


def test_clips_bounds_receive_the_gradient_that_x_does_not():
    x = mf.tensor([-3.0, 0.5, 7.0], requires_grad=True)
    low, high = mf.tensor(0.0, requires_grad=True), mf.tensor(1.0, requires_grad=True)
    (x.clip(low, high) * mf.tensor([2.0, 3.0, 4.0])).sum().backward()
    assert (x.grad.tolist(), low.grad.item(), high.grad.item()) == ([0, 3, 0], 2, 4)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_extremes_keep_nan_and_share_ties(backend, name):
    a, b = [1.0, 2.0, 3.0, math.nan, 1.0], [2.0, 2.0, 1.0, 1.0, math.nan]
    expected = getattr(np, name)(a, b)
    x, y = mf.tensor(a, backend=backend), mf.tensor(b, backend=backend)
    np.testing.assert_array_equal(TABLE[name](x, y).numpy(), expected)
    ga, gb = gradients(TABLE[name], a[:3], b[:3], backend=backend)
    assert (ga, gb) == (([0, 0.5, 1], [1, 0.5, 0]) if name == "maximum" else ([1, 0.5, 0], [0, 0.5, 1]))


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_gradient_of_a_product_with_zeros(backend):
    rows = [[2.0, 3.0, 4.0], [2.0, 0.0, 4.0], [0.0, 0.0, 4.0], [0.0, 0.0, 0.0]]
    assert mf.tensor(rows, backend=backend).prod(1).tolist() == [24, 0, 0, 0]
    (g,) = gradients(lambda x: x.prod(1), rows, backend=backend)
    assert g == [[12, 8, 6], [0, 8, 0], [0, 0, 0], [0, 0, 0]]


def test_the_second_gradient_of_a_product_with_one_zero():
    x = mf.tensor([2.0, 0.0, 4.0], dtype="float64")
    first = mf.grad(lambda x: x.prod())
    assert mf.grad(lambda x: (first(x) * mf.tensor([0.0, 1.0, 0.0])).sum())(x).tolist() == [4, 0, 2]


@pytest.mark.parametrize("backend", BACKENDS)
def test_only_nan_is_nan(backend):
    x = mf.tensor([0.0, math.inf, -math.inf, math.nan], backend=backend)
    assert mf.isnan(x).tolist() == [False, False, False, True]
    assert mf.isnan(x).dtype is mf.bool_
    assert mf.isnan(mf.tensor([1, 2], backend=backend)).tolist() == [False, False]


@pytest.mark.parametrize("backend", BACKENDS)
def test_where_takes_nothing_from_the_other_side(backend):
    c = mf.tensor([True, False], backend=backend)
    x = mf.tensor([1.0, math.nan], backend=backend, requires_grad=True)
    y = mf.where(c, x, 5)
    assert y.tolist() == [1, 5]
    y.sum().backward()
    assert x.grad.tolist() == [1, 0]


def test_where_promotes_its_values_and_not_its_condition():
    c = mf.tensor([True, False])
    assert mf.where(c, mf.tensor([1, 2]), 2.5).dtype is mf.float64
    assert mf.where(c, mf.tensor([1.0, 2.0]), 2.5).dtype is mf.float32
    assert mf.where(c, 1, 0).tolist() == [1, 0]
    assert mf.where(c, mf.tensor([[1.0], [2.0]]), -1).tolist() == [[1, -1], [2, -1]]
    assert mf.where(True, mf.tensor([1.0]), mf.tensor([2.0])).tolist() == [1]


@pytest.mark.parametrize("backend", BACKENDS)
def test_slopes_at_the_kink_are_zero(backend):
    assert gradients(mf.relu, [-1.0, 0.0, -0.0, 2.0], backend=backend) == [[0, 0, 0, 1]]
    assert gradients(abs, [-1.0, 0.0, 2.0], backend=backend) == [[-1, 0, 1]]


@pytest.mark.parametrize("backend", BACKENDS)
def test_poles_and_tails(backend):
    x = mf.tensor([0.0, -0.0, -1.0, math.inf, -math.inf, 1e-30, -200.0, 200.0], dtype="float64", backend=backend)
    a = x.numpy()
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(mf.log(x), np.log(a))
        np.testing.assert_allclose(mf.log1p(x), np.log1p(a), rtol=1e-15)
        np.testing.assert_array_equal(mf.sqrt(x), np.sqrt(a))
        np.testing.assert_array_equal(1 / x[:3], 1 / a[:3])
        np.testing.assert_allclose(mf.sigmoid(x), 1 / (1 + np.exp(-a)), rtol=1e-14)
        np.testing.assert_allclose(mf.tanh(x), np.tanh(a), rtol=1e-14)
        np.testing.assert_allclose(mf.gelu(x)[-2:], [0, 200], rtol=1e-14)


def test_mod_has_the_sign_of_the_divisor_and_its_gradient():
    ga, gb = gradients(lambda a, b: a % b, [7.0, -7.0], [4.0, 4.0], backend="python")
    assert (mf.tensor([7.0, -7.0]) % 4).tolist() == [3, 1]
    assert (ga, gb) == ([1, 1], [-1, 2])


def test_comparisons_and_integers_carry_no_gradient():
    x = mf.tensor([1.0, 2.0], requires_grad=True)
    for y in (x > 1, x == x, mf.isnan(x), x.argmax(), x.to(mf.int64)):
        assert not y.requires_grad
    assert not (x // 1).requires_grad or (x // 1).grad_fn is not None


def test_operators_on_plain_numbers_compute():
    assert mf.maximum(2, 3) == 3
    assert mf.exp(0.0) == 1
    assert mf.where(False, 1, 2) == 2
    assert mf.sigmoid(0.0) == 0.5
    assert math.isclose(mf.gelu(1.0), 0.8413447460685429)


def test_a_mistake_in_an_operand_is_an_error_of_ours():
    for entry in ENTRIES:
        with pytest.raises(MinifuseError, match=r"expected a tensor or a real number, got str"):
            entry(*["x"] * entry.arity)


# Mistakes in an entry


def double(x):
    """Return the body of an entry."""
    return x * 2


@pytest.fixture
def own_entries():
    """Remove the entries and the methods that a test adds."""
    before, methods = dict(TABLE), set(vars(Traceable))
    yield
    TABLE.clear()
    TABLE.update(before)
    for method in set(vars(Traceable)) - methods:
        delattr(Traceable, method)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (
            {"vjp": lambda g, x: (g,)},
            r"double: got vjp with the parameters (g, x), expected (g, y, x); write lambda g, y, x: ...",
        ),
        ({"vjp": "float"}, "double: got vjp='float', expected a function; write vjp=lambda g, y, x: ..."),
        (
            {"reduce_vjp": lambda g, y, x: g, "identity": 0},
            "double: got reduce_vjp with the parameters (g, y, x), expected (g, y, x, reduce); "
            "write lambda g, y, x, reduce: ...",
        ),
    ],
)
def test_a_gradient_rule_takes_g_y_and_the_operands(rules, message):
    with pytest.raises(TypeError) as error:
        operator(**rules)(double)
    assert str(error.value) == message
    assert "double" not in TABLE


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"result": "floats"}, "double: got result='floats', expected one of 'same', 'bool', 'float'"),
        (
            {"accepts": "floats"},
            "double: got accepts='floats', expected one of 'any', 'numbers', 'integers', 'integers alone'",
        ),
        ({"fast": True}, "double: got fast=True, expected one of '', 'primitive', 'composed'"),
    ],
)
def test_the_words_of_an_entry_are_checked(words, message):
    with pytest.raises(ValueError, match="double: got") as error:
        operator(**words)(double)
    assert str(error.value) == message
    assert "double" not in TABLE


def test_a_decorator_without_parentheses_is_refused():
    with pytest.raises(TypeError) as error:
        operator(double)
    assert str(error.value) == (
        "operator: got double(x) as the gradient rule, expected a function of g, y and the operands; "
        "write @operator() above double if it is the body of an operator"
    )
    with pytest.raises(TypeError, match=r"got Tensor, expected a function, the body; write @operator\(\) above it"):
        operator(lambda x: x)(mf.ones(1))


def test_an_entry_of_the_library_is_not_replaced():
    def exp(x):
        return x

    present = TABLE["exp"]
    with pytest.raises(
        ValueError, match=r"called exp, expected a new name, since minifuse\.core\.operators has.*def my_exp$"
    ):
        operator()(exp)
    assert TABLE["exp"] is present


def test_an_entry_is_replaced_if_its_cell_runs_again(own_entries):
    operator()(double)
    again = operator()(double)
    assert TABLE["double"] is again


@pytest.mark.parametrize("make", [mf.Scalar, lambda x: mf.tensor([x], requires_grad=True)], ids=["Scalar", "Tensor"])
@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            lambda g, y, x: g * 2,
            "returned one value, expected a tuple of 1, one for each operand; return (gradient,), with a comma",
        ),
        (
            lambda g, y, x: (g, g),
            "returned 2 gradients, expected a tuple of 1, one for each operand; return None for an operand",
        ),
    ],
)
def test_a_rule_returns_a_gradient_for_each_operand(rule, message, make, own_entries):
    entry, x = operator(rule)(double), make(1.5)
    with pytest.raises(GradientError) as error:
        entry(x).backward()
    assert str(error.value).startswith(f"double: the gradient rule {message}")


@pytest.mark.parametrize("rule", [None, lambda g, y, x: (g,)], ids=["derived", "rule"])
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda x: math.log(x), "cannot read the value of an .*; compute with .*, such as mf.exp in place of math.exp"),
        (
            lambda x: x.softsign(),
            "^mistaken: got a body that cannot be traced: .* has no attribute 'softsign'; compute with ",
        ),
        (lambda x: x if x > 0 else -x, r"test_operators.py:\d+: cannot branch on the value of .*; use where\(c"),
    ],
    ids=["math", "method", "branch"],
)
def test_a_body_that_cannot_be_traced_is_refused(body, rule, message, own_entries):
    body.__name__ = "mistaken"
    with pytest.raises(FuseError, match=message):
        operator(rule)(body)(mf.tensor([-1.0]))


@pytest.mark.parametrize("rule", [None, lambda g, y, x: (g,)], ids=["derived", "rule"])
def test_a_body_may_compare_with_the_operators_of_python(rule, own_entries):
    def without_zeros(x):
        return where(x == 0, 1, x) * (x != 3)

    assert operator(rule)(without_zeros)(mf.tensor([0.0, 2.0, 3.0])).tolist() == [1, 2, 0]


def test_operands_may_be_named_as_in_pytorch_or_as_in_the_body(own_entries):
    x = mf.tensor([-1.0, 2.0])
    assert where(x > 0, input=x, other=0).tolist() == where(condition=x > 0, other=0, input=x).tolist() == [0, 2]
    assert mf.fuse(lambda x: mf.maximum(x, other=mf.exp(input=x * 0)))(x).tolist() == [1, 2]

    @operator()
    def leaky(x, slope, ceiling):
        return minimum(where(x > 0, x, x * slope), ceiling)

    assert leaky(x, ceiling=1, slope=0.5).tolist() == [-0.5, 1]
    with pytest.raises(TypeError, match=r"leaky: got an unexpected argument 'slop'; write leaky\(x, slope, ceiling\)$"):
        leaky(x, slop=0.5, ceiling=1)
    with pytest.raises(TypeError, match="maximum: got an unexpected argument 'input'"):
        mf.maximum(a=x, input=x)
    with pytest.raises(TypeError, match="leaky takes 3 operands, got 2"):
        leaky(x, ceiling=1)


def test_a_primitive_without_a_function_for_cpus_says_where_to_add_it(own_entries):
    entry = primitive()(double)
    assert entry(mf.tensor([1.0], backend="python")).tolist() == [2]
    with pytest.raises(
        CompileError, match=r"'double' from '.*vector_math'.*add it, or write @operator in place of @primitive"
    ):
        entry(mf.tensor([1.0]))
