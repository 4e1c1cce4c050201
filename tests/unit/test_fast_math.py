"""core.precision: fast math as a setting, the approximations of operators, and plans that are never shared."""

import threading

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.cuda.intrinsics.fast_math import BOUNDS, FAST_FUNCTIONS
from minifuse.compiler.plan import Plan
from minifuse.core.dispatch import mode
from minifuse.core.interning import toposort
from minifuse.core.operator_entry import FastOperator
from minifuse.core.operators import TABLE

from ..cuda.fast_math_errors import CASES, errors_in_ulp, measure, wrong_specials

ORDER = (False, True, False, True, True, False)
FAST = [entry for entry in TABLE.values() if entry.fast]


@pytest.fixture(autouse=True)
def _exact():
    yield
    mf.set_fast_math(False)
    mf.set_float32_matmul_precision("highest")


@pytest.fixture
def x():
    return mf.tensor(np.random.default_rng(0).uniform(20, 60, (6, 40)).astype(np.float32), backend="cuda")


def bits(y):
    return y.numpy().tobytes()


# The setting.


def test_the_default_and_a_set_flag():
    assert mf.get_fast_math() is False
    mf.set_fast_math(True)
    assert mf.get_fast_math() is True
    mf.set_fast_math(False)
    assert mode.is_recording is True


@pytest.mark.parametrize("bad", [None, 1, "True", np.True_])
def test_other_values_are_errors_and_change_nothing(bad):
    mf.set_fast_math(True)
    with pytest.raises(mf.DTypeError, match=r"set_fast_math: got .*, expected True or False$"):
        mf.set_fast_math(bad)
    with pytest.raises(mf.DTypeError, match="use_fast_math: got"):
        mf.use_fast_math(bad)
    assert mf.get_fast_math() is True


def test_a_decorator_without_parentheses_is_an_error():
    with pytest.raises(mf.DTypeError, match=r"as a decorator, write @mf.use_fast_math\(\)"):

        @mf.use_fast_math
        def f(x):
            return x


def test_a_decorated_function_restores_the_setting_of_its_caller():
    @mf.use_fast_math()
    def inside():
        return mf.get_fast_math()

    for is_fast in ORDER:
        mf.set_fast_math(is_fast)
        assert inside() is True
        assert mf.get_fast_math() is is_fast


def test_blocks_nest():
    with mf.use_fast_math(), mf.no_grad():
        assert mf.get_fast_math()
        assert not mode.is_recording
        with mf.use_fast_math(False):
            assert not mf.get_fast_math()
            assert mode.is_recording is False
            with mf.use_fast_math():
                assert mf.get_fast_math()
        assert mf.get_fast_math()
    assert mode.is_recording is True
    with pytest.raises(ZeroDivisionError), mf.use_fast_math():
        raise ZeroDivisionError
    assert mf.get_fast_math() is False


def test_the_two_settings_of_precision_are_independent():
    with mf.use_fast_math():
        with mf.use_float32_matmul_precision("high"):
            assert mf.get_fast_math()
            mf.set_fast_math(False)
        assert not mf.get_fast_math()
        assert mf.get_float32_matmul_precision() == "highest"
        mf.set_float32_matmul_precision("medium")
    assert mf.get_float32_matmul_precision() == "medium"
    assert mf.get_fast_math() is False
    with mf.profile(), mf.use_fast_math():
        assert mf.get_fast_math()
        assert mf.get_float32_matmul_precision() == "medium"


def seen_in_a_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append((mf.get_fast_math(), mf.get_float32_matmul_precision())))
    thread.start()
    thread.join()
    return found[0]


def test_new_threads_have_what_was_set_not_a_block():
    mf.set_float32_matmul_precision("high")
    with mf.use_fast_math(), mf.use_float32_matmul_precision("medium"):
        assert seen_in_a_thread() == (False, "high")
        mf.set_float32_matmul_precision("medium")
        assert seen_in_a_thread() == (False, "medium")
    mf.set_fast_math(True)
    assert seen_in_a_thread() == (True, "medium")


