"""Special functions: the families of erf, the gamma function and the Bessel functions, and those made of logarithms.

The functions that need polynomials or asymptotic series are computed in float64 and rounded once, so their float32 results
are correctly rounded but for rare cases, and their float64 results have errors of some units in the last place; near a
zero of lgamma and digamma the absolute error is that of 1. Each has its VJP.

Notes
-----
The coefficients of polynomials were computed for this project by Chebyshev interpolation in 50 digits. Those of asymptotic
series are Bernoulli numbers.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..core.dtypes import float64
from ..core.errors import GradientError
from ..core.operator_entry import Operator
from ..core.operators import abs, cos, eq, erf, exp, log, log1p, minimum, ne, sin, sqrt, where  # noqa: A004
from ..ir.numpy_api.table import call_once, promote_to_float
from ..ir.numpy_api.trigonometry import composed, horner, odd
from .host import host_function, sum_to
from .table import FUNCTIONS, function, name_after

# fmt: off
ERFCX = (  # (1 + 2 x) exp(x ** 2) erfc(x) in powers of t = (x - 4) / (x + 4), x >= 0
    8.658439991834318e-10, 1.4717319990187434e-09, -1.2045914826959007e-08, -1.5859541611070463e-08,
    1.057609807517722e-07, 7.004797410010204e-08, -8.20503122691633e-07, 2.99355767185727e-07, 5.706268751840725e-06,
    -1.1226109097698082e-05, -2.439765458486458e-05, 0.0001506235802167527, -0.00019925714521146345,
    -0.00075777385497142, 0.005031970059132668, -0.016197733953397204, 0.03716751552894567, -0.066330365823395,
    0.09373283499881213, -0.10103906603569286, 0.06809705425468278, 0.015379652102606743, -0.13962111684056247,
    1.2329951186255526)
I0_SMALL = (  # exp(-x) I0(x) in powers of x / 4 - 1, 0 <= x <= 8
    -1.601973429472564e-08, 5.753995763975938e-08, -8.791296325157322e-08, 2.699153146632741e-07,
    -1.1360524712119476e-06, 3.40892232481125e-06, -9.194264364358614e-06, 2.4986432931858343e-05,
    -6.555606021032439e-05, 0.00016258361907161146, -0.0003828745840656792, 0.0008562120964037982,
    -0.001811898032010941, 0.0036171685199186195, -0.006792396673321815, 0.011960065956449436, -0.019682655309282406,
    0.030177914326369393, -0.04298594937721531, 0.05677703173239174, -0.06954119562303405, 0.07927522592865593,
    -0.08496338091593245, 0.08734341617468505, -0.08904344136076327, 0.0945156285399639, -0.11300432688620547,
    0.20700192122398667)
I0_LARGE = (  # sqrt(x) exp(-x) I0(x) in powers of 16 / x - 1, x >= 8
    -9.887043830277007e-11, 2.2647982245198086e-10, 7.197534582268409e-10, -1.3320154008028988e-09,
    -2.6823199253080667e-09, 3.288502385565785e-09, 7.015854599851706e-09, -2.936770695088146e-09,
    -1.3186462085672413e-08, -7.711547780447753e-09, 7.497573713317462e-09, 2.178629993133627e-08,
    3.9334363714915647e-08, 8.868756452767297e-08, 2.9735920977050013e-07, 1.483850178033181e-06,
    1.1143033809949664e-05, 0.00013621607431419543, 0.0033605519836677825, 0.4021765094450085)
I1_SMALL = (  # (4 + x) ** 1.5 exp(-x) I1(x) / x in powers of x / 4 - 1, 0 <= x <= 8
    -9.651936377082094e-08, 2.3014301067394074e-07, 1.3704474762933463e-07, -3.8982529421892045e-07,
    -9.77260000856759e-07, 1.7593825965624238e-06, 1.2698502305568227e-06, -6.970168519864958e-06,
    2.0287236780862526e-05, -6.260491858690566e-05, 0.00016830076476969101, -0.0003877216600994574,
    0.0007832550842127077, -0.0013630723925710311, 0.0019006907454355924, -0.001586682392626976,
    -0.0015036986817980713, 0.010976231009857108, -0.03229833505765918, 0.07197782072792852, -0.13529872444158733,
    0.22298434678895898, -0.32837662184503136, 0.4373618009127957, -0.532172765373011, 0.59745022710825,
    -0.6247103007923445, 1.0111674460396813)
I1_LARGE = (  # sqrt(x) exp(-x) I1(x) in powers of 16 / x - 1, x >= 8
    9.513611829236275e-11, -2.4036661288317025e-10, -7.021665803756543e-10, 1.4228550674246906e-09,
    2.66745253503564e-09, -3.565062665716074e-09, -7.147574888201996e-09, 3.3967168196881237e-09,
    1.3829044445640035e-08, 7.741707205010203e-09, -8.37506013473891e-09, -2.362264334898235e-08,
    -4.313704130440909e-08, -9.997666937000297e-08, -3.4838497699828714e-07, -1.834912864610714e-06,
    -1.503854721811215e-05, -0.0002192357637525843, -0.009749577193235664, 0.38939845902587195)
# fmt: on
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)  # B2, B4, ..., B16
SHIFT = 8  # the asymptotic series of the gamma function are used from here on
MAX_TERMS = 10_000  # of the series of igamma, which needs some multiples of sqrt(a)
ZETA_TERMS = 16  # of the sum of polygamma, before its asymptotic series


def in_float64(operator: Operator, *names: str) -> None:
    """Add an operator to the table of functions under some names. It is computed in float64, as one call."""

    def body(*inputs: Any) -> Any:
        xs = promote_to_float(*inputs)
        return operator(*[x.to(float64) for x in xs]).to(xs[0].dtype)

    def call(*inputs: Any) -> Any:
        return call_once(body, *inputs)

    for name in names:
        name_after(operator, call, name)
        function(name)(call)


# The error function.


def scaled_erfc(a: Any) -> Any:
    """Return exp(a * a) * erfc(a) of a >= 0."""
    return horner(where(eq(a, math.inf), 1.0, (a - 4) / (a + 4)), ERFCX) / (1 + 2 * a)


def gauss(a: Any) -> Any:
    """Return exp(-a * a) with the relative error of exp: the square of the rounded part of a is exact."""
    rounded = (a + 2.0**36) - 2.0**36
    return exp(-rounded * rounded) * exp((rounded - a) * (rounded + a))


@composed(lambda g, y, x: (g * (-2 / math.sqrt(math.pi)) * exp(-x * x),), cost=80)
def erfc(x: Any) -> Any:
    """1 - erf(x), accurate where erf(x) is near 1."""
    a = minimum(abs(x), 30)  # where the result is 0 in any dtype
    return where(x < 0.5, 1 - erf(x), gauss(a) * scaled_erfc(a))


@composed(lambda g, y, x: (g * 0.5 * math.sqrt(math.pi) * exp(y * y),), cost=300)
def erfinv(p: Any) -> Any:
    """Inverse of erf: an approximation, then two steps of Halley's method. Infinite at 1 and -1, NaN beyond."""
    a = abs(p)
    s = log1p(-a * a)
    u = 2 / (math.pi * 0.147) + 0.5 * s
    y = sqrt((s / -0.147) / (sqrt(u * u - s / 0.147) + u))
    for _ in range(2):
        error = where(a < 0.5, erf(y) - a, (1 - a) - erfc(y))  # 1 - a is exact from 1/2 on
        step = error * (0.5 * math.sqrt(math.pi)) * exp(y * y)
        y = y - step / (1 + y * step)
    return odd(p, where(eq(a, 1), math.inf, y))


