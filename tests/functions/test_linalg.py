"""Errors of linear algebra, gradients of gradients, dtypes, and results that NumPy's functions do not have."""

import math
import sys
from types import ModuleType

import numpy as np
import pytest

import minifuse as mf
from minifuse.functions import host
from minifuse.tensors.creation import DLPACK_CUDA

S = [[4.0, 1.0, 0.5], [1.0, 3.0, -0.25], [0.5, -0.25, 2.0]]
SINGULAR = [[1.0, 2.0], [2.0, 4.0]]


@pytest.fixture(autouse=True)
def _python():
    with mf.use_backend("python"):
        yield


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mf.inverse(mf.tensor(SINGULAR)), r"inv: the matrix of shape \(2, 2\) is singular, its rank is 1; write"),
        (
            lambda: mf.linalg.solve(mf.tensor([S, [[0.0] * 3] * 3]), mf.ones(3)),
            r"solve: matrix \(1,\) of the batch of shape",
        ),
        (lambda: mf.cholesky(-mf.tensor(S)), "is not positive definite, its smallest eigenvalue is -4"),
    ],
)
def test_a_singular_or_indefinite_matrix_is_an_error(call, message):
    with pytest.raises(mf.linalg.LinAlgError, match=message):
        call()
    with pytest.raises(np.linalg.LinAlgError):
        call()
    with pytest.raises(mf.MinifuseError):
        call()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: mf.det(mf.ones(2, 3)), mf.ShapeError, r"det: got shape \(2, 3\), expected square matrices"),
        (lambda: mf.qr(mf.ones(3)), mf.ShapeError, "expected at least 2 dims; write x.reshape"),
        (lambda: mf.linalg.solve(mf.tensor(S), mf.ones(2)), mf.ShapeError, "expected as many rows of both"),
        (lambda: mf.linalg.norm(mf.ones(2, 2, 2), 1), mf.ShapeError, "a vector has 1 dim, a matrix 2"),
        (lambda: mf.cross(mf.ones(2), mf.ones(2)), mf.ShapeError, "expected a dim of size 3"),
        (
            lambda: mf.linalg.eig(mf.tensor(S)),
            AttributeError,
            "no complex dtype; for symmetric matrices write mf.linalg.eigh",
        ),
        (lambda: mf.linalg.inv_ex(mf.tensor(S)), AttributeError, "write mf.linalg.inv, which raises LinAlgError"),
        (lambda: mf.lobpcg(mf.tensor(S)), AttributeError, r"write mf\.linalg\.eigh\(x\)"),
        (lambda: mf.fft.ifft(mf.ones(3)), mf.ShapeError, "expected a last dim of size 2, the real and the imaginary part"),
    ],
)
def test_a_mistake_is_explained(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: mf.linalg.solve(x, x * x),
        mf.inverse,
        mf.det,
        mf.logdet,
        lambda x: mf.cholesky(x @ x.mT),
        lambda x: mf.linalg.eigh(x + x.mT)[0],
        lambda x: mf.linalg.qr(x)[1],
        mf.linalg.svdvals,
        lambda x: mf.pinverse(x[:2]),
        mf.matrix_exp,
        lambda x: mf.linalg.lu_factor(x)[0],
        mf.fft.rfft,
        lambda x: mf.fft.irfft(x[:2].mT),
    ],
)
def test_gradients_can_be_differentiated_again(function):
    x = mf.tensor(np.array(S) + np.arange(9).reshape(3, 3) / 20, requires_grad=True)
    assert mf.testing.gradcheck(function, x, second=True)


def test_the_determinant_of_a_singular_matrix_has_a_gradient():
    x = mf.tensor(SINGULAR, requires_grad=True)
    x.det().backward()
    np.testing.assert_allclose(x.grad, [[4, -2], [-2, 1]], rtol=1e-5)


def test_results_keep_float32_and_integers_become_float64():
    assert mf.tensor(S).inverse().dtype is mf.float32
    assert mf.linalg.svdvals(mf.tensor(S)).dtype is mf.float32
    assert mf.det(mf.tensor([[1, 2], [3, 4]])).dtype is mf.float64
    assert mf.fft.fft(mf.ones(4)).dtype is mf.float32


def test_results_have_the_names_of_pytorch():
    u, s, v = factors = mf.svd(mf.tensor(S))
    assert factors.U is u
    np.testing.assert_allclose(u @ (s[:, None] * v.mT), S, rtol=1e-5)
    assert mf.linalg.svd(mf.tensor(S)).Vh.shape == (3, 3)
    assert mf.linalg.eigh(mf.tensor(S)).eigenvalues.shape == (3,)
    assert mf.slogdet(mf.tensor(S)).sign.item() == 1
    p, low, up = mf.lu_unpack(*mf.lu(mf.tensor(S)))
    np.testing.assert_allclose(p @ low @ up, S, rtol=1e-5)


def test_the_logarithm_of_a_negative_determinant_is_nan():
    assert mf.logdet(-mf.tensor(S)).isnan()
    assert mf.logdet(mf.tensor(SINGULAR)).item() == -math.inf


def test_an_input_that_was_modified_is_an_error_in_backward():
    x = mf.tensor(S, requires_grad=True)
    y = x * 1
    z = mf.det(y).sum()
    with mf.no_grad():
        y.fill_(1)
    with pytest.raises(mf.GradientError, match="det needs was modified in place"):
        z.backward()


def test_gradients_that_do_not_exist_are_errors():
    x = mf.tensor(S, requires_grad=True)
    with pytest.raises(mf.GradientError, match="with respect to x alone"):
        mf.igamma(x, mf.ones(3)).sum().backward()
    with pytest.raises(mf.GradientError, match='qr has a gradient with mode="reduced"'):
        mf.linalg.qr(x[:2])[1].sum().backward()


def test_only_memory_of_a_gpu_goes_to_cupy(monkeypatch):
    x = mf.tensor(S)
    assert host.library_for([x]) is np
    monkeypatch.setattr(host, "has_cupy", lambda: True)
    monkeypatch.setitem(sys.modules, "cupy", ModuleType("cupy"))
    assert host.library_for([x]) is np
    if "cuda" in mf.backends():
        y = x.to("cuda")
        assert (host.library_for([y]) is np) == y.meta.backend.device.is_simulated
        monkeypatch.setattr(type(y.meta.backend), "dlpack_device", (DLPACK_CUDA, 0))
        assert host.library_for([y]).__name__ == "cupy"


def test_the_pivots_of_lu_are_integers():
    with pytest.raises(mf.DTypeError, match="got pivots of float32, expected integers"):
        mf.lu_solve(mf.ones(2, 1), mf.eye(2), mf.ones(2))
