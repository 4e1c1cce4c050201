"""Find the range of an innermost loop in which shifted indices need no clamp, and the conditions on them are true.

An index such as minimum(maximum(i - 1, 0), n - 1) differs from i - 1 only at the first and the last points of a loop. In
between, loads without the clamp are adjacent in memory, so compilers vectorize them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ...core.interning import toposort
from ...ir.kernel_ir import Expression, IndexedLoad, IndexValue, Op
from .expression_printer import operand_name

# Comparison of an index with a number -> the first index for which it is true, and the end of these indices.
BOUNDS = {"ge": ("{}", ""), "gt": ("{} + 1", ""), "lt": ("", "{}"), "le": ("", "{} + 1")}


class InnerRange(NamedTuple):
    """A range of an innermost loop.

    Attributes
    ----------
    firsts, ends : list of (str, Expression)
        Bounds in the text of the kernel, and the indices that they bound.
    names : dict of Expression to Expression or None
        The clamped indices, and the indices that they equal in the range; the conditions that are true in it, and None.
    """

    firsts: list[tuple[str, Expression]]
    ends: list[tuple[str, Expression]]
    names: dict[Expression, Expression | None]


def find_inner_range(
    values: Sequence[Expression],
    known: Mapping[Expression, str],
    varies: Mapping[Expression, bool],
    stride_kinds: Mapping[str, str],
    text: Callable[[Expression], str],
) -> InnerRange | None:
    """Find the range in which no index of an indexed load is clamped; None if no index is.

    Parameters
    ----------
    values : sequence of Expression
        What the loop computes.
    known : mapping of Expression to str
        The values that are in variables.
    varies : mapping of Expression to bool
        Whether each value varies along the loop.
    stride_kinds : mapping of str to str
        The stride kinds of each operand; the loop runs along the last axis.
    text : function of an Expression
        Returns the text of a value.
    """
    order = toposort(values, lambda e: () if e in known else e.inputs)
    found = InnerRange([], [], {})
    indices = {x for e in order if isinstance(e, IndexedLoad) for x in e.inputs}
    for e in order:
        name = e.operator.name if isinstance(e, Op) and e.operator is not None else ""
        if name == "minimum" and e in indices and not varies[e.inputs[1]]:
            inner, end = e.inputs
            is_clamp = isinstance(inner, Op) and inner.operator is not None and inner.operator.name == "maximum"
            if is_clamp and is_shifted_index(inner.inputs[0], varies, stride_kinds) and not varies[inner.inputs[1]]:
                index, first = inner.inputs
                found.firsts.append((text(first), index))
                found.ends.append((f"{text(end)} + 1", index))
                found.names[e] = index
    if not found.names:
        return None
    for e in order:
        name = e.operator.name if isinstance(e, Op) and e.operator is not None else ""
        if name in BOUNDS and is_shifted_index(e.inputs[0], varies, stride_kinds) and not varies[e.inputs[1]]:
            index, number = e.inputs
            for bounds, bound in zip((found.firsts, found.ends), BOUNDS[name], strict=True):
                if bound:
                    bounds.append((bound.format(text(number)), index))
            found.names[e] = None
    return found


def is_shifted_index(e: Expression, varies: Mapping[Expression, bool], stride_kinds: Mapping[str, str]) -> bool:
    """Return whether a value is the index along the last axis, plus or minus a number that does not vary along it."""
    if isinstance(e, IndexValue):
        return stride_kinds[operand_name(e)][-1] == "1"
    if not isinstance(e, Op) or e.operator is None or e.operator.name not in ("add", "sub") or varies[e.inputs[1]]:
        return False
    return is_shifted_index(e.inputs[0], varies, stride_kinds)
