"""The compiler, from a traced graph to launches: the list of its passes, and the loop that runs them.

Read PASSES from top to bottom; each name is a function in one file, whose docstring shows a graph before and after. A pass
is a pure function `(graph, target) -> graph`: it changes no argument, keeps no state, and calls no other pass. A pass that
may change only some graphs declares above its definition what it `needs`, and is not run on others: `a + b` has one op, so
one kernel and one step, and only `form_kernels` and `emit_steps` run.
"""

from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from ..backends.base import Backend
from ..core.layout import Layout
from ..ir.graph import strip_views
from ..ir.vjp import Backward
from .batch_launches import batch_launches
from .buffer_assignment import assign_buffers
from .elide_copies import elide_copies
from .emit_steps import emit_steps
from .form_kernels import form_kernels
from .format_node import NodeNames
from .forward_gathers import forward_gathers
from .forward_slices import forward_slices
from .fusion_log import Decision, record_fusion
from .graph import Graph, Pass
from .inline_padding import inline_padding
from .materialize import choose_materialized
from .materialize_operands import materialize_operands
from .narrow_integers import narrow_integers
from .nest_reductions import nest_reductions
from .order_stores import order_stores, split_stores
from .reduction_rules import lower_monoids, merge_sweeps, reduce_rows_first, split_reductions
from .refine_shapes import refine_shapes
from .reorder import reorder
from .rules import decompose, expand_powers, lower_gather, merge_slice_gradients
from .scan_rules import merge_scans, reverse_scans
from .schedule_collectives import order_collectives, schedule_collectives
from .trace_result import TracedGraph
from .views_of_reductions import merge_reductions, slice_before_reduction

REWRITES: tuple[Pass, ...] = (
    # Rewrite the graph: the same values, computed by ops that the target has kernels for.
    order_collectives,  # one sum of all gradients over ranks -> sums of those that are computed first, and so on
    decompose,  # attention(q, k, v) -> softmax(q @ k.T) @ v, unless the target has a kernel for it
    expand_powers,  # x ** 3 -> x * x * x
    reverse_scans,  # flip(cumsum(flip(x))) -> a scan from the other end
    merge_scans,  # cumsum(x) - cumsum(y) -> two outputs of one scan, and their difference
    forward_slices,  # cat(x, y)[len(x):] -> y
    merge_slice_gradients,  # pad(g0) + pad(g1) -> one array with two slices
    slice_before_reduction,  # x.sum(0)[1:] -> x[:, 1:].sum(0)
    merge_reductions,  # windows(x.max(1)).max(1) -> windows(x).max(1, 2)
    lower_monoids,  # argmax of short rows -> a maximum, and the lowest index of the elements that equal it
    nest_reductions,  # exp(-((x - y) ** 2).sum(2)).sum(1): the inner sum is computed inside the outer one, and not stored
    refine_shapes,  # (x - x.mean(2)).reshape(8, 6, 5) * w -> the same ops in one shape, (8, 2, 3, 5)
    reduce_rows_first,  # sum((x - x.mean(1)) ** 2) -> the sums of rows, in the kernel of the mean, and their sum
    merge_sweeps,  # max(x) and sum(exp(x - max(x))) of long rows -> one reduction with two states
    split_reductions,  # a sum of 1,000,000 elements -> 61 partial sums, and their sum
    lower_gather,  # gather(x, index) -> x[index[i], j]; scatter_add(g, index) -> sum(where(index == v, g, 0))
    forward_gathers,  # gather(cat(x, y), i) -> where(i >= len(x), y[i - len(x)], x[i]), if the target prefers it
    inline_padding,  # pad(x)[i] -> where(i >= before, x[i - before], 0), if the target prefers it
    narrow_integers,  # positions with 32 bits
)
PASSES: tuple[Pass, ...] = (
    *REWRITES,
    # Decide what is a kernel.
    order_stores,  # values that read an argument after it is changed in place
    choose_materialized,  # pointwise intermediates that are cheaper to store than to recompute
    materialize_operands,  # pointwise operands of matmuls and slice updates that must be in memory
    form_kernels,  # groups of nodes that share one loop nest
    # Decide where and when kernels run.
    emit_steps,  # expressions, buffers and layouts; prologue and epilogue of each matmul
    elide_copies,  # arrays that are updated in place, and results that are computed in an argument
    reorder,  # free large buffers early
    schedule_collectives,  # sum each bucket of gradients over ranks as soon as the backward pass has computed it
    batch_launches,  # many small equal kernels -> one launch
    assign_buffers,  # when temporaries are freed, or their offsets in one arena
)


