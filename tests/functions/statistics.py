"""Cases of minifuse/functions/statistics.py."""

CASES = """
amax: x.amax((0, 1)) = x.max()
amin: x.amin(1, keepdim=True) = x.min(1, keepdims=True)
aminmax: x.aminmax(dim=0) = (x.min(0), x.max(0))
count_nonzero: a.count_nonzero(1) = np.count_nonzero(a, 1)
nansum: mf.where(m, x, float("nan")).nansum(1) = np.nansum(np.where(m, x, np.nan), 1)
nanmean: mf.where(m, x, float("nan")).nanmean(0, keepdim=True) = np.nanmean(np.where(m, x, np.nan), 0, keepdims=True)
std_mean: mf.std_mean(x, dim=0) = (x.std(0, ddof=1), x.mean(0))
var_mean: mf.var_mean(x, unbiased=False) = (x.var(), x.mean())
norm: x.norm() = np.sqrt((x * x).sum())
norm: mf.norm(x, 3, dim=1) = (np.abs(x) ** 3).sum(1) ** (1 / 3)
dist: x.dist(y, 1) = np.abs(x - y).sum()
renorm: x.renorm(2, 0, 1.0) = x * np.minimum(1, 1 / (np.linalg.norm(x, axis=1, keepdims=True) + 1e-7))
cov: mf.cov(x) = np.cov(x)
corrcoef: x.corrcoef() = ~np.corrcoef(x)
trapezoid: mf.trapezoid(x, dx=0.5, dim=0) = np.trapezoid(x, dx=0.5, axis=0)
trapezoid: mf.trapz(x, v.exp()) = np.trapezoid(x, np.exp(v))
"""
