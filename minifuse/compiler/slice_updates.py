"""Slice updates: compute each slice directly in its destination buffer.

Assignments to several slices of an array, which starts as zeros or as an older array, are a chain of updates. If no kernel
reads the intermediate arrays, the chain has one buffer. The buffer is filled once before the first update, or not at all if
the slices leave no gap.

The scheduler of `form_kernels` calls these functions.
"""

from math import prod

from ..core.errors import ShapeError
from ..core.indexing import Range
from ..core.interning import Task
from ..core.layout import Layout, row_major
from ..core.overlap import are_disjoint_slices
from ..ir import kernel_ir
from ..ir.array_functions import CompositeOutput, Full, Matmul, PadSlice, SliceUpdate, View
from ..ir.gather import ScatterAdd
from ..ir.graph import Node
from ..ir.kernel_ir import Kernel
from ..ir.steps import BufferView, KernelLaunch
from .materialize_reindexed import is_identity
from .scheduler import Scheduler, copy_kernel

Preassigned = tuple[Node, BufferView]  # a node that is not computed yet, and the buffer that it is to be stored in

SEPARATE_STEPS = (Matmul, CompositeOutput, PadSlice, SliceUpdate, ScatterAdd)  # functions that no pointwise kernel computes


def schedule_slice_update(scheduler: Scheduler, node: Node) -> Task[None]:
    """Add the steps of a chain of slice updates that ends in a node: its buffer, the fill around its slices, each slice."""
    chain = update_chain(scheduler, node)
    updates = [x for x in chain if isinstance(x.function, PadSlice | SliceUpdate)]
    ranges = [slice_ranges(x) for x in updates]
    known_ranges = [x for x in ranges if x is not None]
    are_slices_disjoint = len(known_ranges) == len(ranges) and are_disjoint_slices(known_ranges)
    layout = scheduler.required_layouts.get(node, row_major(node.shape))
    if are_slices_disjoint and sum(prod(size for *_, size in part) for part in ranges if part is not None) == node.size:
        buffer = scheduler.allocate(chain[0], layout)
    else:
        buffer = yield base_buffer(scheduler, chain[0], layout)
    scheduler.buffers |= dict.fromkeys(chain, buffer)
    targets: list[BufferView] = [(buffer[0], x.function.region_layout(buffer[1])) for x in updates]
    if are_slices_disjoint:  # a kernel may then compute several slices
        preassigned = [preassign(scheduler, x, target) for x, target in zip(updates, targets, strict=True)]
        for x, target, assigned in zip(updates, targets, preassigned, strict=True):
            yield schedule_part(scheduler, x, target, assigned)
    else:
        for x, target in zip(updates, targets, strict=True):
            yield schedule_part(scheduler, x, target, preassign(scheduler, x, target))


def update_chain(scheduler: Scheduler, node: Node) -> list[Node]:
    """Return the updates that can share one buffer, in order; the last is `node`. Identities may be among them."""
    chain = [node]
    while not isinstance(chain[-1].function, PadSlice):
        old = chain[-1].inputs[0]
        is_update = isinstance(old.function, PadSlice | SliceUpdate) or is_identity(old)
        if not is_update or old in scheduler.buffers or not has_only_user(scheduler, old, chain[-1]):
            break
        layouts = scheduler.required_layouts
        if old in layouts and layouts[old] is not layouts.get(node):
            break
        chain.append(old)
    while is_identity(chain[-1]):  # an identity of an array that is not an update
        chain.pop()
    return chain[::-1]


def base_buffer(scheduler: Scheduler, node: Node, layout: Layout) -> Task[BufferView]:
    """Return the buffer of the first update of a chain, after adding the steps that fill it."""
    if isinstance(node.function, PadSlice):
        buffer = scheduler.allocate(node, layout)
        zeros = KernelLaunch(Kernel((kernel_ir.constant(0, node.dtype),), ()), node.shape, (), [buffer], [])
        scheduler.add_unfused_step(zeros, node, "zeros, before its slices are written")
        return buffer
    old = node.inputs[0]
    if is_computed_by_kernel(old) and old not in scheduler.buffers and has_only_user(scheduler, old, node):
        buffer = scheduler.preassigned[old] = scheduler.allocate(node, layout)
        yield scheduler.emit_kernel(scheduler.space(old), [old])
        source: BufferView = scheduler.buffers[old]
        if source is buffer:
            return buffer
    else:
        propagate_layout(scheduler, old, node)
        source = yield scheduler.materialize(old)
        if is_reusable(scheduler, old, node):
            return source
        buffer = scheduler.allocate(node, layout)
    copy = KernelLaunch(copy_kernel(node), node.shape, (), [buffer], [source])
    scheduler.add_unfused_step(copy, node, "a copy of the old array, before its slices are written")
    return buffer


def slice_value(node: Node) -> Node:
    """Return the array that an update stores in its slice. A number is expanded to an array."""
    new, function = node.inputs[-1], node.function
    if not new.is_number:
        return new
    filled: Node = Full(function.region_layout(row_major(node.shape)).shape, node.dtype)(new.to(node.dtype))
    return filled


