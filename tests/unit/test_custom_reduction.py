"""custom_kernels.reduction: map, combine and finish on every backend, with gradients if combine has one."""

import math

import numpy as np
import pytest

import minifuse as mf
from minifuse.compiler.plan import Plan
from minifuse.core.errors import DTypeError, FuseError, GradientError, ShapeError
from minifuse.core.operators import TABLE
from minifuse.runtime.kernel_cache import cache

l2 = mf.reduction(map=lambda x: x * x, combine=lambda a, b: a + b, finish=mf.sqrt, identity=0.0)
largest = mf.reduction(combine=lambda a, b: mf.where(abs(a) > abs(b), a, b), identity=0)


def log_add_exp(a, b):
    m = mf.maximum(a, b)
    return m + mf.log(mf.exp(a - m) + mf.exp(b - m))


log_sum = mf.reduction(combine=log_add_exp, identity=-1e30)
SIZES = [(7,), (33, 5), (5, 300), (3, 4, 6), (2, 1, 37)]
DIMS = [None, 0, -1, (0, 1)]


def array(*shape, dtype="f4"):
    return np.random.default_rng(0).uniform(-3, 3, shape).astype(dtype)


def cases():
    return [(shape, dim) for shape in SIZES for dim in DIMS if not (dim == (0, 1) and len(shape) == 1)]


# What is computed


@pytest.mark.sampled(4)
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize(("shape", "dim"), cases())
def test_a_norm(backend, shape, dim, keepdim):
    x = array(*shape)
    y = l2(mf.tensor(x), dim=dim, keepdim=keepdim)
    expected = np.sqrt((x.astype("f8") ** 2).sum(dim, keepdims=keepdim))
    assert y.shape == expected.shape
    assert np.allclose(y.numpy(), expected, rtol=1e-5)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("shape", "dim"), cases())
def test_a_combine_that_is_in_no_table(backend, shape, dim):
    x = array(*shape)
    y = log_sum(mf.tensor(x), dim=dim)
    assert np.allclose(y.numpy(), np.log(np.exp(x.astype("f8")).sum(dim)), rtol=1e-4)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("look", [lambda x: x.T, lambda x: x[::-2, 1:], lambda x: x[:, :1].expand(9, 34), lambda x: x[3:4]])
@pytest.mark.parametrize("dim", [0, 1, None])
def test_in_any_layout(backend, look, dim):
    x = look(mf.tensor(array(9, 34)))
    v = x.numpy().astype("f8")
    assert np.allclose(log_sum(x, dim=dim).numpy(), np.log(np.exp(v).sum(dim)), rtol=1e-4)
    flat = np.moveaxis(v, dim, -1).reshape(-1, v.shape[dim]) if dim is not None else v.reshape(1, -1)
    expected = flat[np.arange(len(flat)), np.abs(flat).argmax(1)]
    assert np.allclose(largest(x, dim=dim).numpy().ravel(), expected)


@pytest.mark.parametrize("dtype", [mf.float32, mf.float64, mf.int32, mf.int64], ids=str)
def test_every_number_type(backend, dtype):
    x = array(6, 40, dtype=dtype.numpy) * 7
    for dim in (0, 1):
        y = largest(mf.tensor(x.astype(dtype.numpy)), dim=dim)
        z = np.moveaxis(x.astype(dtype.numpy), dim, -1)
        assert y.dtype is dtype
        assert np.array_equal(np.abs(y.numpy()), np.abs(z).max(-1))


@pytest.mark.parametrize("dim", [0, 1, None])
def test_bools_are_combined_too(backend, dim):
    odd = mf.reduction(combine=lambda a, b: a != b, identity=False)
    x = np.random.default_rng(0).random((13, 40)) > 0.4
    y = odd(mf.tensor(x), dim=dim)
    assert y.dtype is mf.bool_
    assert np.array_equal(y.numpy(), x.sum(dim) % 2 == 1)


