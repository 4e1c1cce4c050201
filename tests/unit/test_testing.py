"""testing: tolerances, gradient checks, strategies and random programs."""

import ast
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minifuse as mf
from minifuse.backends.python import PythonBackend
from minifuse.backends.registry import registry
from minifuse.compiler import plan
from minifuse.core.dtypes import DTYPES
from minifuse.core.operators import TABLE
from minifuse.testing import (
    TOLERANCES,
    Recipe,
    assert_backends_agree,
    assert_close,
    gradcheck,
    tolerance_for,
)

A = np.linspace(-1.5, 2.0, 12).reshape(3, 4)
B = np.linspace(0.5, 1.5, 4)


class Faulty(PythonBackend):
    """It computes one cosine wrongly."""

    name = "faulty"

    def map(self, op, a, out):
        super().map(op, a, out)
        if op is TABLE["cos"]:
            out.data[5] += 0.25


@pytest.fixture
def faulty():
    mf.register_backend(Faulty())
    yield
    registry.factories.pop("faulty"), registry.instances.pop("faulty")


def parameter(array):
    return mf.tensor(array, requires_grad=True)


class TestBackendsAgree:
    def test_it_reports_each_backends_distance_from_the_reference(self):
        found = assert_backends_agree(lambda x, y: (x * y).sin(), A, B, dtypes=["float32", "float64"])
        assert [row[:2] for row in found.rows] == [
            (backend, (dtype, dtype)) for dtype in ("float32", "float64") for backend in mf.backends()
        ]
        assert all(0 < row.value < 1e-6 and 0 < row.gradient < 1e-6 for row in found.rows if row.dtypes[0] == "float32")
        assert next(row for row in found.rows if row.dtypes[0] == "float64").value == 0  # the plain one is the judge
        assert str(found).splitlines()[1].split()[:3] == ["python", "float32,", "float32"]

    def test_a_wrong_value_is_reported_with_its_facts(self, faulty):
        x = np.ascontiguousarray(A.T).T[:, ::-1]
        with pytest.raises(AssertionError) as found:
            assert_backends_agree(lambda x: x.cos(), x, backends=["python", "faulty"])
        what, where, allowed, given = str(found.value).splitlines()
        assert what == "faulty: output 0 is wrong at 1 of 12 elements, float64 (3, 4)"
        index, right, got = re.fullmatch(r"first at +(\(.*\)): expected (.*), got (.*)", where).groups()
        assert np.cos(x)[ast.literal_eval(index)] == float(right) == pytest.approx(float(got) - 0.25)
        assert re.fullmatch(rf"allowed +rtol \S+, atol \S+: {TOLERANCES['program'].reason}", allowed)
        assert re.fullmatch(r"input 0 +float64 \(3, 4\), strides \(1, -3\), offset 9", given)

    def test_the_index_is_that_of_the_element(self, faulty):
        with pytest.raises(AssertionError, match=r"first at +\(1, 1\): expected 0\.\d+, got 1\.\d+"):
            assert_backends_agree(lambda x: x.cos(), np.full((3, 4), 0.5), backends=["faulty"])

    def test_first_element_that_differs_is_in_each_row(self):
        near = lambda x: x * 2 + (x > 0.5) * (1e-3 if x.backend == "parallel" else 0.0)  # noqa: E731
        x = np.array([[0.25, 0.75], [1.0, 0.0]], np.float32)
        rows = assert_backends_agree(near, x, backends=["python", "parallel"], atol=0.1).rows
        assert rows[0].first is None
        first = rows[1].first
        assert (first.what, first.index, first.expected) == ("output 0", (0, 1), "1.5")
        assert float(first.got) == pytest.approx(1.501)

    def test_a_wrong_gradient(self, faulty):
        assert_backends_agree(lambda x: x.sin(), A, backends=["faulty"], gradients=False)
        with pytest.raises(AssertionError, match="faulty: the gradient of input 0 is wrong at 1 of 12 elements"):
            assert_backends_agree(lambda x: x.sin(), A, backends=["faulty"])

    def test_a_gradient_that_one_backend_alone_has(self):
        with pytest.raises(AssertionError, match="parallel: input 0 got no gradient"):
            assert_backends_agree(
                lambda x: x * (x if x.backend == "python" else 2.0) if x.backend == "python" else x.detach() * x.detach(), A
            )

    @pytest.mark.parametrize("other", [lambda x: x.to("float32"), lambda x: x.reshape(4, 3), lambda x: (x, x)])
    def test_other_dtypes_shapes_and_numbers_of_outputs(self, other):
        with pytest.raises(AssertionError, match=r"python returned \[.*\], parallel returned \["):
            assert_backends_agree(lambda x: x if x.backend == "python" else other(x), A)

    def test_numpy_may_judge(self):
        assert_backends_agree(lambda x: (x.exp(), x + 1), A, expected=(np.exp(A), A + 1))
        with pytest.raises(AssertionError, match="python: output 1 is wrong"):
            assert_backends_agree(lambda x: (x.exp(), x + 1), A, expected=(np.exp(A), A + 2))
        with pytest.raises(AssertionError, match="python: the function returned 1 outputs, expected 2"):
            assert_backends_agree(lambda x: x.exp(), A, expected=(A, A))

    def test_an_error_that_all_raise_is_raised(self):
        with pytest.raises(mf.ShapeError, match="inner sizes differ"):
            assert_backends_agree(lambda x: x @ x, A)

    @pytest.mark.parametrize("error", [mf.DTypeError("other"), mf.ShapeError("text")])
    def test_errors_that_differ_in_kind_or_text(self, error):
        def fail(x):
            raise mf.ShapeError("other") if x.backend == "python" else error

        with pytest.raises(AssertionError, match="different errors\npython: ShapeError: other\nparallel: "):
            assert_backends_agree(fail, A)

    def test_an_error_that_one_raises(self):
        def fail(x):
            if x.backend == "parallel":
                raise ValueError("no")
            return x

        with pytest.raises(AssertionError, match="python: no error\nparallel: ValueError: no"):
            assert_backends_agree(fail, A)

    def test_an_error_of_the_judge_alone(self):
        def fail(x):
            if x.dtype is mf.float64:
                raise ValueError("no")
            return x

        with pytest.raises(AssertionError, match="reference, python in float64, raised ValueError: no"):
            assert_backends_agree(fail, A.astype(np.float32))

    def test_it_returns_its_argument(self):
        """Layouts as they are, new tensors on the backend, and arrays that stay what they were."""
        seen = []

        def look(x, y):
            seen.append((x.strides, y.strides, mf.zeros(1).backend))
            with mf.no_grad():
                x *= 0
            return mf.zeros(1)

        x, y = A.copy()[::2, ::-1], np.broadcast_to(B, (2, 4))
        assert_backends_agree(look, x, y, backends=["parallel"], gradients=False)
        assert set(seen) == {((8, -1), (0, 1), "python"), ((8, -1), (0, 1), "parallel")}
        np.testing.assert_array_equal(x, A[::2, ::-1])
        assert mf.zeros(1).backend == "parallel"

    def test_integers_bools_and_odd_strides(self):
        records = np.zeros(5, [("a", "i1"), ("x", "f4")])
        records["x"] = [1, 2, 3, 4, 5]
        found = assert_backends_agree(lambda x, n, b: (x + n, b & (x > 2)), records["x"], np.arange(5), np.arange(5) > 3)
        assert found.rows[0].dtypes == ("float32", "int64", "bool")

    def test_tolerances_of_the_caller(self):
        near = lambda x: x if x.backend == "python" else x + 0.01  # noqa: E731
        assert_backends_agree(near, A, atol=0.02)
        with pytest.raises(AssertionError, match=r"rtol 0, atol 0\.005: given by the caller"):
            assert_backends_agree(near, A, atol=0.005)

    def test_unknown_backends_and_non_tensors_are_errors(self):
        with pytest.raises(mf.DTypeError, match="returned float, expected a tensor"):
            assert_backends_agree(lambda x: 1.0, A)
        with pytest.raises(mf.BackendError, match="'abacus' does not exist; choose one of python, parallel"):
            assert_backends_agree(lambda x: x, A, backends=["abacus"])