in_float64(erfc, "erfc")
in_float64(erfinv, "erfinv")


# The gamma function.


def falling_series(w: Any, coefficients: tuple[float, ...]) -> Any:
    """Return the sum of c[k] / w ** (2 k + 2): an asymptotic series."""
    r = 1 / (w * w)
    return horner(r, tuple(reversed(coefficients))) * r


def sine_pi(x: Any) -> Any:
    """Return sin(pi x), which is 0 at each integer."""
    nearest = (x + 1.5 * 2.0**52) - 1.5 * 2.0**52
    distance = where(abs(x) < 2.0**51, x - nearest, 0.0)
    is_odd = ne(nearest * 0.5, ((nearest * 0.5) + 1.5 * 2.0**52) - 1.5 * 2.0**52)
    return where(is_odd, -1, 1) * sin(math.pi * distance)


def _lgamma_vjp(g: Any, y: Any, x: Any) -> Any:
    return (g * digamma(x),)


@composed(_lgamma_vjp, cost=150)
def lgamma(x: Any) -> Any:
    """Logarithm of |gamma(x)|; infinite at 0, -1, -2, ..."""
    is_reflected = x < 0.5
    z = where(is_reflected, 1 - x, x)
    is_small = z < SHIFT
    product = z
    for k in range(1, SHIFT):
        product = product * (z + k)
    w = where(is_small, z + SHIFT, z)
    tail = falling_series(w, tuple(b / ((2 * k + 2) * (2 * k + 1)) for k, b in enumerate(BERNOULLI))) * w
    y = (w - 0.5) * (log(w) - 1) + (0.5 * math.log(2 * math.pi) - 0.5 + tail)
    y = where(is_small, y - log(where(is_small, product, 1)), y)
    y = where(is_reflected, math.log(math.pi) - log(abs(sine_pi(x))) - y, y)
    return where(eq(abs(x), math.inf), math.inf, y)


