"""Functions of SciPy on tensors, with SCIPY_ARRAY_API=1: special functions, statistics, integrals, roots, clusters."""

import numpy as np
from scipy import cluster, integrate, ndimage, signal, special, stats
from scipy.differentiate import derivative
from scipy.optimize import elementwise

import minifuse as mf


def results(x, table, weights):
    """Return the results of some functions."""
    yield special.logsumexp(table, axis=1)
    yield special.softmax(table, axis=0)
    yield special.erf(x)
    yield special.gammaln(x * x + 1)
    yield stats.zscore(x)
    yield stats.skew(table, axis=1)
    yield stats.pearsonr(x, x * x).statistic
    yield stats.ttest_ind(x, x + 0.1).pvalue
    yield stats.rankdata(x)
    yield integrate.trapezoid(table, axis=0)
    yield integrate.tanhsinh(lambda t: t * t, x[0] * 0, x[0] * 0 + 1).integral
    yield elementwise.find_root(lambda t: t**3 - 2, (x * 0, x * 0 + 2)).x
    yield derivative(lambda t: t**3, x).df
    yield signal.convolve(x, weights)
    yield signal.detrend(x)
    yield ndimage.gaussian_filter(table, 1)
    yield cluster.vq.whiten(table)


def main():
    """Compare with NumPy's arrays."""
    rng = np.random.default_rng(0)
    arrays = rng.normal(size=9), rng.normal(size=(6, 5)), np.array([0.25, 0.5, 0.25])
    expected, found = [*results(*arrays)], [*results(*map(mf.tensor, arrays))]
    for a, b in zip(found, expected, strict=True):
        assert isinstance(a, mf.Tensor), type(a)
        np.testing.assert_allclose(a.numpy(), b, rtol=1e-6, atol=1e-9)


if __name__ == "__main__":
    main()
