"""The methods of arrays as functions: mf.sum(x, dim=1) is x.sum(dim=1)."""

from collections.abc import Callable
from typing import Any

from ..jit.fuse import fuse
from .table import FUNCTIONS, function

METHODS = (
    "sum prod any all mean var std argmax argmin softmax log_softmax logsumexp permute transpose reshape flatten unsqueeze "
    "squeeze flip index_select clone detach"
)


def call_method(name: str) -> Callable[..., Any]:
    """Return the function that calls a method of its first argument."""

    def call(x: Any, *inputs: Any, **named: Any) -> Any:
        return getattr(x, name)(*inputs, **named)

    call.__name__, call.__doc__ = name, f"Call the method `x.{name}`."
    return call


for _name in METHODS.split():
    function(_name, method=False)(call_method(_name))

FUNCTIONS["compile"] = fuse  # PyTorch's word
