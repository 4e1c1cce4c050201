"""Programs whose kernels need very different loops: reductions that are short, long, nested or strided, windows, products.

Each asks another question of the choice of a schedule: which axes become blocks, threads and loops, and what is stored
between. `rows/loop_nests.py` makes rows of them.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .held_out.activations import erf
from .held_out.convolutions import correlate, exact_depthwise
from .held_out.distances import exact_gravity
from .held_out.program import Program, softmax

Inputs = Callable[..., Sequence[Any]]
STEPS = 30
BLOCK = 64


def pairwise(m: Any, x: Any, y: Any) -> Any:
    return ((x[:, None] - y[None]) ** 2).sum(2)


def exact_pairwise(x: Any, y: Any) -> Any:
    return np.concatenate([pairwise(np, x[k : k + BLOCK], y) for k in range(0, len(x), BLOCK)])


def forces(m: Any, p: Any) -> Any:
    d = p[None] - p[:, None]
    r = (d * d).sum(2)[:, :, None] + 1e-2
    return (d / (r * m.sqrt(r))).sum(1)


def exact_max_pool(x: Any) -> Any:
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).max((3, 5))


def exact_windows(x: Any) -> Any:
    return np.max([x[:, k : x.shape[1] - 6 + k] for k in range(7)], 0)


def exact_convolution(x: Any, weight: Any) -> Any:
    return correlate(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), weight)


def layer_norm(m: Any, x: Any, gain: Any, bias: Any) -> Any:
    return m.nn.functional.layer_norm(x, gain.shape, gain, bias)


def exact_layer_norm(x: Any, gain: Any, bias: Any) -> Any:
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * gain + bias


def rotated(m: Any, x: Any, cos: Any, sin: Any) -> Any:
    return x[..., ::2] * cos - x[..., 1::2] * sin


def laplacian(m: Any, x: Any) -> Any:
    return x[1:-1, 1:-1] * 4 - x[:-2, 1:-1] - x[2:, 1:-1] - x[1:-1, :-2] - x[1:-1, 2:]


def rational_map(m: Any, a: Any, b: Any) -> Any:
    x, y = a * 0, b * 0
    for _ in range(STEPS):
        x, y = x * x - y * y + a * 0.3, 2 * x * y * 0.5 + b * 0.3
        x, y = x / (1 + x * x), y / (1 + y * y)
    return x + y


def chain(m: Any, a: Any, b: Any) -> Any:
    return m.tanh(a * b + a) * 0.5 + b


def squared_difference(m: Any, a: Any, b: Any) -> Any:
    return ((a - b) ** 2).sum()


def transposed(m: Any, x: Any, b: Any) -> Any:
    return x.T * 2 + b


def exact_gelu_of_products(a: Any, b: Any) -> Any:
    x = a @ b
    return x * 0.5 * (1 + erf(x / np.sqrt(2)))


def normal(*shapes: tuple[int, ...]) -> Inputs:
    """Return a function that draws standard normal floats of some shapes, given by letters of the sizes."""
    return lambda draw, *sizes: [draw.normal(*(sizes[k] for k in shape)) for shape in shapes]


MATRIX, TWO_MATRICES = normal((0, 1)), normal((0, 1), (0, 1))
SQUARE, CPU_SQUARE, TINY_SQUARE = (8192, 8192), (2048, 2048), (37, 41)

PROGRAMS: tuple[Program, ...] = (
    Program(
        "squared distances of all pairs",
        "a short reduction of a broadcast difference",
        pairwise,
        exact_pairwise,
        normal((0, 2), (1, 2)),
        gpu=(2048, 2048, 64),
        cpu=(512, 512, 64),
        tiny=(5, 7, 3),
    ),
    Program(
        "forces between n bodies",
        "a reduction over three coordinates inside one over all bodies",
        forces,
        lambda p: exact_gravity(p, 1.0),
        lambda draw, n: [draw.normal(n, 3)],
        gpu=(4096,),
        cpu=(1024,),
        tiny=(9,),
        tolerance=1e-3,
    ),
    Program(
        "max pooling of 2 x 2",
        "a reduction of two axes, of two elements each",
        lambda m, x: m.nn.functional.max_pool2d(x, 2),
        exact_max_pool,
        normal((0, 1, 2, 3)),
        gpu=(64, 64, 112, 112),
        cpu=(8, 32, 56, 56),
        tiny=(2, 3, 4, 6),
    ),
    Program(
        "maxima of windows of 7",
        "overlapping windows: each element is read seven times",
        lambda m, x: m.nn.functional.max_pool1d(x[None], 7, 1)[0],
        exact_windows,
        MATRIX,
        gpu=(4096, 8192),
        cpu=(512, 4096),
        tiny=(3, 19),
    ),
    Program(
        "depthwise convolution of 3 x 3",
        "a padded window times a small operand",
        lambda m, x, weight: m.nn.functional.conv2d(x, weight, padding=1, groups=x.shape[1]),
        exact_depthwise,
        lambda draw, n, c, h, w: [draw.normal(n, c, h, w), draw.normal(c, 1, 3, 3)],
        gpu=(32, 128, 56, 56),
        cpu=(4, 64, 56, 56),
        tiny=(2, 3, 4, 5),
    ),
    Program(
        "variances of columns",
        "a long strided reduction with two states, of an odd width",
        lambda m, x: x.var(0),
        lambda x: x.var(0, ddof=1),
        MATRIX,
        gpu=(30000, 777),
        cpu=(10000, 333),
        tiny=(19, 7),
    ),
    Program(
        "softmax along a strided axis",
        "two reductions whose axis is not the contiguous one",
        lambda m, x: m.nn.functional.softmax(x.permute(0, 2, 1), 2),
        lambda x: softmax(x.transpose(0, 2, 1)),
        normal((0, 1, 2)),
        gpu=(128, 1000, 600),
        cpu=(16, 500, 200),
        tiny=(2, 7, 5),
    ),
    Program(
        "rotary embedding of pairs",
        "loads with a stride of two",
        rotated,
        lambda x, cos, sin: rotated(np, x, cos, sin),
        lambda draw, b, t, d: [draw.normal(b, t, 2 * d), draw.normal(t, d), draw.normal(t, d)],
        gpu=(1024, 1024, 32),
        cpu=(64, 512, 32),
        tiny=(2, 5, 3),
    ),
    Program(
        "stencil of five points",
        "neighbors in two directions",
        laplacian,
        lambda x: laplacian(np, x),
        normal((0, 0)),
        gpu=(8000,),
        cpu=(2000,),
        tiny=(7,),
    ),
    Program(
        "30 steps of a rational map",
        "arithmetic alone, 60 divisions an element",
        rational_map,
        lambda a, b: rational_map(np, a, b),
        normal((0,), (0,)),
        gpu=(1 << 22,),
        cpu=(1 << 18,),
        tiny=(33,),
        tolerance=1e-3,
    ),
    Program(
        "softmax of rows of 8,192",
        "rows that fill the registers of a block",
        lambda m, x: m.nn.functional.softmax(x, 1),
        softmax,
        MATRIX,
        gpu=SQUARE,
        cpu=CPU_SQUARE,
        tiny=TINY_SQUARE,
    ),
    Program(
        "softmax of rows of 1,001",
        "rows of an odd width",
        lambda m, x: m.nn.functional.softmax(x, 1),
        softmax,
        MATRIX,
        gpu=(65536, 1001),
        cpu=(4096, 1001),
        tiny=(5, 11),
    ),
    Program(
        "layer norm of rows of 4,096",
        "two reductions, one after the other, and operands of a row",
        layer_norm,
        exact_layer_norm,
        normal((0, 1), (1,), (1,)),
        gpu=(16384, 4096),
        cpu=(1024, 4096),
        tiny=(5, 12),
    ),
    Program(
        "chain with tanh",
        "no reduction",
        chain,
        lambda a, b: chain(np, a, b),
        normal((0,), (0,)),
        gpu=(1 << 26,),
        cpu=(1 << 22,),
        tiny=(37,),
    ),
    Program(
        "argmax of rows",
        "a reduction with two states",
        lambda m, x: x.argmax(1),
        lambda x: x.argmax(1),
        MATRIX,
        gpu=SQUARE,
        cpu=CPU_SQUARE,
        tiny=TINY_SQUARE,
        dtype="int64",
    ),
    *(
        Program(
            f"sum over {name}",
            "a reduction and nothing else",
            work,
            lambda x, dim=dim: np.asarray(x.sum(dim)),
            MATRIX,
            gpu=SQUARE,
            cpu=CPU_SQUARE,
            tiny=TINY_SQUARE,
            tolerance=1e-3,
        )
        for name, dim, work in (
            ("all elements", None, lambda m, x: x.sum()),
            ("columns", 0, lambda m, x: x.sum(0)),
            ("rows", 1, lambda m, x: x.sum(1)),
        )
    ),
    Program(
        "squared difference",
        "a reduction to one number that is split over the whole device",
        squared_difference,
        lambda a, b: np.asarray(squared_difference(np, a, b)),
        normal((0,), (0,)),
        gpu=(1 << 26,),
        cpu=(1 << 22,),
        tiny=(37,),
    ),
    Program(
        "transposed operand",
        "two operands with different contiguous axes",
        transposed,
        lambda x, b: transposed(np, x, b),
        TWO_MATRICES,
        gpu=SQUARE,
        cpu=CPU_SQUARE,
        tiny=(13, 13),
    ),
    Program(
        "convolution of 3 x 3",
        "a contraction of three axes, with padding",
        lambda m, x, weight: m.nn.functional.conv2d(x, weight, padding=1),
        exact_convolution,
        lambda draw, n, c, o, h, w: [draw.normal(n, c, h, w), draw.normal(o, c, 3, 3)],
        gpu=(32, 64, 128, 56, 56),
        cpu=(2, 32, 64, 56, 56),
        tiny=(2, 3, 4, 5, 4),
    ),
    Program(
        "batch of products with GELU",
        "products of an odd width, and a function of each result",
        lambda m, a, b: m.nn.functional.gelu(a @ b),
        exact_gelu_of_products,
        normal((0, 1, 2), (0, 2, 3)),
        gpu=(64, 300, 128, 257),
        cpu=(8, 300, 128, 257),
        tiny=(2, 5, 4, 3),
    ),
    Program(
        "product of matrices",
        "a contraction of one long axis",
        lambda m, a, b: a @ b,
        lambda a, b: a @ b,
        normal((0, 1), (1, 2)),
        gpu=(2048, 2048, 2048),
        cpu=(512, 512, 512),
        tiny=(5, 7, 6),
    ),
)
