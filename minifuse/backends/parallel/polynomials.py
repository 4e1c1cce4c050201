"""Compute exp, log, erf and sine by argument reduction and polynomials, without branches, in float32 and float64.

A call of libm prevents vectorization. Here the argument is reduced to a short interval, where a polynomial is accurate, and
the result is scaled with the bits of its exponent. Both precisions share the code and differ in the coefficients.
`vector_math` builds the functions that kernels call from these, and states their errors.

Notes
-----
The coefficients were computed for this project. They minimize the largest relative error of the result, by linear
programming over 200 Chebyshev points in high precision. They are rounded to the type one after the other, each time
refitting the rest.

References
----------
W. J. Cody and W. Waite, Software Manual for the Elementary Functions, 1980: the reductions of exp and log.
P. T. P. Tang, Table-driven implementation of the logarithm function, 1990: log by atanh.
M. H. Payne and R. N. Hanek, Radian reduction for trigonometric functions, 1983: the sine of huge numbers.
"""

from math import inf, nan

from numba.core.types import float32 as f32
from numba.core.types import float64 as f64

from .llvm_values import FloatFormat, LlvmValue, bits, fma, from_bits, horner, select

LOG2_E = 1.44269504088896341
LN2 = {  # as a sum of two parts; the product of the first part and any exponent is exact
    f32: (0.69314575, 1.4286068e-06),
    f64: (0.6931471805598903, 5.497923018708371e-14),
}
SQRT_HALF = {f32: 0x3F3504F3, f64: 0x3FE6A09E667F3BCD}  # the bits of sqrt(1/2)
RECIPROCAL_PI = 0x517CC1B727220A94FE13ABE8FA9A6EE06DB14ACC9E21C820FF28B1D5  # the first 224 bits of 1 / pi

# Coefficients, from the highest power to the lowest.
# fmt: off
EXPM1 = {  # (e ** r - 1 - r) / r ** 2, |r| <= ln 2 / 2
    f32: (0.0013870221, 0.008366259, 0.04166744, 0.16666546, 0.49999997),
    f64: (2.506392048737586e-08, 2.7625889417803624e-07, 2.755736992638415e-06, 2.4801505610137253e-05,
          0.0001984126976968914, 0.0013888888931387765, 0.008333333333360381, 0.041666666666576285, 0.1666666666666665,
          0.5000000000000006),
}
LOG = {  # sqrt(1/2) <= 1 + f <= sqrt(2)
    f32: (  # (log(1 + f) - f + f ** 2 / 2) / f ** 3
        -0.07636383, 0.12762491, -0.13159738, 0.14201562, -0.166234, 0.20001242, -0.2500082, 0.3333333),
    f64: (  # (log(1 + f) - 2 s) / s ** 3, in powers of s ** 2, where 1 + f = (1 + s) / (1 - s)
        0.14795800793889347, 0.15314071639239873, 0.18183563228966335, 0.22222198600402593, 0.28571428742049654,
        0.3999999999941663, 0.6666666666666734),
}
ERF = {  # -log(1 - erf(x)) / x, 0 <= x <= 4 and 6; the last coefficient, 2 / sqrt(pi), in two parts
    f32: (-9.319409e-06, 0.00011824897, -0.0006351754, 0.0016716694, -0.00016549666, -0.019149981, 0.10277688,
          0.6366195, -5.8635383e-08, 1.1283792),
    f64: (7.669565722090791e-16, -3.775441957987392e-14, 8.687273752832033e-13, -1.240587171284962e-11,
          1.2300894856388635e-10, -8.962376325097867e-10, 4.938133772672365e-09, -2.0732391538714426e-08,
          6.503089396240064e-08, -1.4005404980673063e-07, 1.338592351184122e-07, 3.415431750644996e-07,
          -1.7479933966337615e-06, 2.841505407729693e-06, 3.402335090301535e-06, -2.9721101194282648e-05,
          6.449053847764809e-05, 2.5879033424366164e-05, -0.0005901256469167321, 0.0016962063976741725,
          -0.00020919469523514984, -0.019128447005175162, 0.10277260330180261, 0.636619772367583,
          1.533545961316588e-17, 1.1283791670955126),
}
SINE = (  # sin(pi f) / f, |f| <= 1/2, in powers of f ** 2; exact enough for float32
    -0.007022029143402199, 0.0820464009612905, -0.5992513143573567, 2.5501632390164426, -5.167712762077521,
    3.1415926535231335)