def test_several_tensors_are_broadcast_and_mapped(backend):
    dot = mf.reduction(map=lambda x, y, k: x * y + k, combine=lambda a, b: b + a, identity=0.0)
    x, y = array(5, 1, 4), array(3, 4)
    assert np.allclose(dot(mf.tensor(x), mf.tensor(y), 2, dim=-1).numpy(), (x * y + 2).sum(-1), atol=1e-5)
    assert dot(mf.tensor(x), 1.0, 0, dim=(0, 2), keepdim=True).shape == (1, 1, 1)


def test_a_map_may_count_where_it_is_and_change_the_type(backend):
    weighted = mf.reduction(map=lambda x: (x > 0).to(mf.int64) * mf.index(-1), combine=lambda a, b: a + b, identity=0)
    x = array(4, 9)
    y = weighted(mf.tensor(x), dim=1)
    assert y.dtype is mf.int64
    assert np.array_equal(y.numpy(), ((x > 0) * np.arange(9)).sum(1))


def test_no_elements_give_the_identity(backend):
    assert l2(mf.zeros(2, 0), dim=1).tolist() == [0.0, 0.0]
    assert np.allclose(log_sum(mf.zeros(0, 3), dim=0).numpy(), -1e30)
    assert log_sum(mf.zeros(3, 0), dim=0).shape == (0,)
    smallest = mf.reduction(combine=lambda a, b: mf.minimum(b, a), identity=math.inf)
    assert smallest(mf.zeros(0)).item() == math.inf
    assert smallest(mf.zeros(0, dtype=mf.int32)).item() == 2**31 - 1


def test_a_0_d_tensor_is_mapped_and_finished(backend):
    assert l2(mf.tensor(-3.0)).item() == 3.0


def test_a_large_reduction_is_split():
    x = array(3, 300_001, dtype="f8")
    for dim in (1, None):
        y = log_sum(mf.tensor(x), dim=dim)
        assert np.allclose(y.numpy(), np.log(np.exp(x).sum(dim)), rtol=1e-9)
    y = log_sum(mf.tensor(np.ascontiguousarray(x.T)), dim=0)
    assert np.allclose(y.numpy(), np.log(np.exp(x).sum(1)), rtol=1e-9)


def test_reductions_of_one_space_share_a_kernel():
    def f(x):
        top = largest(x, dim=1, keepdim=True)
        return x / top, log_sum(x, dim=1)

    x = array(5, 40)
    text = mf.source(f, mf.tensor(x))
    assert text.count("# launch") == 1
    assert "def combine(a, b):" in text
    assert "def combine1(a, b):" in text
    for name in ("parallel", "cuda"):
        scaled, total = mf.fuse(f)(mf.tensor(x).to(name))
        assert np.allclose(scaled.numpy(), x / x[np.arange(5), np.abs(x).argmax(1)][:, None], rtol=1e-5)
        assert np.allclose(total.numpy(), np.log(np.exp(x).sum(1)), rtol=1e-5)


# Which operator


def operator_of(reduction, x):
    """The operator of the only fold."""
    (node,) = Plan(reduction.bind_arguments((x,), None, True), (x,)).outputs
    while not hasattr(node.function, "dims"):
        (node,) = node.inputs
    return node.function.operator


@pytest.mark.parametrize(
    ("combine", "identity", "name"),
    [
        (lambda a, b: a + b, 0, "add"),
        (lambda a, b: b + a, 0.0, "add"),
        (lambda a, b: b * a, 1, "mul"),
        (lambda a, b: mf.maximum(a, b), -math.inf, "maximum"),
        (mf.minimum, math.inf, "minimum"),
        (np.maximum, -math.inf, "maximum"),
    ],
)
def test_known_combines_become_the_tables_operator(combine, identity, name):
    assert operator_of(mf.reduction(combine=combine, identity=identity), mf.ones(3)) is TABLE[name]


