"""Every form of generated kernel, compiled for a GPU that need not be there: its instructions are what the emitter promises.

A matrix of functions: each operator and each element type that it takes, ways to lie in memory, folds. Of every kernel:
memory moves 16 bytes at once where the text says so, nothing lies in local memory, and nothing is computed in float64 that
the kernel does not have in float64.
"""

import re
from functools import cache
from typing import NamedTuple

import pytest

import minifuse as mf
from minifuse.backends.cuda.codegen.base import MAX_COLUMN_THREADS, MAX_ROW_THREADS
from minifuse.backends.cuda.codegen.select import GeneratedKernel, generate_kernel
from minifuse.backends.cuda.compiler import compile_ptx
from minifuse.backends.cuda.launcher import python_kernel
from minifuse.compiler.plan import Plan
from minifuse.core.dtypes import BY_NAME, bool_, float64
from minifuse.core.layout import row_major
from minifuse.core.operators import TABLE
from minifuse.ir.kernel_ir import Kernel, Load, LoopNest

from ..cuda.simulated import simulated

NEW, OLD = (9, 0), (7, 5)
# What one load or store of four elements becomes, by the type of an element in memory.
VECTORS = {
    "f32": (r"\.v4\.[fbu]32", 1),
    "i32": (r"\.v4\.[ubs]32", 1),
    "f64": (r"\.v2\.[fb]64", 2),
    "i64": (r"\.v2\.[ubs]64", 2),
    "i8": (r"(\.v4\.[ubs]8|\.[ubs]32)", 1),
    "i16": (r"\.v4\.[ubs]16", 1),
    "u8": (r"(\.v4\.[ubs]8|\.[ubs]32)", 1),
}
RANGE = "the remainder of a large argument modulo pi / 2 takes words of a table in local memory, and a product in float64"
# (kernel, what it does not hold): why. Exact: an exemption that is no longer needed fails.
EXEMPT = {(f"{name} of {dtype}", "local memory"): RANGE for name in ("sin", "cos") for dtype in BY_NAME}
EXEMPT |= {(f"{name} of float32", "float64"): RANGE for name in ("sin", "cos")}


class Case(NamedTuple):
    """A function, what it is called with, and which of that its results are stored in."""

    function: object
    inputs: tuple
    targets: tuple = ()


def of(dtype, *shape):
    return mf.zeros(*shape, dtype=dtype)


def accepts(entry, dtype):
    """Whether an operator is made for an element type."""
    return entry.accepts_bools if dtype is bool_ else entry.accepts_floats or not dtype.is_float


def operator_cases():
    """Each operator with each element type; what is made of others with one."""
    for name, entry in TABLE.items():
        for dtype in [d for d in BY_NAME.values() if accepts(entry, d)][: None if entry.is_primitive else 1]:
            first = bool_ if name == "where" else dtype
            yield f"{name} of {dtype}", Case(entry, (of(first, 6, 8), of(dtype, 6, 8), of(dtype, 6, 8))[: entry.arity])
    for source in BY_NAME:
        for target in BY_NAME.values():
            if source != target.name:
                yield f"{source} to {target}", Case(lambda x, target=target: x.to(target), (of(source, 6, 8),))


