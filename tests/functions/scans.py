"""Cases of minifuse/functions/scans.py."""

CASES = """
cumsum: mf.cumsum(x, dim=1) = x.cumsum(1)
cumsum: m.cumsum(0) = m.cumsum(0)
cumsum: np.cumsum(t) = t.cumsum()
cumsum: x.T[::-1, 1:].cumsum(1) = x.T[::-1, 1:].cumsum(1)
cumsum: a.cumsum(0, dtype=mf.float64) = a.cumsum(0, dtype=float)
cumsum: mf.cumsum(x[0, 0], 0) = x[0, 0]
cumsum: np.add.accumulate(t, 1) = np.add.accumulate(t, 1)
cumprod: mf.cumprod(t, -1) = t.cumprod(-1)
cumprod: mf.cumprod(x * m.to(mf.float64), 1) = (x * m).cumprod(1)
cumprod: np.cumprod(b, axis=0) = b.cumprod(0)
cummax: mf.cummax(x, 0)[0] = np.maximum.accumulate(x, 0)
cummax: mf.cummax(a, 1).values = np.maximum.accumulate(a, 1)
cummax: mf.cummax(m, 1).values = np.maximum.accumulate(m, 1)
cummax: mf.cummax(v, 0).indices = np.array([v[:k].argmax() for k in range(1, 5)])
cummin: t.cummin(2).values = np.minimum.accumulate(t, 2)
cummin: np.minimum.accumulate(t, 2) = np.minimum.accumulate(t, 2)
cummin: np.maximum.accumulate(m) = np.maximum.accumulate(m)
logcumsumexp: x.logcumsumexp(1) = np.logaddexp.accumulate(x, 1)
logcumsumexp: np.logaddexp.accumulate(x, 0) = np.logaddexp.accumulate(x, 0)
cumulative_sum: mf.cumulative_sum(v, include_initial=True) = np.r_[0, v.cumsum()]
cumulative_sum: mf.cumulative_sum(t, axis=1, include_initial=True) = np.insert(t.cumsum(1), 0, 0, axis=1)
cumulative_prod: mf.cumulative_prod(t, axis=1) = t.cumprod(1)
cumulative_trapezoid: mf.cumulative_trapezoid(x, dx=0.5) = ((x[:, 1:] + x[:, :-1]) / 4).cumsum(1)
cumulative_trapezoid: mf.cumulative_trapezoid(t, v, dim=2) = (np.diff(v) * (t[..., 1:] + t[..., :-1]) / 2).cumsum(2)
cumulative_trapezoid: mf.cumulative_trapezoid(t, v[:3], dim=1)[0, 0] = np.diff(v[:3])[0] * (t[0, 0] + t[0, 1]) / 2
cumulative_trapezoid: mf.cumulative_trapezoid(x, y, dim=0) = (np.diff(y, axis=0) * (x[1:] + x[:-1]) / 2).cumsum(0)
diff: x.diff(dim=0, prepend=y[:1], append=y) = np.diff(x, axis=0, prepend=y[:1], append=y)
"""
