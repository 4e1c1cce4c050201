"""nn.Embedding: rows and gradients recorded from PyTorch, padding, errors, numbers of kernels."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.core.errors import DTypeError, IndexingError, ShapeError
from minifuse.testing import gradcheck

from ..nn import record_embedding as cases
from ..nn.recorded import load


@pytest.mark.sampled(2, each="name")
@pytest.mark.parametrize("name", cases.CASES)
def test_rows_and_gradients_are_those_of_torch(backend, name):
    table, index, g = mf.tensor(cases.table()), mf.tensor(cases.indices()), mf.tensor(cases.arrives())
    for dtype in (mf.int64, mf.int32):
        weight = table.clone()
        weight.requires_grad = True
        y = mf.nn.embedding(index.to(dtype), weight, cases.CASES[name])
        (y * g).sum().backward()
        assert np.array_equal(y.numpy(), cases.table()[cases.indices()])
        assert np.allclose(y.numpy(), load("embedding")[f"{name}/y"], rtol=1e-12, atol=1e-13)  # of another sin
        assert np.allclose(weight.grad.numpy(), load("embedding")[f"{name}/grad"], rtol=1e-13, atol=1e-15)


def test_the_fused_step_equals_the_unfused(backend):
    index, g = mf.tensor(cases.indices()), mf.tensor(cases.arrives())
    for name, padding in cases.CASES.items():
        step = mf.fuse(mf.grad(lambda w, padding=padding: (mf.nn.embedding(index, w, padding) * g).sum()))
        grad = step(mf.tensor(cases.table()))
        assert np.allclose(grad.numpy(), load("embedding")[f"{name}/grad"], rtol=1e-13, atol=1e-15)


def test_gradients_of_gradients_are_those_of_torch(backend):
    index = mf.tensor(cases.indices())
    slope = mf.grad(lambda w: (mf.nn.embedding(index, w) ** 3).sum())
    second = mf.grad(lambda w: (slope(w) ** 2).sum())(mf.tensor(cases.table()))
    assert np.allclose(second.numpy(), load("embedding")["second"])
    weight = mf.tensor(cases.table(), requires_grad=True)
    assert gradcheck(lambda w: (mf.nn.embedding(index, w, 4) ** 3).sum(), weight)


def test_index_select_is_that_of_torch(backend):
    x = mf.tensor(cases.table())
    selected = x.index_select(1, mf.tensor([4, 0, 4])).numpy()
    assert np.allclose(selected, load("embedding")["index_select"], rtol=1e-12, atol=1e-13)
    assert np.array_equal(selected, cases.table()[:, [4, 0, 4]])


def test_the_module():
    mf.manual_seed(3)
    layer = mf.nn.Embedding(400, 50, padding_idx=-2)
    assert repr(layer) == "Embedding(400, 50, padding_idx=398)"
    assert repr(mf.nn.Embedding(4, 2)) == "Embedding(4, 2)"
    assert {name: x.shape for name, x in layer.named_parameters()} == {"weight": (400, 50)}
    assert layer.weight.dtype is mf.float32
    weight = np.delete(layer.weight.numpy(), 398, axis=0)
    assert not layer.weight.numpy()[398].any()
    assert abs(weight.mean()) < 0.03
    assert abs(weight.std() - 1) < 0.03
    index = mf.tensor([[0, 398], [398, 7]])
    y = layer(index)
    assert np.array_equal(y.numpy(), layer.weight.numpy()[index.numpy()])
    y.sum().backward()
    assert np.array_equal(np.flatnonzero(layer.weight.grad.numpy()[:, 0]), [0, 7])


def test_shapes_of_the_index(backend):
    weight = mf.tensor(cases.table())
    for shape in ((), (0,), (3,), (2, 0), (2, 1, 3)):
        index = np.full(shape, 5)
        assert np.array_equal(mf.nn.embedding(mf.tensor(index, dtype=mf.int64), weight).numpy(), cases.table()[index])


def test_mistakes():
    weight = mf.zeros(7, 5)
    with pytest.raises(IndexingError, match=r"index 7 at \[1, 0\] is out of range for dim 0 of size 7; expected 0 to 6"):
        mf.nn.embedding(mf.tensor([[0], [7]]), weight)
    with pytest.raises(IndexingError, match="index -1 at"):
        mf.nn.Embedding(7, 5)(mf.tensor([-1]))
    with pytest.raises(DTypeError, match="embedding: got an index of float32"):
        mf.nn.embedding(mf.tensor([0.0]), weight)
    with pytest.raises(DTypeError, match="embedding: got an index of list"):
        mf.nn.embedding([0], weight)
    with pytest.raises(ShapeError, match=r"got a weight of shape \(7,\), expected \(V, D\)"):
        mf.nn.embedding(mf.tensor([0]), weight[:, 0])
    for padding in (7, -8):
        with pytest.raises(IndexingError, match=f"got padding_idx={padding} for 7 rows, expected -7 to 6"):
            mf.nn.Embedding(7, 5, padding)
        with pytest.raises(IndexingError, match=f"padding_idx={padding}"):
            mf.nn.embedding(mf.tensor([0]), weight, padding)
    with pytest.raises(ShapeError, match="num_embeddings=0"):
        mf.nn.Embedding(0, 5)


def test_in_a_fused_function_a_row_that_is_not_there_is_nan():
    y = mf.fuse(mf.nn.embedding)(mf.tensor([0, 7, -1]), mf.tensor(cases.table()))
    assert np.array_equal(np.isnan(y.numpy()[:, 0]), [False, True, True])


def test_tokens_positions_and_layer_norm_are_one_kernel(backend):
    words, places = mf.nn.Embedding(11, 33), mf.nn.Embedding(8, 33)
    index = mf.tensor(np.random.default_rng(0).integers(0, 11, (3, 8)))

    @mf.fuse
    def f(index):
        x = words(index) + places(mf.arange(8))
        d = x - x.mean(-1, keepdim=True)
        return d / ((d * d).mean(-1, keepdim=True) + 1e-5).sqrt()

    x = words.weight.numpy()[index.numpy()] + places.weight.numpy()
    d = x - x.mean(-1, keepdims=True)
    with mf.no_grad():
        y = f(index)
        assert len(f.explain(index).forward.kernels) == 1
    assert np.allclose(y.numpy(), d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5), atol=1e-5)
