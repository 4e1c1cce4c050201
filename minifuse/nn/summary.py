"""`summary`: a table of a model's layers, with their output shapes for given inputs.

Modules have no hooks. Instead, while the model runs once, a wrapper of each module's `forward` records the outputs. The
wrappers are removed afterwards, so normal calls cost nothing extra.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeGuard

from ..core import html
from ..core.dispatch import no_grad
from ..core.dtypes import float32
from ..core.errors import DTypeError
from ..core.pytree import tree_leaves
from ..inspect.report import format_bytes
from ..tensors.creation import zeros
from ..tensors.tensor import Tensor
from .hooks import watch_outputs
from .module import Module, Parameter, named_members

MAX_WIDTH = 80  # characters of a line
HEADINGS = ("name", "layer", "output", "parameters")
MIN_COLUMN_WIDTH = 8  # characters of a truncated name or layer

Shape = tuple[int, ...]


class OutputShape(NamedTuple):
    """Shape and size of an output tensor."""

    shape: Shape
    nbytes: int


Calls = list[list[OutputShape]]


class Layer(NamedTuple):
    """One module of a model, as a row of its summary."""

    name: str
    """Its path, as in a state dict; "" for the model itself."""
    layer: str
    """Name of its class."""
    outputs: tuple[Shape, ...]
    """Shapes of the tensors that its last call returned; empty if it was not called."""
    calls: int
    """Number of calls; a shared module has one row and several calls."""
    parameters: int
    """Number of elements of its parameters, learned or frozen, not counting those of children or of rows above."""


class Summary(NamedTuple):
    """The layers of a model, with totals. `print` shows it as a table."""

    layers: tuple[Layer, ...]
    """The model itself, then the modules below it, in the order of `named_modules`."""
    parameters: int
    """Number of elements of all parameters, each counted once."""
    learned: int
    """Number of elements of the parameters that require a gradient."""
    nbytes: int
    """Bytes of all parameters and buffers."""
    output_nbytes: int
    """Bytes of the outputs of the innermost modules: about the memory of the activations of a training step."""

    def __str__(self) -> str:
        rows = [HEADINGS, *[format_row(row) for row in self.layers]]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for k in (0, 1, 2):  # truncate names first, then layers, then shapes
            widths[k] = max(
                min(widths[k], MIN_COLUMN_WIDTH), widths[k] - max(0, sum(widths) + 2 * len(HEADINGS) - 2 - MAX_WIDTH)
            )
        lines = []
        for row in rows:
            *left, count = [f"{truncate_left(x, n):{n}}" for x, n in zip(row, widths, strict=True)]
            lines.append("  ".join([*left, count.strip().rjust(widths[3])]).rstrip())
        rule = "-" * max(map(len, lines))
        return "\n".join([lines[0], rule, *lines[1:], rule, *self.totals()])

    def _repr_html_(self) -> str:
        rows = [format_row(row) for row in self.layers]
        totals = [html.element("div", line) for line in self.totals()]
        return html.block(html.table(HEADINGS, rows, is_number=[False] * 3 + [True]), *totals)

    def totals(self) -> tuple[str, str]:
        """Return the numbers of parameters and bytes as sentences."""
        return (
            f"{self.parameters:,} parameters, {self.learned:,} of them learned",
            f"{format_bytes(self.nbytes)} of parameters and buffers, {format_bytes(self.output_nbytes)} of outputs",
        )


def summary(model: Module, *inputs: object) -> Summary:
    """Run a model once and list its layers with their output shapes.

    Parameters
    ----------
    model : Module
        The model, which runs in evaluation mode without recording gradients. Its mode, its buffers and the random state do
        not change.
    inputs
        The model's inputs. A tuple of ints is a shape, and is replaced by zeros of the dtype and on the backend of the first
        parameter. Anything else, such as a tensor of indices, is passed as it is.

    Returns
    -------
    Summary
        Printed, it is a table of at most 80 columns; its `layers` are the rows.

    Raises
    ------
    DTypeError
        `model` is not an `nn.Module`.

    Notes
    -----
    If other threads call the modules at the same time, their calls are recorded, too.

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
        raise DTypeError(f"summary: got {type(model).__name__}, expected an nn.Module")
    first = next(model.parameters(), None)
    dtype, backend = (float32, None) if first is None else (first.dtype, first.backend)
    arguments = [zeros(x, dtype=dtype, backend=backend) if is_shape(x) else x for x in inputs]
    with record_calls(model) as calls, no_grad():
        model(*arguments)
    layers, seen = [], set[int]()
    for name, module in model.named_modules():
        parameters = [p for _, p in named_members(module, Parameter) if id(p) not in seen]
        parameters = list({id(p): p for p in parameters}.values())
        seen |= {id(p) for p in parameters}
        module_calls = calls[id(module)]
        shapes = tuple(x.shape for x in module_calls[-1]) if module_calls else ()
        layers.append(Layer(name, type(module).__name__, shapes, len(module_calls), sum(p.size for p in parameters)))
    innermost_modules = [module for module in model.modules() if next(module.children(), None) is None]
    return Summary(
        tuple(layers),
        sum(p.size for p in model.parameters()),
        sum(p.size for p in model.parameters() if p.requires_grad),
        sum(x.size * x.dtype.itemsize for x in (*model.parameters(), *model.buffers())),
        sum(x.nbytes for module in innermost_modules for call in calls[id(module)] for x in call),
    )


@contextmanager
def record_calls(model: Module) -> Iterator[dict[int, Calls]]:
    """Record the outputs of each module in each call, by module id, while the block runs in evaluation mode."""
    modules = list(model.modules())
    calls: dict[int, Calls] = {id(module): [] for module in modules}
    modes = [vars(module).get("training") for module in modules]

    def record(name: str, module: Module, y: object) -> None:
        shapes = [OutputShape(x.shape, x.size * x.dtype.itemsize) for x in tree_leaves(y) if isinstance(x, Tensor)]
        calls[id(module)].append(shapes)  # shapes only: the tensors are freed

    model.eval()
    try:
        with watch_outputs(model, record):
            yield calls
    finally:
        for module, mode in zip(modules, modes, strict=True):
            if mode is None:
                del vars(module)["training"]
            else:
                vars(module)["training"] = mode


def is_shape(x: object) -> TypeGuard[Shape]:
    """Return True for a tuple of ints, which `summary` replaces by zeros of that shape."""
    return isinstance(x, tuple) and all(isinstance(n, int) for n in x)


def format_row(row: Layer) -> tuple[str, str, str, str]:
    """Return the cells of a row as text."""
    shapes = ", ".join(map(str, row.outputs)) + f" x {row.calls}" * (row.calls > 1)
    return row.name, row.layer, shapes, f"{row.parameters:,}" if row.parameters else ""


def truncate_left(text: str, width: int) -> str:
    """Truncate a text at its start, since the end of a path distinguishes layers."""
    return text if len(text) <= width else f"…{text[len(text) - width + 1 :]}"
