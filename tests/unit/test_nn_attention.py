"""nn attention as in PyTorch, forward and backward, on every backend; numbers of kernels; gradients of any order."""

import numpy as np
import pytest

import minifuse as mf
from minifuse import nn
from minifuse.core.errors import DTypeError, ShapeError
from minifuse.ir.attention import Attention
from minifuse.testing import gradcheck
from tests.nn.agreement import BACKENDS, near, smooth, ways
from tests.nn.cases_attention import ATTENTIONS, EXACT, HEADS
from tests.nn.recorded import load


def softmax_of(q, k, v, is_causal=False, scale=None):
    """Attention in NumPy, float64."""
    scores = q @ k.swapaxes(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        scores = np.where(np.arange(q.shape[-2])[:, None] >= np.arange(k.shape[-2]), scores, -np.inf)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


def inputs(name, backend, dtype):
    found = [load("attention")[f"{name}/{key}"] for key in ("q", "k", "v", "g")]
    return [mf.tensor(x, dtype, backend=backend, requires_grad=k < 3) for k, x in enumerate(found)]


CASES = [(name, backend) for name in ATTENTIONS for backend in BACKENDS if (name, backend) != ("past a tile", "python")]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "backend"), CASES)
def test_attention_is_that_of_torch(name, backend):
    """float32, which is where the cuda backend has kernels of its own."""
    (_, key, _), settings = ATTENTIONS[name]
    for run in ways(lambda *xs: nn.scaled_dot_product_attention(*xs, **settings))[: 1 if backend == "cuda" else 2]:
        *leaves, g = inputs(name, backend, mf.float32)
        y = run(*leaves)
        near(y, load("attention")[f"{name}/y"], key[-1])
        y.backward(g)
        for x, wanted in zip(leaves, ("gq", "gk", "gv"), strict=True):
            near(x.grad, load("attention")[f"{name}/{wanted}"], key[-1])


@pytest.mark.parametrize("name", EXACT)
def test_attention_of_float64_is_exact(name):
    settings = ATTENTIONS[name][1]
    *leaves, g = inputs(name, "parallel", mf.float64)
    y = nn.scaled_dot_product_attention(*leaves, **settings)
    np.testing.assert_allclose(y.numpy(), softmax_of(*[x.detach().numpy() for x in leaves], **settings), 1e-13, 1e-14)
    y.backward(g)
    for x, wanted in zip(leaves, ("gq", "gk", "gv"), strict=True):
        np.testing.assert_allclose(x.grad.numpy(), load("attention")[f"{name}/{wanted}"], 1e-12, 1e-13)


@pytest.mark.parametrize("is_causal", [False, True])
def test_gradients_of_first_and_second_order(is_causal):
    for run in ways(lambda *xs: nn.scaled_dot_product_attention(*xs, is_causal=is_causal)):
        given = smooth(2, 3, 4), smooth(2, 5, 4, phase=0.3), smooth(2, 5, 4, phase=0.7)
        assert gradcheck(run, *given, second=True)


def test_gradients_where_one_array_is_all_three():
    assert gradcheck(lambda x: nn.scaled_dot_product_attention(x, x, x, is_causal=True), smooth(2, 4, 3), second=True)


def test_gradients_of_gradients_on_cuda_are_those_of_the_definition():
    """The kernels of the first order stand in a graph that is differentiated again."""

    def second(backend):
        random = np.random.default_rng(0)
        xs = [mf.tensor(random.standard_normal((3, 16)), mf.float32, backend=backend, requires_grad=True) for _ in range(3)]
        (nn.scaled_dot_product_attention(*xs, is_causal=True) ** 2).sum().backward(create_graph=True)
        first = [x.grad for x in xs]
        for x in xs:
            x.grad = None
        sum((g * g).sum() for g in first).backward()
        return [x.grad.numpy() for x in xs]

    for got, wanted in zip(second("cuda"), second("parallel"), strict=True):
        np.testing.assert_allclose(got, wanted, 1e-4, 1e-4 * np.abs(wanted).max())


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_heads_are_those_of_torch(name, backend):
    """Its state dict fits, and so do results and all gradients."""
    width, heads, _, has_bias, is_causal = HEADS[name]
    table = {key.removeprefix(f"{name}/"): x for key, x in load("attention").items() if key.startswith(f"{name}/")}
    module = nn.MultiheadAttention(width, heads, bias=has_bias, causal=is_causal, backend=backend)
    module.load_state_dict({key: mf.tensor(table[key], mf.float32, backend=backend) for key in module.state_dict()})
    x = mf.tensor(table["x"], mf.float32, backend=backend, requires_grad=True)
    y = module(x)
    near(y, table["y"], width)
    y.backward(mf.tensor(table["g"], mf.float32, backend=backend))
    near(x.grad, table["gx"], width)
    assert [key for key, _ in module.named_parameters()] == [key[2:] for key in table if key.startswith("g ")]
    for key, p in module.named_parameters():
        near(p.grad, table[f"g {key}"], width)


