"""CTC by the sum over all paths, the adaptive softmax, and layers of embeddings with options."""

from itertools import groupby, product

import numpy as np
import pytest

import minifuse as mf
import minifuse.nn.functional as F  # noqa: N812  # the name that people give it
from minifuse import nn
from minifuse.testing import gradcheck
from tests.nn.agreement import near


@pytest.fixture(autouse=True)
def on_python():
    with mf.use_backend("python"):
        mf.manual_seed(0)
        yield


def loss_of_paths(log_p: np.ndarray, labels: list[int], blank: int) -> float:
    """Sum the probabilities of all paths of classes that spell the labels."""
    frames, classes = log_p.shape
    paths = product(range(classes), repeat=frames)
    spelling = (path for path in paths if [c for c, _ in groupby(path) if c != blank] == labels)
    return -np.log(sum(np.exp(sum(log_p[t, c] for t, c in enumerate(path))) for path in spelling))


@pytest.mark.parametrize("blank", [0, 3])
def test_ctc_sums_over_all_paths(blank):
    x = mf.randn(4, 3, 4).to("float64").log_softmax(2)
    labels, frames = [[1, 2], [2, 2], [1]], [4, 4, 3]
    expected = [loss_of_paths(x[:n, k].numpy(), rows, blank) for k, (rows, n) in enumerate(zip(labels, frames, strict=True))]
    padded, joined = mf.tensor([[1, 2], [2, 2], [1, 1]]), mf.tensor([1, 2, 2, 2, 1])
    for targets in padded, joined:
        near(F.ctc_loss(x, targets, frames, [2, 2, 1], blank, "none"), expected)
    lengths = mf.tensor(frames), mf.tensor([2, 2, 1])
    run = mf.fuse(lambda x: nn.CTCLoss(blank)(x, padded, *lengths))
    near(run(x), np.mean(np.array(expected) / [2, 2, 1]))
    near(F.ctc_loss(x[:, 0], mf.tensor([1, 2]), mf.tensor(4), mf.tensor(2), blank, "sum"), expected[0])


def test_gradient_and_impossible_targets_of_ctc():
    def loss(z, zero_infinity=True):
        options = {"reduction": "sum", "zero_infinity": zero_infinity}
        return F.ctc_loss(z.log_softmax(2), mf.tensor([[1, 2], [2, 2]]), [3, 2], [2, 2], **options)

    z = mf.randn(3, 2, 3).to("float64").requires_grad_()
    assert loss(z, False).item() == float("inf")
    assert gradcheck(loss, z)


def test_adaptive_softmax_is_a_distribution():
    layer = nn.AdaptiveLogSoftmaxWithLoss(6, 12, [3, 7], div_value=2.0, head_bias=True)
    assert [p.shape for p in layer.parameters()] == [(5, 6), (5,), (3, 6), (4, 3), (1, 6), (5, 1)]
    x, target = mf.randn(4, 6), mf.tensor([0, 3, 8, 11])
    log_p = layer.log_prob(x)
    near(log_p.exp().sum(1), np.ones(4))
    for run in layer, mf.fuse(layer.forward):
        output, loss = run(x, target)
        near(output, log_p.detach().numpy()[range(4), target.numpy()])
        near(loss, -output.detach().numpy().mean())
    assert layer.predict(x).tolist() == log_p.argmax(1).tolist()
    assert layer(x[0], target[0]).output.shape == ()
    with pytest.raises(ValueError, match=r"got cutoffs=\[7, 3\]"):
        nn.AdaptiveLogSoftmaxWithLoss(6, 12, [7, 3])


def test_linear_cross_entropy_has_a_layer():
    layer = nn.LinearCrossEntropyLoss(4, 3, out_features=(2,), bias=True)
    x, target = mf.randn(5, 4), mf.tensor([[0, 1], [2, 2], [1, 0], [0, 0], [1, 2]])
    logits = layer.linear(x).reshape(5, 3, 2)
    near(layer(x, target), F.cross_entropy(logits, target).item())


def test_norms_of_rows_are_limited_in_place():
    table = mf.tensor([[3.0, 4.0], [3.0, 4.0], [0.3, 0.4]])
    near(F.embedding(mf.tensor([1, 2]), table, max_norm=1.0), [[0.6, 0.8], [0.3, 0.4]])
    near(table, [[3, 4], [0.6, 0.8], [0.3, 0.4]])
    layer = nn.EmbeddingBag.from_pretrained(table, max_norm=1.0, norm_type=1.0, mode="sum")
    near(layer(mf.tensor([0, 2]), mf.tensor([0])), [[3 / 7 + 0.3, 4 / 7 + 0.4]])
    assert not layer.weight.requires_grad
    assert repr(layer) == "EmbeddingBag(3, 2, mode='sum')"


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda i: F.embedding_bag(i, mf.ones(3, 2)), mf.ShapeError, r"expected \(B, N\), or \(N,\) with offsets"),
        (lambda i: F.embedding_bag(i, mf.ones(3, 2), i, mode="last"), ValueError, 'expected "sum", "mean" or "max"'),
        (lambda i: F.embedding_bag(i + 9, mf.ones(3, 2), i), mf.IndexingError, "index 9 at"),
        (lambda i: F.ctc_loss(mf.ones(2, 1, 3), i, [2, 2], [2]), mf.ShapeError, r"expected \(1,\) each"),
        (lambda i: F.cross_entropy(mf.ones(2, 3), i, mf.ones(2)), mf.ShapeError, "one for each class"),
    ],
)
def test_mistakes_are_explained(call, error, text):
    with pytest.raises(error, match=text):
        call(mf.tensor([0, 1]))
