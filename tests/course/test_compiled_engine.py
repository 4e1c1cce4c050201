"""Loops of module 4 that an engine runs compiled: the same numbers and counts as in Python, or Python."""

import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rich", reason="needs minifuse[course]")

from minifuse.core.errors import CourseError
from minifuse.course import compiled, networks, workspace
from minifuse.course.capstone import TrainingEngine
from minifuse.course.engine import Engine
from minifuse.course.overlay import Overlay
from minifuse.course.registry import TASKS
from minifuse.course.student_engine import backend
from minifuse.course.student_engine.compiled_loops import MAX_SERIAL_STEPS, slots_in, threads_for
from tests.course.make_stubs import REFERENCE


@pytest.fixture
def engine(tmp_path):
    """An engine over the reference solutions, in one file of which a function is written anew."""

    def made(file="convolution.py", more="", kind=TrainingEngine):
        folder = Path(shutil.copytree(REFERENCE, tmp_path / "mine", dirs_exist_ok=True))
        (folder / file).write_text((REFERENCE / file).read_text() + "\n\n" + more)
        return kind(Overlay(folder, TASKS))

    return made


def of_two_layers(engine):
    """The values and derivatives of a convolution and pooling, twice: the first call of a slot is in Python."""
    found = []
    for width in (6, 8):
        x = engine.tensor(np.cos(np.arange(2.0 * 3 * width)).reshape(2, 3, width))
        w = engine.tensor(np.sin(np.arange(4.0 * 3 * 2)).reshape(4, 3, 2))
        y = networks.max_pool(networks.conv1d(x, w, 1, 1).reshape(2, 4, 1, width + 1), (1, 3), (1, 2))
        (y * y).sum().backward()
        found += [np.array(t.tolist()) for t in (y, x.grad, w.grad)]
    return found


def test_compiled_loops_compute_and_count_what_python_does(engine):
    in_python, fast = engine(kind=Engine), engine()
    for expected, got in zip(of_two_layers(in_python), of_two_layers(fast), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12)
    slots = ["conv1d", "conv1d_input_gradient", "conv1d_weight_gradient", "max_pool", "max_pool_gradient"]
    for slot in (*slots, "conv_size", "place", "TensorMul"):
        assert fast.student.calls[slot] == in_python.student.calls[slot]
    assert sorted(fast.yours.serial.loops) == slots
    assert fast.yours.serial.summary() == f"{', '.join(slots)} ran compiled by Numba"


MAX_POOL = """
def max_pool(out, inputs, window, stride):
    for b, c, y, x in indices(out.shape):
        out.storage[place(out, b, c, y, x)] = {}
"""
AS_GENERATOR = "max(inputs.storage[place(inputs, b, c, *at)] for at in within(y, x, window, stride))"
ADDED_UP = "out.storage[place(out, b, c, y, x)] + 1"


@pytest.mark.parametrize("written", [AS_GENERATOR, ADDED_UP])
def test_a_loop_that_cannot_run_compiled_runs_in_python(engine, written):
    """Numba takes no generator; and what is added to an output that nobody has written is another number each time."""
    found = engine("pooling.py", MAX_POOL.format(written))
    x = found.tensor(np.arange(16.0).reshape(1, 1, 4, 4))
    for _ in range(2):
        y = networks.max_pool(x, (2, 2))
    assert found.yours.serial.loops == {"max_pool": None}
    assert found.yours.serial.summary().startswith("max_pool ran in Python")
    assert found.student.calls["max_pool"] == 2
    if written == AS_GENERATOR:
        assert y.tolist() == [[[[5, 7], [13, 15]]]]


def test_an_error_of_compiled_code_is_pythons(engine):
    """The second call leaves the storage, where the first did not."""
    found = engine("pooling.py", MAX_POOL.format("inputs.storage[12 + x]"))
    networks.max_pool(found.tensor(np.arange(16.0).reshape(1, 1, 4, 4)), (2, 2))
    assert found.yours.serial.loops["max_pool"]
    with pytest.raises(CourseError, match=r"IndexError: index 12 is out of bounds .* at pooling.py:\d+; run: .* check 4.3"):
        networks.max_pool(found.tensor(np.arange(12.0).reshape(1, 1, 3, 4)), (2, 2))
    assert found.yours.serial.loops["max_pool"] is None


def test_lent_functions_inside_a_loop_are_counted(tmp_path, monkeypatch):
    tried = []
    monkeypatch.setattr(compiled, "cached_jit", lambda function, **options: tried.append(function.__name__))
    workspace.init(tmp_path / "mine")
    more = "\n\nfrom tensors import position_of\n\n\ndef place(x, *i):\n    return position_of(i, x.strides, x.offset)\n"
    (tmp_path / "mine" / "pooling.py").write_text((REFERENCE / "pooling.py").read_text() + more)
    lending = TrainingEngine(Overlay(tmp_path / "mine", TASKS))
    for _ in range(3):
        networks.max_pool(lending.constant(np.ones((1, 1, 2, 2))), (2, 2))
    assert lending.student.lent["position_of"] == lending.student.calls["max_pool"] == 3
    assert lending.yours.serial.loops == {"max_pool": None}
    assert not tried


def test_an_operator_is_counted_with_what_it_calls(engine, tmp_path, monkeypatch):
    operators = "\n\ndef sigmoid(x):\n    return inv(add(1.0, exp(neg(x))))\n\n\ndef exp(x):\n    return math.exp(x)\n"
    found = engine("operators.py", operators)
    assert slots_in(found.student.raw("sigmoid"), found.student) == {"inv", "add", "exp", "neg"}
    before = Counter(found.student.calls)
    found.values([0.0]).map("sigmoid")
    called = found.student.calls - before
    assert {"parallel_map", "sigmoid", "inv", "add", "exp", "neg"} <= set(called)
    text = (tmp_path / "mine" / "operators.py").read_text() + "\n\ndef exp(x):\n    return todo('0.1k')\n"
    (tmp_path / "mine" / "operators.py").write_text(text)
    tried = []
    monkeypatch.setattr(backend, "compile_operator", lambda function: tried.append(function.__name__))
    lending = TrainingEngine(Overlay(tmp_path / "mine", TASKS))
    assert lending.values([0.0]).map("sigmoid").tolist() == [0.5]
    assert (lending.student.lent["exp"], tried) == (1, [])


def test_few_steps_run_on_one_thread():
    numba = pytest.importorskip("numba")
    before, seen = numba.get_num_threads(), []

    def ends_in_an_error():
        seen.append(numba.get_num_threads())
        raise ArithmeticError

    for steps in (MAX_SERIAL_STEPS - 1, MAX_SERIAL_STEPS):
        with pytest.raises(ArithmeticError), threads_for(steps):
            ends_in_an_error()
        assert numba.get_num_threads() == before
    assert seen == [1, before]