def layout_cases():
    """The same few operations on operands that lie in all ways."""
    f = lambda x, y: x * y + x  # noqa: E731
    for dtype in ("float32", "float64", "int32", "int64"):
        a, b = of(dtype, 6, 8), of(dtype, 8, 6)
        yield f"neighbours of {dtype}", Case(f, (a, a))
        yield f"a row of {dtype}", Case(f, (a, of(dtype, 8)))
        yield f"a column of {dtype}", Case(f, (a, of(dtype, 6, 1)))
        yield f"one across, of {dtype}", Case(f, (a, b.T))
    a = of("float32", 6, 8)
    cube = of("float32", 5, 6, 8)
    yield "both across", Case(f, (of("float32", 8, 6).T, of("float32", 8, 6).T))
    for dtype in BY_NAME:
        g = lambda x, y, dtype=dtype: x | y.T if dtype == "bool" else x * y.T + x  # noqa: E731
        yield f"a tile of {dtype}", Case(g, (of(dtype, 64, 96), of(dtype, 96, 64)))
    tile, wide = of("float32", 64, 96), of("float32", 96, 64)
    yield "two tiles", Case(lambda x, y, z: x * y.T + z.T, (tile, wide, of("float32", 96, 64)))
    yield (
        "a tile of each matrix",
        Case(lambda x, y: x + y.permute(0, 2, 1), (of("float32", 3, 64, 96), of("float32", 3, 96, 64))),
    )
    yield "a tile in place", Case(lambda x, y: x + y.T, (tile, wide), (0,))
    yield "a tile beside steps", Case(lambda x, y: x + y.T, (of("float32", 64, 192)[:, ::2], wide))
    yield "a tile of what is dear", Case(lambda x, y: mf.exp(x) * mf.tanh(y.T), (tile, wide))
    yield "one number", Case(f, (a, of("float32", 1, 1)))
    yield "every second", Case(f, (a[:, ::2], a[:, 1::2]))
    yield "backwards", Case(f, (a, a.flip(1)))
    yield "parts of rows", Case(f, (of("float32", 6, 12)[:, 2:10], a))
    yield "three axes", Case(f, (cube[:, 1:5], cube[:, 2:6]))
    yield "three axes, turned", Case(f, (cube.permute(2, 0, 1), cube.permute(2, 0, 1)))
    yield "three axes, one repeated", Case(f, (cube, of("float32", 5, 1, 8)))
    yield "four axes", Case(f, (of("float32", 4, 5, 6, 8)[::2, ::2, ::2, ::2], of("float32", 3, 4)))
    yield "a number", Case(lambda x: x * 2.5 + 1, (a,))
    yield "a number of int64", Case(lambda x: x * 7 + 1, (of("int64", 6, 8),))
    yield "what wraps around", Case(lambda x: x + 1 > x, (of("int64", 6, 7)[:, ::2],))
    yield "one operand", Case(lambda x: x * x + x, (a,))
    yield "one long operand", Case(lambda x: x * x + x, (of("float32", 3_000_001),))
    yield "a choice", Case(lambda c, x: mf.where(c, x, 0), (of("bool", 6, 8), a))
    yield "a comparison", Case(lambda x, y: x < y, (a, a))
    yield "two outputs", Case(lambda x, y: (x + y, x * y > 1), (a, a))
    yield "in place", Case(lambda x: x * 2 + 1, (a,), (0,))
    yield "in place on two", Case(lambda x, y: (x + y, x - y), (a, of("float32", 6, 8)), (0, 1))
    yield "in place across", Case(lambda x, y: x + y, (a, of("float32", 8, 6).T), (0,))
    yield "a chain", Case(lambda x, y: mf.sigmoid(x * y + 1) * mf.relu(x) - mf.log1p(mf.exp(-y * y)), (a, a))
    yield "nothing but a number", Case(lambda x: mf.where(x == x, 1.0, 2.0), (a,))


FOLDS = {
    "sum": lambda x, d: x.sum(d),
    "max": lambda x, d: x.max(d),
    "prod": lambda x, d: x.prod(d),
    "any": lambda x, d: x.any(d),
}
DIMS = {"rows": ((6, 8), 1), "columns": ((6, 8), 0), "all": ((6, 8), None), "the middle": ((5, 6, 8), 1)}
DIMS |= {"long rows": ((6, 600), 1), "long columns": ((300, 40), 0)}
DIMS |= {"first and last": ((5, 6, 8), (0, 2)), "first of three": ((5, 6, 8), 0), "last two": ((5, 6, 8), (1, 2))}


