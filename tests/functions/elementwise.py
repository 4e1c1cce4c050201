"""Cases of minifuse/functions/elementwise.py."""

CASES = """
subtract: mf.subtract(x, y, alpha=3) = x - 3 * y
add: x.add(v, alpha=0.5) = x + 0.5 * v
multiply: mf.multiply(x, other=y) = x * y
pow: mf.pow(p, exponent=v) = p ** v
pow: mf.pow(2, x) = 2.0 ** x
logaddexp: x.logaddexp(y) = np.logaddexp(x, y)
hypot: mf.hypot(x, 2.0) = np.hypot(x, 2.0)
eq: a.eq(b) = a == b
div: x.div(y, rounding_mode="floor") = ~np.floor(x / y)
div: mf.divide(x, y, rounding_mode="trunc") = ~np.trunc(x / y)
div: a.div(-b, rounding_mode="trunc") = np.trunc(a / -b).astype(int)
true_divide: mf.true_divide(x, y) = x / y
reciprocal: b.reciprocal() = 1 / b
round: mf.round(x, decimals=1) = ~np.round(x, 1)
frac: x.frac() = x - np.trunc(x)
fix: mf.fix(x) = ~np.trunc(x)
fmod: mf.fmod(x, 0.7) = np.fmod(x, 0.7)
fmod: mf.fmod(x, y) = np.fmod(x, y)
lerp: x.lerp(y, p) = x + p * (y - x)
addcmul: mf.addcmul(x, y, p, value=0.5) = x + 0.5 * y * p
addcdiv: x.addcdiv(y, p) = x + y / p
clamp: x.clamp(min=-0.5, max=0.5) = np.clip(x, -0.5, 0.5)
clamp: mf.clamp(x, max=y) = np.minimum(x, y)
clip: mf.clip(x, max=0.1) = np.minimum(x, 0.1)
clip: x.clip(min=0.1) = np.maximum(x, 0.1)
clamp_max: mf.clamp_max(x, 0.2) = np.minimum(x, 0.2)
where: x.where(m, y) = np.where(m, x, y)
logit: p.logit() = np.log(p / (1 - p))
logit: mf.logit(p, eps=0.3) = np.log(np.clip(p, 0.3, 0.7) / (1 - np.clip(p, 0.3, 0.7)))
sinc: mf.sinc(x) = np.sinc(x)
xlogy: mf.xlogy(m, p) = np.where(m, np.log(p), 0)
xlogy: x.xlogy(p) = x * np.log(p)
hardshrink: mf.hardshrink(x, 0.5) = np.where(abs(x) > 0.5, x, 0)
prelu: mf.prelu(t, v[:3]) = np.where(t > 0, t, v[:3, None] * t)
isposinf: (x / 0.0).isposinf() = x > 0
isneginf: mf.isneginf(x / 0.0) = x < 0
isreal: mf.isreal(x) = np.isreal(x)
isclose: mf.isclose(x, x * 1.01, atol=0.005) = np.isclose(x, x * 1.01, atol=0.005)
nan_to_num: (x / m).nan_to_num(posinf=9.0) = ~np.where(m, x, np.where(x > 0, 9.0, -np.finfo(float).max))
sgn: x.sgn() = ~np.sign(x)
absolute: mf.absolute(x) = abs(x)
signbit: mf.signbit(x * 0.0) = np.signbit(x * 0.0)
copysign: x.copysign(y) = np.copysign(x, y)
copysign: mf.copysign(x * 0, y) = ~np.copysign(x * 0, y)
nextafter: mf.nextafter(x, y) = ~np.nextafter(x, y)
frexp: x.frexp() = ~tuple(np.frexp(x))
ldexp: mf.ldexp(x, a) = np.ldexp(x, a)
bitwise_not: mf.bitwise_not(a) = np.invert(a)
bitwise_left_shift: a.bitwise_left_shift(2) = a << 2
acos: mf.acos(p) = np.arccos(p)
acos: mf.arccos(-p) = np.arccos(-p)
asin: x.div(4).asin() = np.arcsin(x / 4)
atan: mf.atan(x * 3) = np.arctan(x * 3)
atan2: mf.atan2(x, y) = np.arctan2(x, y)
asinh: x.asinh() = np.arcsinh(x)
acosh: mf.arccosh(p + 1) = np.arccosh(p + 1)
atanh: (p - 1).atanh() = np.arctanh(p - 1)
gcd: a.gcd(b) = @np.gcd(a, b)
lcm: mf.lcm(a, b) = @np.lcm(a, b)
arctan2: np.arctan2(x, -y) = np.arctan2(x, -y)
"""