# fmt: on


def magnitude(x: LlvmValue) -> LlvmValue:
    """Return |x| of a float."""
    return x.call("llvm.fabs")


def with_sign(x: LlvmValue, y: LlvmValue) -> LlvmValue:
    """Return x >= 0 with the sign of y. The bits are combined, since fast-math may lose the sign of a zero."""
    return from_bits(bits(x) | (bits(y) & x.format.sign_mask))


def power_of_two(n: LlvmValue, form: FloatFormat) -> LlvmValue:
    """Return 2 ** n, which must be a normal number. Only the lowest bits of n are used."""
    return from_bits((n << form.fraction_bits) + form.one_bits)


def exponent_and_remainder(x: LlvmValue) -> tuple[LlvmValue, LlvmValue]:
    """Return n and r with x = n ln 2 + r and |r| <= ln 2 / 2. Only the lowest bits of n are valid."""
    first, second = LN2[x.type]
    shifted = fma(x, LOG2_E, x.format.rounder)
    n = shifted - x.format.rounder
    return bits(shifted), fma(n, -second, fma(n, -first, x))


def exponential(x: LlvmValue, largest: float | None = None) -> LlvmValue:
    """Return e ** min(x, largest). 2 ** n is multiplied in as two factors, since 2 ** n may not be a normal number.

    The 0 of a very negative x, such as a masked score, is selected: processors take some 100 cycles for a product that
    underflows.
    """
    low, high = (-105.0, 89.0) if x.type is f32 else (-746.0, 710.0)  # outside, the result is 0 or inf
    high, is_zero = largest or high, x < low
    x = select(is_zero, 0.0, x)  # NaN passes this select and the next one
    n, r = exponent_and_remainder(select(x > high, high, x))
    half = n >> 1
    result = horner(r, (*EXPM1[x.type], 1.0, 1.0)) * power_of_two(half, x.format) * power_of_two(n - half, x.format)
    return select(is_zero, 0.0, result)


def exponential_less_one(x: LlvmValue) -> LlvmValue:
    """Return e ** x - 1, accurate near 0. 2 ** n must be a normal number."""
    n, r = exponent_and_remainder(x)
    scale = power_of_two(n, x.format)
    return fma(scale, fma(horner(r, EXPM1[x.type]), r * r, r), scale - 1.0)


def hyperbolic_tangent(x: LlvmValue) -> LlvmValue:
    """Return tanh(x) as y / (y + 2) with the sign of x, where y = e ** 2|x| - 1."""
    end = 10.0 if x.type is f32 else 20.0  # beyond, the result is 1
    a = magnitude(x)
    e = exponential_less_one(2.0 * select(a > end, end, a))
    return with_sign(e / (e + 2.0), x)


def error_function(x: LlvmValue) -> LlvmValue:
    """Return erf(x) as 1 - e ** -y with the sign of x, where y is a polynomial in |x|."""
    *rest, slope = ERF[x.type]
    end = 4.0 if x.type is f32 else 6.0  # beyond, the result is 1
    a = magnitude(x)
    a = select(a > end, end, a)
    return with_sign(magnitude(exponential_less_one(-fma(a, slope, a * horner(a, rest)))), x)


def exponent_and_fraction(x: LlvmValue) -> tuple[LlvmValue, LlvmValue]:
    """Return n and m with x = m 2 ** n and sqrt(1/2) <= m < sqrt(2), for normal x > 0."""
    n = (bits(x) - SQRT_HALF[x.type]) >> x.format.fraction_bits
    return n, from_bits(bits(x) - (n << x.format.fraction_bits))