def fold_cases():
    """Folds along each choice of dims, and what is made of several."""
    for name, fold in FOLDS.items():
        for where, (shape, dims) in DIMS.items() if name in ("sum", "max") else list(DIMS.items())[:2]:
            yield f"{name} along {where}", Case(lambda x, fold=fold, dims=dims: fold(x, dims), (of("float32", *shape),))
        for dtype in ("float64", "int32", "int64", "bool"):
            for where in ("rows", "columns"):
                (shape, dims) = DIMS[where]
                case = Case(lambda x, fold=fold, dims=dims: fold(x, dims), (of(dtype, *shape),))
                yield f"{name} of {dtype} along {where}", case
    a = of("float32", 6, 8)
    for dim, where in enumerate(("columns", "rows")):
        for name in ("softmax", "logsumexp", "argmax", "var", "mean"):
            yield f"{name} along {where}", Case(lambda x, name=name, dim=dim: getattr(x, name)(dim), (a,))
    yield "sum of rows that lie across", Case(lambda x: x.sum(1), (of("float32", 8, 6).T,))
    yield "sum of every second", Case(lambda x: x.sum(1), (a[:, ::2],))
    yield "sum of parts of rows", Case(lambda x: x.sum(1), (of("float32", 6, 12)[:, 1:9],))
    yield "sum of a row of numbers", Case(lambda x, b: (x * b).sum(1), (a, of("float32", 8)))
    yield "sum of what is repeated", Case(lambda x, b: (x + b).sum(1), (a, of("float32", 6, 1)))
    b = of("float32", 6, 600)
    yield "softmax along long rows", Case(lambda x: x.softmax(1), (b,))
    yield "several folds along long rows", Case(lambda x: (x / x.sum(1, True), x.sum(1), x.max(1)), (b,))
    yield "several folds", Case(lambda x: (x / x.sum(1, True), x.sum(1), x.max(1)), (a,))
    yield "several folds along columns", Case(lambda x: (x / x.sum(0, True), x.sum(0), x.max(0)), (a,))
    yield "softmax of two dims", Case(lambda x: mf.exp(x) / mf.exp(x).sum((0, 2), True), (of("float32", 5, 6, 8),))
    yield "softmax of float64", Case(lambda x: x.softmax(1), (of("float64", 6, 8),))
    yield "softmax in place", Case(lambda x: x.softmax(1), (a,), (0,))
    yield "a fold of a comparison", Case(lambda x: (x > 0).any(1), (a,))
    yield "a fold of a cast", Case(lambda x: x.to(mf.float64).sum(1), (a,))


MATRIX = dict([*operator_cases(), *layout_cases(), *fold_cases()])
# By processor differs how memory moves and how lanes meet, not what an operator is: of each, one type is enough there.
ONE_TYPE = {case.function: name for name, case in reversed([*operator_cases()])}
OLDER = [*ONE_TYPE.values(), *dict(layout_cases()), *dict(fold_cases())]


def kernels(case):
    """The kernels of a case, each with its text."""
    for step in Plan(case.function, case.inputs, case.targets).steps:
        outputs, inputs = step.layouts()
        nest = LoopNest(step.shape, step.dims, [*outputs, *inputs])
        yield step.kernel, generate_kernel(step.kernel, nest)


@cache
def ptx_of(text: GeneratedKernel, cc: tuple[int, int]) -> str:
    """Of two cases with the same text only one is compiled."""
    threads = text.schedule.threads if text.schedule else MAX_ROW_THREADS if text.form == "rows" else MAX_COLUMN_THREADS
    return compile_ptx(python_kernel(text), [kind for _, kind in text.parameters], threads, cc=cc).ptx


def vectors(kernel: Kernel, text: GeneratedKernel, instruction: str) -> list[str]:
    """The types in memory of what the text loads, or stores, four at a time, as often as it does."""
    dtypes = [e.dtype for e in (*kernel.outputs, *kernel.find_all(Load))]
    names = [name for name, _ in text.parameters[: len(dtypes)]]
    rows = dict(re.findall(r"(\w+) = hold_\w+\((\w+),", text.text))  # which operand waits there
    rows |= {kept: rows[row] for kept, row in re.findall(r"(kept\d+) = (row\d+)", text.text)}  # of the same element type
    found = [rows.get(name, name) for name in re.findall(rf"{instruction}\((\w+),", text.text)]
    if instruction == "load4" and "is_wide" in text.text:
        found += 4 * re.findall(r"copy_tile\(\w+, (\w+),", text.text)
    return ["u8" if dtypes[names.index(name)] is bool_ else dtypes[names.index(name)].short for name in found]