def test_another_thread_keeps_its_own():
    begun, changed, found = threading.Event(), threading.Event(), []

    def work():
        found.append(mf.get_fast_math())
        begun.set()
        changed.wait(10)
        found.append(mf.get_fast_math())

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait(10)
    mf.set_fast_math(True)
    changed.set()
    thread.join()
    assert found == [False, False]


# The table.


@pytest.mark.parametrize("entry", FAST, ids=repr)
def test_an_approximation_is_a_function_with_a_bound_or_composed(entry):
    fast = entry.fast
    assert isinstance(fast, FastOperator)
    assert (fast.exact, fast.fast, fast.vjp, fast.cost, fast.arity) == (entry, None, entry.vjp, entry.cost, entry.arity)
    assert (fast.name in FAST_FUNCTIONS, fast.name in BOUNDS) == (fast.is_primitive, fast.is_primitive)
    assert fast.name not in TABLE
    assert entry.exact is entry


def test_every_function_of_kernels_is_an_approximation():
    assert {entry.fast.name for entry in FAST if entry.fast.is_primitive} == set(FAST_FUNCTIONS)
    assert {case.name for case in CASES} == {entry.name for entry in FAST}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_errors_in_the_interpreter_are_within_the_bounds(case):
    rows = measure(case, 1500)
    assert {row.group for row in rows if row.excess > 0} == set(), rows
    assert {"subnormal operand", "subnormal result"} & {row.group for row in rows}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_special_values_are_those_of_numpy(case):
    assert wrong_specials(case) == []


def test_errors_are_measured_in_units_in_the_last_place():
    one = np.float32(1)
    got = np.array([one, np.nextafter(one, np.float32(2)), 0, np.nan, np.inf, np.nan], np.float32)
    exact = np.array([1 + 2.0**-24, 1, 2.0**-149, 1, 2.0**127 * 1.5, np.nan])
    assert errors_in_ulp(got, exact).tolist() == [0.5, 1, 1, np.inf, 2.0**22, 0]


# Keys and texts.


@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_the_text_of_an_eager_kernel(name, x):
    function, inputs = TABLE[name], [x] * TABLE[name].arity
    texts = {}
    for is_fast in ORDER:
        with mf.use_fast_math(is_fast):
            text = mf.source(lambda *inputs: function(*inputs), *inputs)
        assert texts.setdefault(is_fast, text) == text
    words = ["fast_div", "fast_exp"] if name == "sigmoid" else [f"fast_{name}"]
    assert all(f"{word}(" in texts[True] for word in words)
    assert "fast_" not in texts[False]


def test_an_eager_call_never_runs_the_kernel_of_the_other_setting(x):
    found = {}
    for is_fast in ORDER:
        mf.set_fast_math(is_fast)
        assert found.setdefault(is_fast, bits(mf.exp(x))) == bits(mf.exp(x))
    assert found[False] != found[True]


def test_a_fused_function_has_an_entry_for_each_setting(x):
    f, found = mf.fuse(lambda x: mf.exp(x) / (x + 1)), {}
    for is_fast in ORDER:
        mf.set_fast_math(is_fast)
        assert found.setdefault(is_fast, bits(f(x))) == bits(f(x))
        assert ("fast_exp" in f.source(x)) is is_fast
        assert ("fast_div" in f.source(x)) is is_fast
    assert found[False] != found[True]
    assert f.stats().captures == 2


def test_an_eager_call_and_a_fused_one_have_the_same_bits(x):
    with mf.use_fast_math():
        assert bits(mf.fuse(lambda x: mf.exp(x) / mf.rsqrt(x))(x)) == bits(mf.exp(x) / mf.rsqrt(x))


def test_a_block_inside_of_a_fused_function(x):
    @mf.fuse
    def f(x):
        with mf.use_fast_math():
            y = mf.exp(x)
        return y, mf.exp(x)

    exact = bits(mf.exp(x))
    with mf.use_fast_math():
        fast = bits(mf.exp(x))
    assert [bits(y) for y in f(x)] == [fast, exact]


