"""Wrong solutions of task 7.6 that were written to get past its checks. Each is appended to the reference."""

# %% one_scale_always: per_row is ignored
# promise: 'Without per_row, there is one scale'
def quantize(w, per_row=True, inner=quantize):
    return inner(w, False)

# %% repeated_scale: the common scale is repeated for each row
# promise: 'of shape (1, 1)'
def quantize(w, per_row=True, inner=quantize):
    codes, scales = inner(w, per_row)
    return codes, scales if per_row else scales + (w * 0.0).sum(-1, keepdims=True)

# %% int_codes: codes are int64
# promise: 'codes are int8'
def quantize(w, per_row=True, inner=quantize):
    codes, scales = inner(w, per_row)
    return codes.to("int64"), scales

# %% float32_scales: scales have half the precision
# promise: 'scales are float64'
def quantize(w, per_row=True, inner=quantize):
    codes, scales = inner(w, per_row)
    return codes, scales.to("float32").to("float64")

# %% nan_is_zero: elements that are not finite are set to 0
# promise: 'Raise ValueError if an element is nan or inf'
def quantize(w, per_row=True, inner=quantize):
    return inner(where(w * 0.0 == 0.0, w, 0.0), per_row)

# %% only_nan: inf is not refused
# promise: 'nan or inf'
def quantize(w, per_row=True, inner=quantize):
    if (w != w).any().item():
        raise ValueError("nan")
    return inner(where(w * 0.0 == 0.0, w, 1.0), per_row)

# %% positive_side: the scale is that of the largest weight, not of the largest absolute value
# promise: 'the largest absolute value'
def quantize(w, per_row=True):
    if (w * 0.0).sum().item() != 0.0:
        raise ValueError("nan or inf")
    largest = w.max(-1, keepdims=True)
    if not per_row:
        largest = largest.max(0, keepdims=True)
    scales = where(largest <= 0.0, 1.0, largest / 127)
    exact = (w / scales).round()
    return where(exact < -127.0, -127.0, exact).to(int8), scales

# %% uses_minus_128: a row whose largest weight is negative gets -128
# promise: '-127 to 127'
def quantize(w, per_row=True):
    if (w * 0.0).sum().item() != 0.0:
        raise ValueError("nan or inf")
    largest = maximum(w / 127, -w / 128).max(-1, keepdims=True)
    if not per_row:
        largest = largest.max(0, keepdims=True)
    scales = where(largest == 0.0, 1.0, largest)
    return (w / scales).round().to(int8), scales

# %% nearly_rounded: weights are moved a little before they are rounded
# promise: 'rounded to the nearest integer'
def quantize(w, per_row=True, inner=quantize):
    codes, scales = inner(w, per_row)
    return (w / scales * 0.999).round().to(int8), scales

# %% shifted_weights: dequantize adds a quarter of a step
# promise: 'the weights that codes and scales stand for'
def dequantize(codes, scales):
    return (codes.to("float64") + 0.25) * scales

# %% int16_product: products are added in int16
# promise: 'added in int32'
def quantized_matmul(x, codes, scales):
    x_codes, x_scales = quantize(x)
    product = x_codes.to("int16") @ codes.to("int16").permute(1, 0)
    return product.to("float64") * x_scales * scales.permute(1, 0)

# %% float_codes: codes are multiplied as floats
# promise: 'in int32'
def quantized_matmul(x, codes, scales):
    x_codes, x_scales = quantize(x)
    return x_codes.to("float64") @ codes.to("float64").permute(1, 0) * x_scales * scales.permute(1, 0)

# %% common_scale_of_x: x has one scale for all rows
# promise: 'Each row of x is quantized'
def quantized_matmul(x, codes, scales):
    x_codes, x_scales = quantize(x, False)
    product = x_codes.to("int32") @ codes.to("int32").permute(1, 0)
    return product.to("float64") * x_scales * scales.permute(1, 0)

# %% bytes_of_floats: bytes are those of float64 weights
# promise: '1 for a code'
def count_bytes(codes, scales):
    return 8 * codes.shape[0] * codes.shape[1]
