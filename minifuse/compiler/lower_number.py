"""Lower numbers of the graph to literals in the text of a kernel, or to parameters of its launch."""

from ..core.dtypes import DType, WeakType, bool_
from ..ir.graph import Literal, Node
from ..ir.kernel_ir import Constant, Expression, KernelParameter

ParameterSource = tuple[int | str, DType | WeakType]  # the slot of a number, or a literal; and its dtype

INLINE_LITERALS = frozenset({"0", "1", "2", "0.0", "1.0", "2.0"})  # other literals, sizes too, are parameters of the launch


def lower_number(node: Node, parameters: dict[ParameterSource, int]) -> Expression:
    """Return a number as a literal, or as a parameter, which is added to `parameters` with its index."""
    function = node.function
    if isinstance(function, Literal) and (function.text in INLINE_LITERALS or node.dtype is bool_):
        return Constant(function.text, node.dtype)
    source = function.text if isinstance(function, Literal) else function.index
    return KernelParameter(parameters.setdefault((source, node.dtype), len(parameters)), node.dtype)