class TestClose:
    @pytest.mark.parametrize(
        ("got", "expected"),
        [
            ([1.0, 2.0], [1.0, 2.1]),
            ([np.nan], [1.0]),
            ([1.0], [np.nan]),
            ([np.inf], [1.0]),
            ([1.0], [np.inf]),
            ([np.inf], [-np.inf]),
        ],
    )
    def test_differences_are_found(self, got, expected):
        with pytest.raises(AssertionError, match="wrong at 1 of"):
            assert_close(mf.tensor(got), expected)

    def test_equal_results_are_accepted(self):
        assert_close(mf.tensor([np.nan, np.inf, -np.inf, 0.0]), [np.nan, np.inf, -np.inf, -0.0], "exact")
        assert_close(mf.tensor([1.0]), [1 + 1e-9], "exact")  # the same in float32

    def test_shapes_and_integers_are_exact(self):
        with pytest.raises(AssertionError, match=r"shape \(1, 2\), expected \(2,\)"):
            assert_close(mf.tensor([[1.0, 2.0]]), [1.0, 2.0])
        with pytest.raises(AssertionError, match="expected 9007199254740993, got 9007199254740992"):
            assert_close(mf.tensor([2**53]), [2**53 + 1], "program")


class TestTolerances:
    @pytest.mark.parametrize("kind", TOLERANCES)
    def test_every_kind_has_a_reason_and_grows_with_less_precision(self, kind):
        coarse, fine = [tolerance_for(kind, dtype, n=100, scale=10.0) for dtype in ("float32", "float64")]
        assert coarse.reason == fine.reason == TOLERANCES[kind].reason
        assert coarse.rtol >= fine.rtol >= 0
        assert tolerance_for(kind, "int32", scale=10.0)[:2] == (0, 0)

    def test_more_numbers_and_larger_ones_allow_more(self):
        few, many = tolerance_for("fold", "float32", n=4, scale=1.0), tolerance_for("fold", "float32", n=400, scale=3.0)
        assert many.rtol == pytest.approx(10 * few.rtol)
        assert many.atol == pytest.approx(30 * few.atol)

    def test_where_nothing_cancels_the_scale_plays_no_part(self):
        assert tolerance_for("rounded", "float32", scale=1e30) == tolerance_for("rounded", "float32")

    def test_an_unknown_kind(self):
        with pytest.raises(mf.MinifuseError, match="kind 'loose'; expected one of exact, rounded"):
            tolerance_for("loose", "float32")