def test_an_exact_block_inside_of_a_fused_function(x):
    @mf.fuse
    def f(x):
        with mf.use_fast_math(False):
            y = mf.exp(x)
        return y, mf.exp(x)

    exact = bits(mf.exp(x))
    with mf.use_fast_math():
        assert [bits(y) for y in f(x)] == [exact, bits(mf.exp(x))]


def test_in_place_operations_have_the_setting_in_their_key():
    a = np.linspace(1, 2, 8, dtype=np.float32)
    f, texts = mf.fuse(lambda x, y: x.__itruediv__(y)), {}
    for is_fast in ORDER:
        mf.set_fast_math(is_fast)
        x, y = mf.tensor(a, backend="cuda"), mf.tensor(a[::-1].copy(), backend="cuda")
        texts[is_fast] = f.source(x, y)
        f(x, y)
        np.testing.assert_allclose(x.numpy(), a / a[::-1], rtol=1e-6)
    assert ("fast_div" in texts[False], "fast_div" in texts[True]) == (False, True)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: mf.softmax(x, 1),
        lambda x: mf.softmax(x, 0),
        lambda x: x.logsumexp(1),
        lambda x: mf.sigmoid(x) / (x * x).sum(1, keepdim=True),
        lambda x: mf.relu(x @ x.mT / 7) / (1 + mf.exp(x[0, 0])),
    ],
    ids=["softmax", "softmax of columns", "logsumexp", "division by a row", "matmul"],
)
def test_the_same_kernels_are_formed(function, x):
    exact, y = mf.source(function, x), function(x).numpy()
    with mf.use_fast_math():
        fast, z = mf.source(function, x), function(x).numpy()
    for word in ("launch0(", "launch1(", "cuda.shared.array(", "def point"):
        assert exact.count(word) == fast.count(word)
    assert "fast_" in fast
    np.testing.assert_allclose(z, y, rtol=3e-5)


def test_a_division_by_a_value_of_the_row_is_one_fast_reciprocal(x):
    with mf.use_fast_math():
        text = mf.source(lambda x: x / x.sum(1, keepdim=True), x)
    assert text.count("fast_div(") == text.count("= fast_div(f32(1.0), sum0_of_row)") == 1


# Gradients.


def functions_of_gradient(function, *inputs):
    """Return the names of the operators of a backward pass, which is derived with the present setting."""
    backward = Plan(function, inputs).backward
    nodes = toposort(backward.function.outputs, lambda node: node.inputs)
    return {repr(node.function) for node in nodes}


def test_a_gradient_is_approximated_if_its_function_is():
    x = mf.tensor([1.0, 2.0], backend="cuda", requires_grad=True)

    def inside(function, is_fast):
        def f(x):
            with mf.use_fast_math(is_fast):
                return function(x)

        return f

    for is_fast in (False, True):
        for outer in (False, True):
            with mf.use_fast_math(outer):
                found = functions_of_gradient(inside(lambda x: x / (x + 3), is_fast), x)
            assert ("fast_div" in found, "div" in found) == (is_fast, not is_fast)


def test_a_gradient_of_other_operators_has_the_setting_of_the_call():
    x = mf.tensor([1.0, 2.0], backend="cuda", requires_grad=True)
    for is_fast in (False, True):
        with mf.use_fast_math(is_fast):
            assert ("fast_div" in functions_of_gradient(mf.log, x)) is is_fast


@pytest.mark.parametrize("is_fused", [False, True])
def test_a_gradient_keeps_the_setting_of_its_forward_pass(is_fused, x):
    """Also where the setting has changed when it is asked for."""
    work = lambda w, x: (mf.exp(w) / w * x).sum()  # noqa: E731
    f, found = mf.fuse(work) if is_fused else work, {}
    for is_fast in ORDER:
        for at_backward in (False, True):
            w = x.detach()
            w.requires_grad = True
            with mf.use_fast_math(is_fast):
                y = f(w, x)
            with mf.use_fast_math(at_backward):
                y.backward()
            assert found.setdefault(is_fast, bits(w.grad)) == bits(w.grad)
    assert found[False] != found[True]


