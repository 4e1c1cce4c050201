"""Names of PyTorch with another meaning here: errors that say what to write."""

import copy
import json
import pickle
import warnings

import numpy as np
import pytest

import minifuse as mf
import minifuse.nn.functional as F  # noqa: N812  # PyTorch's users call it so
from minifuse.backends import registry
from minifuse.backends.cuda.device import driver
from minifuse.functions import missing

X = mf.tensor([[1.0, 5.0, 2.0], [4.0, 3.0, 6.0]])


# x.max(dim) returns the values alone.


def test_a_pair_of_a_maximum_is_refused():
    with pytest.raises(mf.ShapeError, match=r"test_pytorch_habits.py:\d+: .*max returns only the values.*x.argmax\(dim\)"):
        values, indices = X.max(1)
    with pytest.raises(mf.ShapeError, match=r"min returns only the values.*x.argmin\(dim\)"):
        values, indices = X.min(dim=-1, keepdim=True)  # noqa: RUF059


def test_a_pair_is_refused_of_as_many_rows_too():
    """Two rows would unpack without a word."""
    with pytest.raises(mf.ShapeError, match="argmax"):
        values, indices = X.T.max(dim=0)  # noqa: RUF059


def test_a_pair_is_refused_in_a_fused_function():
    def best(x):
        values, indices = x.max(1)
        return values, indices

    with pytest.raises(mf.ShapeError, match="argmax"):
        mf.fuse(best)(X)


def test_rows_of_a_maximum_may_be_unpacked_otherwise():
    rows = X.max(1)
    a, b = rows
    assert (a.item(), b.item()) == (5.0, 6.0)
    c, d = X.max(1).tolist()
    assert (c, d) == (5.0, 6.0)
    assert [row.item() for row in X.max(1)] == [5.0, 6.0]
    e, f, g = X.max(0)
    assert (e.item(), f.item(), g.item()) == (4.0, 5.0, 6.0)
    first, *others = X.max(1)
    assert (first.item(), len(others)) == (5.0, 1)
    h, i = X.max(1), X.argmax(1)
    assert (h.tolist(), i.tolist()) == ([5.0, 6.0], [1, 2])
    j, k = np.max(X, axis=1)
    assert (j.item(), k.item()) == (5.0, 6.0)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (lambda x: x.max(1)[0], r"x.max\(dim\)\[0\]: .* their first row; in PyTorch it is the values. Write x.max\(dim\);"),
        (
            lambda x: x.min(1, keepdim=True)[0],
            r"x.min\(dim\)\[0\]: .* Write x.min\(dim\); for the first row, write y = x.min",
        ),
        (
            lambda x: x.max(dim=1)[1],
            r"x.max\(dim\)\[1\]: .* second row; in PyTorch it is the indices. Write x.argmax\(dim\);",
        ),
    ],
)
@pytest.mark.parametrize("wrap", [lambda f: f, mf.fuse])
def test_indexing_a_pair_of_a_maximum_warns_at_its_line(index, message, wrap):
    with pytest.warns(UserWarning, match=message) as found:
        wrap(index)(X)
    assert {(w.filename, w.lineno) for w in found} == {(__file__, index.__code__.co_firstlineno)}


def test_indexing_a_maximum_warns_behind_many_constants():
    """The number of the constant 0 needs more than one byte."""
    lines = "\n".join(f"n = {k}" for k in range(300, 0, -1))
    with pytest.warns(UserWarning, match="returns only the values"):
        exec(f"{lines}\ny = x.max(1)[0]", {"x": X})


def test_indexing_a_maximum_warns_once_a_line():
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        for _ in range(3):
            X.max(1)[0]
        X.min(1)[0]
    assert len(found) == 2


def test_rows_of_a_maximum_may_be_indexed_otherwise():
    rows, k = X.max(1), 0
    assert [rows[0].item(), X.max(1)[-1].item(), X.max(1)[k].item(), X.max(1)[0:1].item()] == [5.0, 6.0, 5.0, 5.0]
    assert [X.max(1).values[0].item(), X.max(1).indices[1].item(), np.max(X, axis=1)[0].item()] == [5.0, 2.0, 5.0]


