"""The engine built from slots: it computes what NumPy does, and counts the student's and the oracle's calls."""

import inspect
import math
import re
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rich", reason="needs minifuse[course]")

import minifuse as mf
from minifuse.core.errors import GradientError, NotDoneYet, ShapeError
from minifuse.course import oracle, todo, workspace
from minifuse.course.engine import Engine
from minifuse.course.oracle.ufuncs import ON_ARRAYS
from minifuse.course.overlay import Overlay, count_slots_once, is_unwritten
from minifuse.course.registry import TASKS, task_named
from minifuse.course.student import Student
from minifuse.course.student_engine.compiled_loops import compile_operator
from tests.course.make_stubs import REFERENCE

NUMBERS = [-np.inf, -700.0, -2.5, -1.0, -0.0, 0.0, 1e-9, 0.3, 1.0, 1.000001, 2.5, 700.0, np.inf]


@pytest.fixture
def fresh(tmp_path):
    """A folder as a student gets it."""
    workspace.init(tmp_path / "mine")
    return tmp_path / "mine"


@pytest.fixture
def solved(tmp_path):
    """A folder with the reference solutions."""
    return Path(shutil.copytree(REFERENCE, tmp_path / "solved"))


def solve(folder, *slots):
    """Write the reference's functions into a folder."""
    for slot in slots:
        file = task_named(slot).file
        part = workspace.definition_of((REFERENCE / file).read_text(), slot)
        (folder / file).write_text(workspace.replace_definition((folder / file).read_text(), slot, part))


def engine_of(folder, *, is_strict=False):
    """An engine over the functions of a folder, which lends what is not written, or nothing."""
    return Engine(Student(folder, TASKS, None) if is_strict else Overlay(folder, TASKS))


def of_scalars(engine):
    """A value and two derivatives: x is shared, and used twice in one call."""
    x, y = engine.scalar(1.5), engine.scalar(-0.5)
    z = (x * x + y).sigmoid() * x - (x / 2 - y).log() + (1 - y).exp() * y.relu() + (x > y)
    z.backward()
    return [z.value, x.grad, y.grad]


def of_tensors(engine):
    """A value and three derivatives, with broadcasting, views and a product."""
    x, w, b = (
        engine.tensor(np.arange(6.0).reshape(2, 3) - 2.25),
        engine.tensor(np.eye(3) * 2 - 0.5),
        engine.tensor([1.0, -2.0, 3.0]),
    )
    hidden = (x @ w + b).relu() / 3 - x.permute(1, 0).reshape(2, 3) * (x > 0)
    loss = (hidden.sigmoid().log() - (hidden * 0.1).exp()).sum(0).mean()
    loss.backward()
    return [loss.item(), *[p.grad.tolist() for p in (x, w, b)]]


def by_numpy(x, w, b):
    """The same loss."""
    hidden = np.maximum(x @ w + b, 0) / 3 - x.T.reshape(2, 3) * (x > 0)
    return (np.log(1 / (1 + np.exp(-hidden))) - np.exp(hidden * 0.1)).sum(0).mean()


def slopes(f, arrays):
    """Central differences of f by each element of each array."""
    found = []
    for k, array in enumerate(arrays):
        d = np.zeros_like(array)
        for index in np.ndindex(array.shape):
            step = np.zeros_like(array)
            step[index] = 1e-6
            high, low = [[a + way * step if j == k else a for j, a in enumerate(arrays)] for way in (1, -1)]
            d[index] = (f(*high) - f(*low)) / 2e-6
        found.append(d)
    return found


def test_scalars_of_the_oracle_have_their_derivatives():
    def f(x, y):
        return 1 / (1 + math.exp(-(x * x + y))) * x - math.log(x / 2 - y) + math.exp(1 - y) * max(y, 0) + (x > y)

    value, *derivatives = of_scalars(Engine())
    assert value == pytest.approx(f(1.5, -0.5))
    for k, d in enumerate(derivatives):
        assert d == pytest.approx(oracle.function("numerical_derivative")(f, (1.5, -0.5), k), abs=1e-6)