def scaled_logarithm(n: LlvmValue, f: LlvmValue) -> LlvmValue:
    """Return n ln 2 + log(1 + f), for sqrt(1/2) <= 1 + f <= sqrt(2)."""
    first, second = LN2[f.type]
    n, square = n.convert(f.type), f * f
    if f.type is f32:
        p = fma(horner(f, LOG[f32]) * f, square, n * second)
        return fma(n, first, f + fma(square, -0.5, p))
    s = f / (f + 2.0)  # a polynomial in f would need 20 terms
    h, z = 0.5 * square, s * s
    return fma(n, first, f - (h - fma(s, fma(horner(z, LOG[f64]), z, h), n * second)))


def logarithm(x: LlvmValue) -> LlvmValue:
    """Return log(x), also for subnormal x."""
    is_tiny = x < x.format.smallest_normal
    n, m = exponent_and_fraction(select(is_tiny, x * 2.0**64, x))
    y = scaled_logarithm(select(is_tiny, n - 64, n), m - 1.0)
    return select(x > 0.0, select(x < inf, y, x), select(x == 0.0, -inf, x.number(nan)))


def logarithm_of_one_plus(x: LlvmValue) -> LlvmValue:
    """Return log(1 + x). The rounding error of 1 + x is added to its fraction."""
    u = x + 1.0
    n, m = exponent_and_fraction(u)
    twice_error = (x - (u - 1.0)) * power_of_two(1 - n, x.format)  # 2 ** -n may be subnormal
    y = scaled_logarithm(n, fma(twice_error, 0.5, m - 1.0))
    y = select((x == 0.0) | (x == inf), x, y)
    return select(x > -1.0, y, select(x == -1.0, -inf, x.number(nan)))


def reciprocal_pi(dropped: int) -> list[float]:
    """Return 1 / pi without its bits from 2 ** (1 - dropped) up, as terms of a sum; all but the last have 29 bits."""
    rest, parts = RECIPROCAL_PI % (1 << (225 - dropped)), []
    for place in (196 - dropped, 167 - dropped, 0):
        parts.append((rest >> place) * 2.0 ** (place - 224))
        rest %= 1 << place
    return parts


def sine(x: LlvmValue, quarters: int) -> LlvmValue:
    """Return sin(x + quarters pi / 2) of a float32 of any size, computed in float64.

    Only x / pi modulo 2 matters, so for a large x the leading bits of 1 / pi have no effect. Without these bits, the
    products of x and the parts of 1 / pi are exact, except the last, which is below 2 ** -6.
    """
    wide = x.convert(f64)
    parts = [wide.number(part) for part in reciprocal_pi(0)]
    for dropped in (26, 52, 78):
        is_large = magnitude(x) >= 2.0 ** (24 + dropped)
        parts = [select(is_large, c, part) for c, part in zip(reciprocal_pi(dropped), parts, strict=True)]
    first, second, third = [wide * part for part in parts]
    rounder = wide.format.rounder
    first = first - 2.0 * ((0.5 * first + rounder) - rounder) + 0.5 * quarters
    shifted = (first + second) + rounder
    f = ((first - (shifted - rounder)) + second) + third
    y = f * horner(f * f, SINE)
    return from_bits(bits(y) ^ (bits(shifted) << 63)).convert(f32)  # negative in odd half turns


def power(x: LlvmValue, y: LlvmValue) -> LlvmValue:
    """Return x ** y of float32 as e ** (y log |x|) in float64, with the special cases of C."""
    absolute = magnitude(x)
    half = 0.5 * y
    is_integer = y == y.call("llvm.floor")
    is_odd = is_integer & (half != half.call("llvm.floor"))
    z = exponential(y.convert(f64) * logarithm(absolute.convert(f64))).convert(f32)
    z = select((x < 0.0) & (absolute < inf) & ~is_integer, nan, z)
    z = select(is_odd, from_bits(bits(z) ^ (bits(x) & x.format.sign_mask)), z)
    z = select((absolute == 1.0) & (magnitude(y) == inf), 1.0, z)
    return select((x == 1.0) | (y == 0.0), 1.0, z)
