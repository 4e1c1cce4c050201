"""Classes with `forward` and `backward`, of tasks 2.4 and 4.4, as functions of minifuse's tensors."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...autograd import Function
from ...core.dispatch import mode, use_dispatch_hook
from ...ir.array_functions import View
from ...tensors.tensor import Tensor
from ...tensors.transforms import gradients_of
from ..values import Values
from ..variables import Context
from .backend import Explaining, StudentBackend
from .value_engine import StudentValueEngine


class TensorFunctions:
    """Apply the classes of a student's folder to tensors, and record these calls.

    Parameters
    ----------
    backend : StudentBackend
        The backend of the tensors.
    """

    def __init__(self, backend: StudentBackend) -> None:
        self.backend, self.engine = backend, backend.engine
        self.values = StudentValueEngine(backend)
        self._functions: dict[str, type[Function]] = {}

    def apply(
        self, slot: str, definition: Callable[..., Any], *inputs: Tensor | float, of: Any = None, **options: object
    ) -> Tensor:
        """Apply a class to tensors and numbers.

        Parameters
        ----------
        slot : str
            Name of the class.
        definition : callable
            The same function by minifuse's own calls, for derivatives of the derivative.
        *inputs : Tensor or float
            At least one tensor.
        of : class, optional
            The class, where it is not itself a slot, but calls slots.
        **options
            Arguments of `forward` after the inputs.
        """
        if slot not in self._functions:
            self._functions[slot] = self.make_function(slot, of or self.engine.slot(slot))
        y: Tensor = self._functions[slot].apply(definition, options, *inputs)
        return y

    def slot(self, name: str) -> Any:
        """Return a function of module 7, which takes and returns tensors."""
        return self.engine.slot(name)

    def make_function(self, slot: str, function: Any) -> type[Function]:
        """Return an `autograd.Function` whose `forward` and `backward` are those of a student's class."""

        def forward(ctx: Any, definition: Any, options: dict[str, object], *inputs: Tensor | float) -> Tensor:
            ctx.definition, ctx.context = definition, Context()
            ctx.is_tensor = [isinstance(x, Tensor) for x in inputs]
            ctx.save_for_backward(*inputs)
            with Explaining(self.engine, slot):
                y = function.forward(ctx.context, *[self.values_of(x) for x in inputs], **options)
            return tensor_like(y, next(x for x in inputs if isinstance(x, Tensor)))

        def backward(ctx: Any, d: Tensor) -> tuple[Tensor | None, ...]:
            inputs = ctx.saved_tensors  # raises if one was modified since
            if mode.is_recording:
                return None, None, *gradients_by(ctx.definition, inputs, ctx.needs_input_grad[2:], d)
            with Explaining(self.engine, slot):
                gradients = function.backward(ctx.context, self.values_of(d))
            pairs = zip(gradients, ctx.is_tensor, strict=True)
            return None, None, *[tensor_like(g, d) if is_tensor and g is not None else None for g, is_tensor in pairs]

        return type(slot, (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})

    def values_of(self, x: Tensor | float) -> Values:
        """Return a tensor without history, in float64, over the same memory if it has this dtype."""
        return self.values.values(np.asarray(x.numpy() if isinstance(x, Tensor) else x, np.float64))


def tensor_like(y: Values, like: Tensor) -> Tensor:
    """Return a tensor with the elements of `y`, of the dtype and on the backend of another tensor."""
    with np.errstate(all="ignore"):
        return Tensor.from_numpy(np.array(y.array(), like.dtype.numpy), like.meta.backend)


def gradients_by(
    definition: Callable[..., Any], inputs: tuple[Any, ...], wanted: tuple[bool, ...], d: Tensor
) -> list[Tensor | None]:
    """Return the gradient of each input by minifuse's rules, with a history; None where none is wanted."""
    with use_dispatch_hook(None):
        pairs = list(zip(inputs, wanted, strict=True))
        aliases = [
            x.apply_view(View("reshape", x.shape)) if is_wanted else x for x, is_wanted in pairs
        ]  # one for each place
        wrt = [x for x, is_wanted in zip(aliases, wanted, strict=True) if is_wanted]
        found = iter(gradients_of([definition(*aliases)], wrt, [d], create_graph=True))
        return [next(found) if is_wanted else None for is_wanted in wanted]
