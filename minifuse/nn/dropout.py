"""Dropout: elements become 0 at random, so that a network relies on none of them. In training only.

No random numbers lie in memory. Each call draws a polynomial, and what becomes of an element is decided by the value of that
at its position, inside the kernel that needs it; the backward pass computes the same again instead of keeping a mask.
"""

import math
from typing import Any

from ..core.dispatch import active_tracer
from ..core.dtypes import as_number
from ..core.operators import where
from ..tensors.creation import generator
from .activations import floats
from .layers import apply, refuse_other_than_tensors
from .module import Module

HALF = 1 << 63  # an int64 lies between -HALF and HALF
DEGREE = 3


def dropout(x: Any, p: float = 0.5, training: bool = True) -> Any:
    """Set each element to 0 with probability p, and multiply the others by 1 / (1 - p), so that the mean stays.

    Parameters
    ----------
    x : Tensor of floats
    p : float
        0 to 1.
    training : bool
        Whether anything is done at all; else x is given back as it is.

    Returns
    -------
    Tensor
        Of the shape and dtype of x.

    Raises
    ------
    ValueError
        p does not lie between 0 and 1.
    DTypeError
        x is no tensor of floats.

    Notes
    -----
    An element at position i, in row-major order, is kept where a i**3 + b i**2 + c i + d, computed modulo 2**63 in
    int64, is not below p * 2**63. The four coefficients come from the generator of `mf.manual_seed`, anew for each call; in
    a fused function for each of its calls too, and in the same order as without fusion. So any four elements are dropped
    independently of each other [1]_, up to about 2**-32; five are not, which neither the mean nor the variance of a sum
    shows. A view in another order of memory gets the same mask.

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
    refuse_other_than_tensors("dropout", x)
    p = as_number(p)
    if not 0 <= p <= 1:
        raise ValueError(f"dropout: p is {p}, expected a probability, 0 to 1")
    floats("dropout", x)
    if not training or p == 0:
        return x
    dropped = min(int(p * HALF), HALF - 1)  # so many of HALF values
    scale = 0.0 if p == 1 else 1 / (1 - p)
    return apply(_dropout, x, dropped, scale, *[coefficient() for _ in range(DEGREE + 1)])


def _dropout(x: Any, dropped: Any, scale: Any, *coefficients: Any) -> Any:
    position = x.positions(math.prod(x.shape)).reshape(x.shape)
    value, *others = coefficients
    for c in others:
        value = value * position + c
    # Overflow only ever reaches the sign, which is not looked at: compilers may take it that there is none.
    return where((value & (HALF - 1)) >= dropped, x * scale, 0)


def coefficient() -> Any:
    """An int64, any of them; inside a fused function one that each call draws."""
    by = active_tracer()
    return drawn() if by is None else by.call_counter(drawn, 0)


def drawn() -> int:
    """The next 64 bits of the generator."""
    return int(generator().bit_generator.random_raw()) - HALF


class Dropout(Module):
    """`dropout` as a module: at work in training, nothing after `eval()`.

    Parameters
    ----------
    p : float
        How probable it is that an element becomes 0.

    Raises
    ------
    ValueError
        p does not lie between 0 and 1.

    Examples
    --------
    >>> import minifuse as mf
    >>> layer = mf.nn.Dropout(0.1)
    >>> layer, layer.eval()(mf.ones(3))
    (Dropout(p=0.1), tensor([1., 1., 1.]))
    """

    def __init__(self, p: float = 0.5) -> None:
        p = as_number(p)
        if not 0 <= p <= 1:
            raise ValueError(f"Dropout: p is {p}, expected a probability, 0 to 1")
        self.p = p

    def forward(self, x: Any) -> Any:
        """The same shape."""
        return dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        """How probable it is."""
        return f"p={self.p}"
