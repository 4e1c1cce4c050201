"""minifuse on the functions of a student: the backend "yours", Scalars, and backward passes."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from shutil import copy

import numpy as np
import pytest

pytest.importorskip("rich", reason="needs minifuse[course]")

import minifuse as mf
from minifuse.backends.registry import registry
from minifuse.core import autograd, dispatch, scalar
from minifuse.core.errors import CourseError, GradientError
from minifuse.course import workspace
from minifuse.course.student_engine import use_engine
from minifuse.nn import functional
from tests.course.make_stubs import REFERENCE

FILES = {path.name for path in REFERENCE.glob("*.py")}


@pytest.fixture(autouse=True)
def _as_before(monkeypatch):
    """Each test leaves minifuse as it was."""
    monkeypatch.setenv("MINIFUSE_ENGINE_FOLDER", "")  # so that it is restored
    yield
    registry.factories.pop("yours", None)
    registry.instances.pop("yours", None)
    registry.default, autograd.algorithm.run = "parallel", autograd.propagate
    scalar.functions.clear()
    dispatch.set_default_hook(None)


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
    assert ("parallel_matmul" in engine.lent) == (unwritten == ("parallel.py", "tensors.py"))
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
    engine = use_engine(folder(tmp_path))
    n = 2**53 + 1
    assert (mf.tensor([n]) + 0).item() == n
    assert (mf.tensor([n - 2]) + 2).item() == n
    assert (mf.tensor([3**20]) * 3**17).item() == 3**37
    assert mf.tensor([n - 2, 1, 1]).sum().item() == n
    assert (mf.tensor([[2**40 + 1]]) @ mf.tensor([[2**20 + 1]])).item() == (2**40 + 1) * (2**20 + 1)
    engine.student.calls.clear()
    assert (mf.tensor([3, -4]) * 5).tolist() == [15, -20]
    assert (mf.tensor([[3, -4]]) @ mf.tensor([[2], [1]])).tolist() == [[2]]
    assert "tensor_zip" not in engine.student.calls


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


ADDS_ONE = "\n\ndef add(x, y):\n    return x + y + 1\n"
CATCHES = "\n\ndef add(x, y):\n    try:\n        return x + y + 1\n    except TypeError:\n        return 0\n"


@pytest.mark.parametrize("written", [ADDS_ONE, CATCHES], ids=["compiled", "in Python"])
def test_lent_loops_apply_a_students_operator(tmp_path, written):
    engine = use_engine(folder(tmp_path, FILES, {"operators.py": written}))
    for dtype in (mf.float32, mf.float64, mf.int32, mf.int64):
        x = mf.tensor([[1, 2, 3]], dtype=dtype)
        y = x + mf.tensor([[10], [20]], dtype=dtype)
        assert (y.tolist(), y.dtype) == ([[12, 13, 14], [22, 23, 24]], dtype)
    assert (mf.tensor([2**60]) + 3).tolist() == [2**60 + 4]
    assert (mf.tensor([1.0, 2.0, 5.0]) * 2).tolist() == [2.0, 4.0, 10.0]
    assert engine.student.calls["add"] == 5
    assert engine.student.lent["tensor_zip"] >= 6


def test_an_operator_that_raises_in_a_lent_loop_names_its_line(tmp_path):
    use_engine(folder(tmp_path, FILES, {"operators.py": "\n\ndef add(x, y):\n    return x.nothing + y\n"}))
    with pytest.raises(
        CourseError, match=r"add of your engine raised AttributeError: .* at operators\.py:\d+; .* check 0\.1"
    ):
        mf.tensor([1.0]) + mf.tensor([2.0])


def draw(*shape):
    return np.random.default_rng(len(shape)).normal(size=shape)


PROGRAMS = {
    "operators": (lambda x: (1 - x * 2 + x / (x * x + 1) - 3 / (x.exp() + 4)).relu().sigmoid().log(), draw(4, 3)),
    "broadcasting": (lambda x, y: x + y[:3] * x[:, :1] - y[0], draw(4, 3), draw(5)),
    "products": (lambda x, w: functional.linear(x @ w, w[:2]), draw(4, 3), draw(3, 3)),
    "sums": (lambda x: x.sum(0) + x.mean((1, 2), keepdim=True) + x.sum(), draw(2, 4, 3)),
    "maxima": (lambda x: x.max(1) + x.amax(), draw(4, 4)),
    "softmax": (lambda x: functional.softmax(x, 1) + functional.log_softmax(x, 0), draw(4, 3)),
    "cross_entropy": (lambda x: functional.cross_entropy(x, mf.tensor([0, -100, 2, 1])), draw(4, 3)),
    "sum_of_losses": (lambda x: functional.cross_entropy(x, mf.tensor([0, 1, 2, 1]), reduction="sum"), draw(4, 3)),
    "mse_loss": (lambda x, y: functional.mse_loss(x, y), draw(4, 3), draw(4, 3)),
    "conv1d": (lambda x, w: functional.conv1d(x, w, stride=2, padding=1), draw(2, 3, 6), draw(4, 3, 3)),
    "conv2d": (
        lambda x, w, b: functional.conv2d(x, w, b, stride=(2, 1), padding=1),
        draw(2, 1, 4, 5),
        draw(3, 1, 3, 2),
        draw(3),
    ),
    "max_pool2d": (lambda x: functional.max_pool2d(x, 2), draw(2, 2, 4, 5)),
    "avg_pool2d": (lambda x: functional.avg_pool2d(x, 2, stride=1), draw(2, 2, 3, 3)),
    "not_in_the_course": (
        lambda x: functional.gelu(functional.layer_norm(x, (3,))) + functional.avg_pool2d(x[None, None], 3, padding=1)[0, 0],
        draw(3, 3),
    ),
}


def derivatives(program, *arrays):
    """The value of a program, its gradients, and the gradients of the squares of the gradients."""
    xs = [mf.tensor(array, requires_grad=True) for array in arrays]
    y = program(*xs)
    (y * y).sum().backward()
    again = [mf.tensor(array, requires_grad=True) for array in arrays]
    squares = [(g * g).sum() for g in mf.autograd.grad((program(*again) ** 2).sum(), again, create_graph=True)]
    mf.autograd.backward(squares)
    return [y, *[x.grad for x in xs], *[x.grad for x in again]]


def test_calls_have_the_values_and_derivatives_of_the_library(tmp_path):
    expected = {name: derivatives(*program) for name, program in PROGRAMS.items()}
    engine = use_engine(folder(tmp_path, ["parallel.py"]))
    for name, program in PROGRAMS.items():
        for got, wanted in zip(derivatives(*program), expected[name], strict=True):
            np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-9, atol=1e-12, err_msg=name)
    used = set(engine.student.calls)
    classes = {slot for slot in engine.student.home if slot.startswith("Tensor") and slot[6].isupper()}
    assert classes - used == {
        *("TensorPermute", "TensorReshape", "TensorSlice", "TensorDropout"),  # views compute nothing; the next test
        *("TensorLinear", "TensorNetwork", "TensorDataset"),
    }
    assert {"conv1d", "conv2d_input_gradient", "max_pool_gradient", "average_pool_gradient"} <= used


def test_dropout_uses_the_students_mask(tmp_path):
    use_engine(
        folder(
            tmp_path,
            ["parallel.py"],
            {"softmax.py": "\n\ndef dropout_mask(n, rate, seed):\n    return [0.0, 4.0] * (n // 2)\n"},
        )
    )
    x = mf.ones(2, 3, requires_grad=True)
    y = functional.dropout(x, 0.75)
    y.sum().backward()
    assert y.tolist() == x.grad.tolist() == [[0.0, 4.0, 0.0], [4.0, 0.0, 4.0]]


def test_a_class_that_is_not_written_is_lent(tmp_path):
    engine = use_engine(folder(tmp_path, ["parallel.py", "tensor_functions.py"]))
    x = mf.tensor([3.0], requires_grad=True)
    (x * x).sum().backward()
    assert x.grad.tolist() == [6.0]
    assert engine.lent["TensorMul"] == 1
    assert "TensorMul" not in engine.student.calls


def test_a_wrong_gradient_of_the_students_is_the_gradient(tmp_path):
    wrong = "\n\nclass TensorReLU(TensorReLU):\n    @staticmethod\n    def backward(context, d):\n        return (d * 7,)\n"
    use_engine(folder(tmp_path, ["parallel.py"], {"tensor_functions.py": wrong}))
    x = mf.tensor([3.0], requires_grad=True)
    x.relu().sum().backward()
    assert x.grad.tolist() == [7.0]


def test_errors_of_a_class_name_its_line_and_its_task(tmp_path):
    broken = "\n\nclass TensorExp(TensorExp):\n    @staticmethod\n    def backward(context, d):\n        return d / 0\n"
    use_engine(folder(tmp_path, ["parallel.py"], {"tensor_functions.py": broken}))
    x = mf.tensor([3.0], requires_grad=True)
    with pytest.raises(
        CourseError, match=r"TensorExp of your engine raised TypeError: .*tensor_functions\.py:\d+; .* check 2\.4"
    ):
        x.exp().sum().backward()


def test_an_input_that_was_modified_since_is_an_error(tmp_path):
    use_engine(folder(tmp_path, ["parallel.py"]))
    x = mf.tensor([3.0], requires_grad=True)
    y = x * 1
    z = (y * y).sum()
    with mf.no_grad():
        y += 1
    with pytest.raises(GradientError, match="modified"):
        z.backward()


def test_other_threads_and_profiles_run_on_the_engine(tmp_path):
    engine = use_engine(folder(tmp_path, ["parallel.py"]))
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: (mf.tensor([2.0]) * 3).tolist()).result() == [6.0]
    assert engine.student.calls["TensorMul"] == 1
    with mf.profile():
        assert (mf.tensor([2.0]) * 3).tolist() == [6.0]
    x = mf.tensor([2.0])
    x *= 4
    assert x.tolist() == [8.0]


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
    assert " functions of the course that this run called are yours (" in result.stderr


RANKS = """
import minifuse as mf
import minifuse.distributed as dist
dist.init()
x = mf.tensor([1.0 + dist.rank(), 2.0])
print(x.backend, (dist.all_reduce(x, "sum") * 2).tolist())
"""


@pytest.mark.parametrize("carrier", ["shared", "simulated"])
def test_ranks_run_on_the_engine_of_their_launcher(tmp_path, carrier):
    (tmp_path / "ranks.py").write_text(RANKS)
    engine = str(folder(tmp_path, more={"operators.py": "\n\ndef mul(x, y):\n    return x * y + 1\n"}))
    command = [
        sys.executable,
        "-m",
        "minifuse",
        "--engine",
        engine,
        "launch",
        "--engine",
        carrier,
        str(tmp_path / "ranks.py"),
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.count("yours [7.0, 9.0]") == 2
    assert "Your engine" not in result.stderr
