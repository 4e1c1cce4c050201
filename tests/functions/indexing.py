"""Cases of minifuse/functions/indexing.py, and of indexing by arrays."""

CASES = """
getitem: v[i] = v[i]
getitem: x[:, i] = x[:, i]
getitem: t[1, :, i] = t[1, :, i]
getitem: t[[0, 1], [2, -1]] = t[[0, 1], [2, -1]]
getitem: x[m] = !x[m]
getitem: x[[True, False, True], 1:] = x[[True, False, True], 1:]
gather: x.gather(1, mf.tensor([[0, 1], [3, 3]])) = x[[[0, 0], [1, 1]], [[0, 1], [3, 3]]]
take: x.take(i) = x.ravel()[i]
take_along_dim: x.take_along_dim(a % 4, dim=1) = np.take_along_axis(x, a % 4, 1)
masked_select: x.masked_select(m) = !x[m]
select: t.select(1, 2) = t[:, 2]
as_strided: x.as_strided((2, 2), (1, 4), 3) = x.ravel()[[[3, 7], [4, 8]]]
scatter: x.scatter(1, i.reshape(3, 1), y) = np.where(np.arange(4) == i[:, None], y[:, :1], x)
scatter_add: v.scatter_add(0, i // 2, v[1:]) = v + np.array([v[2], v[1] + v[3], 0, 0])
scatter_reduce: v.scatter_reduce(0, i // 2, v[1:], "prod") = v * np.array([v[2], v[1] * v[3], 1, 1])
scatter_reduce: v.scatter_reduce(0, i // 2, v[1:], "amax", include_self=False) = np.r_[v[2], max(v[1], v[3]), v[2:]]
scatter_reduce: v.scatter_reduce(0, i // 2, v[1:], "mean") = np.r_[(v[0] + v[2]) / 2, (v[1] + v[1] + v[3]) / 3, v[2:]]
index_add: x.index_add(1, i, y[:, :3], alpha=2) = x + 2 * y[:, [1, 3, 0, 2]] * [1, 0, 1, 1]
index_copy: x.index_copy(1, i, y[:, :3]) = np.stack([y[:, 1], x[:, 1], y[:, 0], y[:, 2]], 1)
index_fill: x.index_fill(1, i, 2.0) = np.stack([x[:, 1] * 0 + 2, x[:, 1], x[:, 0] * 0 + 2, x[:, 0] * 0 + 2], 1)
index_reduce: v.index_reduce(0, i[:2], v[:2], "amin") = np.r_[min(v[0], v[1]), v[1], min(v[2], v[0]), v[3]]
index_put: v.index_put((i // 2,), v[1:]) = np.r_[v[2], v[3], v[2:]]
index_put: v.index_put((i // 2,), v[1:], accumulate=True) = np.r_[v[0] + v[2], v[1] + v[1] + v[3], v[2:]]
put: x.put(i, v[1:]) = np.r_[v[2], x[0, 1], v[1], v[3], x.ravel()[4:]].reshape(3, 4)
masked_fill: x.masked_fill(m, 3.0) = np.where(m, 3.0, x)
masked_scatter: x.masked_scatter(m, y) = np.where(m, y.ravel()[np.cumsum(m).reshape(3, 4) - 1], x)
select_scatter: x.select_scatter(v, 0, 1) = np.stack([x[0], v, x[2]])
slice_scatter: x.slice_scatter(y[:, :2], 1, 0, 4, 2) = np.stack([y[:, 0], x[:, 1], y[:, 1], x[:, 3]], 1)
diagonal_scatter: s.diagonal_scatter(v[:2], 1) = s * (1 - np.eye(3, k=1)) + np.diag(v[:2], 1)
as_strided_scatter: v.as_strided_scatter(x[:1, :2], (1, 2), (1, 2), 1) = np.r_[v[0], x[0, 0], v[2], x[0, 1]]
nonzero: mf.nonzero(m) = !np.argwhere(m)
nonzero: mf.where(m)[1] = !np.nonzero(m)[1]
argwhere: m.argwhere() = !np.argwhere(m)
nonzero_static: m.nonzero_static(2) = np.argwhere(m)[:2]
where: x.where(m, y) = np.where(m, x, y)
isin: mf.isin(a, b) = np.isin(a, b)
unravel_index: mf.unravel_index(i, (2, 3)) = np.unravel_index(i, (2, 3))
segment_reduce: mf.segment_reduce(v, "sum", i // 1 - i + 1) = v[:3]
segment_reduce: mf.segment_reduce(v, "mean", mf.tensor([3, 1])) = np.r_[v[:3].mean(), v[3]]
"""