def test_heads_take_keys_and_values_of_others():
    module = nn.MultiheadAttention(6, 2, batch_first=True, dtype=mf.float64)
    q, k, v = smooth(2, 3, 6), smooth(2, 5, 6, phase=0.2), smooth(2, 5, 6, phase=0.4)
    weights = np.split(module.in_proj_weight.numpy(), 3)
    projected = [x.detach().numpy() @ w.T for x, w in zip((q, k, v), weights, strict=True)]
    parts = [x.reshape(*x.shape[:2], 2, 3).swapaxes(1, 2) for x in projected]
    wanted = softmax_of(*parts).swapaxes(1, 2).reshape(2, 3, 6) @ module.out_proj.weight.numpy().T
    np.testing.assert_allclose(module(q, k, v, need_weights=False)[0].numpy(), wanted, 1e-13, 1e-13)
    np.testing.assert_array_equal(module(q, k).numpy(), module(q, k, k, need_weights=False)[0].numpy())
    np.testing.assert_allclose(module(q, is_causal=True).numpy()[:, :1], module(q[:, :1]).numpy(), 1e-13, 1e-13)
    assert gradcheck(lambda x: module(x, is_causal=True), q)


def test_first_values_of_heads():
    mf.manual_seed(1)
    module = nn.MultiheadAttention(64, 4)
    bound = (6 / (64 + 192)) ** 0.5
    weight = module.in_proj_weight.numpy()
    assert bound * 0.99 < np.abs(weight).max() <= bound
    assert not module.in_proj_bias.numpy().any()
    assert not module.out_proj.bias.numpy().any()
    assert nn.MultiheadAttention(4, 1, bias=False).state_dict().keys() == {"in_proj_weight", "out_proj.weight"}


def test_a_fused_step_learns_like_an_eager_one():
    """Forward, backward and update as one call: outputs that are kept, arguments that are changed."""

    def losses(backend, wrap):
        mf.manual_seed(0)
        module = nn.MultiheadAttention(32, 2, causal=True, backend=backend)
        optimizer = mf.optim.SGD(module.parameters(), lr=0.5)
        x, t = [mf.tensor(a, mf.float32, backend=backend) for a in np.random.default_rng(1).standard_normal((2, 1, 5, 32))]

        def step(x, t):
            loss = nn.mse_loss(module(x), t)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        run = wrap(step)
        return [run(x, t).item() for _ in range(3)]

    eager = losses("parallel", lambda step: step)
    assert eager[2] < eager[0]
    for backend in ("parallel", "cuda"):
        np.testing.assert_allclose(losses(backend, mf.fuse), eager, 1e-5)


# Kernels, counted.


def test_two_products_and_one_kernel_between_them():
    q, k, v = [mf.randn(2, 3, 7, 16) for _ in range(3)]
    found = mf.fuse(lambda q, k, v: nn.scaled_dot_product_attention(q, k, v, is_causal=True)).explain(q, k, v)
    _, softmax, _ = found.forward.kernels
    assert [kernel.form.split()[0] for kernel in found.forward.kernels] == ["matmul", "rows", "matmul"]
    assert found.forward.launches == 3
    scores = 4 * 2 * 3 * 7 * 7
    assert [x.nbytes for x in softmax.reads] == [scores]  # scale, mask, maximum, exp and sum: and no mask in memory
    assert sum(x.nbytes for x in softmax.writes) <= scores


def test_one_kernel_on_cuda_and_three_for_its_gradient():
    q, k, v = [mf.randn(2, 3, 7, 16, backend="cuda", requires_grad=True) for _ in range(3)]
    fused = mf.fuse(lambda q, k, v: nn.scaled_dot_product_attention(q, k, v, is_causal=True))
    found = fused.explain(q, k, v)
    assert [kernel.formula for kernel in found.forward.kernels] == ["attention(q, k, v), attention_sums(q, k, v)"]
    names = [kernel.formula.split("(")[0] for kernel in found.backward.run.kernels]
    assert sorted(names) == ["key_gradient", "query_gradient", "sum"]
    assert "attention(q, k, v)" in fused.source(q, k, v)


@pytest.mark.parametrize("backend", ["parallel", "cuda"])
def test_scores_are_not_saved_for_backward(backend):
    """Of 40 positions: 40 numbers a head, beside what is there anyway."""
    q, k, v = [mf.randn(2, 40, 16, backend=backend, requires_grad=True) for _ in range(3)]
    found = mf.fuse(lambda q, k, v: nn.scaled_dot_product_attention(q, k, v)).explain(q, k, v)
    assert [nbytes for _, nbytes in found.backward.saved] == [4 * 2 * 40]


