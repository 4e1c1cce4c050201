"""optim.clipping: gradients clipped in place. Equality with PyTorch is in test_optim_table."""

import math

import numpy as np
import pytest

import minifuse as mf
from minifuse.compiler.plan import plans
from minifuse.core.errors import DTypeError, FuseError, GradientError, OverlapError, ShapeError
from minifuse.optim import clip_grad_norm_, clip_grad_value_

SHAPES = (), (1,), (31,), (33,), (5, 7), (0, 3), (2, 1, 3), (1025,)


def parameters(backend="parallel", dtype="float32", shapes=SHAPES, scale=1.0):
    """Parameters with gradients that differ in every element."""
    found = []
    for k, shape in enumerate(shapes):
        p = mf.zeros(shape, dtype=dtype, backend=backend, requires_grad=True)
        p.grad = mf.tensor(scale * np.sin(np.arange(p.size) + k + 1).reshape(shape), dtype, backend)
        found.append(p)
    return found


def flat(params):
    return np.concatenate([p.grad.numpy().reshape(-1).astype(np.float64) for p in params])


@pytest.mark.sampled(2, each="limit")
@pytest.mark.parametrize("norm_type", [2.0, math.inf])
@pytest.mark.parametrize("backend", ["python", "parallel", "cuda"])
@pytest.mark.parametrize("limit", [0.5, 1e9, 0.0])
def test_the_norm_is_at_most_the_limit(backend, limit, norm_type):
    params = parameters(backend)
    before, addresses = flat(params), [p.grad.address for p in params]
    wanted = np.linalg.norm(before, norm_type)
    norm = clip_grad_norm_(params, limit, norm_type)
    assert (norm.shape, norm.dtype, norm.backend, norm.requires_grad) == ((), mf.float32, backend, False)
    assert norm.item() == pytest.approx(wanted, rel=1e-6)
    np.testing.assert_allclose(flat(params), before * min(limit / (wanted + 1e-6), 1), rtol=1e-5)
    assert [p.grad.address for p in params] == addresses


@pytest.mark.parametrize("backend", ["python", "parallel", "cuda"])
def test_values_are_brought_into_a_range(backend):
    params = parameters(backend)
    before = flat(params)
    assert clip_grad_value_(params, 0.25) is None
    np.testing.assert_array_equal(flat(params), before.clip(-0.25, 0.25))


def test_a_single_parameter_needs_no_list():
    (p,) = parameters(shapes=[(2,)])
    p.grad = mf.tensor([3.0, 4.0])
    assert clip_grad_norm_(p, 1.0).item() == 5
    clip_grad_value_(p, 0.7)
    assert p.grad.tolist() == pytest.approx([0.6, 0.7])


def test_all_is_few_calls_whatever_the_limit():
    params = parameters(shapes=[(3, 29), (89,), (29,)])  # of no other test
    before = set(plans)
    clip_grad_norm_(params, 1.0)
    assert len(set(plans) - before) == 2
    before = set(plans)
    clip_grad_norm_(params, 0.1)
    assert set(plans) == before


def test_parameters_without_gradient_are_left_out():
    p, q = parameters(shapes=[(3,), (4,)])
    q.grad = None
    assert clip_grad_norm_(iter([p, q, p]), 0.0).item() > 0  # one that comes twice counts once
    assert q.grad is None
    p.grad = None
    assert clip_grad_norm_([p, q], 1.0).item() == 0
    clip_grad_value_([p, q], 1.0)
    assert clip_grad_norm_([], 1.0).item() == 0


def test_gradients_without_elements():
    params = parameters(shapes=[(0,), (0, 3)])
    assert clip_grad_norm_(params, 1.0).item() == clip_grad_norm_(params, 1.0, math.inf).item() == 0


def test_mixed_element_types():
    params = [*parameters(shapes=[(5,)]), *parameters(shapes=[(6,)], dtype="float64")]
    wanted = np.linalg.norm(flat(params))
    norm = clip_grad_norm_(params, 0.5)
    assert norm.dtype is mf.float64
    assert norm.item() == pytest.approx(wanted, rel=1e-7)
    assert [p.grad.dtype for p in params] == [mf.float32, mf.float64]
    assert np.linalg.norm(flat(params)) == pytest.approx(0.5, rel=1e-5)


def test_gradients_of_any_layout():
    x = mf.tensor(np.sin(np.arange(24)).reshape(4, 6), "float32")
    p, q = mf.zeros(6, 4, requires_grad=True), mf.zeros(3, requires_grad=True)
    p.grad, q.grad = x.T, mf.ones(9)[::3]
    before = flat([p, q])
    clip_grad_norm_([p, q], 1.0)
    np.testing.assert_allclose(flat([p, q]), before / np.linalg.norm(before), rtol=1e-5)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("norm_type", [2.0, math.inf])
