"""Cases of minifuse/functions/ordering.py."""

CASES = """
sort: mf.sort(x, 0) = (np.sort(x, 0), np.argsort(x, 0))
sort: (a % 3).sort(descending=True).indices = 3 - np.flip(np.argsort(np.flip(a % 3, 1), 1, kind="stable"), 1)
argsort: x.argsort(1) = np.argsort(x, 1)
msort: x.msort() = np.sort(x, 0)
topk: x.topk(2, sorted=True).values = -np.sort(-x, 1)[:, :2]
topk: x.topk(2, 0, largest=False) = (np.sort(x, 0)[:2], np.argsort(x, 0)[:2])
kthvalue: x.kthvalue(2, keepdim=True).values = np.sort(x, 1)[:, 1:2]
median: x.median() = np.sort(x.ravel())[5]
median: mf.where(x > 1, float("nan"), x).median(1).values = ~np.where((x > 1).any(1), np.nan, np.sort(x, 1)[:, 1])
nanmedian: mf.where(m, float("nan"), x).nanmedian() = np.nanquantile(np.where(m, np.nan, x), 0.5, method="lower")
quantile: x.quantile(0.3, 0, keepdim=True) = np.quantile(x, 0.3, 0, keepdims=True)
quantile: x.quantile([0.25, 0.9], 1, interpolation="higher") = np.quantile(x, [0.25, 0.9], 1, method="higher")
quantile: v.quantile(0.4, interpolation="midpoint") = np.quantile(v, 0.4, method="midpoint")
quantile: v.quantile(0.5, interpolation="nearest") = np.sort(v)[2]
nanquantile: mf.where(m, float("nan"), x).nanquantile(0.3) = np.nanquantile(np.where(m, np.nan, x), 0.3)
mode: (b % 3).mode(1).values = np.array([np.bincount(row).argmax() for row in b % 3])
unique: b.unique(return_inverse=True, return_counts=True) = !np.unique(b, return_inverse=True, return_counts=True)
unique: (b % 2).unique(dim=0) = !np.unique(b % 2, axis=0)
unique_consecutive: b[0].sort().values.unique_consecutive(return_counts=True) = !np.unique(b[0], return_counts=True)
unique_consecutive: mf.tensor([2, 2, 1, 2]).unique_consecutive() = !np.array([2, 1, 2])
searchsorted: mf.searchsorted(v.sort().values, x, right=True) = np.searchsorted(np.sort(v), x, "right")
searchsorted: mf.searchsorted(x.sort(1).values, y) = np.stack([np.searchsorted(*row) for row in zip(np.sort(x, 1), y)])
bucketize: mf.bucketize(x, mf.tensor([-1.0, 0.0, 1.0])) = np.digitize(x, [-1, 0, 1], right=True)
bincount: i.bincount(v[:3], minlength=6) = !np.bincount(i, v[:3], 6)
histc: x.histc(5, -1, 1) = ~np.histogram(x, 5, (-1, 1))[0].astype(float)
histogram: x.histogram(4, weight=p) = ~np.histogram(x, 4, weights=p)
histogram: x.histogram(3, range=(-1.0, 1.0), density=True).hist = ~np.histogram(x, 3, (-1, 1), density=True)[0]
histogramdd: mf.histogramdd(x[:, :2], [2, 3]).hist = ~np.histogramdd(x[:, :2], [2, 3])[0]
np.sort: np.sort(x, axis=None) = np.sort(x, axis=None)
np.argsort: np.argsort(x, 0) = np.argsort(x, 0)
np.median: np.median(x, 1) = np.median(x, 1)
np.percentile: np.percentile(a, [10, 50], axis=0) = np.percentile(a, [10, 50], axis=0)
np.searchsorted: np.searchsorted(np.sort(v), x) = np.searchsorted(np.sort(v), x)
np.digitize: np.digitize(x, [-1.0, 0.0], right=True) = np.digitize(x, [-1.0, 0.0], right=True)
np.take_along_axis: np.take_along_axis(x, x.argmax(1, keepdim=True), 1) = x.max(1, keepdims=True)
np.put_along_axis: (z := v.clone(), np.put_along_axis(z, i[:2], x[0, :2], 0))[0] = ~np.r_[x[0, 1], v[1], x[0, 0], v[3]]
np.add.at: (z := v.detach() * 1, np.add.at(z, i // 2, 2.0))[0] = ~v + [2, 4, 0, 0]
np.maximum.at: (z := a[0] * 1, np.maximum.at(z, [1, 1], [20, 10]))[0] = np.r_[a[0, 0], 20, a[0, 2:]]
"""
