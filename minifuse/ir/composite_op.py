"""Ops that are defined by other array functions, and for which a backend may have one kernel, as attention."""

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from ..core.interning import Interned
from .array_functions import A, Function, ShapeDtype

if TYPE_CHECKING:
    from .array_methods import Array


class CompositeOp(metaclass=Interned):
    """An op that is defined by other functions, for which a backend may have a special kernel.

    Each output is a node. An op may have its own VJP. If the backend `supports` the op, one step of the plan computes all
    outputs. Otherwise the compiler replaces the op by its definition, before it forms kernels. Interned by its parameters.

    Attributes
    ----------
    names : tuple of str
        Names of the outputs. Backends identify the op by the first one.
    output_layout_like : tuple of int or None
        For each output, the input whose memory order it has, if the shapes are equal.
    overwritten_input : int or None
        The input that the output may be stored over: kernels change some of its elements, and keep the others.
    """

    __slots__ = ("__weakref__",)
    names: tuple[str, ...] = ()
    output_layout_like: tuple[int | None, ...] = ()
    overwritten_input: int | None = None

    @property
    def parameters(self) -> tuple[Hashable, ...]:
        """Parameters that a backend needs besides the name."""
        return ()

    def infer(self, *inputs: Any) -> tuple[ShapeDtype, ...]:
        """Return the shape and dtype of each output."""
        raise NotImplementedError

    def body(self, *inputs: Any) -> tuple[Any, ...]:
        """Return the definition of each output."""
        raise NotImplementedError

    def fused_body(self, *inputs: Any) -> tuple[Any, ...]:
        """Compute the outputs for a target whose kernels read windows without copies; by default as `body`."""
        return self.body(*inputs)

    def sorted_body(self, *inputs: Any) -> tuple[Any, ...]:
        """Compute the outputs for a target that sorts the index of a scatter; by default as `fused_body`."""
        return self.fused_body(*inputs)

    def vjp(self, index: int, g: Any, *inputs: Any) -> tuple[Any, ...] | None:
        """Return the gradient of each input, given that of output `index`, or None to differentiate the definition."""
        return None

    def outputs(self, *inputs: A) -> tuple[A, ...]:
        """Return each output as a node."""
        return tuple(CompositeOutput(self, k)(*inputs) for k in range(len(self.names)))

    def __call__(self, *inputs: A) -> tuple[A, ...]:
        """Apply the op by the `apply` of the first input."""
        return inputs[0].apply(self, *inputs)


class CompositeOutput(Function):
    """One output of a composite op."""

    __slots__ = ("index", "op")
    __match_args__ = ("op", "index")

    def __init__(self, op: CompositeOp, index: int) -> None:
        self.op, self.index = op, index

    def infer(self, *inputs: "Array") -> ShapeDtype:
        """Return the shape and dtype of this output."""
        return self.op.infer(*inputs)[self.index]

    def __repr__(self) -> str:
        return self.op.names[self.index]
