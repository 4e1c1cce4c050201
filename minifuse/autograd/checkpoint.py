"""Checkpointing: compute a part of a network again in the backward pass, instead of saving its intermediate values."""

from collections.abc import Callable, Sequence
from typing import Any

from ..core import autograd
from ..core.dispatch import active_tracer, grad_recording, mode
from ..core.errors import GradientError
from ..core.interning import toposort
from ..tensors.random import get_rng_state, set_rng_state
from ..tensors.tensor import Tensor
from ..tensors.transforms import make_variable
from .function import with_history
from .tape import as_sequence


class CheckpointBackward:
    """The tape node of a checkpoint: `backward` calls the function again, and differentiates it."""

    __slots__ = ("_hooks", "count", "edges", "function", "inputs", "leaves", "named", "rng_state")

    def __init__(self, function: Callable[..., Any], inputs: Sequence[Any], named: dict[str, Any], rng_state: Any) -> None:
        self.function, self.named, self.rng_state = function, named, rng_state
        self.inputs: Sequence[Any] | None = inputs
        self.count, self.edges, self.leaves = 0, tuple[Any, ...](), list[Tensor]()

    def run(self) -> tuple[list[Tensor], Any]:
        """Call the function on variables of its inputs, and return them and the outputs.

        Gradients do not flow from the variables to the inputs: this node passes them on.
        """
        if self.inputs is None:
            raise GradientError(autograd.FREED_GRAPH)
        arguments = [
            make_variable(x, k) if isinstance(x, Tensor) and x.requires_grad else x for k, x in enumerate(self.inputs)
        ]
        variables = [x for x, old in zip(arguments, self.inputs, strict=True) if x is not old]
        for x in variables:
            backward_of(x).edges = (None,)
        with grad_recording(True):
            return variables, self.function(*arguments, **self.named)

    def record(self, outputs: Sequence[Any]) -> list[Any]:
        """Find the leaves that the outputs depend on besides the variables, and return outputs with this node as history."""
        found = [y for y in outputs if isinstance(y, Tensor) and y.grad_fn]
        nodes = toposort(
            [y.grad_fn[0] for y in found if y.grad_fn],
            lambda node: [edge[0] for edge in node.edges if type(edge) is tuple],
        )
        edges = [edge for node in nodes for edge in node.edges if isinstance(edge, Tensor)]
        self.leaves = list({id(x): x for x in edges}.values())
        inputs = [x for x in self.inputs or () if isinstance(x, Tensor) and x.requires_grad]
        self.edges = (*map(autograd.grad_edge, inputs), *self.leaves)
        self.count = len(outputs)
        return [with_history(y, (self, k)) if isinstance(y, Tensor) and y.grad_fn else y for k, y in enumerate(outputs)]

    def backward(self, gradients: Sequence[Any]) -> Sequence[Any]:
        """Call the function again, in the random state of the first call, and return the gradients."""
        is_recording, state = bool(mode.is_recording), get_rng_state()
        if self.rng_state is not None:
            set_rng_state(self.rng_state)
        try:
            variables, result = self.run()
        finally:
            set_rng_state(state)
        pairs = [(y, g) for y, g in zip(as_sequence(result), gradients, strict=True) if g is not None]
        edges = [*map(autograd.grad_edge, variables), *self.leaves]
        found = autograd.run_backward(
            [y for y, _ in pairs], [g for _, g in pairs], create_graph=is_recording, retain_graph=True, wrt=edges
        )
        inputs = [x for x in self.inputs or () if isinstance(x, Tensor) and x.requires_grad]
        for variable, x in zip(variables, inputs, strict=True):
            backward_of(variable).edges = (autograd.grad_edge(x),)  # for the gradient of the gradient
        return [found.get(edge) for edge in edges]

    def free_saved(self) -> None:
        """Free the inputs."""
        self.inputs, self.edges = None, ()


def backward_of(variable: Tensor) -> Any:
    """Return the node that connects a variable to the tensor that it was made of."""
    assert variable.grad_fn is not None
    return variable.grad_fn[0]


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """Call a function, and save only its inputs: the backward pass calls it again.

    Parameters
    ----------
    function
        A part of a network, which returns a tensor or a tuple. It is called twice with equal values.
    args, kwargs
        Its arguments. Those of `args` get gradients, and so do leaves that the function uses, such as parameters.
    use_reentrant : bool, optional
        Without effect.
    preserve_rng_state : bool
        Whether the second call draws the random numbers of the first.

    Notes
    -----
    Inside a fused function this is a plain call: the compiler recomputes cheap values in any case.

    Examples
    --------
    >>> import minifuse as mf
    >>> x = mf.tensor([1.0, 2.0], requires_grad=True)
    >>> mf.utils.checkpoint.checkpoint(lambda x: (x.exp() * x).sum(), x).backward()
    >>> x.grad
    tensor([ 5.4366, 22.1672])
    """
    if active_tracer() is not None or not mode.is_recording:
        return function(*args, **kwargs)
    node = CheckpointBackward(function, args, kwargs, get_rng_state() if preserve_rng_state else None)
    _, result = node.run()
    outputs = node.record(as_sequence(result))
    return tuple(outputs) if isinstance(result, list | tuple) else outputs[0]


def checkpoint_sequential(functions: Any, segments: int, input: Any, **options: Any) -> Any:  # noqa: A002  # PyTorch's name
    """Call layers in order, in checkpoints of about equal numbers of them; the last segment saves its values.

    Examples
    --------
    >>> import minifuse as mf
    >>> x = mf.tensor([1.0, 2.0], requires_grad=True)
    >>> mf.utils.checkpoint.checkpoint_sequential([mf.exp, mf.log, mf.sqrt], 2, x).sum().backward()
    >>> x.grad
    tensor([0.5   , 0.3536])
    """
    layers = list(functions)
    length = max(1, len(layers) // segments)

    def run(start: int, stop: int) -> Callable[[Any], Any]:
        def segment(x: Any) -> Any:
            for layer in layers[start:stop]:
                x = layer(x)
            return x

        return segment

    x, last = input, length * (segments - 1)
    for start in range(0, last, length):
        x = checkpoint(run(start, start + length), x, **options)
    return run(last, len(layers))(x)