@pytest.fixture
def wrong_second_derivative(monkeypatch):
    """tanh with a rule whose value is right and whose derivative is not. Plans that know the rule are forgotten."""
    detach = TABLE["detach"]
    plan.plans.clear(), plan.runs.clear()
    monkeypatch.setattr(TABLE["tanh"], "vjp", lambda g, y, x: (g * (1 - detach(y * y)),))
    yield
    plan.plans.clear(), plan.runs.clear()


class TestGradcheck:
    def test_right_gradients_of_every_input_and_output(self):
        x, y, n = parameter(A), parameter(B), mf.arange(4)
        assert gradcheck(lambda x, y, n: (x * y + n, (x * y).tanh().sum(0)), x, y, n, second=True)
        assert x.grad is None

    @pytest.mark.parametrize("see", [lambda x: x.T, lambda x: x[::2, ::-1], lambda x: x[:1].expand(3, 4), lambda x: x * 2])
    def test_inputs_of_any_layout_and_history(self, see):
        assert gradcheck(lambda x: x.softmax(0), see(parameter(A)), second=True)

    def test_a_wrong_gradient_is_reported_by_input_and_index(self):
        x, y = parameter(A + 3), parameter(A * 0 + 2)
        with pytest.raises(
            AssertionError, match=r"the gradient of input 1 is wrong at 4 of 12 .*\nfirst at +\(1, 0\): expected"
        ) as found:
            gradcheck(lambda x, y: mf.where(mf.tensor([[False], [True], [False]]), x * y.detach(), x * y), x, y)
        assert TOLERANCES["difference"].reason in str(found.value)

    def test_a_gradient_that_is_missing(self):
        with pytest.raises(AssertionError, match="the gradient of input 0 is wrong at 12 of 12"):
            gradcheck(lambda x: x.detach() * 2, parameter(A))

    def test_a_wrong_second_derivative(self, wrong_second_derivative):
        assert gradcheck(lambda x: x.tanh(), parameter(A))
        with pytest.raises(AssertionError, match="the second derivative of input 0 is wrong at 12 of 12"):
            gradcheck(lambda x: x.tanh(), parameter(A), second=True)

    def test_a_kink_is_where_rule_and_differences_part(self):
        assert gradcheck(lambda x: x.relu(), parameter(np.array([1.0, -1.0, 0.1])))
        with pytest.raises(AssertionError, match=r"\(2,\)"):
            gradcheck(lambda x: x.relu(), parameter(np.array([1.0, -1.0, 0.0])))

    def test_tolerances_of_the_caller(self):
        wrong = lambda x: x * x + 0.001 * x.detach()  # noqa: E731
        assert gradcheck(wrong, parameter(B), atol=0.01)
        with pytest.raises(AssertionError, match="given by the caller"):
            gradcheck(wrong, parameter(B), rtol=1e-5)

    def test_unsupported_functions_are_errors(self):
        with pytest.raises(mf.DTypeError, match="input 1 is float32, expected float64; convert it with"):
            gradcheck(lambda x, y: x * y, parameter(A), parameter(B.astype(np.float32)))
        with pytest.raises(mf.GradientError, match="no input requires a gradient"):
            gradcheck(lambda x: x, mf.tensor(A))