@pytest.mark.parametrize("backend", ["parallel", "cuda"])
def test_heads_need_no_copy_on_cuda(backend):
    """Views of products go in, and what comes out is laid out like them."""
    x, w = mf.randn(2, 5, 32, backend=backend), mf.randn(32, 32, backend=backend)

    @mf.fuse
    def attend(x, w):
        q = (x @ w).reshape(2, 5, 2, 16).permute(0, 2, 1, 3)
        return nn.scaled_dot_product_attention(q, q, q).permute(0, 2, 1, 3).reshape(2, 5, 32) @ w

    forms = [kernel.form.split()[0] for kernel in attend.explain(x, w).forward.kernels]
    assert forms == (["matmul", "attention", "matmul"] if backend == "cuda" else forms)
    q = (x.numpy() @ w.numpy()).reshape(2, 5, 2, 16).swapaxes(1, 2).astype(float)
    wanted = softmax_of(q, q, q).swapaxes(1, 2).reshape(2, 5, 32) @ w.numpy()
    np.testing.assert_allclose(attend(x, w).numpy(), wanted, 1e-4, 1e-3)


def test_scores_that_overflow_exp():
    q = mf.tensor([[300.0] * 16, [-300.0] * 16])
    for backend in BACKENDS:
        y = nn.scaled_dot_product_attention(*[x.to(backend) for x in (q, q, q)], scale=1.0)
        np.testing.assert_array_equal(y.numpy(), q.numpy())


@pytest.mark.parametrize("backend", BACKENDS)
def test_nan_and_infinity_are_those_of_the_definition(backend):
    """A bad key spoils the rows that see it, and no other; weights of infinity less infinity are NaN."""
    for bad in (np.nan, np.inf):
        x = np.ones((4, 16), np.float32)
        x[2, 3] = bad
        q, k = mf.ones(4, 16, backend=backend), mf.tensor(x, backend=backend)
        y = nn.scaled_dot_product_attention(q, k, q, is_causal=True).numpy()
        assert np.isnan(y).all(1).tolist() == [False, False, True, True]


# Errors, before anything runs.


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        (((5,), (5, 3), (5, 3)), "at least 2 dims"),
        (((2, 5, 3), (2, 5, 4), (2, 5, 4)), "the same width D"),
        (((2, 5, 3), (2, 5, 3), (2, 6, 3)), "as many values as keys"),
        (((2, 5, 3), (3, 5, 3), (3, 5, 3)), "must be equal or 1"),
        (((5, 0), (5, 0), (5, 0)), "a width D of at least 1"),
    ],
)
def test_shapes_that_do_not_fit(shapes, words):
    with pytest.raises(ShapeError, match=words) as caught:
        nn.scaled_dot_product_attention(*map(mf.ones, shapes))
    assert "scaled_dot_product_attention: got query" in str(caught.value)


def test_types_that_do_not_fit():
    x = mf.ones(3, 4)
    for others in ((x, x.to(mf.float64)), (x, 2.0), (x.to(mf.int64), x)):
        with pytest.raises(DTypeError, match="expected tensors of one float dtype"):
            nn.scaled_dot_product_attention(x, *others)
    with pytest.raises(DTypeError, match="of int64, int64, int64"):
        nn.scaled_dot_product_attention(*[x.to(mf.int64)] * 3)
    with pytest.raises(DTypeError, match="expected a tensor"):
        nn.scaled_dot_product_attention(1.0, x, x)


def test_heads_that_do_not_fit():
    for sizes in ((6, 4), (0, 1), (4, 0)):
        with pytest.raises(ShapeError, match=r"MultiheadAttention: got embed_dim=.* expected a positive multiple"):
            nn.MultiheadAttention(*sizes)
    module = nn.MultiheadAttention(6, 2)
    for bad in (mf.ones(5, 6), mf.ones(2, 5, 4)):
        with pytest.raises(ShapeError, match=r"got a query of shape .*expected \(N, T, 6\)"):
            module(bad)
    with pytest.raises(ShapeError, match="got a value of shape"):
        module(mf.ones(2, 5, 6), mf.ones(2, 5, 6), mf.ones(2, 5, 3), need_weights=False)
    with pytest.raises(DTypeError, match="Linear: got x of dtype float64"):
        module(mf.ones(2, 5, 6, dtype=mf.float64))


def test_nothing_to_look_at():
    y = nn.scaled_dot_product_attention(mf.ones(2, 3, 4), mf.ones(2, 0, 4), mf.ones(2, 0, 4))
    assert y.tolist() == [[[0.0] * 4] * 3] * 2
    assert nn.scaled_dot_product_attention(mf.ones(0, 3, 16), mf.ones(0, 3, 16), mf.ones(0, 3, 16)).shape == (0, 3, 16)


def test_the_definition_and_its_sums():
    """Of each row the logarithm of the sum of exponentials, of what it sees."""
    q, k = smooth(3, 4, requires_grad=False), smooth(5, 4, phase=0.3, requires_grad=False)

    def sums(q, k):
        return Attention(True, 0.5)(q, k, k)[1]

    scores = np.where(np.tril(np.ones((3, 5), bool)), 0.5 * q.numpy() @ k.numpy().T, -np.inf)
    np.testing.assert_allclose(mf.fuse(sums)(q, k).numpy(), np.log(np.exp(scores).sum(1)), 1e-14)
