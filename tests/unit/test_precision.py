"""core.precision: names of precisions, errors, and plans that are never shared between two precisions."""

import threading
from functools import partial

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.cuda.matmul import launches as planning
from minifuse.backends.cuda.matmul.tensor_core_heuristics import tensor_core_configs
from minifuse.backends.matmul.search import find_cheapest
from minifuse.core.dispatch import mode
from minifuse.core.dtypes import PRECISIONS
from minifuse.ir.array_functions import Matmul
from minifuse.nn.layers import TransposedMatmul

UNITS = {"high": 2.0**-11, "medium": 2.0**-8}


@pytest.fixture(autouse=True)
def _highest(monkeypatch):
    """However small products are here, tensor cores take them."""
    monkeypatch.setattr(
        planning,
        "choose_rounded_config",
        lambda p, gpu: find_cheapest(p, partial(tensor_core_configs, gpu=gpu)),
    )
    yield
    mf.set_float32_matmul_precision("highest")


def positive(*shape, seed=0):
    return np.random.default_rng(seed).uniform(0.5, 1.5, shape).astype(np.float32)


def error_of(y, exact):
    return np.abs(y.numpy() / exact - 1).max()


def within(y, exact, precision):
    """Whether an error is that of a precision: no larger, and not far smaller."""
    unit = UNITS.get(precision, 2.0**-24)
    return unit / 200 <= error_of(y, exact) + 2e-8 <= 2.5 * unit + 1e-6 and (
        precision != "highest" or error_of(y, exact) < 1e-6
    )


# Words.


def test_the_default_and_a_set_precision():
    assert mf.get_float32_matmul_precision() == "highest"
    for precision in PRECISIONS:
        mf.set_float32_matmul_precision(precision)
        assert mf.get_float32_matmul_precision() == precision


@pytest.mark.parametrize("bad", ["tf32", "HIGH", "", None, 1])
def test_unknown_names_are_errors_and_change_nothing(bad):
    mf.set_float32_matmul_precision("high")
    with pytest.raises(mf.DTypeError, match=r'set_float32_matmul_precision: got .*, expected "highest", "high" \(tf32\)'):
        mf.set_float32_matmul_precision(bad)
    with pytest.raises(mf.DTypeError, match="use_float32_matmul_precision"), mf.use_float32_matmul_precision(bad):
        pass
    assert mf.get_float32_matmul_precision() == "high"


def test_a_with_block_restores_the_precision():
    mf.set_float32_matmul_precision("medium")
    with mf.use_float32_matmul_precision("high"), mf.no_grad():
        assert mf.get_float32_matmul_precision() == "high"
        assert not mode.is_recording
        with mf.use_float32_matmul_precision("highest"):
            assert mf.get_float32_matmul_precision() == "highest"
            assert mode.is_recording is False
        assert mf.get_float32_matmul_precision() == "high"
    assert mf.get_float32_matmul_precision() == "medium"
    assert mode.is_recording
    with pytest.raises(ZeroDivisionError), mf.use_float32_matmul_precision("high"):
        raise ZeroDivisionError
    assert mf.get_float32_matmul_precision() == "medium"


def test_no_grad_and_profiles_keep_it():
    with mf.use_float32_matmul_precision("high"):
        with mf.no_grad():
            assert mf.get_float32_matmul_precision() == "high"
        with mf.profile():
            assert mf.get_float32_matmul_precision() == "high"
    with mf.no_grad():
        mf.set_float32_matmul_precision("high")
        assert not mode.is_recording
    assert mode.is_recording
    mf.set_float32_matmul_precision("highest")
    assert mode.is_recording is True


def seen_in_a_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(mf.get_float32_matmul_precision()))
    thread.start()
    thread.join()
    return found[0]


def test_new_threads_use_the_set_precision_not_a_blocks():
    mf.set_float32_matmul_precision("high")
    assert seen_in_a_thread() == "high"
    with mf.use_float32_matmul_precision("medium"):
        assert seen_in_a_thread() == "high"
    mf.set_float32_matmul_precision("highest")
    assert seen_in_a_thread() == "highest"


def test_a_thread_keeps_its_own():
    begun, changed, found = threading.Event(), threading.Event(), []

    def work():
        found.append(mf.get_float32_matmul_precision())
        begun.set()
        changed.wait(10)
        found.append(mf.get_float32_matmul_precision())

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait(10)
    mf.set_float32_matmul_precision("medium")
    changed.set()
    thread.join()
    assert found == ["highest", "highest"]


# Keys.


@pytest.fixture
def operands():
    a, b = positive(40, 33), positive(33, 36, seed=1)
    return mf.tensor(a, backend="cuda"), mf.tensor(b, backend="cuda"), a.astype(float) @ b


ORDER = ("highest", "high", "highest", "medium", "high", "highest")


def test_an_eager_product(operands):
    x, w, exact = operands
    for precision in ORDER:
        mf.set_float32_matmul_precision(precision)
        assert within(x @ w, exact, precision), precision


