"""minifuse on the functions of a student: the backend "yours", Scalars, and backward passes."""

import subprocess
import sys
from shutil import copy

import numpy as np
import pytest

pytest.importorskip("rich", reason="needs minifuse[course]")

import minifuse as mf
from minifuse.backends.registry import registry
from minifuse.core import autograd, scalar
from minifuse.core.errors import CourseError, GradientError
from minifuse.course import workspace
from minifuse.course.student_engine import use_engine
from tests.course.make_stubs import REFERENCE

FILES = {path.name for path in REFERENCE.glob("*.py")}


@pytest.fixture(autouse=True)
def _as_before(monkeypatch):
    """Each test leaves minifuse as it was."""
    monkeypatch.setenv("MINIFUSE_ENGINE", "")  # so that it is restored
    yield
    registry.factories.pop("yours", None)
    registry.instances.pop("yours", None)
    registry.default, autograd.algorithm.run = "parallel", autograd.propagate
    scalar.functions.clear()


def folder(tmp_path, unwritten=(), more=None):
    """A folder with the reference solutions, some files of which are as the course hands them out."""
    place = tmp_path / "mine"
    place.mkdir()
    workspace.init(place)
    for name in FILES - set(unwritten):
        copy(REFERENCE / name, place / name)
    for name, text in (more or {}).items():
        with (place / name).open("a") as file:
            file.write(text)
    return place


def losses(dtype=np.float32):
    """The loss and the gradients of a small network on the default backend, with broadcasting, reductions and a view."""
    rng = np.random.default_rng(0)
    x, w, b = (mf.tensor(rng.normal(size=s).astype(dtype), requires_grad=True) for s in ((5, 3), (3, 4), (4,)))
    hidden = (x @ w + b).relu()
    y = (hidden[:, 1:] * 2 - hidden.max(1, keepdim=True) / (hidden[:, :3].exp() + 1)).sigmoid()
    loss = (y * y).mean() + y.T.sum(0).log().sum()
    loss.backward()
    return [loss.item(), x.grad.numpy(), w.grad.numpy(), b.grad.numpy()]


@pytest.mark.parametrize(
    "unwritten", [(), ("parallel.py",), ("parallel.py", "tensors.py"), ("autodiff.py",), ("operators.py",)]
)
def test_a_network_has_the_losses_of_the_library(tmp_path, unwritten):
    expected = losses()
    engine = use_engine(folder(tmp_path, unwritten))
    assert mf.tensor([1.0]).backend == "yours"
    for got, wanted in zip(losses(), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-6)
    calls = engine.student.calls
    assert ("parallel_matmul" in calls) == ("parallel.py" not in unwritten)
    assert ("parallel_zip" in calls) == ("parallel.py" not in unwritten)
    assert ("backpropagate" in calls) == ("autodiff.py" not in unwritten)
    assert ("matmul" in engine.lent) == (unwritten in (("parallel.py", "tensors.py"), ("operators.py", "parallel.py")))
    assert ("exp" in engine.lent) == ("operators.py" in unwritten)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int32", "int64", "bool"])
def test_dtypes_are_those_of_the_library(tmp_path, dtype):
    use_engine(folder(tmp_path))
    a, b = np.array([[1, 2, 3]]).astype(dtype), np.array([[1], [0]]).astype(dtype)
    for f in (lambda x, y: x + y, lambda x, y: x * y, lambda x, y: x < y, lambda x, y: x == y, lambda x, y: (x + y).sum(0)):
        got, expected = (f(mf.tensor(a, backend=name), mf.tensor(b, backend=name)) for name in ("yours", "python"))
        assert got.dtype is expected.dtype
        np.testing.assert_array_equal(got.numpy(), expected.numpy())


def test_large_integers_are_exact(tmp_path):
    use_engine(folder(tmp_path))
    n = 2**53 + 1
    assert (mf.tensor([n]) + 0).item() == n


def test_a_fused_step_runs_on_the_students_loops(tmp_path):
    engine = use_engine(folder(tmp_path))

    @mf.fuse
    def step(w, x):
        return mf.grad(lambda w: ((x @ w) ** 2).mean())(w)

    x, w = (np.random.default_rng(k).normal(size=s).astype(np.float32) for k, s in enumerate([(6, 3), (3, 1)]))
    got = step(mf.tensor(w), mf.tensor(x))
    np.testing.assert_allclose(got.numpy(), 2 / 6 * x.T @ (x @ w), rtol=1e-4)
    assert engine.student.calls["parallel_matmul"] > 0


def test_scalars_use_the_students_classes(tmp_path):
    def derivatives():
        x, y = mf.Scalar(2.0), mf.Scalar(-3.0)
        z = (x * y + 10).log() * x - (x / y).exp() + (-x).sigmoid() + y.relu() + (x > y) * 1.0
        z.backward()
        return z.data, x.grad, y.grad

    expected = derivatives()
    engine = use_engine(folder(tmp_path))
    np.testing.assert_allclose(derivatives(), expected, rtol=1e-12)
    assert engine.student.calls["Mul"] > 0
    assert engine.student.calls["Inv"] > 0
    with pytest.raises(GradientError, match="create_graph=True needs functions that work on Scalars"):
        (mf.Scalar(2.0) * 3).backward(create_graph=True)


def test_gradients_of_chosen_inputs_of_inner_values_and_hooks(tmp_path):
    use_engine(folder(tmp_path))
    x, w = mf.tensor([1.0, 2.0], requires_grad=True), mf.tensor([3.0, 4.0], requires_grad=True)
    y = x * w
    seen = []
    y.register_hook(lambda g: seen.append(g.numpy().tolist()))
    assert [g.numpy().tolist() for g in mf.autograd.grad((y * y).sum(), [x, y])] == [[18.0, 64.0], [6.0, 16.0]]
    assert seen == [[6.0, 16.0]]
    values, _ = x.sort()  # two outputs, one without a gradient
    (values * w).sum().backward()
    assert x.grad.numpy().tolist() == [3.0, 4.0]
    mf.autograd.backward([w.sum(), (2 * w).sum()], inputs=[w])
    assert w.grad.numpy().tolist() == [4.0, 5.0]


def test_a_mistake_is_a_wrong_result_or_an_error_with_its_line(tmp_path):
    wrong = "\n\ndef add(x, y):\n    return x + y + 1\n\n\ndef exp(x):\n    raise ValueError(f'no {x}')\n"
    use_engine(folder(tmp_path, ["parallel.py"], {"operators.py": wrong}))
    assert (mf.tensor([1.0]) + 2).item() == 4
    expected = r"tensor_map of your engine raised ValueError: no 1\.0, at operators\.py:\d+; run: minifuse course check 2\.3"
    with pytest.raises(CourseError, match=expected):
        mf.tensor([1.0]).exp()


def test_a_folder_that_is_none_is_refused(tmp_path):
    with pytest.raises(CourseError, match="is not a folder"):
        use_engine(tmp_path / "nowhere")
    with pytest.raises(CourseError, match=r"operators\.py:\d+: .*; mend this line"):
        use_engine(folder(tmp_path, more={"operators.py": "\ndef add(x y):\n"}))
    assert registry.default == "parallel"


def test_the_command_runs_on_an_engine_and_says_its_share(tmp_path):
    command = [sys.executable, "-m", "minifuse", "--engine", str(folder(tmp_path)), "train", "circle", "--epochs", "3"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "yours" in result.stdout
    assert "Your engine: " in result.stderr
    assert " slots are yours, and " in result.stderr
