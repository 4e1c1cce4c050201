"""Functions of tensors of the library: what a run records, and what is refused."""

import numpy as np
import pytest

pytest.importorskip("rich", reason="needs minifuse[course]")

import minifuse as mf
from minifuse.backends.registry import registry
from minifuse.course.elementary import Function, arange
from minifuse.course.library_checks import count_of, elements_of, expected_answer
from minifuse.course.library_facts import TensorCall
from minifuse.course.questions.library import incoming_gradient, run_call
from minifuse.course.verdicts import Refused, Wrong

X = np.arange(1.0, 7.0).reshape(2, 3)
CALL = TensorCall("f", (X,), 3)


def test_the_backend_of_a_run_is_registered_only_in_it():
    run_call(lambda x: x * mf.ones(3), CALL)
    assert "course" not in registry.factories
    assert "course" not in registry.instances


def test_a_run_has_values_gradients_and_calls():
    run = run_call(lambda x: (x * x).sum(-1), CALL)
    d = incoming_gradient(3, (2,))
    assert np.array_equal(run.values[0], (X * X).sum(-1))
    assert np.array_equal(run.gradients[0], 2 * X * d[:, None])
    assert [call.name for call in run.forward] == ["mul", "sum"]
    assert run.forward[0].outputs == ((2, 3),)
    assert elements_of(run.forward) == 6 + 2
    assert count_of(run.backward, "gradient of mul") == 1


@pytest.mark.parametrize(
    ("function", "name"),
    [(lambda x: x.softmax(-1), "softmax"), (lambda x: x.var(-1), "var"), (lambda x: x.logsumexp(-1), "logsumexp")],
)
def test_a_call_that_is_not_elementary_is_refused(function, name):
    with pytest.raises(Refused, match=f"your code calls {name} of the library"):
        run_call(function, CALL)
    run_call(function, CALL, is_strict=False)


def test_views_are_no_calls_and_copies_are():
    run = run_call(lambda x: x.reshape(3, 2).permute(1, 0)[:, 1:], CALL)
    assert run.forward == ()
    assert run.are_views == (True,)
    run = run_call(lambda x: x.T.reshape(6), CALL)
    assert [call.name for call in run.forward] == ["copy"]
    assert run.are_views == (False,)


def test_reads_of_the_function_count_and_those_of_the_library_do_not():
    assert run_call(lambda x: x + len(x.tolist()), CALL).reads == 6
    assert run_call(lambda x: x[arange(2)], CALL).reads == 0


def test_bytes_that_are_alive_and_kept_are_counted():
    x = np.ones((64, 128))  # 64 KiB, a size class
    run = run_call(lambda x: (x.exp() + 1) * 2, TensorCall("f", (x,), is_constant=True))
    assert run.peak_bytes == 2 * x.nbytes
    assert run.saved_bytes == 0
    run = run_call(lambda x: (x.exp() * x.log()).sum(), TensorCall("f", (x,), 1))
    assert run.saved_bytes == 2 * x.nbytes


def test_a_derivative_of_ones_own_is_no_derived_call():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, gradient):
            return 2 * gradient

    run = run_call(Double.apply, CALL)
    assert [call.name for call in run.backward] == ["mul"]


def test_changed_arguments_and_other_results_are_wrong():
    with pytest.raises(Wrong, match="changes its arguments"):
        run_call(lambda x: x.zero_() + 1, TensorCall("f", (X,), is_constant=True))
    with pytest.raises(Wrong, match="f returns a value of type NoneType, expected a tensor; is a return"):
        run_call(lambda x: None, CALL)


def test_expected_answers_come_from_the_oracle():
    values, gradients = expected_answer(TensorCall("rms_norm", (X, np.ones(3), 0.0), 1))
    assert np.allclose((values[0] ** 2).mean(-1), 1)
    assert [g.shape for g in gradients] == [(2, 3), (3,)]
