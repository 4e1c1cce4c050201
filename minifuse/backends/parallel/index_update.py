"""Updates at an index on the CPU: store each slice of the values in the slice of the output that its index selects.

If several slices go to one place, the last one counts, or all are combined, in order. So a thread takes all indices in
order, and stores the slices in its part of the output: some of the positions along the dim, or along an axis outside of it.
"""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from math import prod

from ...core.dtypes import DType, bool_
from ...core.operators import Operator
from ...ir.indexing import IndexUpdate
from ...ir.kernel_ir import Kernel, Load, LoopNest
from ...ir.steps import Step
from ..base import Backend
from ..codegen.scan_nest import without_dim
from ..executable import Cost, Executable, Launcher, do_nothing
from .compiler import compile_kernel_text
from .driver import PARALLEL_WORK, THREADS, CpuKernelLauncher

MIN_SLICE = 16  # elements of a slice that take longer than to read its index


class CpuIndexUpdate(Executable):
    """An update at an index: a copy of the old array, unless it is stored in place, and a launch that stores the slices."""

    def __init__(self, backend: Backend, step: Step, op: IndexUpdate) -> None:
        super().__init__(step)
        self.backend, self.operator = backend, op.operator
        (out,), (self.old, self.index, values) = step.layouts()
        d = op.dim
        self.out, self.n, self.count = out, out.shape[d], self.index.size
        self.steps = (out.strides[d], values.strides[d])
        slices = [without_dim(x, d) for x in (out, values)]
        self.nest = LoopNest(slices[0].shape, (), slices)
        strides = self.nest.strides[0]
        self.outer = sum(abs(s) > abs(out.strides[d]) for s in strides) if prod(self.nest.sizes) > 1 else 0
        self.dtypes = step.kernel.operand_dtypes()

    @property
    def refusal(self) -> str | None:
        """Why the definition of the op is used."""
        return "bools are combined by a kernel" if self.operator is not None and self.dtypes[0] is bool_ else None

    @cached_property
    def is_outer_split(self) -> bool:
        """Tell whether threads share an axis outside of the dim, not the positions along the dim."""
        return self.outer > 0 and self.nest.sizes[0] >= 2 * THREADS

    @property
    def source(self) -> str:
        """The text of the launch that stores the slices."""
        kinds = tuple(tuple(str(s) if s in (0, 1) else "s" for s in strides) for strides in self.nest.strides)
        dtype, index_dtype = self.dtypes[0], self.dtypes[2]
        return index_update_text(self.operator, dtype, index_dtype, kinds, self.outer, self.is_outer_split)

    def cost(self) -> Cost:
        """Return 1 launch."""
        return Cost(1)

    def load(self) -> Launcher:
        """Return the copy and the launch."""
        if not self.out.size:
            return do_nothing
        nest = self.nest
        points = prod(nest.sizes)
        numbers = [self.n, self.count, *self.index.strides, *self.steps, *nest.sizes, *nest.strides[0], *nest.strides[1]]
        split = nest.sizes[0] if self.is_outer_split else self.n
        most = split if self.is_outer_split else THREADS * min(max(points // MIN_SLICE, 1), 4)
        chunks = min(split, most, 4 * THREADS) if self.count * (points + 1) > PARALLEL_WORK // 4 else 1
        store = CpuKernelLauncher(compile_kernel_text(self.source), split, chunks, 3, (), numbers)
        kernel = Kernel((Load(0, self.dtypes[0]),), ())
        copy = self.backend.compile(Step.of_layouts(kernel, self.out.shape, (), [self.out], [self.old])).load()

        def launch(out: int, old: int, index: int, values: int) -> None:
            if out != old:
                copy(out, old)
            store(out, index, values)

        return launch


@lru_cache(1024)
def index_update_text(
    operator: Operator | None,
    dtype: DType,
    index_dtype: DType,
    kinds: Sequence[Sequence[str]],
    outer: int,
    is_outer_split: bool,
) -> str:
    """Return the text of the loops. The first `outer` axes are outside of the loop over the index."""
    axes = len(kinds[0])
    names = ["n", "count", "index_step", "out_step", "values_step", *[f"n{a}" for a in range(axes)]]
    names += [f"{operand}_{a}" for operand in ("out", "values") for a in range(axes)]
    lines = [f"out, values = pointer_{dtype.short}(args[0]), pointer_{dtype.short}(args[2])"]
    lines += [f"index = pointer_{index_dtype.short}(args[1])"]
    lines += [f"{name} = args[{k}]" for k, name in enumerate(names, 3)]
    lines += [f"low, high = {'0, n' if is_outer_split else 'start, stop'}"]
    depth = 0

    def add(text: str) -> None:
        lines.append("    " * depth + text)

    def place(operand: str, along: Sequence[int]) -> str:
        terms = {"0": None, "1": "i{}", "s": "i{} * " + operand + "_{}"}
        chosen = [(terms[kinds[operand == "values"][a]], a) for a in along]
        return " + ".join([text.format(a, a) for text, a in chosen if text])

    for a in range(outer):
        add(f"for i{a} in range({'start, stop' if a == 0 and is_outer_split else f'n{a}'}):")
        depth += 1
    add("for k in range(count):")
    depth += 1
    add("i = index[k * index_step]")
    add("if i >= low and i < high:")
    depth += 1
    for operand, position in (("out", "i"), ("values", "k")):
        add(" + ".join(filter(None, [f"{operand}_at = {position} * {operand}_step", place(operand, range(outer))])))
    for a in range(outer, axes):
        add(f"for i{a} in range(n{a}):")
        depth += 1
    old, new = [" + ".join(filter(None, [f"{x}[{x}_at", place(x, range(outer, axes))])) + "]" for x in ("out", "values")]
    if operator is None:
        add(f"{old} = {new}")
    elif dtype.is_small:  # computed with 32 bits, and wrapped around
        add(f"{old} = {dtype.short}({operator}(i32({old}), i32({new})))")
    else:
        add(f"{old} = {operator}({old}, {new})")
    return "def kernel(start, stop, args):\n" + "\n".join("    " + line for line in lines) + "\n"
