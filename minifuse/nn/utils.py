"""Gradient clipping, and parameters as one vector, with PyTorch's names."""

from collections.abc import Iterable

from ..core.dispatch import no_grad
from ..core.errors import ShapeError
from ..functions.joining import cat
from ..ir.array_methods import Array
from ..optim.clipping import clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm
from ..tensors.tensor import Tensor

clip_grad_norm = clip_grad_norm_  # PyTorch's old name

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
    "parameters_to_vector",
    "vector_to_parameters",
]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Array:
    """Return the elements of all parameters as one vector. Gradients flow through it.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.utils.parameters_to_vector([mf.tensor([[1.0, 2.0]]), mf.tensor(3.0)])
    tensor([1., 2., 3.])
    """
    return cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Store the elements of a vector in parameters, in their order.

    Examples
    --------
    >>> import minifuse as mf
    >>> p, q = mf.zeros(2), mf.zeros(())
    >>> mf.nn.utils.vector_to_parameters(mf.tensor([1.0, 2.0, 3.0]), [p, q])
    >>> p, q
    (tensor([1., 2.]), tensor(3.))
    """
    params = list(parameters)
    if vec.shape != (sum(p.size for p in params),):
        raise ShapeError(f"vector_to_parameters: got shape {vec.shape}, expected one dim of {sum(p.size for p in params)}")
    start = 0
    with no_grad():
        for p in params:
            p.copy_(vec[start : start + p.size].reshape(p.shape))
            start += p.size
