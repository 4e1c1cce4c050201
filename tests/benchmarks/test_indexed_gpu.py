"""The engine with one GPU thread per element agrees with NumPy. Its kernels run in the interpreter."""

import numpy as np
import pytest

from minifuse import simt

pytest.importorskip("numba.cuda")

from project.benchmarks import indexed_gpu as engine
from project.benchmarks.rows.large import chain, numpy_chain


class Flat(np.ndarray):
    """Host memory in place of device memory."""

    def copy_to_host(self):
        return np.array(self)


@pytest.fixture(autouse=True)
def _in_the_interpreter(monkeypatch):
    def launch(kernel, size, *arguments):
        simt.run(kernel, -(-size // 32), 32, *[np.asarray(x) if isinstance(x, Flat) else x for x in arguments])

    monkeypatch.setattr(engine, "launch", launch)
    monkeypatch.setattr(engine, "memory", lambda size: np.full(size, np.nan, np.float32).view(Flat))


def strided(x):
    return engine.Strided(np.ascontiguousarray(x).reshape(-1).view(Flat), x.shape, engine.strides_of(x.shape))


def drawn(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


X, Y, ROW = drawn(5, 7), drawn(5, 7) + 1, drawn(7)


@pytest.mark.parametrize(
    ("ours", "numpys", "inputs"),
    [
        (lambda x, y: x + y, np.add, (X, Y)),
        (lambda x, y: x + y, np.add, (X, ROW)),
        (lambda x, y: y - x, lambda x, y: y - x, (X, ROW)),
        (lambda x, y: x * y, np.multiply, (ROW, Y[:1])),
        (lambda x, y: x * y, np.multiply, (X, Y[:1])),
        (lambda x, y: x * y, np.multiply, (X[:, :1], Y)),
        (lambda x: x * 2.5, lambda x: x * np.float32(2.5), (X,)),
        (lambda x: x.exp(), np.exp, (X,)),
        (lambda x: x.T.contiguous(), lambda x: x.T, (X,)),
        (lambda x: x.T.exp(), lambda x: np.exp(x.T), (drawn(2, 3, 4, 5),)),
        (lambda x: x.sum(), np.sum, (X,)),
        (lambda x: x.sum(0), lambda x: x.sum(0), (X,)),
        (lambda x: x.sum(1), lambda x: x.sum(1), (X,)),
        (lambda x: x.T.max(1), lambda x: x.T.max(1), (X,)),
        (chain, numpy_chain, (X, Y, ROW)),
    ],
)
def test_engine_agrees_with_numpy(ours, numpys, inputs):
    found = ours(*map(strided, inputs)).numpy()
    expected = numpys(*inputs)
    assert found.shape == expected.shape
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=2e-6)


def test_memory_is_reused_when_the_last_reference_is_gone(monkeypatch):
    monkeypatch.setattr(engine, "free", engine.defaultdict(list))
    first = strided(X) + strided(Y)
    place = first.storage
    assert not engine.free[X.size]
    view = first.T
    del view
    assert not engine.free[X.size], "deleting a view frees nothing"
    del first
    assert engine.free[X.size] == [place] or engine.free[X.size][0] is place
