"""In-place operations: which ones are refused, and how operands that share memory are separated.

Plans store results in existing memory; Tensor's methods call `store` and `store_in`.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import combinations, product
from operator import le
from typing import Any

import numpy as np

from ..compiler.plan import get_inplace_plan, plan_key, runs
from ..core.dispatch import active_hook, active_tracer, mode
from ..core.dtypes import DType
from ..core.errors import OverlapError
from ..core.layout import Layout
from ..ir.array_methods import Array
from ..runtime.memory_pool import write_clock

MAX_COMPARED_LAYOUTS = 10_000  # cached pairs
MAX_OVERLAP_WORK = 10_000  # solutions that NumPy tries; after that, two layouts count as overlapping
BASE_ADDRESS = 1 << 46  # an address with space on both sides
ONE_TARGET = (0,)  # plan key of an operation that modifies its first operand
DISTINCT_INPUTS = (0, 1)  # plan key of two operands that are different tensors


def store(function: Callable[..., Any], targets: Sequence[Any], *inputs: Any) -> None:
    """Store `function(*targets, *inputs)`, one result per target, in the memory of the targets.

    Raises
    ------
    GradientError
        A gradient is required: the recorded computation would no longer be valid.
    OverlapError
        Elements of a target share memory, two targets share memory, or the memory of a target is read-only.
    """
    if (by := active_tracer()) is not None:
        by.store(function, targets, inputs)
        return
    xs, same = [*targets, *inputs], list(range(len(targets) + len(inputs)))
    for target in targets:
        check_writable(target)
    for group in groups_sharing_buffers(xs):
        for k, j in product(group, group):
            if k < len(targets) and j != k:
                x, target = xs[j], xs[k]
                is_same = x.address == target.address and x.spec.layout is target.spec.layout and x.dtype is target.dtype
                if j < len(targets) and (is_same or shares_memory(target, x)):
                    shapes = f"shapes {target.shape} and {x.shape}"
                    raise OverlapError(f"in-place write to two tensors that share memory, {shapes}; write to one at a time")
                if is_same:
                    same[j] = k
                elif shares_memory(target, x):
                    xs[j] = x.clone()
    run_inplace_plan(function, tuple(range(len(targets))), tuple(same), *xs)


def check_writable(target: Any) -> None:
    """Raise an OverlapError if a tensor's memory is read-only."""
    if not target.buffer.is_writable:
        raise OverlapError(f"in-place write to read-only memory (shape {target.shape}); write to x.clone()")


def run_inplace_plan(function: Any, targets: tuple[int, ...], same: tuple[int, ...], *inputs: Any) -> None:
    """Run the plan of an in-place operation."""
    run = runs.get((targets, same, *plan_key(function, inputs)))
    if run is None:
        by = active_hook()
        if by is not None:
            run = by.call_inplace(function, targets, same, inputs)
        else:
            run = get_inplace_plan(function, targets, same, inputs).run
    for k in targets:
        write_clock.record_write(inputs[k].buffer)  # before the run, which a signal may interrupt
    run(*inputs)


def store_in(function: Any, target: Any, value: Any) -> Any:
    """Store `function(target, value)` in the memory of the target, and return the target: `a += b`.

    A call with a cached plan, whose operands are in different buffers, takes the fast path. While a function is traced,
    the dispatch mode is another one, for which no plan is cached.
    """
    spec = getattr(value, "spec", None)
    run = runs.get((ONE_TARGET, DISTINCT_INPUTS, function, mode.is_recording, target.spec, spec or type(value)))
    if run is not None and (memory := target.buffer).is_writable:
        other = memory if spec is None else value.buffer
        if spec is None or other.address + other.nbytes <= memory.address or memory.address + memory.nbytes <= other.address:
            write_clock.record_write(memory)
            run(target, value)
            return target
    if not isinstance(value, Array | bool | int | float):
        value = value.item() if isinstance(value, np.generic) else target.asarray_like(value)
    store(function, [target], value)
    return target


def groups_sharing_buffers(xs: Sequence[Any]) -> list[list[int]]:
    """Return groups of tensors, by their indices, whose buffers share memory; most calls have none."""
    if are_disjoint([x.buffer for x in xs if isinstance(x, Array)]):
        return []
    ranges = ((x.buffer.address, x.buffer.address + x.buffer.nbytes, k) for k, x in enumerate(xs) if isinstance(x, Array))
    return [group for group in group_ranges(ranges) if len(group) > 1]