def test_rows_of_other_results_may_be_unpacked():
    a, b = X.sum(1)
    assert (a.item(), b.item()) == (8.0, 13.0)
    c, d = X
    assert (c.shape, d.shape) == ((3,), (3,))


# x.size is a number.


def test_a_call_of_the_size_returns_the_shape():
    assert (X.size(), X.size(1), X.size(-2)) == ((2, 3), 3, 2)
    with pytest.raises(mf.ShapeError, match="dim 2 is out of range"):
        X.size(2)


def test_the_size_is_an_int_in_all_respects():
    n = X.size
    assert isinstance(n, int)
    assert (n, hash(n), repr(n), f"{n:,}", str(n)) == (6, hash(6), "6", "6", "6")
    assert type(n + 1) is type(n * 2) is type(-n) is int
    assert json.dumps({"n": n}) == '{"n": 6}'
    assert [type(x) for x in (pickle.loads(pickle.dumps(n)), copy.deepcopy(n))] == [int, int]
    assert np.arange(n).shape == np.zeros(n).shape == mf.zeros(n).shape == X.reshape(n).shape == (6,)
    assert list(range(n))[-1] == [0, 1, 2, 3, 4, 5][n - 1] == 5
    assert (mf.tensor([1, 2]) * n).tolist() == [6, 12]
    assert (mf.tensor([1, 2]) * n).dtype is mf.int64


def test_the_size_steers_and_computes_in_fused_functions():
    f = mf.fuse(lambda x, n: (x / x.size).reshape(x.size) * n + mf.zeros(x.size))
    for _ in range(3):
        assert f(mf.ones(2, 3), X.size).tolist() == [1.0] * 6
    assert f.stats().calls == 1
    assert mf.fuse(lambda x: x * x.size(0))(mf.ones(2, 3)).tolist() == [[2.0] * 3] * 2


# x.max(dim) has indices.


def test_a_maximum_has_indices_as_long_as_its_source_exists():
    y = X.max(1)
    assert (y.values.tolist(), y.indices.tolist()) == ([5.0, 6.0], [1, 2])
    assert (X * -1).min(0, keepdim=True).indices.shape == (1, 3)
    lost = (X * 2).max(0)
    with pytest.raises(AttributeError, match=r"x no longer exists; write x\.argmax\(0\)"):
        lost.indices  # noqa: B018
    with pytest.raises(AttributeError, match=r"no result of x\.max"):
        X.indices  # noqa: B018


def test_the_indices_of_a_maximum_fuse():
    assert mf.fuse(lambda x: (x * 2).max(1).indices + 1)(X).tolist() == [2, 3]


# dim by position.

BY_POSITION = {
    "mf.softmax": mf.softmax, "mf.log_softmax": mf.log_softmax, "F.softmax": F.softmax, "F.log_softmax": F.log_softmax,
    **{f"x.{name}": getattr(mf.Tensor, name) for name in (
        "softmax", "log_softmax", "logsumexp", "sum", "prod", "max", "min", "any", "all", "mean", "var", "std", "argmax",
        "argmin", "unsqueeze", "squeeze", "flip",
    )},
}  # fmt: skip


@pytest.mark.parametrize("name", BY_POSITION)
def test_dim_may_be_positional(name):
    function = BY_POSITION[name]
    named = {} if name == "x.flip" else {"dim": 1}
    expected = function(X, **named) if named else np.flip(X, 1)
    assert function(X, 1).tolist() == expected.tolist()


# Arguments that PyTorch refuses, too.


@pytest.mark.parametrize("join", [mf.cat, mf.stack])
def test_tensors_that_are_joined_are_a_list(join):
    with pytest.raises(mf.DTypeError, match=rf"{join.__name__}: expected a list .* write mf.{join.__name__}\(\[x, y\]\)"):
        join(X, X)
    assert join([X, X], dim=mf.tensor(0)).shape[0] in (2, 4)


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (mf.ones(2), r"cross_entropy: .* expected floats and class indices .*; write targets.to\(mf.int64\)"),
        ([0, 1], "cross_entropy: expected a tensor or a real number, got list"),
    ],
)
def test_targets_of_another_type_name_the_loss(targets, message):
    with pytest.raises(mf.DTypeError, match=message):
        F.cross_entropy(X, targets)


