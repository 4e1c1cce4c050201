"""Cases of minifuse/functions/special.py. SciPy is the reference."""

CASES = """
erfc: mf.erfc(x) = sp.erfc(x)
erfinv: x.div(3).erfinv() = sp.erfinv(x / 3)
lgamma: mf.lgamma(p * 6) = sp.gammaln(p * 6)
lgamma: (p - 3).lgamma() = sp.gammaln(p - 3)
digamma: mf.digamma(p) = sp.digamma(p)
digamma: mf.digamma(p - 2) = sp.digamma(p - 2)
polygamma: mf.polygamma(2, p) = sp.polygamma(2, p)
mvlgamma: mf.mvlgamma(p + 1, 3) = np.vectorize(sp.multigammaln)(p + 1, 3)
igamma: mf.igamma(b, p * 5) = @sp.gammainc(b, p * 5)
igammac: (b + 0.5).igammac(p * 20) = @sp.gammaincc(b + 0.5, p * 20)
i0: x.i0() = sp.i0(x)
i0e: mf.i0e(x * 9) = sp.i0e(x * 9)
i1: mf.i1(x) = sp.i1(x)
i1e: mf.i1e(x * 9) = sp.i1e(x * 9)
"""
