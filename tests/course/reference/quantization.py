"""Module 7: weights of eight bits. A weight is a code, an int from -127 to 127, times the scale of its row.

Write with elementary operations: `+ - * / @`, comparisons, `where`, `maximum`, `x.abs()`, `x.max(-1, keepdim=True)`,
`x.round()` (halves to even), `x.permute(1, 0)`; `x.to(int8)`, `x.to(int32)` and `x.to(float64)` convert.
"""

from minifuse.course import todo
from minifuse.course.elementary import float64, int8, int32, maximum, where

# Task 7.6


def quantize(w, per_row=True):
    """Return (codes, scales) of a float64 tensor of shape (rows, columns).

    codes are int8 of the same shape: w / scale, rounded to the nearest integer, a half to the even one. scales are float64:
    the largest absolute value of a row, divided by 127, of shape (rows, 1); 1.0 for a row of zeros. Without per_row, there
    is one scale for all rows, of shape (1, 1). Raise ValueError if an element is nan or inf.
    """
    # begin 7.6a
    if (w * 0.0).sum().item() != 0.0:
        raise ValueError("an element is nan or inf: no scale fits")
    largest = maximum(w, -w).max(-1, keepdim=True)
    if not per_row:
        largest = largest.max(0, keepdim=True)
    scales = where(largest == 0.0, 1.0, largest / 127)
    return (w / scales).round().to(int8), scales
    # end


def dequantize(codes, scales):
    """Return the weights that codes and scales stand for, in float64."""
    # begin 7.6b
    return codes.to(float64) * scales
    # end


def quantized_matmul(x, codes, scales):
    """Return x times the transposed weights, (n, rows) in float64, for x of shape (n, columns) in float64.

    Each row of x is quantized, too. Codes are multiplied and added in int32, in one product of matrices; the result is
    multiplied by both scales. scales has shape (rows, 1) or (1, 1).
    """
    # begin 7.6c
    x_codes, x_scales = quantize(x)
    product = x_codes.to(int32) @ codes.to(int32).permute(1, 0)
    return product.to(float64) * x_scales * scales.permute(1, 0)
    # end


def count_bytes(codes, scales):
    """Return how many bytes codes and scales take, an int: 1 for a code, 8 for a scale."""
    # begin 7.6d
    return codes.shape[0] * codes.shape[1] + 8 * scales.shape[0]
    # end
