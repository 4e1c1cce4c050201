"""Cases of minifuse/functions/linalg.py and matrices.py."""

CASES = """
solve: mf.linalg.solve(s, x) = @np.linalg.solve(s, x)
solve: mf.linalg.solve(s, v[:3]) = @np.linalg.solve(s, v[:3])
solve: mf.linalg.solve(s, t) = @np.linalg.solve(s, t)
solve: mf.linalg.solve(s, x.mT, left=False) = @np.linalg.solve(s.T, x).T
solve_triangular: mf.linalg.solve_triangular(s, x, upper=False) = @np.linalg.solve(np.tril(s), x)
inverse: mf.inverse(s) = @np.linalg.inv(s)
inv: mf.linalg.inv(t @ t.mT) = @np.linalg.inv(t @ t.swapaxes(1, 2))
det: s.det() = @np.linalg.det(s)
slogdet: mf.slogdet(s) = @tuple(np.linalg.slogdet(s))
logdet: s.logdet() = @np.log(np.linalg.det(s))
cholesky: mf.cholesky(s + s.mT) = @np.linalg.cholesky(s + s.T)
cholesky_solve: mf.cholesky_solve(x, s) = @np.linalg.solve(np.tril(s) @ np.tril(s).T, x)
cholesky_inverse: s.cholesky_inverse() = @np.linalg.inv(np.tril(s) @ np.tril(s).T)
qr: x.mT.qr() = @tuple(np.linalg.qr(x.T))
eigh: mf.linalg.eigh(s + s.mT) = @tuple(np.linalg.eigh(s + s.T))
eigvalsh: mf.linalg.eigvalsh(s + s.mT) = @np.linalg.eigvalsh(s + s.T)
svd: mf.linalg.svd(x, full_matrices=False) = @tuple(np.linalg.svd(x, full_matrices=False))
svd: mf.linalg.svd(x.mT, full_matrices=False) = @tuple(np.linalg.svd(x.T, full_matrices=False))
svdvals: mf.linalg.svdvals(x) = @np.linalg.svd(x, compute_uv=False)
pinverse: x.pinverse() = @np.linalg.pinv(x)
pinv: mf.linalg.pinv(x.mT) = @np.linalg.pinv(x.T)
matrix_power: s.matrix_power(5) = np.linalg.matrix_power(s, 5)
matrix_power: mf.matrix_power(s, -2) = @np.linalg.matrix_power(s, -2)
matrix_exp: mf.matrix_exp(s / 3) = @scipy_linalg.expm(s / 3)
matrix_rank: mf.linalg.matrix_rank(x.mT @ x) = @~np.linalg.matrix_rank(x.T @ x).astype(np.int64)
lstsq: mf.linalg.lstsq(x.mT, v.reshape(4, 1))[0] = @np.linalg.lstsq(x.T, v.reshape(4, 1))[0]
lu: mf.linalg.lu(s + y @ x.mT)[1:] = @scipy_linalg.lu(s + y @ x.T)[1:]
lu_solve: mf.lu_solve(x, *mf.lu(s)) = @np.linalg.solve(s, x)
lu_solve: mf.linalg.lu_solve(*mf.linalg.lu_factor(s), x.mT, left=False) = @np.linalg.solve(s.T, x).T
triangular_solve: x.triangular_solve(s, transpose=True)[0] = @np.linalg.solve(np.triu(s).T, x)
geqrf: mf.orgqr(*mf.geqrf(x.mT)) = @~np.linalg.qr(x.T)[0]
ormqr: mf.ormqr(*x.mT.geqrf(), x.mT, transpose=True)[:3] = @~np.linalg.qr(x.T)[1]
norm: x.norm(dim=1) = np.linalg.norm(x, axis=1)
norm: mf.norm(x, 3, keepdim=True) = (abs(x) ** 3).sum(keepdims=True) ** (1 / 3)
norm: mf.norm(x, p=float("inf"), dim=0) = ~abs(x).max(0)
norm: mf.norm(x, "nuc") = @np.linalg.norm(x, "nuc")
norm: mf.linalg.norm(x, 1) = np.linalg.norm(x, 1)
matrix_norm: mf.linalg.matrix_norm(t, -float("inf")) = np.linalg.norm(t, -np.inf, (1, 2))
matrix_norm: mf.linalg.matrix_norm(x, 2) = @np.linalg.norm(x, 2)
cond: mf.linalg.cond(s) = @np.linalg.cond(s)
cond: mf.linalg.cond(s, 1) = @np.linalg.cond(s, 1)
cross: mf.cross(x, y) = np.cross(x, y, axis=0)
cross: mf.linalg.cross(s, s * v[:3]) = np.cross(s, s * v[:3])
vecdot: mf.linalg.vecdot(x, y) = (x * y).sum(-1)
multi_dot: mf.linalg.multi_dot([v, x.mT, s]) = v @ x.T @ s
chain_matmul: mf.chain_matmul(x.mT, y, v.reshape(4, 1)) = x.T @ y @ v.reshape(4, 1)
dist: x.dist(y, 1) = abs(x - y).sum()
tensorinv: mf.linalg.tensorinv(s.reshape(3, 3, 1), ind=1) = @np.linalg.inv(s).reshape(3, 1, 3)
tensorsolve: mf.linalg.tensorsolve(s.reshape(3, 3, 1), v[:3]) = @np.linalg.solve(s, v[:3]).reshape(3, 1)
svd_lowrank: mf.svd_lowrank(x, q=2)[1] = @np.linalg.svd(x, compute_uv=False)[:2]
"""