def test_logic_is_that_of_bools():
    x = mf.tensor([True, False])
    assert operator_of(mf.reduction(combine=lambda a, b: a | b, identity=False), x) is TABLE["or_"]
    assert operator_of(mf.reduction(combine=lambda a, b: a & b, identity=True), x) is TABLE["and_"]
    assert mf.reduction(combine=lambda a, b: a & b, identity=-1)(mf.tensor([7, 13])).item() == 5


def test_any_other_is_one_of_its_own_and_stays_the_same():
    own = operator_of(largest, mf.ones(3))
    assert own not in TABLE.values()
    assert operator_of(largest, mf.ones(2, 5)) is own
    assert operator_of(mf.reduction(combine=largest.combine, identity=0), mf.ones(3)) is not own


# Gradients


def test_gradients_of_any_order(backend):
    x = mf.tensor(array(3, 4, dtype="f8"), requires_grad=True)
    y = mf.tensor(array(4, dtype="f8"), requires_grad=True)
    dot = mf.reduction(map=lambda x, y: x * x * y, combine=lambda a, b: a + b, finish=lambda s: s * s, identity=0)
    mf.testing.gradcheck(lambda x, y: dot(x, y, dim=1), x, y, second=True)
    product = mf.reduction(combine=lambda a, b: a * b, identity=1.0)
    mf.testing.gradcheck(lambda x: product(x, dim=0), x, second=True)


def test_a_gradient_through_another_combine_is_refused():
    x = mf.ones(3, requires_grad=True)
    words = r"log_add_exp: its combine has no gradient; use one of a \+ b, a \* b, mf.maximum"
    with pytest.raises(GradientError, match=words):
        log_sum(x)
    assert math.isclose(log_sum(x.detach()).item(), 1 + math.log(3), rel_tol=1e-6)
    with mf.no_grad():
        assert not log_sum(x).requires_grad


# Texts and keys


def test_the_text_holds_combine_as_a_function():
    x = mf.ones(4, 6)
    assert (
        "def kernel(start, stop, args):\n"
        "    def combine(a, b):\n"
        "        t0 = maximum(a, b)\n"
        "        return t0 + log((exp((a - t0)) + exp((b - t0))))\n"
    ) in log_sum.source(x, dim=1)
    text = log_sum.source(x, dim=1, backend="cuda")
    assert "def combine(a, b):\n    t0 = maximum(a, b)\n" in text
    assert "total0 = combine(total0, in0[i0 * in0_0 + r1])" in text


def test_another_size_compiles_nothing():
    for shape in ((5, 6), (7, 40)):
        before = cache.stats()
        log_sum(mf.ones(*shape), dim=1)
        l2(mf.ones(*shape), dim=0)
    assert cache.stats().compiled == before.compiled


def test_a_changed_closure_is_seen():
    modulus, power = 7, 1
    product = mf.reduction(
        map=lambda x: x**power, combine=lambda a, b: (a * b) % modulus, finish=lambda x: x + power, identity=1
    )
    x = mf.tensor([3, 4, 5])
    assert product(x).item() == 60 % 7 + 1
    modulus = 11
    assert product(x).item() == 60 % 11 + 1
    power = 2
    assert product(x).item() == 3600 % 11 + 2
    modulus, power = 7, 1
    assert product(x).item() == 60 % 7 + 1


def test_reductions_never_share_a_plan():
    x = mf.tensor([1.0, 2.0, 3.0])
    found = [mf.reduction(combine=lambda a, b, k=k: a + b + k * a * b, identity=0.0)(x).item() for k in (0, 1, 2)]
    assert np.allclose(found, [6, 23, (3 * 5 * 7 - 1) / 2])


def test_a_fused_reduction_reads_current_values():
    scale = 2.0
    scaled = mf.reduction(map=lambda x: x * scale, combine=lambda a, b: a + b, identity=0.0)
    f = mf.fuse(lambda x: scaled(x) + 1)
    x = mf.tensor([1.0, 2.0])
    assert f(x).item() == 7.0
    scale = 10.0
    assert f(x).item() == 31.0


