"""`mf.linalg`: linear algebra, with the names and the parameters of torch.linalg.

Solutions, factorizations and determinants are computed on the host by LAPACK, so a fused function cannot contain them (see
`host`). Norms and products are compositions of operators and reductions, which fuse.
"""

import math
from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import DTypeError, LinAlgError, ShapeError
from ..core.indexing import normalize_dim, normalize_dims
from ..core.operators import abs, eq, ne, where  # noqa: A004
from ..ir.array_functions import matmul
from ..ir.numpy_api.table import call_once, promote_to_float
from . import decompositions as host
from .host import constant_like
from .table import renamed, require_array

__all__ = [
    "LinAlgError", "cholesky", "cond", "cross", "det", "eigh", "eigvalsh", "householder_product", "inv", "lstsq", "lu",
    "lu_factor", "lu_solve", "matmul", "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank", "multi_dot", "norm",
    "pinv", "qr", "slogdet", "solve", "solve_triangular", "svd", "svdvals", "tensorinv", "tensorsolve", "vecdot",
    "vector_norm",
]  # fmt: skip

SLogDet = namedtuple("SLogDet", "sign logabsdet")  # as PyTorch's, which are tuples with names
QR = namedtuple("QR", "Q R")
Eigh = namedtuple("Eigh", "eigenvalues eigenvectors")
SVD = namedtuple("SVD", "U S Vh")
LU = namedtuple("LU", "P L U")
LUFactor = namedtuple("LUFactor", "LU pivots")
LstSq = namedtuple("LstSq", "solution residuals rank singular_values")

RECIPES = {  # name -> what to write instead
    **dict.fromkeys(
        ("eig", "eigvals"),
        "there is no complex dtype; for symmetric matrices write mf.linalg.eigh(x), else np.linalg.eig(x.numpy())",
    ),
    **{f"{name}_ex": f"write mf.linalg.{name}, which raises LinAlgError" for name in ("inv", "cholesky", "solve")},
    "lu_factor_ex": "write mf.linalg.lu_factor",
    **dict.fromkeys(("ldl_factor", "ldl_solve"), "write mf.linalg.lu_factor and mf.linalg.lu_solve"),
}


def __getattr__(name: str) -> Any:
    """Raise AttributeError with what to write instead."""
    advice = f"; {RECIPES[name]}" if name in RECIPES else ""
    raise AttributeError(f"module 'mf.linalg' has no attribute {name!r}{advice}", name=name)


def as_matrix(name: str, x: Any, is_square: bool = False) -> Any:
    """Return x with a float dtype. Raise ShapeError unless it has matrices in its last dims."""
    require_array(name, x)
    if x.ndim < 2:
        raise ShapeError(f"{name}: got shape {x.shape}, expected at least 2 dims; write x.reshape(-1, 1) for a column")
    if is_square and x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{name}: got shape {x.shape}, expected square matrices")
    return x if x.dtype.is_float else promote_to_float(x)[0]


# Norms.


def vector_norm(x: Any, ord: float = 2, dim: Any = None, keepdim: bool = False) -> Any:  # noqa: A002
    """Return the norm of vectors along dims, or of all elements: (sum of |x| ** ord) ** (1 / ord)."""
    require_array("vector_norm", x)
    return call_once(_vector_norm, x, parameters=(float(ord), normalize_dims(dim, x.ndim), bool(keepdim)))


def _vector_norm(x: Any, order: float, dims: tuple[int, ...], keepdim: bool) -> Any:
    (x,) = promote_to_float(x)
    if math.isinf(order):
        return (abs(x).max if order > 0 else abs(x).min)(dims, keepdim)
    if order == 0:
        return ne(x, 0).to(x.dtype).sum(dims, keepdim)
    if order == 1:
        return abs(x).sum(dims, keepdim)
    total = (x * x if order == 2 else abs(x) ** order).sum(dims, keepdim)
    is_zero = eq(total, 0)  # where the gradient is 0
    safe = where(is_zero, 1, total)
    return where(is_zero, 0, safe.sqrt() if order == 2 else safe ** (1 / order))


