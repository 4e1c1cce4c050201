"""Convolution, pooling, softmax and dropout of an engine: gradients match numerical derivatives."""

import numpy as np
import pytest

from minifuse.core.errors import ShapeError
from minifuse.course import networks, workspace
from minifuse.course.engine import Engine
from minifuse.course.overlay import Overlay
from minifuse.course.registry import TASKS
from tests.course.make_stubs import REFERENCE

STEP = 1e-6
FUNCTIONS = {
    "conv1d": (networks.conv1d, [(2, 3, 7), (4, 3, 2)], {"stride": 2, "padding": 1}),
    "conv2d": (networks.conv2d, [(2, 3, 5, 4), (2, 3, 2, 3)], {"stride": (2, 1), "padding": (0, 1)}),
    "average_pool": (networks.average_pool, [(2, 1, 5, 6)], {"window": (3, 2), "stride": (1, 2)}),
    "max_pool": (networks.max_pool, [(2, 1, 5, 6)], {"window": (3, 2)}),
    "maximum": (networks.maximum, [(2, 5, 3)], {"dim": -2}),
    "softmax": (networks.softmax, [(4, 3)], {"dim": 0}),
    "log_softmax": (networks.log_softmax, [(4, 3)], {"dim": 1}),
    "dropout": (networks.dropout, [(5, 4)], {"rate": 0.5, "seed": 3, "is_training": True}),
}


def test_all_that_is_offered_is_tested():
    assert set(FUNCTIONS) == set(networks.__all__)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_derivative_is_the_slope_of_the_value(name):
    function, shapes, options = FUNCTIONS[name]
    random = np.random.default_rng(7)
    arrays = [random.uniform(-2, 2, shape) for shape in shapes]

    def weighted(*values):
        """A sum in which each element of the result has a weight of its own."""
        result = function(*values, **options)
        return (result * np.cos(np.arange(np.prod(result.shape))).reshape(result.shape)).sum()

    engine = Engine()
    leaves = [engine.tensor(array) for array in arrays]
    weighted(*leaves).backward()
    for k, array in enumerate(arrays):
        for index in [(0,) * array.ndim, tuple(n - 1 for n in array.shape), tuple(n // 2 for n in array.shape)]:
            around = []
            for way in (STEP, -STEP):
                moved = [a.copy() for a in arrays]
                moved[k][index] += way
                around.append(weighted(*[Engine().constant(a) for a in moved]).item())
            slope = (around[0] - around[1]) / (2 * STEP)
            assert np.array(leaves[k].grad.tolist())[index] == pytest.approx(slope, rel=1e-5, abs=1e-6)


def test_no_gradient_is_computed_for_data():
    engine = Engine()
    weight = engine.tensor(np.ones((1, 1, 2, 2)))
    networks.conv2d(engine.constant(np.ones((1, 1, 3, 3))), weight).sum().backward()
    assert weight.grad.tolist() == [[[[4, 4], [4, 4]]]]
    assert engine.student.lent["conv2d_weight_gradient"] == 1
    assert not engine.student.lent["conv2d_input_gradient"]


def test_evaluation_drops_nothing():
    x = Engine().tensor([[1.0, 2.0]])
    y = networks.dropout(x, 0.9, 1, is_training=False)
    y.sum().backward()
    assert (y.tolist(), x.grad.tolist()) == ([[1, 2]], [[1, 1]])


def test_dim_out_of_range_is_an_error():
    with pytest.raises(ShapeError, match=r"dim 2 of shape \(1, 2\)"):
        networks.softmax(Engine().tensor([[1.0, 2.0]]), 2)


def test_what_a_slot_calls_for_each_element_counts_once(tmp_path):
    workspace.init(tmp_path / "mine")
    reference = (REFERENCE / "convolution.py").read_text()
    helped = reference.replace(
        "def place(x, *index):",
        "from tensors import position_of\n\n\ndef place(x, *index):\n    position_of(index, x.strides, 0)",
    )
    (tmp_path / "mine" / "convolution.py").write_text(helped)
    (tmp_path / "mine" / "tensors.py").write_text((REFERENCE / "tensors.py").read_text())
    engine = Engine(Overlay(tmp_path / "mine", TASKS))
    networks.conv2d(engine.constant(np.ones((2, 1, 5, 5))), engine.constant(np.ones((1, 1, 2, 2))))
    assert engine.student.calls["conv2d"] == engine.student.calls["position_of"] == 1