# What is refused


@pytest.mark.parametrize(
    ("combine", "identity", "words"),
    [
        (lambda a, b: a - b, 0.0, "combine(0.0, 1.0) returned -1.0, so 0.0 is not its identity"),
        (lambda a, b: a + b, 1.0, "combine(1.0, 1.0) returned 2.0, so 1.0 is not its identity"),
        (lambda a, b: a * b, 0.0, "so 0.0 is not its identity"),
        (lambda a, b: (a + b) / 2, 0.0, "so 0.0 is not its identity"),
        (lambda a, b: b, 0.0, "so 0.0 is not its identity"),
        (lambda a, b: mf.maximum(a, b), 0.0, "combine(-2.0, 0.0) returned 0.0, so 0.0 is not its identity"),
        (log_add_exp, -math.inf, "combine(-inf, -inf) returned nan, so -inf is not its identity"),
        (
            lambda a, b: a + b + a * a * b,
            0.0,
            "combine(0.5, 1.0) returned 1.75, and combine(1.0, 0.5) 2.0; it must be commutative",
        ),
        (lambda a, b: a + b + (a * b) * (a * b), 0.0, "combine(combine(0.5, 1.0), 3.0) returned "),
        (lambda a, b: a if a > b else b, 0.0, "a branch on the value of an element"),
        (lambda a, b: a.sum() + b, 0.0, ".sum: a function of elements"),
        (lambda a, b: None, 0.0, "combine returned None, expected one element"),
        (lambda a, b: (a, b), 0.0, "combine returned tuple, expected one element"),
        (lambda a, b: a > b, 0.0, "combine returned bool for two values of float32"),
    ],
)
def test_a_combine_that_breaks_its_promises_is_refused(combine, identity, words):
    with pytest.raises(FuseError) as caught:
        mf.reduction(combine=combine, identity=identity)(mf.ones(3))
    assert words in str(caught.value)
    assert f"{__file__}:{combine.__code__.co_firstlineno}: " in str(caught.value)


def test_a_combine_for_positive_numbers_needs_no_more():
    hypot = mf.reduction(map=abs, combine=lambda a, b: mf.sqrt(a * a + b * b), identity=0.0)
    assert math.isclose(hypot(mf.tensor([-3.0, 4.0, 12.0])).item(), 13.0, rel_tol=1e-6)


def test_an_identity_of_another_type_is_refused():
    with pytest.raises(DTypeError, match="identity 0 does not fit a reduction of bool"):
        largest(mf.ones(3) > 0)
    with pytest.raises(DTypeError, match="identity False does not fit a reduction of float32"):
        mf.reduction(combine=lambda a, b: a | b, identity=False)(mf.ones(3))
    with pytest.raises(DTypeError, match=r"identity 0.5 is not an int64; map to a float type"):
        mf.reduction(combine=lambda a, b: mf.maximum(a, b), identity=0.5)(mf.tensor([1]))


def test_map_and_finish_are_functions_of_elements():
    def of(**parts):
        return mf.reduction(combine=lambda a, b: a + b, identity=0, **parts)

    with pytest.raises(FuseError, match=r"\.max: a function of elements"):
        of(map=lambda x: x.max())(mf.ones(3))
    with pytest.raises(FuseError, match=f"{__file__}:.*map returned None, expected one element"):
        of(map=lambda x: None)(mf.ones(3))
    with pytest.raises(FuseError, match="map returned int, expected one element"):
        of(map=lambda x: 1)(mf.ones(3))
    with pytest.raises(FuseError, match="finish returned tuple, expected one element"):
        of(finish=lambda x: (x, x))(mf.ones(3))
    with pytest.raises(FuseError, match="finish= is int, expected a function of elements"):
        of(finish=3)
    with pytest.raises(FuseError, match="reduction: got 2 arguments, expected 1; pass map="):
        of()(mf.ones(3), mf.ones(3))
    with pytest.raises(FuseError, match="reduction: got float, expected at least one tensor"):
        of()(1.0)
    table = np.ones(3)
    with pytest.raises(FuseError, match="reads an array from a closure or a global"):
        of(map=lambda x: x * table[0])(mf.ones(3))
    with pytest.raises(ShapeError, match="dim 5 is out of range"):
        l2(mf.ones(3), dim=5)