def test_operands_on_two_backends_name_the_function():
    with pytest.raises(mf.BackendError, match=r"^linear: operands are on two backends, parallel and python"):
        F.linear(X, mf.ones(4, 3, backend="python"))


@pytest.mark.parametrize("call", [mf.nn.Softmax(), F.softmax, mf.nn.Softmin(), F.log_softmax])
def test_a_missing_dim_warns_at_the_line_of_the_call(call):
    with pytest.warns(UserWarning, match="got no dim and chose 1; write dim=1") as found:
        call(X)
    assert [w.filename for w in found] == [__file__]


# Devices.


@pytest.fixture
def no_gpu(monkeypatch):
    """Make the driver find no GPU, so that the interpreter takes its place without being asked for; nothing is there yet."""
    pytest.importorskip("greenlet", reason="the interpreter needs greenlet: minifuse[simt]")
    used = {name: backend for name, backend in registry.registry.instances.items() if not name.startswith("cuda")}
    monkeypatch.setattr(registry.registry, "instances", used)
    monkeypatch.delenv(driver.SIMULATE_VARIABLE, raising=False)
    monkeypatch.setattr(driver, "query_driver", lambda: driver.DriverInfo(0, 0, "no driver"))


@pytest.mark.usefixtures("no_gpu")
@pytest.mark.parametrize(
    "move",
    [
        lambda: X.cuda(),
        lambda: X.cuda(0),
        lambda: X.to(device="cuda"),
        lambda: mf.zeros(2, device="cuda"),
        lambda: mf.nn.Linear(2, 2).cuda().weight,
        lambda: mf.nn.Linear(2, 2).cuda(0).weight,
        lambda: mf.nn.Linear(2, 2).to("cuda").weight,
    ],
)
def test_a_gpu_of_pytorch_that_is_simulated_warns(move, monkeypatch):
    with pytest.warns(
        UserWarning, match=r"no GPU here \(no driver\).* interpreted .*; write \"cpu\" to compute, or set MINIFUSE"
    ):
        assert move().backend == "cuda"
    assert move().backend == "cuda"  # and no warning, since tensors are there


@pytest.mark.usefixtures("no_gpu")
def test_a_simulated_gpu_that_is_asked_for_does_not_warn(monkeypatch):
    monkeypatch.setenv(driver.SIMULATE_VARIABLE, "simulated")
    assert X.cuda().backend == "cuda"


@pytest.mark.usefixtures("no_gpu")
def test_no_device_is_available_if_it_is_simulated(monkeypatch):
    assert "cuda" in mf.backends()
    assert (mf.cuda.is_available(), mf.cuda.device_count()) == (False, 0)
    with pytest.raises(AttributeError, match=r'a device is a string; write device = "cuda" if mf.cuda.is_available'):
        mf.device("cuda")
    monkeypatch.setattr(driver, "query_driver", lambda: driver.DriverInfo(2, 13000, ""))
    monkeypatch.setattr(registry, "has_cuda", lambda: True)
    assert (mf.cuda.is_available(), mf.cuda.device_count()) == (True, 2)


@pytest.mark.usefixtures("no_gpu")
def test_no_gpu_and_no_interpreter_is_one_error(monkeypatch):
    monkeypatch.setattr(driver, "find_spec", lambda name: None)
    for name in ("cuda", "cuda:3"):
        with pytest.raises(mf.MissingPartError, match=r'no CUDA device here \(no driver\); write "cpu".*minifuse\[simt\]'):
            registry._cuda(int(name[5:] or 0))()


