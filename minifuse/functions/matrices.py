"""Linear algebra under the names that PyTorch has outside of torch.linalg, with the parameters that they have there."""

import math
from collections import namedtuple
from typing import Any

import numpy as np

from ..core.errors import ShapeError
from ..core.operators import where
from . import decompositions as host
from . import linalg
from .host import constant_like
from .table import function

SVD = namedtuple("SVD", "U S V")  # as PyTorch's, which are tuples with names
TriangularSolve = namedtuple("TriangularSolve", "solution cloned_coefficient")
Geqrf = namedtuple("Geqrf", "a tau")

for _name in ("det", "slogdet", "matrix_exp", "cholesky"):
    function(_name)(getattr(linalg, _name))
function("matrix_power")(linalg.matrix_power)
function("inverse")(linalg.inv)
function("vecdot", method=False)(linalg.vecdot)


@function("logdet")
def logdet(x: Any) -> Any:
    """Return the logarithm of the determinant; NaN if it is negative."""
    sign, logarithm = linalg.slogdet(x)
    return where(sign < 0, math.nan, logarithm)


@function("pinverse")
def pinverse(x: Any, rcond: float = 1e-15) -> Any:
    """Return the pseudo-inverse. Singular values below rcond times the largest count as 0."""
    return linalg.pinv(x, rtol=rcond)


@function("cholesky_inverse")
def cholesky_inverse(x: Any, upper: bool = False) -> Any:
    """Return the inverse of the matrix whose Cholesky factor is x."""
    return cholesky_solve(constant_like(x, np.eye(x.shape[-1])), x, upper)


@function("cholesky_solve")
def cholesky_solve(x: Any, factor: Any, upper: bool = False) -> Any:
    """Return the solution of A @ y = x, given the Cholesky factor of A."""
    low = np.triu(factor).mT if upper else np.tril(factor)
    return linalg.solve(low.mT, linalg.solve(low, x))


@function("triangular_solve")
def triangular_solve(x: Any, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False) -> Any:
    """Return the solution of A @ y = x of a triangle of A, and a copy of A."""
    a, is_upper = (A.mT, not upper) if transpose else (A, upper)
    return TriangularSolve(linalg.solve_triangular(a, x, upper=is_upper, unitriangular=unitriangular), A.clone())


@function("qr")
def qr(x: Any, some: bool = True) -> Any:
    """Return Q and R; with some=False, Q is square."""
    return linalg.qr(x, "reduced" if some else "complete")


@function("svd")
def svd(x: Any, some: bool = True, compute_uv: bool = True) -> Any:
    """Return U, the singular values S, and V, with x = U @ diag(S) @ V.mT; with some=False, U and V are square."""
    u, s, vh = linalg.svd(x, not some)
    if compute_uv:
        return SVD(u, s, vh.mT)
    m, n = x.shape[-2:]
    zeros = [constant_like(s, np.zeros((*x.shape[:-2], k, k))) for k in (m, n)]
    return SVD(zeros[0], s, zeros[1])


@function("lu")
def lu(x: Any, pivot: bool = True, get_infos: bool = False) -> Any:
    """Return L and U in one matrix, and the pivots; with get_infos, zeros, too."""
    factors = linalg.lu_factor(x, pivot)
    return (*factors, factors.pivots[..., 0] * 0) if get_infos else tuple(factors)


@function("lu_solve")
def lu_solve(x: Any, LU: Any, pivots: Any) -> Any:
    """Return the solution of A @ y = x, given the LU factorization of A."""
    return linalg.lu_solve(LU, pivots, x)


@function("lu_unpack", method=False)
def lu_unpack(x: Any, pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    """Return the permutation matrix P, L and U of an LU factorization, with P @ L @ U = A."""
    return linalg.LU(*host.unpack_lu(x, pivots))


@function("geqrf")
def geqrf(x: Any) -> Any:
    """Return R, with the vectors of Householder reflections below its diagonal, and the factors of these."""
    return Geqrf(*host.geqrf(linalg.as_matrix("geqrf", x)))


@function("orgqr")
def orgqr(x: Any, tau: Any) -> Any:
    """Return the first columns of the product of Householder reflections, as geqrf returns them."""
    return linalg.householder_product(x, tau)


@function("ormqr")
def ormqr(x: Any, tau: Any, y: Any, left: bool = True, transpose: bool = False) -> Any:
    """Return Q @ y of the product Q of Householder reflections; y @ Q unless left, and with Q.mT if transpose."""
    if not left:
        return ormqr(x, tau, y.mT, True, not transpose).mT
    return host.reflect(linalg.as_matrix("ormqr", x), tau, y, transpose=bool(transpose))


@function("norm")
def norm(x: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False) -> Any:
    """Return the norm along dims, or of all elements. The order p is a number, "fro" (2), or "nuc"."""
    if p == "nuc":
        return linalg.matrix_norm(x, p, (-2, -1) if dim is None else dim, keepdim)
    return linalg.vector_norm(x, 2 if p in ("fro", None) else p, dim, keepdim)


@function("dist")
def dist(x: Any, y: Any, p: float = 2) -> Any:
    """Return the norm of x - y."""
    return linalg.vector_norm(x - y, p)


@function("cross")
def cross(x: Any, y: Any, dim: int | None = None) -> Any:
    """Return the cross product of vectors of 3 elements along a dim; by default, along the first of size 3."""
    if dim is None and 3 not in x.shape:
        raise ShapeError(f"cross: got shape {x.shape}, expected a dim of size 3")
    return linalg.cross(x, y, x.shape.index(3) if dim is None else dim)


@function("chain_matmul", method=False)
def chain_matmul(*matrices: Any) -> Any:
    """Return the product of matrices, in the order that needs the fewest multiplications."""
    return linalg.multi_dot(matrices)


@function("svd_lowrank", method=False)
def svd_lowrank(x: Any, q: int = 6, niter: int = 2, M: Any = None) -> Any:
    """Return the q largest singular values, and their vectors, of x or of x - M. They are exact, not randomized."""
    u, s, v = svd(x if M is None else x - M)
    return SVD(u[..., :q], s[..., :q], v[..., :q])


@function("pca_lowrank", method=False)
def pca_lowrank(x: Any, q: int | None = None, center: bool = True, niter: int = 2) -> Any:
    """Return the svd_lowrank of x, whose columns are centered first. q is by default 6, or the smaller size of x."""
    return svd_lowrank(x - x.mean(-2, keepdim=True) if center else x, min(6, *x.shape[-2:]) if q is None else q)