def preassign(scheduler: Scheduler, node: Node, target: BufferView) -> Preassigned | None:
    """Let the kernel that computes a slice store it in its target.

    Returns
    -------
    tuple or None
        The node that is to be stored, and where. None if it is stored already, or if another node reads it.
    """
    x, user, (slot, layout) = slice_value(node), node, target
    preassigned: Preassigned | None = None
    while x not in scheduler.buffers and has_only_user(scheduler, x, user):
        if is_computed_by_kernel(x) or isinstance(x.function, Matmul | CompositeOutput):
            preassigned = x, (slot, layout)
        if not isinstance(x.function, View) and not is_identity(x):
            break
        source_layout = invert_view(x.function, layout, x.inputs[0].shape) if isinstance(x.function, View) else layout
        if source_layout is None:
            break
        (x,), user, layout = x.inputs, x, source_layout
    if preassigned is not None:
        scheduler.preassigned[preassigned[0]] = preassigned[1]
    return preassigned


def schedule_part(scheduler: Scheduler, node: Node, target: BufferView, preassigned: Preassigned | None) -> Task[None]:
    """Add the step that computes a slice in its target, or a copy if it had to be computed elsewhere."""
    new = slice_value(node)
    if preassigned is not None:
        x, buffer = preassigned
        if x not in scheduler.buffers:
            is_composite = isinstance(x.function, CompositeOutput)
            yield scheduler.materialize(x) if is_composite else scheduler.emit_kernel(scheduler.space(x), [x])
        scheduler.preassigned.pop(x, None)
        if scheduler.buffers[x] is buffer:
            if x not in scheduler.users:  # an expanded number: a later slice of the same number is computed again
                del scheduler.buffers[x]
            return
        for identity in identities_between(new, x):
            scheduler.buffers[identity] = scheduler.locate_stored(identity.inputs[0])
    source = yield scheduler.materialize(new)
    copy = KernelLaunch(copy_kernel(new), target[1].shape, (), [target], [source])
    scheduler.add_unfused_step(copy, new, "a copy into its slice")


def identities_between(node: Node, x: Node) -> list[Node]:
    """Return the identities on the path from `x` to a node, in the order in which they are applied."""
    passed = list[Node]()
    while node is not x:
        passed += [node] * is_identity(node)
        (node,) = node.inputs
    return passed[::-1]


def alias_identity(scheduler: Scheduler, node: Node) -> Task[bool]:
    """Store an identity of an update in the update's buffer, if no other node reads the update. Return whether it did so."""
    if not is_identity(node):
        return False
    (x,) = node.inputs
    if not isinstance(x.function, PadSlice | SliceUpdate):
        return False
    propagate_layout(scheduler, x, node)
    yield scheduler.materialize(x)
    if not is_reusable(scheduler, x, node):
        return False
    scheduler.buffers[node] = scheduler.buffers[x]
    return True


def is_computed_by_kernel(node: Node) -> bool:
    """Return whether a pointwise or reducing kernel computes a node: it is no input, no view and no separate step."""
    return node.function is not None and not isinstance(node.function, (View, *SEPARATE_STEPS))


def has_only_user(scheduler: Scheduler, node: Node, user: Node) -> bool:
    """Return whether no node but `user` reads a node."""
    return node not in scheduler.roots and all(x is user for x in scheduler.users.get(node, ()))


def is_reusable(scheduler: Scheduler, old: Node, node: Node) -> bool:
    """Return whether a node may overwrite an update: the update is not in an argument, and only the node reads it."""
    if not isinstance(old.function, PadSlice | SliceUpdate):
        return False
    slot, layout = scheduler.buffers[old]
    has_same_layout = scheduler.required_layouts.get(node, layout) is layout
    return slot >= scheduler.first_buffer and has_same_layout and has_only_user(scheduler, old, node)


def propagate_layout(scheduler: Scheduler, old: Node, node: Node) -> None:
    """Require the layout of a node also for an update whose buffer the node may reuse."""
    if node in scheduler.required_layouts and isinstance(old.function, PadSlice | SliceUpdate):
        scheduler.required_layouts.setdefault(old, scheduler.required_layouts[node])


def slice_ranges(node: Node) -> tuple[Range, ...] | None:
    """Return the slice that an update writes, as a range for each dim; None if it is empty or not a slice."""
    function = node.function
    ranges: tuple[Range, ...] | None = None
    if isinstance(function, PadSlice):
        ranges = function.ranges
    elif [view.method for view in function.views] == ["slice"]:
        ranges = function.views[0].parameters
    return ranges if ranges and all(size for *_, size in ranges) else None


def invert_view(view: View, layout: Layout, shape: tuple[int, ...]) -> Layout | None:
    """Return the layout of an array of a shape whose view has a given layout; None if strides cannot describe it."""
    if view.method == "permute":
        return layout.permute(*sorted(range(len(shape)), key=view.parameters.__getitem__))
    if view.method in ("reshape", "unflatten"):
        try:
            return layout.reshape(*shape)
        except ShapeError:
            return None
    return None