def test_a_second_derivative():
    a = np.linspace(0.5, 3, 7, dtype=np.float32)
    x = mf.tensor(a, backend="cuda", requires_grad=True)
    with mf.use_fast_math():
        (slope,) = (mf.grad(lambda x: (mf.sigmoid(x) / x).sum())(x),)
        assert slope.shape == x.shape
        curvature = mf.grad(lambda x: mf.grad(lambda x: mf.rsqrt(x).sum())(x).sum())(x)
    np.testing.assert_allclose(curvature.numpy(), 0.75 * a**-2.5, rtol=1e-5)


# What does not change.


@pytest.mark.parametrize("backend", ["python", "parallel"])
def test_a_cpu_never_changes(backend, x):
    y = x.to(backend)
    f = mf.fuse(lambda x: mf.softmax(mf.sigmoid(x) / (x + 1), 1) * mf.rsqrt(x))
    raw = mf.elementwise(lambda x, i: mf.exp(x[mf.minimum(i, 5), 0]) / 3, raw="x")
    i = mf.arange(4, backend=backend)
    exact = bits(mf.exp(y)), bits(f(y)), f.source(y), bits(raw(y, i)), raw.source(y, i)
    mf.set_fast_math(True)
    assert (bits(mf.exp(y)), bits(f(y)), f.source(y), bits(raw(y, i)), raw.source(y, i)) == exact


@pytest.mark.parametrize("dtype", ["float64", "int32", "int64"])
def test_other_types_never_change(dtype):
    y = mf.tensor(np.arange(1, 9).astype(dtype), backend="cuda")
    f = mf.fuse(lambda x: mf.exp(x) / x + mf.sigmoid(x) * mf.rsqrt(x) + 1 / 3)
    exact = bits(f(y)), f.source(y)
    mf.set_fast_math(True)
    assert (bits(f(y)), f.source(y)) == exact


def test_numbers_are_computed_exactly():
    """Arithmetic on number arguments happens on the host."""
    f = mf.fuse(lambda x, n: x * (mf.exp(n) / 3))
    x = mf.ones(4, backend="cuda")
    exact = bits(f(x, 30.5))
    with mf.use_fast_math():
        assert bits(f(x, 30.5)) == exact
        assert mf.exp(30.5) == np.exp(30.5)


# Kernels of users.


def test_functions_of_elements(x):
    f = mf.elementwise(lambda x: mf.exp(x) / 3)
    found = {}
    for is_fast in ORDER:
        mf.set_fast_math(is_fast)
        assert found.setdefault(is_fast, bits(f(x))) == bits(f(x))
        assert ("fast_exp" in f.source(x)) is is_fast
    assert found[False] != found[True]


def test_functions_of_elements_with_raw_arguments(x):
    f = mf.elementwise(lambda i, t: mf.exp(t[i]) / 3, raw="t")
    i, t = mf.arange(6, backend="cuda"), x[:, 0].contiguous()
    found = {}
    for is_fast in ORDER:
        mf.set_fast_math(is_fast)
        assert found.setdefault(is_fast, bits(f(i, t))) == bits(f(i, t))
        assert ("fast_exp" in f.source(i, t)) is is_fast
    assert found[False] != found[True]


def test_only_the_combine_of_a_reduction_stays_exact(x):
    """Its operator is cached, and is the same one for all settings."""
    log_add = mf.reduction(
        map=lambda x: mf.exp(x), combine=lambda a, b: mf.log(mf.exp(a) + mf.exp(b)), identity=-np.inf, name="log_add"
    )
    small = x * 0.001
    with mf.use_fast_math():
        text = log_add.source(small, dim=1)
    combine = text[text.index("def combine") :].partition("\n\n")[0]
    assert "fast_" not in combine
    assert "fast_exp" in text
    assert "fast_" not in log_add.source(small, dim=1)
