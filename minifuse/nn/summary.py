"""`summary`: what a model is made of, layer by layer, with the shapes that come out for given inputs.

There are no hooks. While the model runs once, each of its modules has a `forward` of its own that notes what the real one
gives; a module finds that first, since it lies among its attributes. Afterwards it is gone, and a call has cost nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..core.dispatch import no_grad
from ..core.dtypes import float32
from ..core.errors import DTypeError
from ..core.pytree import tree_leaves
from ..inspect.explain_text import format_bytes
from ..tensors.creation import zeros
from ..tensors.tensor import Tensor
from .hooks import watched
from .module import Module, Parameter, held

WIDTH = 80  # columns of a terminal
HEAD = ("name", "layer", "output", "parameters")
LEAST = 8  # columns of a name or a layer that is cut

Shape = tuple[int, ...]


class Output(NamedTuple):
    """A tensor that a module gave."""

    shape: Shape
    nbytes: int


Calls = list[list[Output]]


class Layer(NamedTuple):
    """One module of a model, as a row of its summary."""

    name: str
    """Its path, as in a state dict; of the model itself ""."""
    layer: str
    """The class."""
    outputs: tuple[Shape, ...]
    """The shapes of the tensors that its last call gave; none where it was not called."""
    calls: int
    """How often it was called; a shared module has one row, and several calls."""
    parameters: int
    """Elements of the parameters that it holds itself, learned or frozen; those of a row above are not counted again."""


class Summary(NamedTuple):
    """What a model is made of. Printed, it is a table."""

    layers: tuple[Layer, ...]
    """The model itself, then the modules below it, in the order of `named_modules`."""
    parameters: int
    """Elements of all parameters, each counted once."""
    learned: int
    """Those of them that require a gradient."""
    nbytes: int
    """Memory of all parameters and buffers."""
    output_nbytes: int
    """Memory of all that the innermost modules gave: about what a training step keeps."""

    def __str__(self) -> str:
        rows = [HEAD, *[texts(row) for row in self.layers]]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for k in (0, 1, 2):  # the longest may be cut, names first
            widths[k] = max(min(widths[k], LEAST), widths[k] - max(0, sum(widths) + 2 * len(HEAD) - 2 - WIDTH))
        lines = []
        for row in rows:
            *left, count = [f"{fitted(x, n):{n}}" for x, n in zip(row, widths, strict=True)]
            lines.append("  ".join([*left, count.strip().rjust(widths[3])]).rstrip())
        rule = "-" * max(map(len, lines))
        total = f"{self.parameters:,} parameters, {self.learned:,} of them learned"
        memory = f"{format_bytes(self.nbytes)} of parameters and buffers, {format_bytes(self.output_nbytes)} of outputs"
        return "\n".join([lines[0], rule, *lines[1:], rule, total, memory])


def summary(model: Module, *inputs: Any) -> Summary:
    """Run a model once, and say what it is made of.

    Parameters
    ----------
    model : Module
        It is run as after `eval()`, without recording; its mode, its buffers and random numbers stay what they are.
    inputs
        What it is called with. A tuple of ints is a shape: zeros of the element type and on the backend of the first
        parameter stand for it. Anything else, such as a tensor of indices, is passed on.

    Returns
    -------
    Summary
        Its str is a table that fits 80 columns; its `layers` are rows.

    Raises
    ------
    DTypeError
        The model is no module.

    Notes
    -----
    Modules that several threads call at the same time note the calls of all of them.

    Examples
    --------
    >>> import minifuse as mf
    >>> model = mf.nn.Sequential(mf.nn.Linear(64, 32), mf.nn.ReLU(), mf.nn.Linear(32, 10))
    >>> print(mf.nn.summary(model, (5, 64)))
    name  layer       output   parameters
    -------------------------------------
          Sequential  (5, 10)
    0     Linear      (5, 32)       2,080
    1     ReLU        (5, 32)
    2     Linear      (5, 10)         330
    -------------------------------------
    2,410 parameters, 2,410 of them learned
    9,640 B of parameters and buffers, 1,480 B of outputs
    >>> mf.nn.summary(model, (5, 64)).layers[1]
    Layer(name='0', layer='Linear', outputs=((5, 32),), calls=1, parameters=2080)
    """
    if not isinstance(model, Module):
        raise DTypeError(f"summary: expected an nn.Module, got {type(model).__name__}")
    first = next(model.parameters(), None)
    dtype, backend = (float32, None) if first is None else (first.dtype, first.backend)
    given = [zeros(x, dtype=dtype, backend=backend) if is_shape(x) else x for x in inputs]
    with noted(model) as calls, no_grad():
        model(*given)
    layers, seen = [], set[int]()
    for name, module in model.named_modules():
        own = [p for _, p in held(module, Parameter) if id(p) not in seen]
        own = list({id(p): p for p in own}.values())
        seen |= {id(p) for p in own}
        found = calls[id(module)]
        shapes = tuple(x.shape for x in found[-1]) if found else ()
        layers.append(Layer(name, type(module).__name__, shapes, len(found), sum(p.size for p in own)))
    innermost = [module for module in model.modules() if next(module.children(), None) is None]
    return Summary(
        tuple(layers),
        sum(p.size for p in model.parameters()),
        sum(p.size for p in model.parameters() if p.requires_grad),
        sum(x.size * x.dtype.itemsize for x in (*model.parameters(), *model.buffers())),
        sum(x.nbytes for module in innermost for call in calls[id(module)] for x in call),
    )


@contextmanager
def noted(model: Module) -> Iterator[dict[int, Calls]]:
    """What each module gives in each call, by its id, while the block runs; nothing is in training there."""
    modules = list(model.modules())
    calls: dict[int, Calls] = {id(module): [] for module in modules}
    modes = [vars(module).get("training") for module in modules]

    def note(name: str, module: Module, y: Any) -> None:
        found = [Output(x.shape, x.size * x.dtype.itemsize) for x in tree_leaves(y) if isinstance(x, Tensor)]
        calls[id(module)].append(found)  # the tensors themselves are let go

    model.eval()
    try:
        with watched(model, note):
            yield calls
    finally:
        for module, mode in zip(modules, modes, strict=True):
            if mode is None:
                del vars(module)["training"]
            else:
                vars(module)["training"] = mode


def is_shape(x: Any) -> bool:
    """Whether an input stands for zeros."""
    return isinstance(x, tuple) and all(isinstance(n, int) for n in x)


def texts(row: Layer) -> tuple[str, str, str, str]:
    """A row as words."""
    shapes = ", ".join(map(str, row.outputs)) + f" x {row.calls}" * (row.calls > 1)
    return row.name, row.layer, shapes, f"{row.parameters:,}" if row.parameters else ""


def fitted(text: str, width: int) -> str:
    """A text cut to a width, its end kept: that tells paths apart."""
    return text if len(text) <= width else f"…{text[len(text) - width + 1 :]}"