def test_a_norm_that_is_not_finite(bad, norm_type):
    p, q = parameters(shapes=[(3,), (2,)])
    p.grad = mf.tensor([1.0, bad, 2.0])
    before = [g.tolist() for g in (p.grad, q.grad)]
    with pytest.raises(GradientError, match=r"got gradients with norm (nan|inf), .* nothing was changed"):
        clip_grad_norm_([p, q], 1.0, norm_type, error_if_nonfinite=True)
    assert repr([g.tolist() for g in (p.grad, q.grad)]) == repr(before)
    norm = clip_grad_norm_([p, q], 1.0, norm_type)  # as PyTorch: everything times NaN, or times 0
    assert not math.isfinite(norm.item())
    assert math.isnan(p.grad.tolist()[1])
    wanted = [math.nan] * 2 if math.isnan(bad) else [0.0, 0.0]
    assert q.grad.tolist() == pytest.approx(wanted, nan_ok=True)


def test_not_a_number_stays_in_a_range_of_values():
    (p,) = parameters(shapes=[(3,)])
    p.grad = mf.tensor([math.nan, math.inf, -math.inf])
    clip_grad_value_([p], 2.0)
    assert p.grad.tolist() == pytest.approx([math.nan, 2, -2], nan_ok=True)


def test_gradients_over_one_memory_are_refused():
    p, q = parameters(shapes=[(3,), (3,)])
    q.grad = p.grad[:]
    before = p.grad.tolist()
    with pytest.raises(OverlapError, match="two tensors that share memory"):
        clip_grad_norm_([p, q], 0.1)
    with pytest.raises(OverlapError, match="two tensors that share memory"):
        clip_grad_value_([p, q], 0.1)
    assert p.grad.tolist() == before


@pytest.mark.parametrize("backend", ["parallel", "cuda"])
def test_inside_a_fused_function(backend):
    p = mf.tensor([3.0, 4.0], backend=backend, requires_grad=True)
    q = mf.tensor([[1.0], [2.0]], backend=backend, requires_grad=True)
    values = mf.tensor([1.0, -2.0], backend=backend)

    def step(limit):
        p.grad = q.grad = None
        ((p * p).sum() / 2 + (q * values).sum()).backward()
        norm = clip_grad_norm_([p, q], limit)
        clip_grad_value_([q], 0.05)
        return norm

    fused = mf.fuse(step)
    for limit in (1.0, 0.5):
        wanted, grads = step(limit).item(), flat([p, q])
        assert fused(limit).item() == pytest.approx(wanted, rel=1e-6)
        np.testing.assert_allclose(flat([p, q]), grads, rtol=1e-6)
    assert fused.stats().captures <= 2  # gradients from before are there, or not
    with pytest.raises(FuseError, match="error_if_nonfinite=True reads the norm"):
        mf.fuse(lambda x: clip_grad_norm_([p], 1.0, error_if_nonfinite=True) + x)(values)


@pytest.mark.parametrize(
    ("attempt", "error", "words"),
    [
        (lambda: clip_grad_norm_([mf.ones(1)], -1.0), ValueError, "max_norm is -1.0, expected a number of at least 0"),
        (lambda: clip_grad_norm_([mf.ones(1)], math.nan), ValueError, "max_norm is nan, expected a number of at least 0"),
        (lambda: clip_grad_norm_([mf.ones(1)], 1.0, 0.0), ValueError, r"got norm_type=0.0, expected a positive number"),
        (lambda: clip_grad_norm_([1.0], 1.0), DTypeError, "got a parameter of type float, expected tensors"),
        (lambda: clip_grad_value_([mf.ones(1)], -1.0), ValueError, "clip_value is -1.0, expected a number of at least 0"),
        (lambda: clip_grad_value_([None], 1.0), DTypeError, "clip_grad_value_: got a parameter of type NoneType"),
    ],
)
def test_invalid_arguments_are_errors(attempt, error, words):
    with pytest.raises(error, match=words):
        attempt()


@pytest.mark.parametrize("norm_type", [1.0, 3.5, 2, math.inf])
def test_clipping_in_two_steps(norm_type):
    values = [[3.0, -4.0], [1.0]]
    with mf.use_backend("python"):
        params = [mf.zeros(len(x), requires_grad=True) for x in values]
        for p, x in zip(params, values, strict=True):
            p.grad = mf.tensor(x)
        total = mf.nn.utils.get_total_norm([p.grad for p in params], norm_type)
        mf.nn.utils.clip_grads_with_norm_(params, 1.5, total)
        flat = mf.nn.utils.parameters_to_vector([p.grad for p in params])
    assert total.item() == pytest.approx(np.linalg.norm([3, 4, 1], norm_type))
    np.testing.assert_allclose(flat.numpy(), np.array([3, -4, 1]) * 1.5 / total.item(), rtol=1e-5)


def test_parameters_as_one_vector():
    with mf.use_backend("python"):
        p, q = mf.ones(2, 2, requires_grad=True), mf.tensor(3.0, requires_grad=True)
        vector = mf.nn.utils.parameters_to_vector([p, q])
        mf.nn.utils.vector_to_parameters(2 * vector, [p, q])
        vector.sum().backward()
    assert (p.tolist(), q.item(), p.grad.tolist()) == ([[2, 2], [2, 2]], 6, [[1, 1], [1, 1]])
    with pytest.raises(ShapeError, match=r"got shape \(4,\), expected \(5,\)"):
        mf.nn.utils.vector_to_parameters(p.reshape(-1), [p, q])
