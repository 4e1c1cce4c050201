"""Find pointwise operands that must be in memory: of matmuls, slice updates, composite ops and sums by index."""

from collections.abc import Sequence

from ..backends.base import Backend
from ..core.operators import Operator
from ..ir.array_functions import Iota, Matmul, PadSlice, Reduce, SliceUpdate, View
from ..ir.composite_op import CompositeOutput
from ..ir.gather import GatherND, ScatterReduce
from ..ir.graph import Node, is_view, strip_views
from ..ir.scan import Scan, is_scan
from .fusibility import (
    COMPOSITE_IS_ONE_CALL,
    GATHER_NOT_IN_MATMUL,
    MAX_RECOMPUTED_COST,
    OPERAND_ENDS_ROWS,
    OPERAND_IS_INDEX,
    OPERAND_IS_SHARED,
    SCAN_NOT_VECTORIZED,
    SCANNED_IS_GATHERED,
    SCANNED_IS_POINTWISE,
    SCANS_ARE_COMBINED,
    UPDATE_NEEDS_MEMORY,
    VALUE_IS_SELECTED,
    has_dear_op,
    has_short_lines,
    is_serial,
)
from .fusible_region import FusibleRegion, is_inlinable
from .graph import Graph, needs
from .reindexing import ViewChains
from .slice_updates import SliceUpdates


@needs(Matmul, PadSlice, SliceUpdate, CompositeOutput, ScatterReduce)
def materialize_operands(graph: Graph, target: Backend) -> Graph:
    """Mark pointwise operands that a kernel stores, because a matmul or another separate step loads them.

    A matmul computes an operand in its prologue if nothing else reads the operand: `exp` is inlined here, `tanh` is not.

    >>> from minifuse.testing.graphs import run_pass, trace
    >>> graph = trace(lambda x, w: (x.exp() @ w, x.tanh() @ w, x.tanh()), (64, 64), (64, 64))
    >>> print(run_pass(materialize_operands, graph)[1])
    exp0 = exp(x0)
    matmul0 = exp0 @ x1
    tanh0 = tanh(x0)  # stored
    matmul1 = tanh0 @ x1
    """
    updates, found = SliceUpdates(graph), dict[Node, str]()
    loaded = {x for x in graph.nodes if not (x.is_pointwise or isinstance(x.function, View))}
    region = FusibleRegion(loaded | graph.materialized.keys() | graph.stored_roots, ViewChains())
    has_gathers = graph.has(GatherND)
    has_reductions = not target.is_host and graph.has(Reduce)  # a CPU computes a prologue once, while it packs the operand
    for node in graph.nodes:
        match node.function:
            case Matmul():
                operands = list(filter(is_inlinable, map(strip_views, node.inputs)))
                gathered = [x for x in operands if has_gathers and region.gather_sources(region.walk([x]))]
                reasons = dict.fromkeys(gathered, GATHER_NOT_IN_MATMUL)
                if has_reductions:
                    reasons |= {x: OPERAND_ENDS_ROWS for x in operands if ends_rows(x, region.walk([x]))}
                shared = [x for x in operands if {*graph.readers(x, is_view)} != {node} or x in graph.stored_roots]
                reasons |= dict.fromkeys(shared, OPERAND_IS_SHARED)
                reasons |= {x: OPERAND_IS_INDEX for x in operands if isinstance(x.function, Iota)}
            case PadSlice() | SliceUpdate() if node not in updates.inner:
                reasons = dict.fromkeys(map(strip_views, updates.needed_inputs(node)), UPDATE_NEEDS_MEMORY)
            case CompositeOutput(op=Scan()):
                computed = {x: region.walk([x]) for x in filter(is_inlinable, map(strip_views, node.inputs))}
                reasons = {x: SCANNED_IS_GATHERED for x, xs in computed.items() if region.gather_sources(xs)}
                reasons |= {x: SCANNED_IS_POINTWISE for x, xs in computed.items() if any(map(region.is_nested, xs))}
                if is_serial(node, target):
                    dear = [y for xs in computed.values() for y in xs if has_dear_op([region.resolve(y)[0]])]
                    small = dict.fromkeys(x for x in map(strip_views, dear) if x.size < node.size)
                    reasons |= dict.fromkeys(small, SCAN_NOT_VECTORIZED)
                    large = {x for x in dear if strip_views(x) not in small}
                    reasons |= {x: SCAN_NOT_VECTORIZED for x, xs in computed.items() if not large.isdisjoint(xs)}
                if not has_short_lines(node, target):
                    reasons |= dict.fromkeys(combined_outputs(graph, node), SCANS_ARE_COMBINED)
            case CompositeOutput():
                reasons = dict.fromkeys(map(strip_views, node.inputs), COMPOSITE_IS_ONE_CALL)
            case ScatterReduce() if not target.is_host:
                value = strip_views(node.inputs[0].inputs[1])
                costs = [x.function.cost for x in region.walk([value]) if isinstance(x.function, Operator)]
                reasons = {value: VALUE_IS_SELECTED} if sum(costs) > MAX_RECOMPUTED_COST else {}
            case _:
                continue
        found |= {x: reason for x, reason in reasons.items() if is_inlinable(x)}
    return graph.decide(materialized=found | dict(graph.materialized)) if found else graph


def combined_outputs(graph: Graph, scan: Node) -> list[Node]:
    """Return the nodes that alone read several outputs of a scan: to store them instead takes fewer arrays."""
    users = [x for x in graph.users[scan] if x.is_pointwise and x.shape == scan.shape]
    outputs = {x: {y for y in x.inputs if is_scan(y) and y.function.op is scan.function.op} for x in users}
    return [x for x, ys in outputs.items() if len(ys) > 1 and all(len(graph.users[y]) == 1 for y in ys)]


def ends_rows(operand: Node, computed: Sequence[Node]) -> bool:
    """Return whether an operand costs much to compute, and reductions of rows of its shape come first, as in softmax.

    The kernel of the reductions then stores it while it has the row, and no other kernel reads the row again.
    """
    rows = [x for x in map(strip_views, computed) if isinstance(x.function, Reduce)]
    return has_dear_op(computed) and any(x.inputs[0].shape == operand.shape for x in rows)