def faults(kernel: Kernel, text: GeneratedKernel, ptx: str) -> list[str]:
    """What a kernel promises and does not hold."""
    found = []
    for instruction, word in (("ld", "load4"), ("st", "store4")):
        kinds = vectors(kernel, text, word)
        for kind in set(kinds):
            pattern, count = VECTORS[kind]
            if len(re.findall(rf"\b{instruction}(?:\.global(?:\.nc)?)?{pattern}\b", ptx)) < count * kinds.count(kind):
                found.append(f"{word} of {kind}")
    if ".local" in ptx:
        found.append("local memory")
    if ".f64" in ptx and not any(e.dtype is float64 for e in kernel.order):
        found.append("float64")
    return found


def lacking(name, cc):
    """All faults of a case, exempt or not."""
    return {fault for kernel, text in kernels(MATRIX[name]) for fault in faults(kernel, text, ptx_of(text, cc))}


def exempt(name):
    return {fault for case, fault in EXEMPT if case == name}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", MATRIX)
def test_a_kernel_has_the_instructions_that_it_promises(name):
    """Exemptions too are exact: one that is no longer needed goes."""
    assert lacking(name, NEW) == exempt(name)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", OLDER)
def test_an_older_processor_has_them_too(name):
    assert lacking(name, OLD) == exempt(name)


def only(name, cc=NEW):
    """Text and PTX of the only kernel of a case."""
    ((_, text),) = kernels(MATRIX[name])
    return text, ptx_of(text, cc)


def test_the_processor_is_the_one_that_was_named():
    assert ".target sm_90" in only("neighbours of float32")[1]
    assert ".target sm_75" in only("neighbours of float32", OLD)[1]


def test_an_integer_that_overflows_is_compared_as_it_is():
    """With Numba's own sum, the whole comparison becomes the number 1."""
    _, ptx = only("what wraps around")
    assert re.search(r"setp\.\w+\.s64|max\.s64", ptx.partition("ld.global")[2])


def test_the_size_of_a_block_bounds_the_registers():
    for name in ("neighbours of float32", "sum along long rows", "sum along long columns"):
        text, ptx = only(name)
        assert re.search(rf"\.maxntid {text.schedule.threads}\b", ptx)


def test_rows_are_reduced_by_shuffles_and_one_barrier():
    _, ptx = only("sum along long rows")
    assert "shfl.sync.bfly.b32" in ptx
    assert len(re.findall(r"\bbar(?:rier)?\.sync", ptx)) == 1


def test_a_row_waits_in_registers():
    """All loads come before the first shuffle, and nothing of it lies in memory again."""
    text, ptx = only("softmax along long rows")
    assert "cuda.local.array(" in text.text
    assert not re.search(r"\.local\b|st\.shared\.v4|cp\.async", ptx)
    assert ptx.rindex("ld.global") < ptx.index("shfl.sync")
    assert len(re.findall(r"ld\.global(?:\.nc)?\.v4", ptx)) == text.schedule.tiles[1].registers
    assert not re.search(r"ld\.global", ptx[ptx.index("shfl.sync") :])


def test_a_rows_divisor_is_inverted_once():
    for name in ("softmax along long rows", "several folds along long rows"):
        _, ptx = only(name)
        assert len(re.findall(r"rcp\.rn\.f32", ptx)) == 1
        assert "div.rn" not in ptx


def long_rows(function=lambda x: x.softmax(1), length=20_000, cc=NEW):
    """PTX of a function of rows that no registers can hold."""
    x = mf.zeros(1).expand(2, length)
    (step,) = Plan(function, (x,)).steps
    out = row_major(step.outputs[0][1].shape)
    return ptx_of(generate_kernel(step.kernel, LoopNest(step.shape, step.dims, [out, row_major((2, length))])), cc)


def test_a_long_row_is_copied_past_the_registers_where_the_processor_can():
    ptx = long_rows()
    assert "cp.async.cg.shared.global" in ptx
    assert "cp.async.wait_all" in ptx
    assert not re.search(r"ld\.global", ptx)
    older = long_rows(cc=OLD)
    assert "cp.async" not in older
    assert re.search(r"ld\.global(\.nc)?\.v4\.[fbu]32", older)
    assert re.search(r"st\.shared\.v4\.[fbu]32", older)


