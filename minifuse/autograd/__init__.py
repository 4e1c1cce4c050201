"""Automatic differentiation with PyTorch's names: gradients of several tensors, recording modes, functions of your own.

(g,) = mf.autograd.grad(loss, w)
y = MyFunction.apply(x)  # a subclass of mf.autograd.Function
mf.autograd.functional.jacobian(f, x)
"""

from ..core.dispatch import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from . import function, functional
from .checks import gradcheck, gradgradcheck
from .function import Function
from .tape import backward, grad

__all__ = [
    "Function",
    "backward",
    "enable_grad",
    "function",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "set_grad_enabled",
]
