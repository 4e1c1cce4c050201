"""Right solutions of task 7.6 that are written in unusual ways. Each is appended to the reference."""

# %% inverse_scale: the largest value by the two ends, codes by a product with the inverse where it is exact enough
def quantize(w, per_row=True):
    flat = w if per_row else w.reshape(1, -1)
    high, low = flat.max(1, keepdims=True), flat.min(1, keepdims=True)
    largest = where(high > -low, high, -low)
    bad = (w - w) != 0.0
    if bad.any().item():
        raise ValueError("nan or inf")
    scales = where(largest > 0.0, largest, 127.0) / 127.0
    return (w / scales).round().to("int8"), scales

# %% sum_of_outer_products: bytes by the number of elements, and scales multiplied before they meet the product
def quantized_matmul(x, codes, scales):
    own, steps = quantize(x, True)
    both = steps * scales.reshape(1, -1)
    return (codes.to("int32") @ own.to("int32").permute(1, 0)).permute(1, 0) * both


def count_bytes(codes, scales):
    rows, columns = codes.shape
    return sum([columns] * rows) + sum(8 for _ in range(scales.shape[0]))

# %% remainder_rounding: rounding to even by the floor and what is left
def quantize(w, per_row=True):
    if not ((w * 0.0) == 0.0).all().item():
        raise ValueError("nan or inf")
    largest = where(w < 0.0, -w, w).max(-1, keepdims=True)
    largest = largest if per_row else largest.max(0, keepdims=True)
    scales = where(largest == 0.0, 127.0, largest) / 127
    exact = w / scales
    down = exact // 1.0
    rest = exact - down
    is_odd = down - 2.0 * (down // 2.0)
    up = where(rest > 0.5, 1.0, where(rest == 0.5, is_odd, 0.0))
    return (down + up).to(int8), scales


def dequantize(codes, scales):
    return scales * codes