class PassReport(NamedTuple):
    """A report on one pass: its name, the first line of its docstring, and the graph before and after."""

    name: str
    summary: str
    before: Graph
    after: Graph
    names: NodeNames
    """The names of the nodes of both graphs."""
    decisions: tuple[Decision, ...]
    """What the pass decided, in order."""

    def changes(self) -> list[str]:
        """Return the lines of the graph that went and came, then the refusals that are new."""
        before, after, names = self.before, self.after, self.names
        if before is after:
            return []
        changes = [*changed_lines(before.format_nodes(names), after.format_nodes(names))]
        changes += changed_order(before.format_launches(names), after.format_launches(names))
        known = {*before.refusals}
        new = [x for x in after.refusals if x not in known and x.producer is not strip_views(x.consumer)]
        return changes + [f"! {text}" for text in dict.fromkeys(after.format_refusal(x, names) for x in new)]

    def __str__(self) -> str:
        return "\n    ".join([f"{self.name}: {self.summary}", *(self.changes() or ["no change"])])


def run_passes(graph: Graph, target: Backend, arguments: Sequence[str] = ()) -> Iterator[PassReport]:
    """Run the passes one by one, and report each: what `f.explain(..., passes=True)` and the Fusion page show.

    `arguments` are the names of the arguments in the reports. Default: x0, x1, ...
    """
    names = NodeNames(arguments)
    names.add((*graph.arguments, *graph.nodes))
    for run in PASSES:
        with record_fusion() as log:
            after = run(graph, target) if graph.may_change(run) else graph
        check_outputs(run.__name__, graph, after)
        if after is not graph:
            values = zip(graph.roots, after.roots, strict=False)  # a pass may add values that are stored in arguments
            names.add_rewritten(graph.nodes, after.nodes, values)
        yield PassReport(run.__name__, (run.__doc__ or "").partition("\n")[0], graph, after, names, tuple(log.decisions))
        graph = after


def compile_graph(graph: Graph, target: Backend) -> Graph:
    """Run all passes on a graph, but for those that cannot change it."""
    k = graph.find_change(PASSES, 0)
    while k < len(PASSES):
        graph = PASSES[k](graph, target)
        k = graph.find_change(PASSES, k + 1)
    return graph


def check_outputs(name: str, before: Graph, after: Graph) -> None:
    """Raise if a pass changed the number or the shapes of the outputs: a defect of the compiler, not of the program."""
    expected, got = [x.shape for x in before.results], [x.shape for x in after.results]
    if got != expected:
        raise AssertionError(f"{name}: got outputs of shapes {got}, expected {expected}; a pass must keep them")


def initial_graph(traced: TracedGraph, backward: Backward | None, layouts: Sequence[Layout | None]) -> Graph:
    """Return the graph that the first pass gets.

    Parameters
    ----------
    traced : TracedGraph
    backward : Backward, optional
        The backward pass: the values that it saves are results, too.
    layouts : sequence of Layout or None
        The layout of each argument; None for a number.
    """
    saved = tuple(backward.saved) if backward else ()
    required = {x: traced.layouts[x] for x in map(strip_views, traced.outputs) if x in traced.layouts}
    return Graph(
        tuple(traced.outputs),
        saved,
        frozenset(saved).intersection(backward.selection_inputs) if backward else frozenset(),
        tuple(traced.arguments),
        tuple(layouts),
        traced.aliases,
        required,
        tuple([store for argument, value in traced.stores for store in split_stores(argument, value)]),
        tuple(traced.stores),
    )


def changed_lines(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    """Yield "- line" for a line that went and "+ line" for one that came. Keys say which lines are about one thing.

    The order of lines is that of both texts as far as they agree; a line that only moved has not changed.

    Examples
    --------
    >>> before = {"b": "b = a * 1", "c": "c = a + b", "d": "d = -c"}
    >>> list(changed_lines(before, {"c": "c = a + a", "d": "d = -c"}))
    ['- b = a * 1', '- c = a + b', '+ c = a + a']
    """
    order = [*before]
    position = {key: k for k, key in enumerate(order)}
    compared, new = 0, list[str]()
    for key, line in after.items():
        if key not in before:
            new.append(f"+ {line}")
            continue
        yield from (f"- {before[x]}" for x in order[compared : position[key]] if x not in after)
        compared = max(compared, position[key])
        yield from new
        new.clear()
        if line != before[key]:
            yield from (f"- {before[key]}", f"+ {line}")
    yield from (f"- {before[x]}" for x in order[compared:] if x not in after)
    yield from new


def changed_order(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """Yield the lines that went, came or moved.

    Examples
    --------
    >>> list(changed_order(["f()", "g()", "h()"], ["h()", "f()", "g()"]))
    ['+ h()', '- h()']
    """
    for tag, i, j, m, n in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            yield from (f"- {line}" for line in before[i:j])
            yield from (f"+ {line}" for line in after[m:n])