ONE_SWEEP = {
    "logsumexp": (lambda x: x.logsumexp(1), (4096, 60_000), 4),
    "logsumexp of odd rows": (lambda x: x.logsumexp(1), (4096, 50_257), 4),
    "softmax": (lambda x: x.softmax(1), (4096, 60_000), 8),
    "softmax of odd rows": (lambda x: x.softmax(1), (4096, 50_257), 16),
    "softmax of columns": (lambda x: x.softmax(0), (30_000, 9600), 4),
    "variance": (lambda x: x.var(1), (4096, 60_000), 4),
    "variance of columns": (lambda x: x.var(0), (30_000, 9601), 4),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ONE_SWEEP)
def test_statistics_of_one_sweep_spill_no_registers(name):
    """All loads of a step are in flight at once: four vectors, or four elements where rows begin anywhere."""
    core = pytest.importorskip("cuda.core", reason="cuda-core is not installed: pip install 'minifuse[cuda13]'")
    function, shape, loads = ONE_SWEEP[name]
    backend = simulated()
    (step,) = Plan(function, (mf.zeros(1, backend=backend).expand(*shape),)).steps
    outputs, _ = step.layouts()
    text = generate_kernel(step.kernel, LoopNest(step.shape, step.dims, [*outputs, row_major(shape)]))
    types, schedule = [kind for _, kind in text.parameters], text.schedule
    ptx = compile_ptx(python_kernel(text), types, schedule.threads, schedule.blocks, NEW).ptx
    assert not re.search(r"\.local|cp\.async", ptx)
    assert (".f64" in ptx) == ("variance" in name)
    wide = r"\.v4" * ("load4" in text.text)
    assert len(re.findall(rf"ld\.global(?:\.nc)?{wide}\.[fbu]32", ptx)) >= loads
    options = core.LinkerOptions(arch="sm_90", ptxas_options=["-v"])
    linker = core.Linker(core.ObjectCode.from_ptx(ptx.encode()), options=options)
    linker.link("cubin")
    assert int(re.search(r"(\d+) bytes spill stores", linker.get_info_log() + linker.get_error_log())[1]) == 0


def test_columns_are_reduced_in_shared_memory_without_shuffles():
    _, ptx = only("sum along long columns")
    assert "shfl" not in ptx
    assert "st.shared.f32" in ptx


def test_pointwise_kernels_have_no_barrier():
    for name in ("neighbours of float32", "one across, of float32", "a chain"):
        _, ptx = only(name)
        assert not re.search(r"shfl|bar\.sync|\.shared", ptx)


def test_tile_copy_has_one_barrier_and_compares_no_index_with_zero():
    """All four loads come before the first store to shared memory; no index is compared with 0."""
    _, ptx = only("a tile of float32")
    assert len(re.findall(r"\bbar(?:rier)?\.sync", ptx)) == 1
    copying, _, computing = ptx.partition("bar.sync")
    first = copying[: copying.index("st.shared")]
    assert len(re.findall(r"ld\.global(?:\.nc)?\.v4", first)) == 4
    wide = computing[computing.index(".v4") : computing.rindex(".v4")]
    assert "selp" not in wide


def test_the_end_of_a_row_is_short():
    """What is left takes a loop of its own, which no thread enters but those of one block: it is not unrolled."""
    _, ptx = only("one long operand")
    assert "div." not in ptx
    assert len(re.findall(r"st\.global\.f32", ptx)) == 1


def test_two_groups_of_four_are_loaded_before_the_first_is_stored():
    text, ptx = only("one long operand")
    assert text.schedule.tiles[0].elements == 8
    start = ptx[: ptx.index("st.global.v4")]
    assert len(re.findall(r"ld\.global(?:\.nc)?\.v4", start)) >= 2


def test_a_product_and_a_sum_are_one_instruction():
    assert "fma.rn.f32" in only("neighbours of float32")[1]


def test_a_wide_kernel_takes_the_rest_one_by_one():
    text, ptx = only("one long operand")
    assert text.wide == ("out0", "in0")
    assert re.search(r"ld\.global(\.nc)?\.f32", ptx)


def test_strided_operands_are_not_loaded_as_vectors():
    for name in ("every second", "one across, of float32", "backwards"):
        text, ptx = only(name)
        assert text.wide == ()
        assert not re.search(r"\.v[24]\.", ptx)
