"""Cases of minifuse/functions/products.py."""

CASES = """
matmul: x.matmul(y.T) = x @ y.T
mm: mf.mm(x, y.T) = x @ y.T
mv: x.mv(v) = x @ v
bmm: mf.bmm(t, t.mT) = t @ t.swapaxes(1, 2)
dot: v.dot(v) = v @ v
vdot: mf.vdot(v, v) = v @ v
addmm: s.addmm(x, y.T, beta=0.5, alpha=2) = 0.5 * s + 2 * x @ y.T
addmv: mf.addmv(s[0], x, v) = s[0] + x @ v
baddbmm: mf.baddbmm(s, t, t.mT, beta=0) = t @ t.swapaxes(1, 2)
addbmm: mf.addbmm(s, t, t.mT) = s + (t @ t.swapaxes(1, 2)).sum(0)
addr: mf.addr(x, s[0], v, alpha=3) = x + 3 * np.outer(s[0], v)
outer: mf.ger(v, s[0]) = np.outer(v, s[0])
inner: mf.inner(x, t) = np.inner(x, t)
kron: x.kron(s) = np.kron(x, s)
kron: mf.kron(v, x) = np.kron(v, x)
tensordot: mf.tensordot(t, x, dims=([1], [0])) = np.tensordot(t, x, ([1], [0]))
cross: mf.cross(x, y) = np.cross(x, y, axis=0)
chain_matmul: mf.chain_matmul(x, y.T, s, p) = x @ y.T @ s @ p
einsum: mf.einsum("ij,kj->ik", x, y) = np.einsum("ij,kj->ik", x, y)
einsum: mf.einsum("ij,ij->", x, y) = np.einsum("ij,ij->", x, y)
einsum: mf.einsum("ii", s) = np.einsum("ii", s)
einsum: mf.einsum("ii->i", s) = np.einsum("ii->i", s)
einsum: mf.einsum("bij,jk,i->bk", t, y.T, s[0]) = np.einsum("bij,jk,i->bk", t, y.T, s[0])
einsum: mf.einsum("...ij,...kj->...ik", t, y) = np.einsum("...ij,...kj->...ik", t, y)
einsum: mf.einsum("ij->ji", x) = np.einsum("ij->ji", x)
einsum: mf.einsum("i,j->ij", v, s[0]) = np.einsum("i,j->ij", v, s[0])
einsum: mf.einsum("ba,b...", x, y) = np.einsum("ba,b...", x, y)
einsum: mf.einsum("ij,ij->ij", x, y) = x * y
"""