def test_a_fused_function(operands):
    x, w, exact = operands
    f = mf.fuse(lambda x, w: mf.relu(x @ w) * 2.0)
    for precision in ORDER:
        mf.set_float32_matmul_precision(precision)
        assert within(f(x, w), 2 * exact, precision), precision
        text = "matmul_mma" if precision != "highest" else "# matmul ("
        assert text in f.source(x, w)
        (kernel,) = f.explain(x, w).forward.kernels
        assert (f"in {precision} precision" in kernel.form) == (precision != "highest")
    assert f.stats().captures == 3


def test_a_block_inside_of_a_fused_function(operands):
    x, w, exact = operands

    @mf.fuse
    def f(x, w):
        with mf.use_float32_matmul_precision("high"):
            y = x @ w
        return y, x @ (w + 0.0)

    rounded, exactly = f(x, w)
    assert within(rounded, exact, "high")
    assert within(exactly, exact, "highest")


def test_functions_made_of_others(operands):
    """Layers are captured as a whole; their key holds the setting too."""
    x, _, _ = operands
    layer = mf.nn.Linear(33, 20, bias=False, backend="cuda")
    exact = x.numpy().astype(float) @ layer.weight.numpy().T
    scale = np.abs(x.numpy()) @ np.abs(layer.weight.numpy().T)
    errors = {}
    with mf.no_grad():
        for precision in ORDER:
            mf.set_float32_matmul_precision(precision)
            found = (np.abs(layer(x).numpy() - exact) / scale).max()
            assert errors.setdefault(precision, found) == found
    assert errors["highest"] * 50 < errors["high"] < errors["medium"] / 3


@pytest.mark.parametrize("is_fused", [False, True])
def test_gradients_have_the_precision_of_their_product(is_fused, operands):
    """Also where the setting has changed when they are asked for."""
    x, w, _ = operands
    w = w.detach()
    w.requires_grad = True
    g = mf.tensor(positive(40, 36, seed=2), backend="cuda")
    exact = x.numpy().T.astype(float) @ g.numpy()
    f = mf.fuse(lambda x, w, g: (x @ w) * g) if is_fused else lambda x, w, g: (x @ w) * g
    for precision in ORDER:
        w.grad = None
        with mf.use_float32_matmul_precision(precision):
            y = f(x, w, g).sum()
        with mf.use_float32_matmul_precision("high"):
            y.backward()
        assert within(w.grad, exact, precision), precision


class Seen:
    """A value that only says which functions are applied to it."""

    dtype = mf.float32

    def __init__(self, functions=()):
        self.functions, self.mT = functions, self

    def apply(self, function, *inputs):
        return Seen([function])

    def to(self, dtype):
        return self


def test_rules_keep_the_precision():
    x = Seen()
    for kind in (Matmul, TransposedMatmul):
        for precision in PRECISIONS:
            assert kind(precision) is kind(precision)
            gradients = kind(precision).vjp(x, x, x, x)
            assert [[f.precision for f in g.functions] for g in gradients] == [[precision]] * 2
    assert Matmul("high") is not Matmul("medium")
    assert repr(Matmul()) == "matmul"
    assert repr(Matmul("high")) == "matmul in high precision"


@pytest.mark.parametrize("backend", ["python", "parallel"])
def test_a_cpu_never_changes(backend):
    a, b = positive(20, 30), positive(30, 17, seed=1)
    x, w = mf.tensor(a, backend=backend), mf.tensor(b, backend=backend)
    f = mf.fuse(lambda x, w: mf.relu(x @ w) + 1.0)
    exact = (x @ w).numpy().tobytes(), f(x, w).numpy().tobytes(), f.source(x, w)
    for precision in ("high", "medium"):
        mf.set_float32_matmul_precision(precision)
        assert ((x @ w).numpy().tobytes(), f(x, w).numpy().tobytes(), f.source(x, w)) == exact


@pytest.mark.parametrize("dtype", ["float64", "int32", "int64", "bool"])
def test_other_types_never_change(dtype):
    random = np.random.default_rng(3)
    a, b = [random.integers(0, 2, shape).astype(dtype) for shape in ((20, 30), (30, 17))]
    x, w = mf.tensor(a, backend="cuda"), mf.tensor(b, backend="cuda")
    exact = (x @ w).numpy().tobytes()
    mf.set_float32_matmul_precision("medium")
    assert (x @ w).numpy().tobytes() == exact


def test_attention_keeps_float32():
    q, k, v = [mf.tensor(positive(2, 9, 8, seed=s), backend="cuda") for s in range(3)]
    exact = mf.nn.functional.scaled_dot_product_attention(q, k, v).numpy().tobytes()
    mf.set_float32_matmul_precision("medium")
    assert mf.nn.functional.scaled_dot_product_attention(q, k, v).numpy().tobytes() == exact


def test_requires_grad_of_a_view_is_a_bool_in_every_dispatch_state():
    x = mf.ones(2, 3, requires_grad=True)
    with mf.use_float32_matmul_precision("high"):
        assert x[0].requires_grad is True
    assert x[0].requires_grad is True
    with mf.no_grad():
        assert x[1].requires_grad is False