def test_tensors_of_the_oracle_have_their_derivatives():
    value, *derivatives = of_tensors(Engine())
    arrays = [np.arange(6.0).reshape(2, 3) - 2.25, np.eye(3) * 2 - 0.5, np.array([1.0, -2.0, 3.0])]
    assert value == pytest.approx(by_numpy(*arrays))
    for got, expected in zip(derivatives, slopes(by_numpy, arrays), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-6)


@pytest.mark.parametrize("is_strict", [False, True])
def test_a_solved_folder_computes_the_same_by_itself(solved, is_strict):
    engine = engine_of(solved, is_strict=is_strict)
    for compute in (of_scalars, of_tensors):
        for got, expected in zip(compute(engine), compute(Engine()), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-12)
    share = engine.share()
    assert not share.lent
    assert share.of_calls == 1
    assert {
        "tensor_zip",
        "add",
        "row_major_strides",
        "broadcast_shape",
        "chain_rule",
        "topological_order",
        "TensorMul",
        "Add",
    } <= set(share.theirs)


def test_a_fresh_folder_runs_on_the_oracle(fresh):
    engine = engine_of(fresh)
    assert of_tensors(engine) == of_tensors(Engine())
    assert not engine.share().theirs
    assert engine.share().lent == tuple(sorted(engine.student.lent))


def test_a_fresh_folder_says_what_is_missing_when_nothing_is_lent(fresh):
    engine = engine_of(fresh, is_strict=True)
    with pytest.raises(NotDoneYet, match=re.escape("task 1.2c is still to be written")):
        engine.scalar(2.0) * 3.0
    with pytest.raises(NotDoneYet, match=re.escape("2.1a")):
        engine.tensor([1.0])
    solve(fresh, "row_major_strides", "broadcast_shape", "mul")
    x = engine_of(fresh, is_strict=True).values([1.0])
    with pytest.raises(NotDoneYet, match=re.escape("2.3b")):
        x.zip("mul", x)


def test_what_is_written_is_used_and_the_rest_is_lent(fresh):
    solve(fresh, "tensor_zip", "TensorMul", "chain_rule", "unbroadcast", "add")
    engine = engine_of(fresh)
    x = engine.tensor([[1.0, 2.0], [3.0, 4.0]])
    ((x * x) + x).sum().backward()
    assert x.grad.tolist() == [[3.0, 5.0], [7.0, 9.0]]
    share = engine.share()
    assert share.theirs == ("TensorMul", "add", "chain_rule", "tensor_zip", "unbroadcast")
    assert {"backpropagate", "mul", "broadcast_index", "TensorAdd", "topological_order"} <= set(share.lent)
    assert str(share).startswith(f"5 of the {5 + len(share.lent)} functions of the course that this run called are yours (")


def test_a_function_that_is_wrong_gives_wrong_results(fresh):
    file = fresh / "operators.py"
    file.write_text(re.sub(r'todo\("0\.1b"\)', "return x - y", file.read_text()))
    engine = engine_of(fresh)
    assert (engine.tensor([5.0]) + engine.tensor([3.0])).tolist() == [2.0]
    assert (engine.tensor([5.0]) * engine.tensor([3.0])).tolist() == [15.0]


def test_a_file_that_is_gone_is_lent_and_one_that_is_broken_is_not(fresh):
    (fresh / "tensors.py").unlink()
    assert (engine_of(fresh).tensor([5.0]) + 1).tolist() == [6.0]
    (fresh / "operators.py").write_text("def add(x, y:\n")
    with pytest.raises(SyntaxError):
        engine_of(fresh).tensor([5.0]) + 1


def test_a_loop_counts_once_what_it_calls_for_each_element(solved):
    engine = engine_of(solved)
    x = engine.values(np.ones((20, 30)))
    before = Counter(engine.student.calls)
    x.zip("mul", x)
    called = engine.student.calls - before
    assert called == Counter(
        dict.fromkeys(
            ("tensor_zip", "mul", "index_of", "position_of", "broadcast_index", "row_major_strides", "broadcast_shape"), 1
        )
    )


def test_slots_are_counted_once_only_inside_the_block():
    counts = Counter(a=5)
    with count_slots_once(counts):
        counts["a"] += 3
        counts["b"] += 2
    counts["b"] += 4
    assert counts == Counter(a=6, b=5)


def test_a_chain_of_5000_goes_backward():
    x = y = Engine().scalar(1.0)
    for _ in range(5_000):
        y = y + x
    y.backward()
    assert x.grad == 5_001


