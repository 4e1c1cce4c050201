"""Schedule collectives: sum gradients in buckets, as soon as the backward pass has computed them.

    backward of layer 3, layer 2, layer 1, then one sum of all gradients over ranks
    ->  backward of layer 3, sum of its gradients, backward of layer 2, sum of its gradients, ...

The order of collectives must be the same on all ranks, also where shapes differ. So it is decided on the graph as it was
traced, before anything depends on sizes: by the depth of their inputs, which says when these can be computed. Each op
contains its position from then on.
"""

from collections import Counter
from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import pairwise
from math import inf

from ..backends.base import Backend
from ..ir.collectives import AllReduce, CollectiveOp
from ..ir.composite_op import CompositeOutput
from ..ir.graph import Node
from ..ir.step_kernels import CompositeKernel
from ..ir.steps import NO_BUFFER, Step
from .graph import Graph, needs
from .reorder import find_dependents

BUCKETS_ON_DEVICES = 16  # of the gradients of a step: the last one has nothing to run beside, and each costs a launch
MIN_BUCKET_NBYTES = 1 << 20


@needs(CompositeOutput)
def order_collectives(graph: Graph, target: Backend) -> Graph:
    """Number the collectives in the order in which they can run, and split large sums into buckets.

    Gradients of the last layers, which the backward pass computes first, are summed first.

    >>> from minifuse.core.operators import add
    >>> from minifuse.ir.collectives import Axes
    >>> from minifuse.testing.graphs import run_pass, trace
    >>> mean = AllReduce(Axes(("data",), 2), add, 2, 16)
    >>> before, after = run_pass(order_collectives, trace(lambda x, y: mean(x.exp().sin(), y.exp()), (4,), (4,)))
    >>> print(before)
    exp0 = exp(x0)
    sin0 = sin(exp0)
    exp1 = exp(x1)
    all_reduce0 = all_reduce(sin0, exp1)
    all_reduce10 = all_reduce1(sin0, exp1)
    >>> print(after)
    exp0 = exp(x0)
    sin0 = sin(exp0)
    all_reduce0 = all_reduce(sin0)
    exp1 = exp(x1)
    all_reduce1 = all_reduce(exp1)
    """
    depths, calls = dict[Node, int](), dict[tuple[CollectiveOp, tuple[Node, ...]], None]()
    for node in graph.nodes:
        depths[node] = 1 + max((depths[x] for x in node.inputs), default=0)
        match node.function:
            case CompositeOutput(op=CollectiveOp() as op):
                calls[op, node.inputs] = None
    buckets = [(op, inputs, bucket) for op, inputs in calls for bucket in split_bucket(op, inputs, depths, target)]
    buckets.sort(key=lambda call: max(depths[call[1][k]] for k in call[2]))
    values = dict[Node, Node]()
    for position, (op, inputs, bucket) in enumerate(buckets, 1):
        part = AllReduce(op.axes, op.operator, len(bucket)) if isinstance(op, AllReduce) else op
        outputs = part.at(position).outputs(*[inputs[k] for k in bucket])
        values |= {CompositeOutput(op, k)(*inputs): y for k, y in zip(bucket, outputs, strict=True)}
    return graph.substitute(values) if values else graph


def split_bucket(op: CollectiveOp, inputs: Sequence[Node], depths: dict[Node, int], target: Backend) -> list[list[int]]:
    """Return the inputs of each bucket, as indices, in the order of their depths. Only sums of arrays are split."""
    if not isinstance(op, AllReduce):
        return [[*range(len(inputs))]]
    limit = op.bucket_nbytes or default_bucket_nbytes(inputs, target)
    buckets, nbytes = list[list[int]](), limit
    for k in sorted(range(len(inputs)), key=lambda k: depths[inputs[k]]):
        if nbytes >= limit:
            buckets.append([])
            nbytes = 0
        buckets[-1].append(k)
        nbytes += inputs[k].size * inputs[k].dtype.itemsize
    return buckets