def _digamma_vjp(g: Any, y: Any, x: Any) -> Any:
    return (g * polygamma_operator(1)(x),)


@composed(_digamma_vjp, cost=150)
def digamma(x: Any) -> Any:
    """Derivative of lgamma; -inf at 0, NaN at -1, -2, ..."""
    is_reflected = x < 0.5
    z = where(is_reflected, 1 - x, x)
    is_small = z < SHIFT
    shift: Any = 0.0
    for k in range(SHIFT):
        shift = shift + 1 / (z + k)
    w = where(is_small, z + SHIFT, z)
    y = log(w) - 0.5 / w - falling_series(w, tuple(b / (2 * k + 2) for k, b in enumerate(BERNOULLI)))
    y = y - where(is_small, shift, 0)
    half = x - ((x + 1.5 * 2.0**52) - 1.5 * 2.0**52)  # tan(pi x) has period 1
    pole = where(eq(x, 0), math.inf, where(eq(half, 0), math.nan, math.pi * cos(math.pi * half) / sin(math.pi * half)))
    return where(is_reflected, y - pole, y)


def integer_power(x: Any, n: int) -> Any:
    """Return x ** n of n >= 1 by multiplications."""
    half = integer_power(x, n // 2) if n > 1 else x
    return x if n == 1 else half * half * x if n % 2 else half * half


@lru_cache(None)
def polygamma_operator(n: int) -> Operator:
    """Return the operator of the n-th derivative of digamma: n! times the Hurwitz zeta function, up to the sign.

    The zeta function is a sum by Euler and Maclaurin: some terms, and an asymptotic series for the others.
    """
    s = n + 1

    def body(x: Any) -> Any:
        total: Any = 0.0
        for k in range(ZETA_TERMS):
            total = total + integer_power(1 / (x + k), s)
        r = 1 / (x + ZETA_TERMS)
        tail = integer_power(r, n) / n + 0.5 * integer_power(r, s)
        factor = s / 2
        for k, b in enumerate(BERNOULLI):  # B2j / (2j)! s (s + 1) ... (s + 2j - 2)
            tail = tail + (b * factor) * integer_power(r, s + 2 * k + 1)
            factor *= (s + 2 * k + 1) * (s + 2 * k + 2) / ((2 * k + 3) * (2 * k + 4))
        y = (total + tail) * (math.factorial(n) * (-1) ** (n + 1))
        return where(x > -0.5 * ZETA_TERMS, y, math.nan)

    body.__name__ = f"polygamma_{n}"
    return composed(lambda g, y, x: (g * polygamma_operator(n + 1)(x),), cost=150)(body)


@function("polygamma")
def polygamma(n: Any, x: Any) -> Any:
    """Compute the n-th derivative of digamma. NaN below -8 if n > 0."""
    n, x = (x, n) if isinstance(x, int) else (n, x)  # x.polygamma(n)
    return call_once(_polygamma, x, parameters=(n,))


def _polygamma(x: Any, n: int) -> Any:
    (x,) = promote_to_float(x)
    return (polygamma_operator(n) if n else digamma)(x.to(float64)).to(x.dtype)


@function("mvlgamma", "multigammaln")
def mvlgamma(x: Any, p: int) -> Any:
    """Logarithm of the multivariate gamma function of dimension p."""
    return call_once(_mvlgamma, x, parameters=(int(p),))


def _mvlgamma(x: Any, p: int) -> Any:
    (x,) = promote_to_float(x)
    wide = x.to(float64)
    terms = [lgamma(wide - 0.5 * k) for k in range(p)]
    return (sum(terms[1:], start=terms[0]) + p * (p - 1) / 4 * math.log(math.pi)).to(x.dtype)


in_float64(lgamma, "lgamma")
in_float64(digamma, "digamma")


# Modified Bessel functions.


def bessel(x: Any, small: tuple[float, ...], large: tuple[float, ...], factor: Any) -> Any:
    """Return exp(-|x|) times a Bessel function of |x|. Near 0 its polynomial is multiplied by a factor."""
    a = abs(x)
    is_small = a <= 8
    near, far = where(is_small, a, 8.0), where(is_small, 8.0, a)
    return where(is_small, horner(near * 0.25 - 1, small) * factor, horner(16 / far - 1, large) / sqrt(far))


def _i0e_vjp(g: Any, y: Any, x: Any) -> Any:
    return (g * (i1e(x) - odd(x, y)),)


@composed(_i0e_vjp, cost=80)
def i0e(x: Any) -> Any:
    """exp(-|x|) i0(x)."""
    return bessel(x, I0_SMALL, I0_LARGE, 1)


@composed(lambda g, y, x: (g * (i0e(x) - y * (odd(x, 1) + where(eq(x, 0), 0, 1 / x)) - where(eq(x, 0), 0.5, 0)),), cost=80)
def i1e(x: Any) -> Any:
    """exp(-|x|) i1(x)."""
    a = abs(x)
    return odd(x, bessel(x, I1_SMALL, I1_LARGE, a / ((4 + a) * sqrt(4 + a))))


def _i0_vjp(g: Any, y: Any, x: Any) -> Any:
    return (g * i1(x),)


@composed(_i0_vjp, cost=100)
def i0(x: Any) -> Any:
    """Modified Bessel function of the first kind and order 0."""
    return i0e(x) * exp(abs(x))


@composed(lambda g, y, x: (g * (i0(x) - where(eq(x, 0), 0.5, y / where(eq(x, 0), 1, x))),), cost=100)
def i1(x: Any) -> Any:
    """Modified Bessel function of the first kind and order 1."""
    return i1e(x) * exp(abs(x))


for _operator in (i0, i0e, i1, i1e):
    in_float64(_operator, _operator.name)


# The incomplete gamma functions, which NumPy computes on the host, since the number of terms depends on the values.


def _igamma_vjp(gradients: Sequence[Any], outputs: Sequence[Any], inputs: Sequence[Any], sign: int) -> Sequence[Any]:
    (g,), (a, x) = gradients, inputs
    if a.requires_grad:
        raise GradientError("backward: igamma has a gradient with respect to x alone; pass a.detach()")
    density = exp((a - 1) * log(x) - x - FUNCTIONS["lgamma"](a))
    return None, sum_to(g * density * sign, x.shape)


@host_function(_igamma_vjp)
def incomplete_gamma(xp: Any, a: Any, x: Any, sign: int) -> Any:
    """Return P(a, x), or Q(a, x) = 1 - P(a, x) if the sign is -1: a power series below a + 1, a continued fraction above."""
    dtype = xp.result_type(a, x)
    wide_a, wide_x = xp.broadcast_arrays(a.astype(np.float64), x.astype(np.float64))
    lower, upper = power_series(xp, wide_a, wide_x), continued_fraction(xp, wide_a, wide_x)
    is_low = wide_x < wide_a + 1
    y = xp.where(is_low, lower, 1 - upper) if sign == 1 else xp.where(is_low, 1 - lower, upper)
    y = xp.where(xp.isinf(wide_x) | (wide_a == 0), float(sign == 1), y)
    is_valid = (wide_a >= 0) & (wide_x >= 0) & ~((wide_a == 0) & (wide_x == 0))
    return xp.where(is_valid, y, math.nan).astype(dtype)


def density_times_x(xp: Any, a: Any, x: Any) -> Any:
    """Return x ** a * exp(-x) / gamma(a)."""
    logarithms = xp.asarray([math.lgamma(v) if v > 0 else math.inf for v in a.ravel().tolist()]).reshape(a.shape)
    return xp.exp(a * xp.log(x) - x - logarithms)


def power_series(xp: Any, a: Any, x: Any) -> Any:
    """Return P(a, x) for x < a + 1: the sum of x ** n / (a (a + 1) ... (a + n)), times x ** a * exp(-x) / gamma(a)."""
    x = xp.where(x < a + 1, x, 0)
    term = total = 1 / xp.where(a > 0, a, 1)
    n = 0
    while n < MAX_TERMS and (term > 1e-17 * total).any():
        n += 1
        term = term * x / (a + n)
        total = total + term
    return total * density_times_x(xp, a, x)


def continued_fraction(xp: Any, a: Any, x: Any) -> Any:
    """Return Q(a, x) for x >= a + 1, by Lentz's method."""
    is_high = x >= a + 1
    a, x = xp.where(is_high, a, 1), xp.where(is_high & (x < math.inf), x, 2)
    b = x + 1 - a
    c, d = xp.full(b.shape, 1e300), 1 / b
    h = d
    for n in range(1, MAX_TERMS):
        factor = n * (a - n)
        b = b + 2
        d, c = 1 / (b + factor * d), b + factor / c
        h = h * (c * d)
        if (xp.abs(c * d - 1) < 1e-16).all():
            break
    return h * density_times_x(xp, a, x)


@function("igamma", "gammainc")
def igamma(a: Any, x: Any) -> Any:
    """Return the regularized lower incomplete gamma function P(a, x), a distribution function of x."""
    return incomplete_gamma(*promote_to_float(a, x), sign=1)


@function("igammac", "gammaincc")
def igammac(a: Any, x: Any) -> Any:
    """Return the regularized upper incomplete gamma function, 1 - igamma(a, x)."""
    return incomplete_gamma(*promote_to_float(a, x), sign=-1)