def matrix_norm(A: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False) -> Any:  # noqa: A002
    """Return the norm of matrices: "fro", "nuc", 1, -1, 2, -2, inf or -inf."""
    A = as_matrix("matrix_norm", A)
    rows, columns = (normalize_dim(d, A.ndim) for d in dim)
    if ord == "fro":
        return vector_norm(A, 2, (rows, columns), keepdim)
    if ord in ("nuc", 2, -2):
        others = [d for d in range(A.ndim) if d not in (rows, columns)]
        s = svdvals(A.permute(*others, rows, columns))
        y = s.sum(-1) if ord == "nuc" else s.max(-1) if ord == 2 else s.min(-1)
        for d in sorted((rows, columns)) if keepdim else ():
            y = y.unsqueeze(d)
        return y
    if ord not in (1, -1, math.inf, -math.inf):
        raise ShapeError(f'matrix_norm: got ord={ord!r}, expected "fro", "nuc", 1, -1, 2, -2, inf or -inf')
    summed, kept = (rows, columns) if math.isfinite(ord) else (columns, rows)
    sums = abs(A).sum(summed, keepdim=True)
    y = (sums.max if ord > 0 else sums.min)(kept, keepdim=True)
    return y if keepdim else y.squeeze((rows, columns))


def norm(x: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, **others: Any) -> Any:  # noqa: A002
    """Return a norm of vectors or matrices. By default, the 2-norm of all elements.

    With one dim, or an x of one dim, it is `vector_norm`; with two, `matrix_norm`.
    """
    if others:
        return norm(x, **{"ord": ord, "dim": dim, "keepdim": keepdim, **renamed(others)})
    require_array("norm", x)
    if ord is None:
        return vector_norm(x, 2, dim, keepdim)
    dims = normalize_dims(dim, x.ndim)
    if len(dims) == 1:
        return vector_norm(x, ord, dims, keepdim)
    if len(dims) == 2:
        return matrix_norm(x, ord, dims if dim is None else dim, keepdim)
    raise ShapeError(f"norm: got ord={ord!r} for {len(dims)} dims of shape {x.shape}; a vector has 1 dim, a matrix 2")


def cond(A: Any, p: Any = None) -> Any:
    """Return the condition number: the norm of A times the norm of its inverse."""
    if p in (None, 2, -2):
        s = svdvals(A)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    return matrix_norm(A, p) * matrix_norm(inv(A), p)


def matrix_rank(
    A: Any,
    atol: float = 0.0,
    rtol: float | None = None,
    hermitian: bool = False,
    tol: float | None = None,
) -> Any:
    """Count the singular values above max(atol, rtol times the largest), as an int64 tensor."""
    A = as_matrix("matrix_rank", A)
    if rtol is None:
        rtol = 0.0 if atol or tol is not None else default_rtol(A)
    return host.matrix_rank(A, rtol=rtol, atol=tol or atol)


def default_rtol(x: Any) -> float:
    """Return the size of the largest dim times the machine epsilon."""
    size: int = max(x.shape[-2:])
    return size * float(np.finfo(x.dtype.numpy).eps)


# Inverses and solutions.


def inv(A: Any) -> Any:
    """Return the inverse. Raise LinAlgError if a matrix is singular."""
    return host.inv(as_matrix("inv", A, True))


def pinv(A: Any, atol: float | None = None, rtol: float | None = None, hermitian: bool = False) -> Any:
    """Return the pseudo-inverse. Singular values below rtol times the largest count as 0."""
    A = as_matrix("pinv", A)
    return host.pinv(A, rtol=float(default_rtol(A) if rtol is None else rtol))


def solve(A: Any, B: Any, left: bool = True) -> Any:
    """Return X with A @ X = B; with left=False, with X @ A = B. B is a vector, or has matrices in its last dims."""
    A = as_matrix("solve", A, True)
    require_array("solve", B)
    A, B = promote_to_float(A, B)
    if not left:
        return solve(A.mT, B.mT).mT
    is_vector = B.ndim == 1 or (B.ndim == A.ndim - 1 and B.shape == A.shape[:-1])
    if B.shape[-1 if is_vector else -2] != A.shape[-1]:
        raise ShapeError(f"solve: got A of shape {A.shape} and B of shape {B.shape}, expected as many rows of both")
    return host.solve(A, B[..., None])[..., 0] if is_vector else host.solve(A, B)