def default_bucket_nbytes(inputs: Sequence[Node], target: Backend) -> int:
    """Return the bytes after which a bucket ends. A host computes nothing while it sums, so it needs one bucket."""
    total: int = sum(x.size * x.dtype.itemsize for x in inputs)
    return max(1, total) if target.is_host else max(MIN_BUCKET_NBYTES, -(-total // BUCKETS_ON_DEVICES))


@needs(steps=2)
def schedule_collectives(graph: Graph, _target: Backend) -> Graph:
    """Run each collective as soon as its inputs are computed, and compute these as early as possible.

    Two layers: the product that only the sum over ranks needs comes first, then the sum, then all else.

    >>> from minifuse.core.operators import add
    >>> from minifuse.ir.collectives import Axes
    >>> from minifuse.testing.graphs import run_pass, trace
    >>> total = AllReduce(Axes(("data",), 2), add)
    >>> graph = trace(lambda x, w, v: (x @ w @ v, *total(x @ v)), *[(8, 8)] * 3)
    >>> before, after = run_pass(schedule_collectives, graph)
    >>> [step.outputs[0][0] for step in before.steps]  # the slots that are written
    [3, 4, 5, 6]
    >>> [step.outputs[0][0] for step in after.steps]
    [5, 6, 3, 4]
    """
    if not any(map(is_collective, graph.steps)):
        return graph
    order = collectives_first(graph.steps)
    return graph.decide(steps=tuple(graph.steps[k] for k in order))


def collectives_first(steps: Sequence[Step]) -> list[int]:
    """Return the order in which steps run, as indices: that of `steps`, but for collectives and what only they need."""
    slots = [{slot for slot, _ in step.buffer_views() if slot != NO_BUFFER} for step in steps]
    dependents = find_dependents(steps, slots)
    collectives = sorted((k for k, step in enumerate(steps) if is_collective(step)), key=lambda k: op_of(steps[k]).position)
    for k, later in pairwise(collectives):
        dependents[k].add(later)
    urgency = {k: position for position, k in enumerate(collectives)}  # step -> the first collective that waits for it
    for k in reversed(range(len(steps))):
        if k not in urgency and dependents[k] and dependents[k] <= urgency.keys():  # only collectives depend on it
            urgency[k] = min(urgency[later] for later in dependents[k])
    waiting_for = Counter(later for later_steps in dependents for later in later_steps)
    ready = sorted((urgency.get(k, inf), k) for k in range(len(steps)) if not waiting_for[k])  # a heap
    order = list[int]()
    while ready:
        _, k = heappop(ready)
        order.append(k)
        waiting_for.subtract(dependents[k])
        for later in dependents[k]:
            if not waiting_for[later]:
                heappush(ready, (urgency.get(later, inf), later))
    return order


def first_dependents(steps: Sequence[Step]) -> dict[int, int]:
    """Return the first step after each collective that must wait for it: number of steps - 1, if there is none.

    Later collectives do not count: they run one after the other, and all others beside them.
    """
    if not any(map(is_collective, steps)):
        return {}
    slots = [{slot for slot, _ in step.buffer_views() if slot != NO_BUFFER} for step in steps]
    dependents = find_dependents(steps, slots)
    kernels = {k for k, step in enumerate(steps) if not is_collective(step)}
    return {k: min(dependents[k] & kernels, default=len(steps) - 1) for k, step in enumerate(steps) if is_collective(step)}


def op_of(step: Step) -> CollectiveOp:
    """Return the op of a collective."""
    assert isinstance(step.kernel, CompositeKernel)
    assert isinstance(step.kernel.op, CollectiveOp)
    return step.kernel.op


def is_collective(step: Step) -> bool:
    """Return whether all ranks take part in a step."""
    return isinstance(step.kernel, CompositeKernel) and isinstance(step.kernel.op, CollectiveOp)
