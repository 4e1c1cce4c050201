"""inspect.dry_run: the launches of a call, in order, with the buffers of its plan."""

import gc

import numpy as np
import pytest

import minifuse as mf
from minifuse import simt
from minifuse.inspect.dry_run import launches_of

RANDOM = np.random.default_rng(0)


def test_the_launches_compute_the_result_of_the_call():
    a, b = (RANDOM.standard_normal((64, 64), np.float32) for _ in range(2))
    plans = launches_of(lambda x, y: (x @ y).softmax(1), a, b)
    assert [plan.kernel.__name__ for plan in plans][-1] == "kernel"
    gc.collect()
    for plan in plans:
        simt.run(plan)
    result = simt.trace(plans[-1]).outputs["out0"].reshape(64, 64)
    exact = np.exp(a.astype(float) @ b)
    np.testing.assert_allclose(result, exact / exact.sum(1, keepdims=True), rtol=1e-4)


def test_several_launches_are_in_order():
    plans = launches_of(lambda x, y: x @ y, np.ones((128, 512), np.float32), np.ones((512, 128), np.float32))
    assert [plan.kernel.__name__ for plan in plans] == ["matmul", "add_parts"]  # K is cut in parts


def test_nothing_runs():
    (plan,) = launches_of(mf.exp, np.zeros((3, 5), np.float32))
    assert plan.arguments[0].data.shape == (15,)
    plan.arguments[0].data[:] = 7
    simt.run(plan)
    assert (plan.arguments[0].data == 1).all()


def test_layouts_and_numbers_are_those_of_the_call():
    (plan,) = launches_of(lambda x, k: x * k, np.arange(12, dtype=np.float32).reshape(3, 4).T, 2.5)
    source = plan.arguments[1]
    assert source.data.tolist() == list(range(12))
    simt.run(plan)
    out = plan.arguments[0].data
    assert sorted(out.tolist()) == [2.5 * k for k in range(12)]


def test_tensors_of_any_backend_are_copied():
    x = mf.ones(5)
    (plan,) = launches_of(mf.exp, x)
    simt.run(plan)
    assert x.numpy().tolist() == [1.0] * 5


def test_an_empty_call_launches_nothing():
    assert launches_of(mf.exp, np.ones((0, 3), np.float32)) == []


def test_faults_of_the_call_are_those_of_the_call():
    with pytest.raises(mf.ShapeError, match="do not broadcast"):
        launches_of(mf.maximum, np.ones((3, 4), np.float32), np.ones(5, np.float32))


def test_buffers_are_not_reused():
    plans = launches_of(lambda x: ((x @ x) @ x) @ x, np.ones((40, 40), np.float32))
    pointers = [argument for plan in plans for argument in plan.arguments if isinstance(argument, simt.Pointer)]
    addresses = {plan.arguments[0].data.ctypes.data for plan in plans}
    assert len(addresses) == len(plans) == 3
    for pointer in pointers:
        address = pointer.data.ctypes.data
        assert any(buffer.address <= address < buffer.address + buffer.nbytes for buffer in pointer.owner)
