"""Factorizations, inverses and determinants of matrices by LAPACK, and their gradients.

Each function takes matrices in the last two dims, and any batch dims. The formulas of the gradients are written with
products and solutions of linear systems.

References
----------
M. B. Giles, An extended collection of matrix derivative results for forward and reverse mode AD, 2008.
J. Townsend, Differentiating the singular value decomposition, 2016.
I. Murray, Differentiation of the Cholesky decomposition, 2016.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import DTypeError, GradientError, LinAlgError
from .host import constant_like, host_function, sum_to, zeros_for_none

FACTORIALS = [math.factorial(k) for k in range(19)]  # of the Taylor polynomial of the matrix exponential


def describe(a: Any, is_bad: Any, text: str) -> str:
    """Return which matrix of a batch is bad."""
    first = next(iter(np.argwhere(is_bad).tolist()), [])
    which = f"matrix {tuple(first)} of the batch" if first else "the matrix"
    return f"{which} of shape {a.shape} {text}"


def explain_singular(a: Any, *_: Any) -> str:
    """Say which matrix is singular, and its rank."""
    ranks = np.linalg.matrix_rank(a) if a.shape[-1] == a.shape[-2] else np.zeros(a.shape[:-2], int)
    is_bad = (ranks < a.shape[-1]) if a.shape[-1] == a.shape[-2] else ranks == 0
    if a.shape[-1] != a.shape[-2]:
        return f"got shape {a.shape}, expected square matrices; write mf.linalg.lstsq or mf.linalg.pinv"
    rank = int(np.min(ranks)) if is_bad.any() else a.shape[-1] - 1
    return describe(a, is_bad, f"is singular, its rank is {rank}; write mf.linalg.lstsq or mf.linalg.pinv")


def explain_indefinite(a: Any, *_: Any) -> str:
    """Say which matrix is not positive definite, and its smallest eigenvalue."""
    if a.shape[-1] != a.shape[-2]:
        return f"got shape {a.shape}, expected square matrices"
    smallest = np.linalg.eigvalsh(a)[..., 0]
    text = f"is not positive definite, its smallest eigenvalue is {np.min(smallest):.3g}; add a multiple of the identity"
    return describe(a, smallest <= 0, text)


# Inverses, solutions and determinants.


def _solve_vjp(gradients: Sequence[Any], outputs: Sequence[Any], inputs: Sequence[Any]) -> Sequence[Any]:
    (g,), (x,), (a, b) = gradients, outputs, inputs
    g_b = solve(a.mT, g)
    return sum_to(-(g_b @ x.mT), a.shape), sum_to(g_b, b.shape)


@host_function(_solve_vjp, explain_singular)
def solve(xp: Any, a: Any, b: Any) -> Any:
    """Return x with a @ x = b, of matrices b."""
    return xp.linalg.solve(a, b)


def _inv_vjp(gradients: Sequence[Any], outputs: Sequence[Any], inputs: Sequence[Any]) -> Sequence[Any]:
    (g,), (y,) = gradients, outputs
    return (-(y.mT @ g @ y.mT),)


@host_function(_inv_vjp, explain_singular)
def inv(xp: Any, a: Any) -> Any:
    """Return the inverse."""
    return xp.linalg.inv(a)


def _det_vjp(gradients: Sequence[Any], outputs: Sequence[Any], inputs: Sequence[Any]) -> Sequence[Any]:
    (g,), (y,), (a,) = gradients, outputs, inputs
    try:
        return ((g * y)[..., None, None] * inv(a).mT,)
    except LinAlgError:
        return (g[..., None, None] * cofactors(a.detach()),)


@host_function(_det_vjp)
def det(xp: Any, a: Any) -> Any:
    """Return the determinant."""
    return xp.linalg.det(a)


@host_function()
def cofactors(xp: Any, a: Any) -> Any:
    """Return the gradient of the determinant, also of singular matrices, by their singular values."""
    u, s, v = xp.linalg.svd(a)
    others = xp.stack([xp.delete(s, k, -1).prod(-1) for k in range(s.shape[-1])], -1)
    return (xp.linalg.det(u) * xp.linalg.det(v))[..., None, None] * ((u * others[..., None, :]) @ v)


def _slogdet_vjp(gradients: Sequence[Any], outputs: Sequence[Any], inputs: Sequence[Any]) -> Sequence[Any]:
    g = gradients[1]
    return (None if g is None else g[..., None, None] * inv(inputs[0]).mT,)


@host_function(_slogdet_vjp)
def slogdet(xp: Any, a: Any) -> Any:
    """Return the sign and the logarithm of the absolute value of the determinant."""
    return tuple(xp.linalg.slogdet(a))


def _pinv_vjp(gradients: Sequence[Any], outputs: Sequence[Any], inputs: Sequence[Any], rtol: float) -> Sequence[Any]:
    (g,), (y,), (a,) = gradients, outputs, inputs
    left, right = a @ y, y @ a  # projections
    rows, columns = constant_like(a, np.eye(a.shape[-2])) - left, constant_like(a, np.eye(a.shape[-1])) - right
    return (rows.mT @ g.mT @ y @ y.mT + y.mT @ y @ g.mT @ columns.mT - y.mT @ g @ y.mT,)


@host_function(_pinv_vjp)
def pinv(xp: Any, a: Any, rtol: float) -> Any:
    """Return the pseudo-inverse. Singular values below rtol times the largest count as 0."""
    return xp.linalg.pinv(a, rtol)


# Factorizations.


def _cholesky_vjp(gradients: Sequence[Any], outputs: Sequence[Any], inputs: Sequence[Any]) -> Sequence[Any]:
    (g,), (y,) = gradients, outputs
    product = y.mT @ g
    inverse = inv(y)
    half = np.tril(product, -1) + 0.5 * (np.tril(product) - np.tril(product, -1))
    s = inverse.mT @ half @ inverse
    return (0.5 * (s + s.mT),)


@host_function(_cholesky_vjp, explain_indefinite)
def cholesky(xp: Any, a: Any) -> Any:
    """Return the lower triangular factor."""
    return xp.linalg.cholesky(a)


def _qr_vjp(gradients: Sequence[Any], outputs: Sequence[Any], inputs: Sequence[Any], mode: str) -> Sequence[Any]:
    q, r = outputs
    if mode == "complete" or r.shape[-1] != r.shape[-2]:
        raise GradientError('backward: qr has a gradient with mode="reduced" and at least as many rows as columns')
    g_q, g_r = zeros_for_none(gradients, outputs)
    m = r @ g_r.mT - g_q.mT @ q
    return ((solve(r, (g_q + q @ (np.tril(m) + np.tril(m, -1).mT)).mT)).mT,)


@host_function(_qr_vjp)
def qr(xp: Any, a: Any, mode: str) -> Any:
    """Return q with orthonormal columns, and r, upper triangular."""
    return tuple(xp.linalg.qr(a, mode))


def differences(x: Any) -> Any:
    """Return 1 / (x[j] - x[i]), with 0 on the diagonal."""
    n = x.shape[-1]
    diagonal = constant_like(x, np.eye(n))
    return (1 - diagonal) / (x[..., None, :] - x[..., :, None] + diagonal)


def _eigh_vjp(gradients: Sequence[Any], outputs: Sequence[Any], inputs: Sequence[Any], uplo: str) -> Sequence[Any]:
    values, v = outputs
    g_values, g_v = gradients
    inner: Any = 0.0
    if g_v is not None:
        inner = (v.mT @ g_v) * differences(values)
    if g_values is not None:
        inner = inner + g_values[..., None, :] * constant_like(v, np.eye(v.shape[-1]))
    g = v @ inner @ v.mT
    return (0.5 * (g + g.mT),)


@host_function(_eigh_vjp)
def eigh(xp: Any, a: Any, uplo: str) -> Any:
    """Return the eigenvalues, in ascending order, and the eigenvectors of symmetric matrices."""
    return tuple(xp.linalg.eigh(a, uplo))


def _svd_vjp(gradients: Sequence[Any], outputs: Sequence[Any], inputs: Sequence[Any], full: bool) -> Sequence[Any]:
    (u, s, vh), k = outputs, outputs[1].shape[-1]
    if full and (gradients[0] is not None or gradients[2] is not None):
        raise GradientError("backward: the vectors of svd have a gradient with full_matrices=False")
    u, vh = u[..., :k], vh[..., :k, :]
    g_s = gradients[1]
    middle: Any = 0.0 if g_s is None else g_s[..., None, :] * constant_like(u, np.eye(k))
    if gradients[0] is None and gradients[2] is None:
        return (u @ middle @ vh,)
    g_u, _, g_vh = zeros_for_none(gradients, outputs)
    g_v, v, row, column = g_vh.mT, vh.mT, s[..., None, :], s[..., :, None]
    f = differences(s * s)
    a, b = u.mT @ g_u, vh @ g_v
    middle = middle + (f * (a - a.mT)) * row + column * (f * (b - b.mT))
    g = u @ middle @ vh
    g = g + ((g_u - u @ a) / row) @ vh  # 0 if u is square
    return (g + (u / row) @ (g_v - v @ b).mT,)


@host_function(_svd_vjp)
def svd(xp: Any, a: Any, full: bool) -> Any:
    """Return u, the singular values in descending order, and the transposed v."""
    return tuple(xp.linalg.svd(a, full))


def _lu_vjp(gradients: Sequence[Any], outputs: Sequence[Any], inputs: Sequence[Any]) -> Sequence[Any]:
    (g, _), (lu, pivots) = gradients, outputs
    n = lu.shape[-1]
    if lu.shape[-2] != n:
        raise GradientError("backward: the LU factorization of a square matrix alone has a gradient")
    p, low, up = unpack_lu(lu, pivots)
    inner = np.tril(low.mT @ np.tril(g, -1), -1) + np.triu(np.triu(g) @ up.mT)
    return (p @ solve(low.mT, solve(up, inner.mT).mT),)


@host_function(_lu_vjp)
def lu_factor(xp: Any, a: Any) -> Any:
    """Return l and u in one matrix, by Gaussian elimination with partial pivoting; and the pivots, which count from 1."""
    lu = a.reshape(-1, *a.shape[-2:]).copy()
    batch, k = xp.arange(len(lu)), min(a.shape[-2:])
    pivots = xp.zeros((len(lu), k), np.int32)
    for j in range(k):
        best = j + abs(lu[:, j:, j]).argmax(1)
        pivots[:, j] = best + 1
        rows = lu[batch, best].copy()
        lu[batch, best] = lu[:, j]
        lu[:, j] = rows
        pivot = lu[:, j, j]
        lu[:, j + 1 :, j] /= xp.where(pivot == 0, 1, pivot)[:, None]
        lu[:, j + 1 :, j + 1 :] -= lu[:, j + 1 :, j, None] * lu[:, j, None, j + 1 :]
    return lu.reshape(a.shape), pivots.reshape(*a.shape[:-2], k)


def unpack_lu(lu: Any, pivots: Any) -> tuple[Any, Any, Any]:
    """Return the permutation matrix, l and u."""
    m, n = lu.shape[-2:]
    k = min(m, n)
    if not pivots.dtype.is_integer:
        raise DTypeError(f"got pivots of {pivots.dtype}, expected integers, as of mf.linalg.lu_factor")
    rows = pivots.numpy().reshape(-1, k)
    permutations = np.tile(np.arange(m), (len(rows), 1))
    for permutation, row in zip(permutations, rows, strict=True):
        for j, pivot in enumerate(row - 1):
            permutation[[j, pivot]] = permutation[[pivot, j]]
    p = np.swapaxes(np.eye(m)[permutations], 1, 2).reshape(*lu.shape[:-2], m, m)
    return constant_like(lu, p), np.tril(lu[..., :k], -1) + constant_like(lu, np.eye(m, k)), np.triu(lu[..., :k, :])


# Products of Householder reflections.


@host_function()
def geqrf(xp: Any, a: Any) -> Any:
    """Return r, with the vectors of the reflections below its diagonal, and their factors."""
    h, tau = xp.linalg.qr(a, "raw")
    return xp.swapaxes(h, -1, -2), tau


@host_function()
def reflect(xp: Any, h: Any, tau: Any, x: Any, transpose: bool) -> Any:
    """Return Q @ x, or Q.T @ x, of the product Q of the reflections."""
    x = x.copy()
    steps = range(tau.shape[-1]) if transpose else reversed(range(tau.shape[-1]))
    for j in steps:
        v = h[..., j:, j : j + 1].copy()
        v[..., 0, :] = 1
        x[..., j:, :] -= (tau[..., j, None, None] * v) @ (xp.swapaxes(v, -1, -2) @ x[..., j:, :])
    return x


# Functions of matrices.


def _matrix_exp_vjp(gradients: Sequence[Any], outputs: Sequence[Any], inputs: Sequence[Any]) -> Sequence[Any]:
    (g,), (a,) = gradients, inputs
    n = a.shape[-1]
    left, right = constant_like(a, np.eye(n, 2 * n)), constant_like(a, np.eye(n, 2 * n, n))
    block = left.mT @ a.mT @ left + right.mT @ a.mT @ right + left.mT @ g @ right  # [[a.T, g], [0, a.T]]
    return (matrix_exp(block)[..., :n, n:],)


@host_function(_matrix_exp_vjp)
def matrix_exp(xp: Any, a: Any) -> Any:
    """Return the exponential: a Taylor polynomial of a / 2 ** k, squared k times."""
    norm = float(abs(a).sum(-1).max(initial=0)) if a.size else 0.0
    squarings = max(0, math.ceil(math.log2(norm)) + 1) if 0 < norm < math.inf else 0
    x = a.astype(np.float64) / 2.0**squarings
    identity = xp.eye(a.shape[-1])
    y = identity / FACTORIALS[-1] + xp.zeros_like(x)
    for factorial in reversed(FACTORIALS[:-1]):
        y = y @ x + identity / factorial
    for _ in range(squarings):
        y = y @ y
    return y.astype(a.dtype)


@host_function()
def matrix_rank(xp: Any, a: Any, rtol: Any, atol: float) -> Any:
    """Count the singular values above max(atol, rtol times the largest)."""
    s = xp.linalg.svd(a, compute_uv=False)
    largest = s.max(-1, keepdims=True, initial=0)
    return (s > xp.maximum(atol, rtol * largest)).sum(-1, dtype=np.int64)
