"""Corners at which gradients are compared with PyTorch: each kind of input with each kind of gradient that comes in."""

from math import inf, nan

NUMBERS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-3, inf, -inf, nan]
FEW = [0.0, -0.0, 1.0, -1.0, 2.5, inf, -inf, nan]  # for operators of two operands
BOUNDS = [0.0, 1.0, -1.0, inf, nan]  # for operators of three
RECEIVED = [1.0, 0.0, inf, nan]  # gradients of the result

UNARY = [
    "neg",
    "pos",
    "abs",
    "exp",
    "log",
    "log1p",
    "sqrt",
    "rsqrt",
    "sin",
    "cos",
    "tanh",
    "erf",
    "sigmoid",
    "relu",
    "gelu",
    "square",
    "reciprocal",
    "sign",
    "floor",
    "ceil",
    "trunc",
    "rint",
    "exp2",
    "expm1",
    "log2",
    "log10",
    "radians",
    "degrees",
    "tan",
    "sinh",
    "cosh",
    "nan_to_num",
    "x+0",
    "x*0",
    "0/x",
    "x**0",
    "x**1",
    "x**2",
    "x**3",
    "x**0.5",
    "x**-1",
    "x**-0.5",
    "x**1.5",
    "0**x",
    "1**x",
    "2**x",
    "(-2)**x",
    "clip(0,1)",
    "clip(0,)",
    "clip(,1)",
    "clip(1,0)",
    "maximum(x,0)",
    "minimum(x,0)",
    "where(x>0,x,0)",
    "leaky_relu",
    "gelu_tanh",
    "silu",
    "softplus",
    "elu",
    "prod_of_one",
]
BINARY = [
    "add",
    "sub",
    "mul",
    "div",
    "floordiv",
    "mod",
    "pow",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "hypot",
    "logaddexp",
    "logaddexp2",
    "heaviside",
    "mse_loss",
    "l1_loss",
    "huber_loss",
    "smooth_l1_loss",
    "bce_with_logits",
    "where",
    "clip_low",
    "clip_high",
]
TERNARY = ["clip"]
ROWS = {
    "constant": [3.0, 3.0, 3.0],
    "zeros": [0.0, 0.0, 0.0],
    "a zero": [2.0, 0.0, -3.0],
    "two zeros": [0.0, -0.0, 3.0],
    "ties": [2.0, 2.0, -3.0],
    "low ties": [2.0, -3.0, -3.0],
    "nan": [1.0, nan, 2.0],
    "two nan": [nan, 1.0, nan],
    "inf": [inf, 1.0, -1.0],
    "minus inf": [-inf, 2.0, 0.5],
    "both inf": [inf, -inf, 1.0],
    "all inf": [inf, inf, inf],
    "all minus inf": [-inf, -inf, -inf],
    "one": [2.0],
    "one zero": [0.0],
    "one nan": [nan],
    "one inf": [inf],
    "nothing": [],
}
FOLDS = [
    "sum",
    "mean",
    "prod",
    "max",
    "min",
    "var",
    "var0",
    "std",
    "std0",
    "norm",
    "norm1",
    "norm3",
    "norminf",
    "logsumexp",
    "softmax",
    "log_softmax",
    "layer_norm",
    "cross_entropy",
    "cross_entropy_smooth",
    "max_pool",
    "avg_pool",
    "attention",
]
NEED_ELEMENTS = {
    "max",
    "min",
    "norminf",
    "layer_norm",
    "cross_entropy",
    "cross_entropy_smooth",
    "max_pool",
    "avg_pool",
    "attention",
}
CORNERS = {name: [NUMBERS] for name in UNARY} | {name: [FEW, FEW] for name in BINARY}
CORNERS |= {name: [FEW, BOUNDS, BOUNDS] for name in TERNARY}


def rows_of(fold: str) -> dict[str, list[float]]:
    """Return the rows that a fold takes."""
    return {row: numbers for row, numbers in ROWS.items() if numbers or fold not in NEED_ELEMENTS}


def grid(*axes: list[float]) -> list[list[float]]:
    """All combinations of numbers, a list for each axis."""
    points: list[list[float]] = [[]]
    for axis in axes:
        points = [[*point, x] for point in points for x in axis]
    return [list(column) for column in zip(*points, strict=True)]