def test_repr_names_the_function():
    assert repr(log_sum) == "<reduction log_add_exp>"
    assert repr(l2) == "<reduction reduction>"
    assert mf.reduction(combine=mf.maximum, identity=-math.inf).__name__ == "maximum"
    assert "l2(*tensors, dim=None, keepdim=False)" in mf.reduction(combine=mf.maximum, identity=1, name="l2").__doc__


# Several states


def pool_moments(a, b):
    (n, mean, squares), (m, other, more) = a, b
    share = mf.where(n + m > 0, m / mf.maximum(n + m, 1.0), 0.0)
    distance = other - mean
    return n + m, mean + distance * share, squares + more + distance * distance * n * share


def wider(a, b):
    return mf.minimum(a[0], b[0]), mf.maximum(a[1], b[1])


ZEROS = (0.0, 0.0, 0.0)
moments = mf.reduction(map=lambda x: (1.0, x, 0.0), combine=pool_moments, identity=ZEROS)
variance = mf.reduction(
    map=lambda x: (1.0, x, 0.0), combine=pool_moments, finish=lambda n, mean, squares: squares / n, identity=ZEROS
)
spread = mf.reduction(map=lambda x: (x, x), combine=wider, finish=lambda a, b: b - a, identity=(math.inf, -math.inf))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize(("shape", "dim"), cases())
def test_several_states_are_combined_together(backend, shape, dim, keepdim):
    x = array(*shape)
    y = variance(mf.tensor(x), dim=dim, keepdim=keepdim)
    expected = x.astype("f8").var(dim, keepdims=keepdim)
    assert y.shape == expected.shape
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-4, atol=1e-7)
    np.testing.assert_array_equal(spread(mf.tensor(x), dim=dim).numpy(), np.ptp(x, axis=dim))