def group_ranges(ranges: Iterable[tuple[int, int, int]]) -> list[list[int]]:
    """Return groups of indices, from (start, end, index), that are connected by intersecting address ranges."""
    groups: list[list[int]] = []
    end = 0
    for start, stop, k in sorted(ranges):
        if groups and start < end:
            groups[-1].append(k)
        else:
            groups.append([k])
        end = max(end, stop)
    return [sorted(group) for group in groups]


def are_disjoint(buffers: Sequence[Any]) -> bool:
    """Return True if no two buffers share memory: at most as many begin as have ended before."""
    starts, ends = sorted([x.address for x in buffers]), sorted([x.address + x.nbytes for x in buffers])
    return all(map(le, ends, starts[1:]))


def shares_memory(x: Any, y: Any) -> bool:
    """Return whether two tensors share bytes: exactly, or True for layouts that are too hard to decide."""
    return ranges_intersect(x, y) and layouts_share_bytes(
        x.spec.layout, x.dtype, y.spec.layout, y.dtype, y.address - x.address
    )


def ranges_intersect(x: Any, y: Any) -> bool:
    """Return whether the address ranges of two tensors intersect, as those of two columns of a matrix do."""
    (a, b), (c, d) = address_range(x), address_range(y)
    return a < d and c < b


def overlapping_groups(xs: Sequence[Any]) -> list[list[int]]:
    """Return groups of tensors, by their indices, whose ranges intersect and of which at least two share bytes.

    A tensor that occurs several times is listed once.
    """
    found = []
    for near in groups_sharing_buffers(xs):
        firsts = {id(xs[k]): k for k in reversed(near)}.values()
        found += [
            group
            for group in group_ranges((*address_range(xs[k]), k) for k in firsts)
            if any(shares_memory(xs[j], xs[k]) for j, k in combinations(group, 2))
        ]
    return found


def are_views_of_one_array(x: Any, y: Any) -> bool:
    """Return whether two tensors can be views of one array: equal dtypes, and a distance of whole elements."""
    return x.dtype is y.dtype and (x.address - y.address) % x.dtype.itemsize == 0


def overlapping_groups_by_dtype(xs: Sequence[Any]) -> list[list[int]]:
    """Return the groups of overlapping tensors, by their indices; the tensors of a group can be views of one array."""
    kinds = [(x.dtype, x.address % x.dtype.itemsize) if isinstance(x, Array) else None for x in xs]
    by_kind = [[x if kind == chosen else None for x, kind in zip(xs, kinds, strict=True)] for chosen in dict.fromkeys(kinds)]
    return [group for members in by_kind for group in overlapping_groups(members)]


class StridedInterface:
    """A layout at an address, for NumPy, which compares addresses without reading memory."""

    def __init__(self, layout: Layout, dtype: DType, address: int) -> None:
        self.__array_interface__ = {
            "data": (address + layout.offset * dtype.itemsize, True),
            "shape": layout.shape,
            "strides": tuple(s * dtype.itemsize for s in layout.strides),
            "typestr": dtype.numpy.str,
            "version": 3,
        }


@lru_cache(MAX_COMPARED_LAYOUTS)
def layouts_share_bytes(a: Layout, a_dtype: DType, b: Layout, b_dtype: DType, distance: int) -> bool:
    """Return whether two layouts share bytes, if the second begins `distance` bytes after the first.

    Examples
    --------
    Two columns of a matrix share nothing; a column and a row share one element.

    >>> from minifuse.core.dtypes import float32
    >>> row, column = Layout((8,), (1,), 0), Layout((8,), (8,), 0)
    >>> layouts_share_bytes(column, float32, column, float32, 4), layouts_share_bytes(column, float32, row, float32, 32)
    (False, True)
    """
    first, second = StridedInterface(a, a_dtype, BASE_ADDRESS), StridedInterface(b, b_dtype, BASE_ADDRESS + distance)
    try:
        return np.shares_memory(np.asarray(first), np.asarray(second), max_work=MAX_OVERLAP_WORK)  # type: ignore[arg-type]  # NumPy's stubs allow -1 and 0 only
    except np.exceptions.TooHardError:
        return True


def address_range(x: Any) -> tuple[int, int]:
    """Return the first address of a tensor, and the address after its last byte."""
    low, high = x.spec.layout.span()
    return x.address + low * x.dtype.itemsize, x.address + high * x.dtype.itemsize