def solve_triangular(A: Any, B: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    """Return X with A @ X = B, of a triangle of A; with unitriangular, its diagonal counts as ones."""
    A = as_matrix("solve_triangular", A, True)
    if unitriangular:
        identity = constant_like(A, np.eye(A.shape[-1]))
        return solve(identity + (np.triu(A, 1) if upper else np.tril(A, -1)), B, left)
    return solve(np.triu(A) if upper else np.tril(A), B, left)


def lstsq(A: Any, B: Any, rcond: float | None = None, driver: str | None = None) -> Any:
    """Return the X for which the norm of A @ X - B is smallest, the residuals, the rank, and no singular values."""
    A, B = as_matrix("lstsq", A), as_matrix("lstsq", B)
    rank = matrix_rank(A, rtol=rcond)
    solution = pinv(A, rtol=rcond) @ B
    is_exact = A.shape[-2] <= A.shape[-1] or bool((rank < A.shape[-1]).any())
    residuals = constant_like(A, np.zeros(0)) if is_exact else ((A @ solution - B) ** 2).sum(-2)
    return LstSq(solution, residuals, rank, constant_like(A, np.zeros(0)))


def tensorinv(A: Any, ind: int = 2) -> Any:
    """Return the inverse of A as a linear map from its dims from `ind` on to its first `ind` dims."""
    rows, columns = A.shape[:ind], A.shape[ind:]
    if math.prod(rows) != math.prod(columns):
        raise ShapeError(
            f"tensorinv: got shape {A.shape} and ind={ind}, expected as many elements before dim {ind} as after"
        )
    return inv(A.reshape(math.prod(rows), -1)).reshape(*columns, *rows)


def tensorsolve(A: Any, B: Any, dims: Any = None) -> Any:
    """Return X with tensordot(A, X, X.ndim) = B. The `dims` of A are moved to its end first."""
    if dims is not None:
        moved = normalize_dims(dims, A.ndim)
        A = A.permute(*[d for d in range(A.ndim) if d not in moved], *moved)
    shape = A.shape[B.ndim :]
    return solve(A.reshape(B.size, -1), B.reshape(-1)).reshape(shape)


# Determinants.


def det(A: Any) -> Any:
    """Return the determinant."""
    return host.det(as_matrix("det", A, True))


def slogdet(A: Any) -> Any:
    """Return the sign of the determinant, and the logarithm of its absolute value."""
    return SLogDet(*host.slogdet(as_matrix("slogdet", A, True)))


# Factorizations.


def cholesky(A: Any, upper: bool = False) -> Any:
    """Return the lower triangular L with L @ L.mT = A. Raise LinAlgError unless A is positive definite."""
    y = host.cholesky(as_matrix("cholesky", A, True))
    return y.mT if upper else y


def qr(A: Any, mode: str = "reduced") -> Any:
    """Return Q with orthonormal columns and R, upper triangular, with Q @ R = A; by mode, "complete" or R alone ("r")."""
    if mode not in ("reduced", "complete", "r"):
        raise DTypeError(f'qr: got mode={mode!r}, expected "reduced", "complete" or "r"')
    q, r = host.qr(as_matrix("qr", A), mode="reduced" if mode == "r" else mode)
    return QR(constant_like(r, np.zeros(0)) if mode == "r" else q, r)


def eigh(A: Any, UPLO: str = "L") -> Any:
    """Return the eigenvalues in ascending order, and the eigenvectors as columns, of symmetric matrices."""
    return Eigh(*host.eigh(as_matrix("eigh", A, True), uplo=UPLO))


def eigvalsh(A: Any, UPLO: str = "L") -> Any:
    """Return the eigenvalues of symmetric matrices in ascending order."""
    return eigh(A, UPLO)[0]


def svd(A: Any, full_matrices: bool = True) -> Any:
    """Return U, the singular values S in descending order, and Vh, with A = U @ diag(S) @ Vh."""
    return SVD(*host.svd(as_matrix("svd", A), full=bool(full_matrices)))


def svdvals(A: Any) -> Any:
    """Return the singular values in descending order."""
    return svd(A, False)[1]


def lu_factor(A: Any, pivot: bool = True) -> Any:
    """Return L and U in one matrix, and the pivots: the rows, which count from 1, that were swapped in each step."""
    if not pivot:
        raise DTypeError("lu_factor: got pivot=False, but elimination without pivots is not accurate; leave it out")
    return LUFactor(*host.lu_factor(as_matrix("lu_factor", A)))


def lu(A: Any, pivot: bool = True) -> Any:
    """Return a permutation matrix P, L and U with P @ L @ U = A."""
    return LU(*host.unpack_lu(*lu_factor(A, pivot)))


def lu_solve(LU: Any, pivots: Any, B: Any, left: bool = True, adjoint: bool = False) -> Any:
    """Return X with A @ X = B, given the LU factorization of A."""
    p, low, up = host.unpack_lu(as_matrix("lu_solve", LU, True), pivots)
    if not left:
        return lu_solve(LU, pivots, B.mT, True, not adjoint).mT
    if adjoint:
        return p @ solve(low.mT, solve(up.mT, B))
    return solve(up, solve(low, p.mT @ B))


def householder_product(A: Any, tau: Any) -> Any:
    """Return the first columns of the product of Householder reflections, as geqrf returns them: Q of the QR."""
    columns = constant_like(A, np.broadcast_to(np.eye(*A.shape[-2:]), A.shape))
    return host.reflect(as_matrix("householder_product", A), tau, columns, transpose=False)


# Functions and products of matrices.


def matrix_exp(A: Any) -> Any:
    """Return the exponential of square matrices."""
    return host.matrix_exp(as_matrix("matrix_exp", A, True))


def matrix_power(A: Any, n: int) -> Any:
    """Return A @ A @ ... of n factors, by squaring; the power of the inverse if n is negative."""
    require_array("matrix_power", A)
    if n < 0:
        return matrix_power(inv(A), -n)
    if n == 0:
        return A * 0 + constant_like(A, np.eye(A.shape[-1]))
    return call_once(_matrix_power, A, parameters=(int(n),))


def _matrix_power(x: Any, n: int) -> Any:
    if n == 1:
        return x.clone()
    half = _matrix_power(x, n // 2) if n > 3 else x
    return half @ half @ x if n % 2 else half @ half


def multi_dot(tensors: Sequence[Any]) -> Any:
    """Return the product of matrices, in the order that needs the fewest multiplications. The ends may be vectors."""
    shapes = [x.shape for x in tensors]
    sizes = [
        1 if len(shapes[0]) == 1 else shapes[0][0],
        *[s[0] for s in shapes[1:]],
        shapes[-1][1] if len(shapes[-1]) == 2 else 1,
    ]
    cost: dict[tuple[int, int], tuple[int, int]] = {(i, i): (0, i) for i in range(len(tensors))}
    for length in range(1, len(tensors)):
        for i in range(len(tensors) - length):
            j = i + length
            splits = [(cost[i, k][0] + cost[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)]
            cost[i, j] = min(splits)

    def product(i: int, j: int) -> Any:
        k = cost[i, j][1]
        return tensors[i] if i == j else product(i, k) @ product(k + 1, j)

    return product(0, len(tensors) - 1)


def vecdot(x: Any, y: Any, dim: int = -1) -> Any:
    """Return the sum of products along a dim."""
    return call_once(_vecdot, x, y, parameters=(int(dim),))


def _vecdot(x: Any, y: Any, dim: int) -> Any:
    return (x * y).sum(dim)


def cross(x: Any, y: Any, dim: int = -1) -> Any:
    """Return the cross product of vectors of 3 elements along a dim."""
    d = max(x.ndim, y.ndim) + dim if dim < 0 else dim
    if x.shape[d - max(x.ndim, y.ndim)] != 3 or y.shape[d - max(x.ndim, y.ndim)] != 3:
        raise ShapeError(f"cross: got shapes {x.shape} and {y.shape}, expected 3 elements along dim {dim}")
    return call_once(_cross, x, y, parameters=(d - max(x.ndim, y.ndim),))


def _cross(x: Any, y: Any, dim: int) -> Any:
    def rolled(z: Any, shift: int) -> Any:
        return z.index_select(dim, (z.positions(3) + shift) % 3)

    return rolled(x, 1) * rolled(y, 2) - rolled(x, 2) * rolled(y, 1)