def test_all_states_are_returned_without_finish(backend):
    x = array(5, 67)
    count, mean, squares = moments(mf.tensor(x), dim=1, keepdim=True)
    assert count.tolist() == [[67.0]] * 5
    np.testing.assert_allclose(mean.numpy(), x.mean(1, keepdims=True, dtype="f8"), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(squares.numpy() / 67, x.astype("f8").var(1, keepdims=True), rtol=1e-4)


def test_finish_may_return_several_results(backend):
    both = mf.reduction(map=lambda x: (x, x), combine=wider, finish=lambda a, b: (a + b, b), identity=(math.inf, -math.inf))
    x = array(3, 40)
    middle, top = both(mf.tensor(x), dim=1)
    np.testing.assert_array_equal(middle.numpy(), x.min(1) + x.max(1))
    np.testing.assert_array_equal(top.numpy(), x.max(1))


def test_tensors_are_states_without_map(backend):
    ends = mf.reduction(combine=wider, identity=(math.inf, -math.inf))
    low, high = array(4, 33), array(4, 33) + 1
    smallest, largest_end = ends(mf.tensor(low), mf.tensor(high), dim=1)
    np.testing.assert_array_equal(smallest.numpy(), low.min(1))
    np.testing.assert_array_equal(largest_end.numpy(), high.max(1))


def test_states_may_have_different_types(backend):
    def farther(a, b):
        takes_b = (b[0] > a[0]) | ((b[0] == a[0]) & (b[1] < a[1]))
        return mf.where(takes_b, b[0], a[0]), mf.where(takes_b, b[1], a[1]), a[2] | b[2]

    found = mf.reduction(
        map=lambda x: (abs(x), mf.index(-1), x < -2), combine=farther, identity=(-1, 2**62, False), name="farthest"
    )
    for dtype in ("f4", "f8", "i4"):
        x = (array(6, 131) * 3).astype(dtype)
        distance, place, is_low = found(mf.tensor(x), dim=1)
        np.testing.assert_array_equal(distance.numpy(), np.abs(x).max(1))
        np.testing.assert_array_equal(place.numpy(), np.abs(x).argmax(1))
        np.testing.assert_array_equal(is_low.numpy(), (x < -2).any(1))
    assert found(mf.zeros(2, 0), dim=1)[0].tolist() == [-1.0, -1.0]


def test_a_large_reduction_of_several_states_is_split():
    x = array(3, 70_001, dtype="f8") + 1e4
    for y, dim in ((x, 1), (x, None), (np.ascontiguousarray(x.T), 0)):
        np.testing.assert_allclose(variance(mf.tensor(y), dim=dim).numpy(), y.var(dim), rtol=1e-9)
        np.testing.assert_array_equal(spread(mf.tensor(y), dim=dim).numpy(), np.ptp(y, axis=dim))


def test_several_states_fuse():
    @mf.fuse
    def scaled(x):
        count, mean, squares = moments(x, dim=1, keepdim=True)
        return (x - mean) / mf.sqrt(squares / count)

    x = array(7, 67)
    assert mf.source(scaled, mf.tensor(x)).count("# launch") == 1
    for name in ("parallel", "cuda"):
        expected = (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)
        np.testing.assert_allclose(scaled(mf.tensor(x).to(name)).numpy(), expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("parts", "error", "message"),
    [
        ({"identity": (0.0,)}, FuseError, "has 1 states, expected at least two in a tuple; write identity=0.0"),
        ({"identity": ()}, FuseError, "has 0 states"),
        ({"identity": (0.0, None)}, FuseError, "contains NoneType, expected a number for each state"),
        ({"map": lambda x: x}, FuseError, "map returned one value, expected a tuple of 2"),
        ({"map": lambda x: (x, x, x)}, FuseError, "map returned 3 values, expected a tuple of 2"),
        ({"map": None}, FuseError, "got 1 arguments, expected 2, one for each state"),
        ({"combine": lambda a, b: a[0]}, FuseError, "combine returned one value, expected a tuple of 2"),
        ({"combine": lambda a, b: None}, FuseError, "combine returned None, expected a tuple of 2"),
        ({"combine": lambda a, b: (a[0], a[1] > b[1])}, FuseError, "combine returned bool in state 1"),
        ({"combine": lambda a, b: (a[0] - b[0], a[1])}, FuseError, "is not its identity"),
        ({"combine": lambda a, b: (a[0] + b[0], a[1] + b[1] + a[0] * b[0] * a[0])}, FuseError, "must be commutative"),
        ({"map": lambda x: (x, x > 0)}, DTypeError, "identity 0.0 of state 1 does not fit a reduction of bool"),
        (
            {"map": lambda x: (x, x.to(mf.int32)), "identity": (0.0, 0.5)},
            DTypeError,
            "identity 0.5 of state 1 is not an int32",
        ),
        ({"finish": lambda a, b: 1.0}, FuseError, "finish returned float, expected one element"),
    ],
)
def test_wrong_states_are_refused(parts, error, message):
    def add_both(a, b):
        return a[0] + b[0], a[1] + b[1]

    with pytest.raises(error, match=message.replace("(", r"\(")):
        mf.reduction(**({"map": lambda x: (x, x), "combine": add_both, "identity": (0.0, 0.0)} | parts))(mf.ones(3))


def test_several_states_have_no_gradient():
    x = mf.tensor(array(3, 5), requires_grad=True)
    with pytest.raises(GradientError, match="pool_moments: its combine has no gradient"):
        variance(x, dim=1).sum().backward()
    with mf.no_grad():
        assert variance(x, dim=1).shape == (3,)
