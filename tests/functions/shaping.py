"""Cases of minifuse/functions/shaping.py."""

CASES = """
movedim: mf.movedim(t, 0, 2) = np.moveaxis(t, 0, 2)
swapaxes: t.swapaxes(0, 2) = np.swapaxes(t, 0, 2)
ravel: x.T.ravel() = x.T.ravel()
fliplr: x.fliplr() = np.fliplr(x)
t: x.t() = x.T
narrow: mf.narrow(x, 1, -3, 2) = x[:, 1:3]
unflatten: x.unflatten(1, (2, -1)) = x.reshape(3, 2, 2)
sum_to_size: t.sum_to_size(1, 4) = t.sum((0, 1))[None]
diagonal: x.diagonal() = np.diagonal(x)
diagonal: x.diagonal(-2) = np.diagonal(x, -2)
diagonal: x.diagonal(7) = np.diagonal(x, 7)
diagonal: t.diagonal(1, 2, 0) = np.diagonal(t, 1, 2, 0)
diag: mf.diag(v, -1) = np.diag(v, -1)
diag: mf.diag(x, 1) = np.diag(x, 1)
diag_embed: mf.diag_embed(v, 2) = np.diag(v, 2)
diag_embed: mf.diag_embed(x, 0, 0, 2) = np.moveaxis(np.stack([np.diag(r) for r in x]), 0, 1)
diagflat: mf.diagflat(x[:, :2]) = np.diagflat(x[:, :2])
trace: s.trace() = np.trace(s)
tril: x.tril(-1) = np.tril(x, -1)
triu: mf.triu(t, diagonal=1) = np.triu(t, 1)
vander: mf.vander(v, N=3) = np.vander(v, 3)
vander: mf.vander(v, increasing=True) = np.vander(v, increasing=True)
diff: x.diff() = np.diff(x)
diff: mf.diff(t, 2, dim=1) = np.diff(t, 2, 1)
gradient: mf.gradient(x, spacing=0.5) = np.gradient(x, 0.5)
gradient: mf.gradient(x, dim=1, edge_order=2)[0] = np.gradient(x, axis=1, edge_order=2)
"""
