"""Wrong solutions of task 7.6, one a cell: `# %% name: the mistake that the check must name`."""


# %% by_128: the scale is the largest value / 128
def quantize(w, per_row=True):
    if (w * 0.0).sum().item() != 0.0:
        raise ValueError("nan or inf")
    largest = maximum(w, -w).max(-1, keepdims=True)
    if not per_row:
        largest = largest.max(0, keepdims=True)
    scales = where(largest == 0.0, 127 / 128, largest / 128)
    codes = (w / scales).round()
    return where(codes > 127.0, 127.0, codes).to(int8), scales


# %% zero_scale: a row of zeros is divided by 0
def quantize(w, per_row=True):
    if (w * 0.0).sum().item() != 0.0:
        raise ValueError("nan or inf")
    largest = maximum(w, -w).max(-1, keepdims=True)
    if not per_row:
        largest = largest.max(0, keepdims=True)
    scales = largest / 127
    return where(scales == 0.0, 0.0, (w / scales).round()).to(int8), scales


# %% by_128_but_zeros: the scale is the largest value / 128
def quantize(w, per_row=True):
    if (w * 0.0).sum().item() != 0.0:
        raise ValueError("nan or inf")
    largest = maximum(w, -w).max(-1, keepdims=True)
    if not per_row:
        largest = largest.max(0, keepdims=True)
    scales = where(largest == 0.0, 1.0, largest / 128)
    codes = (w / scales).round()
    return where(codes > 127.0, 127.0, codes).to(int8), scales


# %% nan_code: a row of zeros is divided by 0
def quantize(w, per_row=True):
    if (w * 0.0).sum().item() != 0.0:
        raise ValueError("nan or inf")
    largest = maximum(w, -w).max(-1, keepdims=True)
    if not per_row:
        largest = largest.max(0, keepdims=True)
    scales = largest / 127
    return (w / scales).round().to(int8), scales


# %% floor_of_more: halves are rounded up
def quantize(w, per_row=True):
    if (w * 0.0).sum().item() != 0.0:
        raise ValueError("nan or inf")
    largest = maximum(w, -w).max(-1, keepdims=True)
    if not per_row:
        largest = largest.max(0, keepdims=True)
    scales = where(largest == 0.0, 1.0, largest / 127)
    return (w / scales + 0.5).floor().to(int8), scales


# %% outer_scales: the scales are multiplied as matrices
def quantized_matmul(x, codes, scales):
    x_codes, x_scales = quantize(x)
    return (x_codes.to(int32) @ codes.to(int32).permute(1, 0)).to(float64) * (x_scales @ scales.permute(1, 0))


# %% cut_off: codes are cut off, not rounded
def quantize(w, per_row=True):
    if (w * 0.0).sum().item() != 0.0:
        raise ValueError("nan or inf")
    largest = maximum(w, -w).max(-1, keepdims=True)
    if not per_row:
        largest = largest.max(0, keepdims=True)
    scales = where(largest == 0.0, 1.0, largest / 127)
    return (w / scales).to(int8), scales


# %% halves_up: halves are rounded up
def quantize(w, per_row=True):
    if (w * 0.0).sum().item() != 0.0:
        raise ValueError("nan or inf")
    largest = maximum(w, -w).max(-1, keepdims=True)
    if not per_row:
        largest = largest.max(0, keepdims=True)
    scales = where(largest == 0.0, 1.0, largest / 127)
    return ((w / scales + 0.5) // 1.0).to(int8), scales


# %% int8_product: products overflow in int8
def quantized_matmul(x, codes, scales):
    x_codes, x_scales = quantize(x)
    return (x_codes @ codes.permute(1, 0)).to("float64") * x_scales * scales.permute(1, 0)


# %% float_product: the product is of floats
def quantized_matmul(x, codes, scales):
    return x @ dequantize(codes, scales).permute(1, 0)