# Names and arguments that minifuse lacks.


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda: mf.utils.data.DataLoader(X), "write mf.data.Loader(x, y, batch_size=64, seed=0)"),
        (lambda: mf.data.DataLoader(X), "write mf.data.Loader(x, y, batch_size=64, seed=0)"),
        (lambda: mf.data.TensorDataset(X), "write mf.data.Loader(x, y"),
        (lambda: mf.data.random_split(X, [1, 1]), "write train, test = mf.data.split(x, y, fraction=0.8, seed=0)"),
        (lambda: mf.data.MNIST("folder"), "write mf.data.digits(), or mf.data.read_idx(path) for the files of MNIST"),
        (lambda: mf.data.mnist, "write mf.data.digits()"),
        (lambda: mf.data.Loader(X, num_workers=2), "write prefetch=2"),
        (lambda: mf.data.Loader(X, pin_memory=True), "leave it out"),
        (lambda: mf.data.Loader((X, X)), "Loader: got tuple, expected one tensor for each field; write Loader(x, y, ...)"),
        (lambda: mf.data.Loader([(X, X)]), "joined by mf.stack([x for x, y in examples])"),
        (lambda: mf.float16, "minifuse has no float16; write mf.float32"),
        (lambda: mf.dtype, "the class of mf.float32 and the others is minifuse.core.dtypes.DType"),
        (lambda: mf.Size((2, 3)), "a shape is a tuple of ints"),
        (lambda: mf.complex64, "minifuse has no complex numbers; mf.fft returns pairs of real numbers"),
        (lambda: mf.set_default_dtype(mf.float64), "module.to(mf.float64)"),
        (lambda: mf.Tensor([1, 2]), "write mf.tensor(data)"),
        (lambda: mf.Tensor(2, 3), "mf.empty(2, 3)"),
        (lambda: mf.FloatTensor([1]), "write mf.tensor([1, 2], dtype=mf.float32)"),
        (lambda: mf.LongTensor([1]), "write mf.tensor([1, 2], dtype=mf.int64)"),
        (lambda: mf.Generator(), "mf.manual_seed(0), and mf.get_rng_state()"),
        (
            lambda: mf.randn(2, generator=None),
            "randn: got an unexpected argument 'generator'; there is one generator: write",
        ),
        (lambda: mf.rand(2, generator=None), "write mf.manual_seed(0)"),
        (lambda: mf.set_num_threads(2), "set the environment variable MINIFUSE_THREADS"),
        (lambda: mf.set_printoptions(precision=2), "write np.printoptions around print(x.numpy())"),
        (lambda: mf.amp.autocast(), 'write with mf.use_float32_matmul_precision("medium")'),
        (lambda: X.astype("float64"), "write x.to(dtype)"),
        (lambda: mf.nn.Linear(2, 2, device="cpu", dtype=mf.float64), "write Linear(...).to(device)"),
        (lambda: mf.nn.Conv2d(1, 1, 1, device="cpu"), "write Conv2d(...).to(device)"),
        (lambda: F.relu(X, inplace=True), "relu: got an unexpected argument 'inplace'; write relu(x), or x.relu_()"),
        (lambda: mf.maximum(X, X, out=X), "maximum: got an unexpected argument 'out'; write maximum(a, b)"),
        (lambda: mf.compile(abs, mode="max-autotune"), "fuse: got an unexpected argument 'mode'; leave it out"),
        (lambda: mf.compile(fullgraph=True), "tune=True searches for the fastest schedules"),
        (lambda: mf.load("a.safetensors", map_location="cpu"), 'leave it out: .* or write backend="cuda"'),
        (lambda: mf.load("a.safetensors", weights_only=True), "leave it out: a safetensors file holds no code"),
    ],
)
def test_an_absent_name_or_argument_says_what_to_write(call, advice):
    with pytest.raises((AttributeError, TypeError)) as found:
        call()
    assert all(part in str(found.value) for part in advice.split(".*"))


def test_the_package_of_ranks_is_imported_by_name():
    """Once imported, it is an attribute of the package."""
    assert missing.advice("distributed", "mf.") == "; write import minifuse.distributed as dist"


def test_arguments_of_pytorch_without_meaning_are_accepted():
    assert X.to(mf.float64, non_blocking=True).dtype is mf.float64
    assert mf.nn.Linear(2, 2).to(device="cpu", non_blocking=True).weight.device == "cpu"


def test_own_modules_may_have_a_device():
    class Own(mf.nn.Module):
        def __init__(self, **settings):
            super().__init__()
            self.settings = settings

    own = Own(device="cpu")
    assert own.settings == copy.deepcopy(own).settings == {"device": "cpu"}
