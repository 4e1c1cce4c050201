"""Sine and cosine in vectors, of floats of any size, without branches.

sin(x) depends on x / pi modulo 2 alone. For a large x that takes many digits of 1 / pi, of which the leading ones play no
part, since they only add even numbers: each x is multiplied with the window of digits that counts for its exponent. float32
does so in float64. float64 takes windows of five parts, picked by choices, since a look into a table would keep a loop
scalar, and adds up the products with their rounding errors: some 220 instructions, for any size.

The words that kernels call, and how exact they are, are in `vector_math`. Coefficients are this project's own: minimax in
the relative error of the result, those of float64 by the exchange of E. Remez in high precision.

References
----------
M. H. Payne and R. N. Hanek, Radian reduction for trigonometric functions, 1983.
T. J. Dekker, A floating-point technique for extending the available precision, 1971: sums and products with their errors.
"""

from numba.core.types import float32 as f32
from numba.core.types import float64 as f64

from .instructions import Register, bits, exact_fma, fma, from_bits, horner, select
from .polynomials import magnitude, power_of_two


def digits_of_pi(places: int) -> int:
    """pi * 2 ** places, cut, by Machin's 16 arctan(1/5) - 4 arctan(1/239)."""
    one = 1 << (places + 16)

    def arctan(n: int) -> int:  # of 1 / n
        total = term = one // n
        for k in range(3, places, 2):
            term //= -n * n
            total += term // k
        return total

    return (16 * arctan(5) - 4 * arctan(239)) >> 16


PLACES = 1400  # binary digits of 1 / pi
RECIPROCAL_PI = (1 << (2 * PLACES)) // digits_of_pi(PLACES)
HALF_PI = 1.5707963267948966, 6.123233995736766e-17  # in two parts
GROUP = 64  # exponents that share a window of 1 / pi: what is left of x after a power of two is below 2 ** GROUP
PARTS = 5  # of a window, 53 digits each
TINY = 2.0**-28  # below, sin(x) is x

# Coefficients, that of the highest power first.
# fmt: off
SINE_OF_TURNS = (  # sin(pi f) / f, |f| <= 1/2, in powers of f ** 2; exact enough for float32
    -0.007022029143402199, 0.0820464009612905, -0.5992513143573567, 2.5501632390164426, -5.167712762077521,
    3.1415926535231335)
SINE = (  # (sin(r) / r - 1) / r ** 2, |r| <= pi / 4, in powers of r ** 2
    1.5896228362024062e-10, -2.5050747729033915e-08, 2.7557313621145644e-06, -0.0001984126982958875, 0.008333333333322118,
    -0.1666666666666663)
COSINE = (  # (cos(r) - 1 + r ** 2 / 2) / r ** 4, the same
    -1.1358536893097584e-11, 2.0875700850124097e-09, -2.7557314179365334e-07, 2.4801587288851978e-05,
    -0.0013888888888873058, 0.041666666666666595)
# fmt: on


def reciprocal_pi(dropped: int) -> list[float]:
    """1 / pi, less its bits worth 2 ** (1 - dropped) and more, as a sum of float64; all but the last have 29 bits."""
    rest, parts = (RECIPROCAL_PI >> (PLACES - 224)) % (1 << (225 - dropped)), []
    for place in (196 - dropped, 167 - dropped, 0):
        parts.append((rest >> place) * 2.0 ** (place - 224))
        rest %= 1 << place
    return parts


def sine(x: Register, quarters: int) -> Register:
    """sin(x + quarters pi / 2) of a float32 of any size, computed in float64.

    x / pi counts only modulo 2, so the larger x is, the more leading bits of 1 / pi play no part. Without these, products
    of x and the parts of 1 / pi are exact, but for the last, which is below 2 ** -6.
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
    y = f * horner(f * f, SINE_OF_TURNS)
    return from_bits(bits(y) ^ (bits(shifted) << 63)).convert(f32)  # negative in odd half turns


def sum_and_error(a: Register, b: Register) -> tuple[Register, Register]:
    """(a + b, what its rounding lost)."""
    total = a + b
    b_in_it = total - a
    return total, (a - (total - b_in_it)) + (b - b_in_it)


def product_and_error(a: Register, b: Register) -> tuple[Register, Register]:
    """(a * b, what its rounding lost)."""
    product = a * b
    return product, exact_fma(a, b, -product)


# Of float64.


def less_whole_turns(x: Register) -> Register:
    """x, in quarter turns, less the nearest multiple of 4: exact."""
    return x - 4.0 * (0.25 * x).call("llvm.rint")


def window(part: int, group: Register) -> Register:
    """Of 2 / pi, times 2 ** (GROUP * group), the 53 digits down to 2 ** (1 - 53 * part)."""
    digits = [(RECIPROCAL_PI >> (PLACES - GROUP * k - 53 * part)) % (1 << 53) for k in range(1024 // GROUP)]
    one = group.convert(f64)  # for its type
    choices = [one.number(n * 2.0 ** (1 - 53 * part)) for n in digits]
    bit = 1
    while len(choices) > 1:
        is_odd = (group & bit) != 0
        choices = [select(is_odd, b, a) for a, b in zip(choices[::2], choices[1::2], strict=True)]
        bit *= 2
    return choices[0]


def quarter_turns(x: Register) -> tuple[Register, Register, Register]:
    """(n, f, low), where 2 x / pi is n + f + low, but for a multiple of 4, and |f| <= 1/2; n by its lowest two bits.

    Sums and products are kept with their errors, since of a large x next to a multiple of pi / 2 all but the last digits
    vanish: none is closer to one than 2 ** -62.
    """
    exponent = ((bits(x) >> x.format.fraction) & 0x7FF) - 1023
    group = select(exponent < 0, 0, exponent) >> (GROUP.bit_length() - 1)
    x = x * power_of_two(0 - GROUP * group, x.format)
    products = [product_and_error(x, window(part, group)) for part in range(PARTS - 1)]
    (a, a_low), (b, b_low), (c, c_low), (d, d_low) = products
    total, lost = less_whole_turns(a), [c_low, d]  # what no total has room for
    for term in (a_low, b, b_low, c):
        total, error = sum_and_error(total, less_whole_turns(term))
        lost.append(error)
    shifted = total + x.format.rounder
    low, lower = lost[0], d_low + x * window(PARTS - 1, group)
    for term in lost[1:]:
        low, error = sum_and_error(low, term)
        lower = lower + error
    f, low = sum_and_error(total - (shifted - x.format.rounder), low)
    return bits(shifted), f, low + lower


def sine_in_double(x: Register, quarters: int) -> Register:
    """sin(x + quarters pi / 2) of a float64 of any size."""
    n, f, f_low = quarter_turns(x)
    n = n + quarters
    r, r_low = product_and_error(f, f.number(HALF_PI[0]))
    r_low = r_low + (f * HALF_PI[1] + f_low * HALF_PI[0])
    square = r * r
    half = 0.5 * square
    sine = r + fma(r * square, horner(square, SINE), r_low * (1.0 - half))
    most = 1.0 - half
    cosine = most + (((1.0 - most) - half) + (square * square * horner(square, COSINE) - r * r_low))
    y = select((n & 1) != 0, cosine, sine)
    return from_bits(bits(y) ^ ((n & 2) << 62))  # negative in the second half of a turn
