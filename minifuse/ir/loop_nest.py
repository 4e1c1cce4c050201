"""The loops of a kernel: as few axes as possible, with the stride of every operand along each."""

from collections.abc import Iterable, Sequence
from math import prod

from ..core.layout import Layout, collapse

Shape = tuple[int, ...]


class LoopNest:
    """The loops of a kernel: as few axes as possible, row axes last, with the stride of every operand along each.

    Generated source depends only on the number of row axes and on `stride_kinds`. These have one letter per axis: "0" for a
    repeated operand, "1" for adjacent elements, "s" for any other stride. Sizes and strides are arguments of the launch, so
    a new size needs no new source. `axis_dims` and `reduced_axes` relate the axes to the dims of the iteration space.
    """

    __slots__ = ("groups", "is_empty", "points", "row_axes", "shape", "sizes", "stride_kinds", "strides")

    def __init__(
        self,
        shape: Shape,
        dims: Iterable[int],
        layouts: Sequence[Layout],
        reductions: Sequence[tuple[int, ...]] = (),
        order_by: Sequence[int] = (),
    ) -> None:
        """Merge the dims of `shape`, of which `dims` are reduced.

        Parameters
        ----------
        shape : tuple of int
        dims : iterable of int
        layouts : sequence of Layout
            Those of outputs, then of inputs, all expanded to `shape`.
        reductions : sequence of tuple of int
            If some reductions are nested, the dims of each reduction, inner reductions first: `Kernel.reductions`. Dims
            merge only if the same reductions reduce them. The axes of outer reductions precede those of inner ones.
        order_by : sequence of int
            The operands in the order in which the axes follow their memory order; as in `layouts` by default.
        """
        dims, operands = tuple(dims), order_by or range(len(layouts))
        strides_along = list(zip(*[x.strides for x in layouts], strict=True)) or [()] * len(shape)  # of all operands, by dim

        def axes_of(some_dims: Iterable[int], is_reduced: bool) -> list[tuple[int, tuple[int, ...]]]:
            # Sorted by the memory order of the first of `operands`, so that neighboring dims merge.
            order = sorted(some_dims, key=lambda d: [-abs(strides_along[d][k]) for k in operands])
            axes = collapse([shape[d] for d in order], zip(*[strides_along[d] for d in order], strict=True))
            if is_reduced and 0 in [shape[d] for d in order]:  # an empty reduction has no element: its axes cannot merge
                varying = [d for d in order if shape[d] != 1]
                axes = [(0, tuple(next((x.strides[d] for d in varying if x.strides[d]), 0) for x in layouts))]
            axes = axes or [(1, (0,) * len(layouts))]
            self.groups.append((order, len(axes)))
            return axes

        self.shape, self.groups = shape, list[tuple[list[int], int]]()  # dims in order, and the number of axes they are
        outer = axes_of([d for d in range(len(shape)) if d not in dims], is_reduced=False)
        groups = group_dims(dims, reductions) if dims else []
        inner = [axis for group in groups for axis in axes_of(group, is_reduced=True)]
        self.row_axes = len(outer) if dims else len(outer) - 1  # in a pointwise kernel, the last axis is the row
        self.sizes = [size for size, _ in outer + inner]
        self.strides = list(zip(*[strides for _, strides in outer + inner], strict=True))
        self.stride_kinds = tuple(["".join(map(stride_kind, strides)) for strides in self.strides])
        self.is_empty = 0 in [size for size, _ in outer]
        self.points = prod(self.sizes)

    @classmethod
    def of_axes(cls, sizes: Sequence[int], row_axes: int, strides: Sequence[tuple[int, ...]]) -> "LoopNest":
        """Return the loop nest with these axes, which are not merged any further. Each of them is one dim."""
        nest = cls.__new__(cls)
        nest.sizes, nest.row_axes, nest.strides = list(sizes), row_axes, list(strides)
        nest.shape, nest.groups = tuple(sizes), [([axis], 1) for axis in range(len(sizes))]
        nest.stride_kinds = tuple("".join(map(stride_kind, x)) for x in strides)
        nest.is_empty, nest.points = False, prod(sizes)
        return nest

    @property
    def axis_dims(self) -> list[tuple[int, ...]]:
        """The dims of the shape that each axis consists of, outermost first. Dims of size 1 may be missing."""
        sizes, found = self.sizes, list[tuple[int, ...]]()
        for dims, count in self.groups:
            found += merged_dims(dims, self.shape, sizes[len(found) : len(found) + count])
        return found

    def reduced_axes(self, dims: Iterable[int]) -> tuple[int, ...]:
        """Return the axes of the loops that a reduction of some dims runs over."""
        reduced = {*dims}
        return tuple(k for k, merged in enumerate(self.axis_dims) if not reduced.isdisjoint(merged))

    def runtime_strides(self) -> list[int]:
        """Return the strides that the source does not contain, operand by operand."""
        return [s for strides in self.strides for s in strides if s not in (0, 1)]


def group_dims(dims: Iterable[int], reductions: Sequence[tuple[int, ...]]) -> list[list[int]]:
    """Group the dims that the same reductions reduce. The dims of the last reduction, the outermost, come first.

    >>> group_dims((1, 2, 3, 4), [(3, 4), (1, 2)])
    [[1, 2], [3, 4]]
    """
    groups: dict[tuple[int, ...], list[int]] = {}
    for d in dims:
        groups.setdefault(tuple(k for k, reduced in enumerate(reductions) if d in reduced), []).append(d)
    return [groups[key] for key in sorted(groups, key=lambda key: (-max(key, default=-1), key))]


def merged_dims(dims: Sequence[int], shape: Shape, sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the dims that each of several axes consists of. The axes have these sizes, and `dims` are in their order.

    >>> merged_dims((0, 1, 3), (2, 3, 9, 4), (6, 4))
    [(0, 1), (3,)]
    """
    if len(sizes) == 1:
        return [tuple(dims)]
    remaining, found = [d for d in dims if shape[d] != 1], list[tuple[int, ...]]()
    for size in sizes:
        merged, product = list[int](), 1
        while product < size:
            merged.append(remaining.pop(0))
            product *= shape[merged[-1]]
        found.append(tuple(merged))
    return found


def stride_kind(stride: int) -> str:
    """Return the letter for a stride in generated source."""
    return "0" if stride == 0 else "1" if stride == 1 else "s"


def stride_kinds_of(layouts: Iterable[Layout]) -> tuple[str, ...]:
    """Return the letters for the strides of indexed operands, one letter per dim."""
    return tuple(["".join(map(stride_kind, layout.strides)) for layout in layouts])
