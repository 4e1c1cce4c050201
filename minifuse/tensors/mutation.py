"""In-place operations: raise errors for invalid ones, and copy inputs that share memory with a target.

Plans store results in existing memory; Tensor's methods call `store` and `store_in`.
"""

from collections.abc import Sequence
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np

from ..compiler.plan import get_inplace_plan, plan_key, runs
from ..core.dispatch import active_hook, active_tracer, mode
from ..core.errors import OverlapError
from ..core.overlap import Interval, address_range, are_disjoint, connected_groups, intersects, share_bytes
from ..core.traceable import TraceableFunction
from ..ir.array_methods import Array
from ..ir.index_checks import check_in_kernel
from ..runtime.memory_pool import write_clock

if TYPE_CHECKING:
    from .tensor import CallInput, Tensor

    Inputs = Sequence[CallInput | None]  # inputs of a call, with None in place of those that do not matter

ONE_TARGET = (0,)  # `targets` of an operation that modifies its first operand
DISTINCT_INPUTS = (0, 1)  # `alias_of` of two operands that are different tensors


def store(function: TraceableFunction, targets: Sequence[Any], *inputs: Any) -> None:
    """Store `function(*targets, *inputs)`, one result per target, in the memory of the targets, which are tensors.

    Raises
    ------
    GradientError
        A gradient is required: the recorded computation would no longer be valid.
    OverlapError
        Elements of a target share memory, two targets share memory, or the memory of a target is read-only.
    """
    if (tracer := active_tracer()) is not None:
        tracer.store(function, targets, inputs)
        return
    checked = check_in_kernel(function, [*targets, *inputs])
    function, xs = checked[0], list[Any](checked[1])
    alias_of = list(range(len(xs)))
    for target in targets:
        check_writable(target)
    for group in groups_sharing_buffers(xs):
        for k, j in product(group, group):
            if k < len(targets) and j != k:
                x, target = group[j], group[k]
                is_same = x.address == target.address and x.meta.layout is target.meta.layout and x.dtype is target.dtype
                if j < len(targets) and (is_same or shares_memory(target, x)):
                    shapes = f"shapes {target.shape} and {x.shape}"
                    raise OverlapError(f"in-place write to two tensors that share memory, {shapes}; write to one at a time")
                if is_same:
                    alias_of[j] = k
                elif shares_memory(target, x):
                    xs[j] = group[j] = x.clone()
    run_inplace_plan(function, tuple(range(len(targets))), tuple(alias_of), *xs)


def check_writable(target: "Tensor") -> None:
    """Raise an OverlapError if a tensor's memory is read-only."""
    if not target.buffer.is_writable:
        raise OverlapError(f"in-place write to read-only memory (shape {target.shape}); write to x.clone()")


def run_inplace_plan(function: TraceableFunction, targets: tuple[int, ...], alias_of: tuple[int, ...], *inputs: Any) -> None:
    """Run the plan of an in-place operation. `alias_of[k]` is the first input with the same elements as input k."""
    run = runs.get((targets, alias_of, *plan_key(function, inputs)))
    if run is None:
        hook = active_hook()
        if hook is not None:
            run = hook.call_inplace(function, targets, alias_of, inputs)
        else:
            run = get_inplace_plan(function, targets, alias_of, inputs).run
    for k in targets:
        write_clock.record_write(inputs[k].buffer)  # before the run, which a signal may interrupt
    run(*inputs)


def store_in(function: TraceableFunction, target: "Tensor", value: Any) -> "Tensor":
    """Store `function(target, value)` in the memory of the target, and return the target: `a += b`.

    A call with a cached plan, whose operands are in different buffers, takes the fast path. While a function is traced,
    the dispatch mode differs, and no plan is cached for it.
    """
    meta = getattr(value, "meta", None)
    run = runs.get((ONE_TARGET, DISTINCT_INPUTS, function, mode.is_recording, target.meta, meta or type(value)))
    if run is not None and (memory := target.buffer).is_writable:
        value_buffer = memory if meta is None else value.buffer
        if (
            meta is None
            or value_buffer.address + value_buffer.nbytes <= memory.address
            or memory.address + memory.nbytes <= value_buffer.address
        ):
            write_clock.record_write(memory)
            run(target, value)
            return target
    if not isinstance(value, Array | bool | int | float):
        value = value.item() if isinstance(value, np.generic) else target.asarray_like(value)
    store(function, [target], value)
    return target


def groups_sharing_buffers(xs: "Inputs") -> "list[dict[int, Tensor]]":
    """Return groups of tensors whose buffers share memory, as {index: tensor}; most calls have none."""
    buffers = [x.buffer for x in xs if isinstance(x, Array)]
    if are_disjoint([(memory.address, memory.address + memory.nbytes) for memory in buffers]):
        return []
    tensors = {k: x for k, x in enumerate(xs) if isinstance(x, Array)}
    ranges = [(x.buffer.address, x.buffer.address + x.buffer.nbytes, k) for k, x in tensors.items()]
    return [{k: tensors[k] for k in group} for group in connected_groups(ranges) if len(group) > 1]


def shares_memory(x: "Tensor", y: "Tensor") -> bool:
    """Return whether two tensors share bytes. If that is too hard to decide, return True."""
    return intersects(tensor_range(x), tensor_range(y)) and share_bytes(
        x.meta.layout, x.dtype.itemsize, y.meta.layout, y.dtype.itemsize, y.address - x.address
    )


def tensor_range(x: "Tensor") -> Interval:
    """Return the first address of a tensor, and the address after its last byte."""
    return address_range(x.address, x.meta.layout, x.dtype.itemsize)


def overlapping_groups(xs: "Inputs") -> "list[dict[int, Tensor]]":
    """Return groups of tensors whose ranges intersect, and of which at least two share bytes, as {index: tensor}.

    A tensor that occurs several times is listed once.
    """
    groups = []
    for tensors in groups_sharing_buffers(xs):
        firsts = {id(x): k for k, x in reversed(tensors.items())}.values()
        groups += [
            {k: tensors[k] for k in group}
            for group in connected_groups((*tensor_range(tensors[k]), k) for k in firsts)
            if any(shares_memory(tensors[j], tensors[k]) for j, k in combinations(group, 2))
        ]
    return groups


def are_views_of_one_array(x: "Tensor", y: "Tensor") -> bool:
    """Return whether two tensors can be views of one array: equal dtypes, and a distance of whole elements."""
    return x.dtype is y.dtype and (x.address - y.address) % x.dtype.itemsize == 0


def overlapping_groups_by_dtype(xs: "Inputs") -> "list[dict[int, Tensor]]":
    """Return the `overlapping_groups` among tensors that can be views of one array."""
    kinds = [(x.dtype, x.address % x.dtype.itemsize) if isinstance(x, Array) else None for x in xs]
    by_kind = [[x if k == kind else None for x, k in zip(xs, kinds, strict=True)] for kind in dict.fromkeys(kinds)]
    return [group for members in by_kind for group in overlapping_groups(members)]
