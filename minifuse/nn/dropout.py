"""Dropout: set random elements to 0 during training, so that a network does not rely on single elements.

No random numbers are stored. Each call draws the coefficients of a polynomial, and the kernel keeps or drops each element
depending on the polynomial's value at the element's position. The backward pass computes these values again, so no mask is
stored.
"""

import math
from collections.abc import Sequence
from typing import Any

from ..core.dispatch import active_tracer
from ..core.dtypes import as_number, float32
from ..core.indexing import Shape
from ..core.operators import where
from ..ir.array_functions import A
from ..ir.array_methods import Array
from ..tensors.random import generator
from .activations import require_floats
from .layers import FunctionLayer, apply, require_tensor

SIGN_BIT = 1 << 63  # int64 values are in [-SIGN_BIT, SIGN_BIT)
DEGREE = 3  # degree of the polynomial: any DEGREE + 1 elements are dropped independently


def dropout(x: A, p: float = 0.5, training: bool = True, inplace: bool = False) -> A:
    """Set each element to 0 with probability p, and multiply the others by 1 / (1 - p), so that the mean does not change.

    Parameters
    ----------
    x : Tensor of floats
    p : float
        The probability, from 0 to 1.
    training : bool
        If False, return x itself.
    inplace : bool
        If True, store the result in the memory of x.

    Returns
    -------
    Tensor
        The shape and dtype of x.

    Raises
    ------
    ValueError
        p is not between 0 and 1.
    DTypeError
        x is not a tensor of floats.

    Notes
    -----
    The element at position i, in row-major order, is kept if a i**3 + b i**2 + c i + d, computed modulo 2**63 in int64, is
    at least p * 2**63. Each call draws the four coefficients from the generator of `mf.manual_seed`; a fused function draws
    them in each call, too, in the same order as without fusion. So any four elements are dropped independently of each
    other [1]_, up to about 2**-32. Five are not, but this affects neither the mean nor the variance of a sum. The mask does
    not depend on the strides of x.

    References
    ----------
    .. [1] M. N. Wegman, J. L. Carter, New hash functions and their use in authentication and set equality, 1981,
       doi:10.1016/0022-0000(81)90033-7

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.manual_seed(0)
    >>> x = mf.ones(4, 1000)
    >>> y = mf.nn.dropout(x, 0.2)
    >>> sorted(set(y.flatten().tolist())), abs(y.mean().item() - 1) < 0.05
    ([0.0, 1.25], True)
    >>> mf.nn.dropout(x, 0.2, training=False) is x
    True
    """
    require_tensor("dropout", x)
    p = as_number(p)
    if not 0 <= p <= 1:
        raise ValueError(f"dropout: got p={p}, expected a probability from 0 to 1")
    require_floats("dropout", x)
    if not training or p == 0:
        return x
    threshold = min(int(p * SIGN_BIT), SIGN_BIT - 1)  # elements with smaller polynomial values are dropped
    scale = 0.0 if p == 1 else 1 / (1 - p)
    y = apply(_dropout, x, threshold, scale, *draw_coefficients())
    return x.copy_(y) if inplace else y


def _dropout(x: Array, threshold: Array, scale: Array, *coefficients: Array) -> Array:
    y: Array = where(random_bits(x, x.shape, coefficients) >= threshold, x * scale, 0)
    return y


def random_bits(x: A, shape: Shape, coefficients: Sequence[Any]) -> Any:
    """Return random integers from 0 to 2**63 - 1: the polynomial of these coefficients at each position of a shape."""
    position = x.positions(math.prod(shape)).reshape(shape)
    value, *others = coefficients
    for c in others:
        value = value * position + c
    # Compilers may assume that int64 does not overflow. This can only change the sign bit, which is masked out.
    return value & (SIGN_BIT - 1)


def random_uniform(x: A, coefficients: Sequence[Any]) -> A:
    """Return random numbers between 0 and 1, both excluded, of the shape and dtype of x."""
    digits = 23 if x.dtype is float32 else 52  # one less than the dtype stores, so that adding a half is exact
    bits = random_bits(x, x.shape, coefficients) >> (63 - digits)
    uniform: A = (bits.to(x.dtype) + 0.5) * 2.0**-digits
    return uniform


def draw_coefficients() -> list[object]:
    """Draw the coefficients of a polynomial."""
    return [draw_coefficient() for _ in range(DEGREE + 1)]


def draw_coefficient() -> object:
    """Draw a random int64; inside a fused function, a value that each call draws again."""
    tracer = active_tracer()
    return draw_int64() if tracer is None else tracer.call_counter(draw_int64, 0)


def draw_int64() -> int:
    """Draw the next 64 bits of the generator."""
    return int(generator().bit_generator.random_raw()) - SIGN_BIT


class Dropout(FunctionLayer):
    """`dropout` as a module: active in training, the identity after `eval()`.

    Parameters
    ----------
    p : float
        The probability that an element is set to 0.
    inplace : bool
        If True, store the result in the memory of the input.

    Raises
    ------
    ValueError
        p is not between 0 and 1.

    Examples
    --------
    >>> import minifuse as mf
    >>> layer = mf.nn.Dropout(0.1)
    >>> layer, layer.eval()(mf.ones(3))
    (Dropout(p=0.1), tensor([1., 1., 1.]))
    """

    options = ("p",)

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        p = as_number(p)
        if not 0 <= p <= 1:
            raise ValueError(f"Dropout: got p={p}, expected a probability from 0 to 1")
        self.p, self.inplace = p, inplace

    def forward(self, x: A) -> A:
        """Apply dropout; the shape does not change."""
        return dropout(x, self.p, self.training, self.inplace)
