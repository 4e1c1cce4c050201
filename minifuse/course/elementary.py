"""The functions of the library that module 7 begins with: `from minifuse.course.elementary import where`.

A tensor is `mf.Tensor`. Its operators and most of its methods are elementary, too: `x.exp()`, `x.sum(-1, keepdim=True)`,
`x.reshape(2, 3)`, `x.permute(1, 0)`, `x[..., :4]`.
"""

from ..autograd import Function
from ..core.dispatch import no_grad
from ..core.dtypes import bool_, float32, float64, int8, int32, int64
from ..core.operators import exp, log, maximum, minimum, where
from ..functions.joining import cat, stack
from ..tensors.creation import arange, full, ones, tensor, zeros
from ..tensors.tensor import Tensor

__all__ = [
    "Function",
    "Tensor",
    "arange",
    "bool_",
    "cat",
    "exp",
    "float32",
    "float64",
    "full",
    "int8",
    "int32",
    "int64",
    "log",
    "maximum",
    "minimum",
    "no_grad",
    "ones",
    "stack",
    "tensor",
    "where",
    "zeros",
]
