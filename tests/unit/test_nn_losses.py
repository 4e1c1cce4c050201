"""nn losses of classes as in PyTorch and NumPy, forward and backward, and errors of targets."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minifuse as mf
from minifuse import nn
from minifuse.compiler.plan import call
from minifuse.core.errors import DTypeError, IndexingError, ShapeError
from minifuse.ir.array_functions import BoundFunction
from minifuse.testing import gradcheck
from tests.nn.agreement import BACKENDS, near, smooth, ways
from tests.nn.cases import CLASSES, NUMBERS
from tests.nn.recorded import load

COUNT = 40  # elements that meet in the largest fold of the cases


def log_softmax(x):
    z = x - x.max(1, keepdims=True)
    return z - np.log(np.exp(z).sum(1, keepdims=True))


def compared(name, module, backend, integer="int64"):
    """A loss and its gradient beside those of the table, eager and fused."""
    table = {key.removeprefix(f"{name}/"): x for key, x in load("losses").items() if key.startswith(f"{name}/")}
    y = mf.tensor(table["y"], integer if table["y"].dtype.kind == "i" else None, backend=backend)
    for run in ways(module.forward):
        x = mf.tensor(table["x"], backend=backend, requires_grad=True)
        loss = run(x, y)
        near(loss, table["loss"], COUNT)
        loss.backward(mf.tensor(table["g"], backend=backend))
        near(x.grad, table["gx"], COUNT)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", CLASSES)
def test_losses_of_classes_are_those_of_torch(name, backend):
    kind, settings, _ = CLASSES[name]
    compared(name, getattr(nn, kind)(**settings), backend, "int32" if "none" in name else "int64")


@pytest.mark.sampled(2, each="name")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", [name for name in NUMBERS if "bce" in name])
def test_losses_of_yes_and_no_are_those_of_torch(name, backend):
    kind, settings = NUMBERS[name]
    settings = {key: mf.tensor(v, backend=backend) if isinstance(v, list) else v for key, v in settings.items()}
    compared(name, getattr(nn, kind)(**settings), backend)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy_and_its_gradient(reduction, dtype):
    n, classes = 7, 5
    array = 3 * np.sin(np.arange(n * classes) ** 1.5).reshape(n, classes)
    index = np.arange(n) * 3 % classes
    x = mf.tensor(array, dtype=dtype, requires_grad=True)
    loss = nn.cross_entropy(x, mf.tensor(index), reduction=reduction)
    wanted = -log_softmax(array)[np.arange(n), index]
    near(loss, {"mean": wanted.mean(), "sum": wanted.sum(), "none": wanted}[reduction], n)
    loss.sum().backward()
    near(x.grad, (np.exp(log_softmax(array)) - np.eye(classes)[index]) / (n if reduction == "mean" else 1), classes)


@given(n=st.integers(1, 70), classes=st.integers(1, 40), scale=st.sampled_from([0.1, 10.0, 1e4]), seed=st.integers(0, 99))
def test_cross_entropy_of_any_size(n, classes, scale, seed):
    draw = np.random.default_rng(seed)
    array, index = (scale * draw.standard_normal((n, classes))).astype(np.float32), draw.integers(0, classes, n)
    got = nn.cross_entropy(mf.tensor(array.T.copy()).T, mf.tensor(index), reduction="none")
    near(got, -log_softmax(array.astype(np.float64))[np.arange(n), index], classes)


LOSSES = {
    "classes": lambda x: nn.cross_entropy(x, mf.tensor([1, 0, -100, 4]), reduction="none"),
    "smooth": lambda x: nn.cross_entropy(x, mf.tensor([1, 0, 3, 4]), label_smoothing=0.2, ignore_index=3),
    "places": lambda x: nn.cross_entropy(x.reshape(2, 5, 2), mf.tensor([[0, 4], [2, 2]]), label_smoothing=0.1),
    "logarithms": lambda x: nn.nll_loss(x.log_softmax(1), mf.tensor([1, 0, 3, 4])),
    "yes": lambda x: nn.binary_cross_entropy_with_logits(x, (x * 0 + 0.3).detach(), reduction="none"),
    "weighted": lambda x: nn.binary_cross_entropy_with_logits(x, (x * 0 + 0.3).detach(), pos_weight=(x[0] * 0 + 2).detach()),
}


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_of_first_and_second_order(name):
    assert gradcheck(LOSSES[name], smooth(4, 5), second=name in ("smooth", "weighted"))


def test_targets_of_yes_and_no_have_a_gradient_too():
    assert gradcheck(nn.binary_cross_entropy_with_logits, smooth(3, 4), smooth(3, 4, phase=0.3))


def test_cross_entropy_neither_overflows_nor_vanishes():
    x = mf.tensor([[1e4, 0.0], [0.0, -math.inf], [20.0, 0.0]], requires_grad=True)
    loss = nn.cross_entropy(x, mf.tensor([1, 0, 0]), reduction="none")
    np.testing.assert_allclose(loss.detach().numpy(), [1e4, 0, math.log1p(math.exp(-20))], atol=3e-9)
    loss.sum().backward()
    near(x.grad, [[1, -1], [0, 0], [-1 / (1 + math.exp(20)), 1 / (1 + math.exp(20))]])


def test_yes_and_no_neither_overflow_nor_vanish():
    x = mf.tensor([1e4, -1e4, 1e4, -1e4, 20.0, -20.0, 0.0], requires_grad=True)
    y = mf.tensor([0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.5])
    loss = nn.binary_cross_entropy_with_logits(x, y, reduction="none")
    tiny = math.log1p(math.exp(-20))
    np.testing.assert_allclose(loss.detach().numpy(), [1e4, 1e4, 0, 0, tiny, tiny, math.log(2)], rtol=1e-5)
    loss.sum().backward()
    gone = 1 / (1 + math.exp(20))
    np.testing.assert_allclose(x.grad.numpy(), [1, -1, 0, 0, -gone, gone, 0], rtol=1e-5, atol=1e-14)


@pytest.mark.parametrize("backend", BACKENDS)
def test_ignored_targets_receive_no_gradient(backend):
    array = np.array([[1.0, 2.0], [1e4, 1.0], [-3.0, 0.0], [0.5, 0.0]])
    for run in ways(lambda x, y: nn.cross_entropy(x, y, ignore_index=-1, label_smoothing=0.1)):
        x = mf.tensor(array, "float32", backend=backend, requires_grad=True)
        loss = run(x, mf.tensor([0, -1, -1, 1], backend=backend))
        assert math.isfinite(loss.item())
        loss.backward()
        assert x.grad.numpy()[[0, 3]].all()
        assert not x.grad.numpy()[[1, 2]].any()
        kept = mf.tensor(array[[0, 3]], "float32", backend=backend)
        near(loss, nn.cross_entropy(kept, mf.tensor([0, 1], backend=backend), label_smoothing=0.1).numpy())


@pytest.mark.parametrize("run", ways(nn.cross_entropy), ids=["eager", "fused"])
def test_a_mean_of_nothing_is_nan(run):
    assert math.isnan(run(mf.zeros(0, 3), mf.arange(0)).item())
    assert math.isnan(run(mf.zeros(2, 3), mf.tensor([-100, -100])).item())
    assert run(mf.zeros(2, 3), mf.tensor([-100, -100]), reduction="sum").item() == 0
    assert run(mf.zeros(0, 3), mf.arange(0), reduction="sum").item() == 0
    x = mf.zeros(2, 3, requires_grad=True)
    run(x, mf.tensor([-100, -100]), reduction="none").sum().backward()
    assert not x.grad.any()


@pytest.mark.sampled(3, each="loss")
@pytest.mark.parametrize("integer", ["int64", "int32"])
@pytest.mark.parametrize("wrong", [5, -1, 2**31 - 1])
@pytest.mark.parametrize("loss", [nn.cross_entropy, nn.nll_loss])
def test_a_target_that_is_no_class_is_an_error(loss, wrong, integer):
    words = rf"{loss.__name__}: got target {wrong} for example 2, expected 0 to 4, or ignore_index=-100"
    with pytest.raises(IndexingError, match=words):
        loss(mf.zeros(4, 5), mf.tensor([0, -100, wrong, 3], dtype=integer))
    if wrong == -1:
        assert loss(mf.zeros(4, 5), mf.tensor([0, 4, wrong, 3], dtype=integer), ignore_index=-1).item() >= 0
    with pytest.raises(IndexingError, match=f"target {wrong} for example 1, 0, expected"):
        loss(mf.zeros(2, 5, 2), mf.tensor([[0, 4], [wrong, 3]], dtype=integer))


def test_a_traced_target_that_is_no_class_gives_nan():
    loss = BoundFunction(lambda x, y: nn.cross_entropy(x, y, reduction="none") * 2, ())
    got = call(loss, mf.zeros(4, 4), mf.tensor([1, 4, -1, -100])).tolist()
    assert got[0] == pytest.approx(2 * math.log(4))
    assert np.isnan(got[1:3]).all()
    assert got[3] == 0


@pytest.mark.parametrize("loss", [nn.cross_entropy, nn.nll_loss])
@pytest.mark.parametrize(
    ("x", "y", "error", "words"),
    [
        (mf.zeros(4, 5), mf.arange(3), ShapeError, r"got targets of shape \(3,\), expected \(4,\)"),
        (mf.zeros(4, 5), mf.zeros(5, 4), ShapeError, r"got targets of shape \(5, 4\), expected \(4,\)"),
        (mf.zeros(4, 5, 2), mf.arange(4), ShapeError, r"got targets of shape \(4,\), expected \(4, 2\)"),
        (mf.zeros(4, 5), [0, 1, 2, 3], (DTypeError, ShapeError), "list"),
        (mf.zeros(4), mf.arange(4), ShapeError, r"got logits of shape \(4,\), expected \(N, C\)"),
        (mf.zeros(4, 0), mf.arange(4), ShapeError, "C >= 1"),
        (mf.zeros(4, 5), mf.zeros(4), DTypeError, "targets of dtype float32, expected floats and class"),
        (mf.arange(20).reshape(4, 5), mf.arange(4), DTypeError, "got logits of dtype int64"),
        ([[0.0]], mf.arange(1), DTypeError, "expected a tensor, got list"),
    ],
)
def test_losses_of_classes_name_mismatched_shapes(loss, x, y, error, words):
    with pytest.raises(error, match=words) as caught:
        loss(x, y)
    assert str(caught.value).startswith(loss.__name__) or "list" in str(caught.value)


@pytest.mark.parametrize(
    ("x", "y", "weight", "error", "words"),
    [
        (mf.zeros(3, 1), mf.zeros(3), None, ShapeError, r"got shapes \(3, 1\) and \(3,\)"),
        (mf.zeros(3), 0.0, None, ShapeError, r"got shapes \(3,\) and \(\), expected equal ones"),
        (mf.zeros(3), mf.zeros(3, dtype="float64"), None, DTypeError, "got dtypes float32 and float64"),
        (mf.arange(3), mf.arange(3), None, DTypeError, "got dtypes int64 and int64, expected one float dtype"),
        (
            mf.zeros(3),
            mf.zeros(3),
            mf.ones(2),
            ShapeError,
            r"pos_weight of shape \(2,\), expected one that",
        ),
        (mf.zeros(3), mf.zeros(3), mf.ones(1, 3), ShapeError, r"pos_weight of shape \(1, 3\)"),
        (mf.zeros(3), mf.zeros(3), [1.0], DTypeError, "pos_weight: expected a tensor, got list"),
        (mf.zeros(3), mf.zeros(3), mf.ones(3, dtype="float64"), DTypeError, "pos_weight of dtype float64, expected float32"),
    ],
)
def test_binary_losses_name_mismatched_shapes(x, y, weight, error, words):
    with pytest.raises(error, match=words):
        nn.binary_cross_entropy_with_logits(x, y, pos_weight=weight)


def test_options_out_of_range():
    for smoothing in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match=r"got label_smoothing=.*, expected 0 to 1"):
            nn.cross_entropy(mf.zeros(4, 5), mf.arange(4), label_smoothing=smoothing)
    for loss, y in (
        (nn.cross_entropy, mf.arange(4)),
        (nn.nll_loss, mf.arange(4)),
        (nn.binary_cross_entropy_with_logits, mf.zeros(4, 5)),
    ):
        with pytest.raises(ValueError, match="reduction='avg', expected"):
            loss(mf.zeros(4, 5), y, reduction="avg")


def test_a_weight_belongs_to_the_state_and_moves():
    loss = nn.BCEWithLogitsLoss(pos_weight=mf.ones(3)).to("float64")
    assert loss.state_dict()["pos_weight"].dtype is mf.float64
    assert list(loss.parameters()) == []
    assert repr(loss) == "BCEWithLogitsLoss()"
    assert repr(nn.CrossEntropyLoss()) == "CrossEntropyLoss()"