def test_derivatives_add_up_and_constants_have_none():
    engine = Engine()
    x, c = engine.tensor([1.0, 2.0]), engine.constant([3.0, 4.0])
    for _ in range(2):
        (x * c).sum().backward()
    assert x.grad.tolist() == [6.0, 8.0]
    assert c.grad is None
    assert (c + c).history is None
    assert (c + c).is_constant


@pytest.mark.parametrize(
    ("ask", "error", "says"),
    [
        (lambda e: e.tensor([1.0, 2.0]).backward(), GradientError, "call sum() or mean() first"),
        (lambda e: e.tensor([[1.0, 2.0]]) @ e.tensor([[1.0]]), ShapeError, "matmul: shapes (1, 2) and (1, 1)"),
        (lambda e: e.tensor([1.0, 2.0]).reshape(3), ShapeError, "2 elements do not become 3"),
        (lambda e: e.tensor([1.0, 2.0]).sum(1), ShapeError, "dim 1 of shape (2,); expected -1 to 0"),
        (lambda e: e.values([[1.0], [2.0]]).expand((2,)), ShapeError, "expand: (2, 1) to (2,)"),
    ],
)
def test_wrong_calls_name_the_mistake(ask, error, says):
    with pytest.raises(error, match=re.escape(says)):
        ask(Engine())


def test_views_share_their_storage():
    x = Engine().values(np.arange(6.0).reshape(2, 3))
    for view in (x.permute(1, 0), x.reshape((3, 2)), x.expand((4, 2, 3))):
        assert np.shares_memory(view.array(), x.array())
    np.testing.assert_array_equal(
        x.reshape((2, 1, 3)).expand((2, 2, 4, 3)).array(), np.broadcast_to(x.array()[:, None], (2, 2, 4, 3))
    )
    assert not np.shares_memory(x.permute(1, 0).reshape((6,)).array(), x.array())
    assert x.permute(1, 0).reshape((6,)).tolist() == [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]


@pytest.mark.parametrize("name", sorted(ON_ARRAYS))
def test_operators_on_arrays_are_those_on_numbers(name):
    operator = oracle.function(name)
    count = len(inspect.signature(operator).parameters)
    xs = np.meshgrid(*[NUMBERS] * count)
    with np.errstate(all="ignore"):
        got = ON_ARRAYS[name](*xs)
        expected = np.vectorize(operator, otypes=[float])(*xs)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_every_operator_of_the_oracle_can_be_compiled():
    assert [name for name, function in ON_ARRAYS.items() if compile_operator(function) is None] == []


def test_functions_that_call_todo_are_unwritten():
    class Half:
        @staticmethod
        def forward(context, x):
            return x

        @staticmethod
        def backward(context, d):
            todo("9.9a")

    class Whole(Half):
        @staticmethod
        def backward(context, d):
            return (d,)

    assert is_unwritten(Half)
    assert not is_unwritten(Whole)
    assert is_unwritten(lambda xs: [todo("9.9a") for x in xs])
    assert is_unwritten(None)


def test_the_oracle_learns_digits():
    xs, labels = [data.numpy() for data in mf.data.digits()]
    engine, random = Engine(), np.random.default_rng(0)
    shapes = [(64, 32), (32,), (32, 10), (10,)]
    parameters = [engine.tensor(random.uniform(-1, 1, shape) / np.sqrt(shape[0])) for shape in shapes]

    def network(rows):
        w, b, v, c = parameters
        return (engine.constant(rows) @ w + b).relu() @ v + c

    for _ in range(200):
        rows = random.permutation(1400)[:100]
        message = network(xs[rows])
        right = (message * engine.constant(np.eye(10)[labels[rows]])).sum(1)
        (message.exp().sum(1).log() - right).mean().backward()
        for p in parameters:
            p.value, p.grad = p.value - p.grad * 0.5, None
    assert (network(xs[1400:]).value.array().argmax(1) == labels[1400:]).mean() > 0.85


def test_a_tensor_is_no_list_of_numbers():
    engine = Engine()
    with pytest.raises(TypeError, match=r"got a Tensor: use it as it is, or its \.value"):
        engine.constant(engine.tensor([1.0]))