class TestStrategies:
    @given(mf.testing.shapes(min_dims=1, max_dims=3, max_side=4, min_side=2))
    def test_shapes_keep_their_bounds(self, shape):
        assert 1 <= len(shape) <= 3
        assert all(2 <= n <= 4 for n in shape)

    @given(mf.testing.dtypes("fb"))
    def test_dtypes_are_of_the_kinds(self, dtype):
        assert dtype in DTYPES
        assert not dtype.is_integer

    @given(st.data())
    def test_layouts_give_the_shape_that_was_asked_for(self, data):
        shape = data.draw(mf.testing.shapes())
        recipe = data.draw(mf.testing.layouts(shape))
        a = np.arange(int(np.prod(recipe.base))).reshape(recipe.base)
        assert recipe(a).shape == recipe.shape == shape
        assert recipe(a).size == 0 or np.shares_memory(recipe(a), a)

    @pytest.mark.parametrize(
        "fits",
        [
            lambda x: x.strides[0] < 0,
            lambda x: x.strides[1] == 0,
            lambda x: x.strides == (1, 3),
            lambda x: x.strides[1] == 2,
            lambda x: x.offset > 0,
        ],
        ids=["flipped", "expanded", "permuted", "stepped", "offset"],
    )
    @settings(max_examples=1)
    @given(data=st.data())
    def test_tensors_have_every_layout(self, fits, data):
        x = data.draw(mf.testing.tensors((3, 4), "float64", requires_grad=True).filter(fits))
        assert x.shape == (3, 4)
        assert x.requires_grad

    @pytest.mark.parametrize("dtype", DTYPES, ids=repr)
    @given(data=st.data())
    def test_arrays_stay_in_their_domain(self, dtype, data):
        array = data.draw(mf.testing.arrays((4, 5), dtype, (-3, 7)))
        assert array.dtype == dtype.numpy
        assert array.shape == (4, 5)
        assert array.min() >= (0 if dtype is mf.uint8 else -3)
        assert array.max() <= 7

    @given(mf.testing.expressions(inputs=3, rounding=True))
    def test_a_program_equals_its_text(self, program):
        names = {"mf": mf}
        exec(repr(program), names)
        xs = [mf.tensor(np.random.default_rng(0).uniform(-1.5, 1.5, s), backend="python") for s in program.shapes]
        as_written, as_run = [y if isinstance(y, tuple) else (y,) for y in (names["program"](*xs), program(*xs))]
        for a, b in zip(as_written, as_run, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())

    @given(mf.testing.expressions(depth=12, max_dims=2, max_side=4))
    def test_values_of_programs_stay_moderate_and_every_step_matters(self, program):
        results = program.numpy(*[np.random.default_rng(k).uniform(-1.5, 1.5, s) for k, s in enumerate(program.shapes)])
        assert all(np.abs(y).max() < 50 for y in (results if isinstance(results, tuple) else (results,)))
        used = {k for step in program.steps for k in step.operands} | set(program.outputs)
        assert used >= set(range(len(program.shapes), len(program.shapes) + len(program.steps)))
        assert all(len(shape) <= 2 and max(shape, default=1) <= 4 for shape in program.shapes)

    def test_casts_are_there_if_asked_for(self):
        seen = []

        @given(mf.testing.expressions(rounding=True))
        def look(program):
            seen.append(program.rounds)

        look()
        assert set(seen) == {True, False}

    def test_a_recipe_reads_as_source(self):
        recipe = Recipe((4, 6), [("index", (slice(1, None, 2), None, 3)), ("permute", (1, 0)), ("expand", (5, 1, 2))])
        assert repr(recipe) == "x[1::2, None, 3].permute(1, 0).expand(5, 1, 2) of (4, 6)"
        assert recipe.shape == (5, 1, 2)

    def test_without_hypothesis_the_install_line_is_named(self, monkeypatch):
        monkeypatch.delitem(sys.modules, "minifuse.testing.strategies")
        monkeypatch.delattr("minifuse.testing.strategies")
        monkeypatch.setitem(sys.modules, "hypothesis", None)
        with pytest.raises(mf.MissingPartError, match=r'pip install "minifuse\[test\]"'):
            mf.testing.shapes()
        assert_backends_agree(lambda x: x, A)

    def test_no_other_names_are_there(self):
        with pytest.raises(AttributeError, match="no attribute 'integers'"):
            mf.testing.integers  # noqa: B018
        assert all(hasattr(mf.testing, name) for name in mf.testing.__all__)


@pytest.mark.parametrize(
    "check",
    [
        lambda: assert_close(mf.ones(2), [1, 2]),
        lambda: assert_backends_agree(lambda x: x + 1, [1.0], expected=[3.0]),
    ],
    ids=["assert_close", "assert_backends_agree"],
)
def test_pytest_shows_the_lines_of_the_caller_alone(check):
    with pytest.raises(AssertionError) as error:
        check()
    assert {Path(entry.path) for entry in error.traceback.filter(error)} == {Path(__file__)}
