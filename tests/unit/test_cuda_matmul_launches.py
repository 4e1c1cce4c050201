"""backends.cuda.matmul: which kernels a matmul launches, and their results in the interpreter."""

from itertools import product as choices

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minifuse import simt
from minifuse.backends.codegen.gpu_facts import MAX_GRID_YZ
from minifuse.backends.cuda.launch_plan import OUT, WORKSPACE, GpuPlan, LaunchPlan, OperandAddress
from minifuse.backends.cuda.matmul import launches as planning
from minifuse.backends.cuda.matmul.element_types import MIN_TALL_PARTS
from minifuse.backends.cuda.matmul.gemv import dot_tile, max_rows, row_tile
from minifuse.backends.cuda.matmul.heuristics import (
    GpuGemmConfig,
    GpuLimits,
    can_store_vectors,
    candidate_configs,
    candidate_kernels,
    choose_config,
    estimate_cycles,
    operand_mode,
    transposed_configs,
)
from minifuse.backends.cuda.matmul.launches import plan_matmul, split_for_grid
from minifuse.backends.cuda.tile_shapes import FLOAT64_MMA, LARGE, MIDDLE, NARROW, SHAPES_BY_ITEMSIZE, SLIM, SMALL, WIDE
from minifuse.backends.matmul.problem import MatmulOperand, MatmulProblem, plain_problem
from minifuse.core.dtypes import BY_NUMPY, DTYPES, float32, float64
from minifuse.core.layout import Layout, row_major
from minifuse.core.rounding import ceil_div
from minifuse.ir.step_kernels import plain_matmul
from tests.examples import share

MATMUL_DTYPES = [dtype for dtype in DTYPES if not dtype.is_small]  # small integers are multiplied as int32
H200 = GpuLimits(132, 227 * 1024)
BATCHES = {
    "none": ((), ()),
    "one": ((3,), (3,)),
    "b repeated": ((2, 3), ()),
    "a repeated": ((), (3,)),
    "across": ((2, 1), (1, 3)),
    "three axes": ((2, 1, 2), (2, 3, 1)),
}


def layout_of(array):
    return Layout(array.shape, tuple(s // array.itemsize for s in array.strides), 0)


def address_of(array):
    return array.__array_interface__["data"][0]


def pointers_to(operands):
    """What a plan's places are in the interpreter; nothing but the operands' own elements may be touched."""

    def pointer(place):
        array = operands[place.operand]
        low, high = (layout_of(array)).span()
        at, offset = address_of(array) + place.offset * array.itemsize, place.offset
        return simt.Pointer(at, low - offset, high - offset, array.dtype, owner=array)

    return pointer


def plan_of(out, a, b, multiprocessors=4):
    aligned = tuple(address_of(x) % 16 == 0 for x in (out, a, b))
    return plan_matmul(
        plain_matmul(BY_NUMPY[out.dtype]), [layout_of(out)], [layout_of(a), layout_of(b)], multiprocessors, aligned
    )


def launch_plan(launch, pointer):
    """One launch of a matmul, for the interpreter."""
    arguments = tuple(pointer(x) if isinstance(x, OperandAddress) else x for x in launch.arguments)
    return LaunchPlan(launch.kernel.function, launch.grid, launch.block, arguments, launch.kernel.shared)


def traces(plan, out, a, b, is_traced=False):
    """Do the launches of a plan; gives a trace of each, if asked for."""
    workspace = np.full(plan.workspace // out.itemsize, 77, out.dtype)
    pointer = pointers_to((out, a, b, workspace))
    return [(simt.trace if is_traced else simt.run)(launch_plan(launch, pointer)) for launch in plan.launches]


def empty_for(a, b):
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return np.full((*batch, a.shape[-2], b.shape[-1]), 77).astype(a.dtype)


def check(out, a, b, plan):
    """NumPy is the judge: of floats in float64, with a bound for the roundings; of all else exactly."""
    if out.dtype.kind == "f":
        eps, wide = np.finfo(out.dtype).eps, np.longdouble if out.dtype == np.float64 else float
        bound = np.abs(a).astype(wide) @ np.abs(b).astype(wide) * eps * (a.shape[-1] + 2)
        good = np.abs(out - a.astype(wide) @ b.astype(wide)) <= bound
    else:
        good = out == a @ b
    assert good.all(), [(launch.kernel.name, launch.kernel.constants, launch.grid) for launch in plan.launches]


def sample(random, shape, dtype):
    if np.dtype(dtype).kind == "b":
        return random.random(shape) < 0.2
    if np.dtype(dtype).kind == "i":
        limits = np.iinfo(dtype)
        return random.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return random.standard_normal(shape).astype(dtype)


def force(monkeypatch, name, shape=None, parts=1, is_transposed=False):
    """Let plans take a kernel that they would not choose for such small sizes."""

    def chosen(p, gpu):
        p = p.transposed() if is_transposed else p
        for found, _, kernel in candidate_kernels(p, gpu.max_shared_bytes):
            if kernel().name == name and shape in (None, found):
                BK = found.tile[2]
                part_K = ceil_div(p.K, parts * BK) * BK if parts > 1 else p.K
                return GpuGemmConfig(0, p, found, parts, part_K, can_store_vectors(p), kernel)
        raise AssertionError(f"{name} does not compute {p}")

    monkeypatch.setattr(planning, "choose_config", chosen)


# Products.


@pytest.mark.sampled(3, each="batch")
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("sizes", [(1, 1, 1), (5, 7, 9), (2, 40, 33)], ids=str)
def test_products_of_every_batch(batch, sizes):
    (M, N, K), (left, right), random = sizes, BATCHES[batch], np.random.default_rng(0)
    a, b = sample(random, (*left, M, K), "float32"), sample(random, (*right, K, N), "float32")
    out = empty_for(a, b)
    plan = plan_of(out, a, b)
    traces(plan, out, a, b)
    check(out, a, b, plan)


VIEWS = {
    "plain": lambda x: x,
    "turned": lambda x: x.swapaxes(-1, -2).copy().swapaxes(-1, -2),
    "sliced": lambda x: np.repeat(np.repeat(x, 2, -1), 3, -2)[..., ::3, ::2],
    "flipped": lambda x: x[..., ::-1, ::-1].copy()[..., ::-1, ::-1],
    "one row repeated": lambda x: np.broadcast_to(x[..., :1, :], x.shape),
    "unaligned": lambda x: np.concatenate([x, x], -1)[..., 1 : 1 + x.shape[-1]],
}


@pytest.mark.sampled(3, each="left")
@pytest.mark.parametrize("left", VIEWS)
@pytest.mark.parametrize("right", VIEWS)
def test_products_of_every_layout(left, right):
    random = np.random.default_rng(1)
    a, b = VIEWS[left](sample(random, (12, 20), "float32")), VIEWS[right](sample(random, (20, 36), "float32"))
    out = empty_for(a, b)
    plan = plan_of(out, a, b)
    traces(plan, out, a, b)
    check(out, a, b, plan)


MODES = [(NARROW, *views) for views in choices(("plain", "turned", "sliced"), repeat=2)]
MODES += [(SMALL, "plain", "plain"), (SMALL, "turned", "turned"), (SMALL, "sliced", "sliced"), (MIDDLE, "plain", "plain")]
MODES += [(MIDDLE, "plain", "turned"), (MIDDLE, "turned", "plain"), (LARGE, "plain", "turned")]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("shape", "left", "right"), MODES)
def test_tiles_in_every_mode(shape, left, right, monkeypatch):
    """One row, or four, and four columns more than a tile: the last tiles move back."""
    force(monkeypatch, "matmul", shape)
    random, (BM, BN, _) = np.random.default_rng(2), shape.tile
    M, N, K = BM + (4 if left == "turned" else 1), BN + 4, shape.tile[2] + 2
    a, b = VIEWS[left](sample(random, (M, K), "float32")), VIEWS[right](sample(random, (K, N), "float32"))
    out = empty_for(a, b)
    plan = plan_of(out, a, b)
    assert plan.launches[0].kernel.constants[5:8] == (
        {"plain": "k", "turned": "x4", "sliced": "x"}[left],
        {"plain": "x4", "turned": "k", "sliced": "x"}[right],
        False,
    )
    traces(plan, out, a, b)
    check(out, a, b, plan)


@pytest.mark.parametrize("kind", ["plain", "columns side by side", "sliced", "offset"])
def test_outputs_of_every_layout(kind, monkeypatch):
    random = np.random.default_rng(3)
    a, b = sample(random, (2, 33, 20), "float32"), sample(random, (2, 20, 68), "float32")
    memory = np.full((2, 140, 140), 77, np.float32)
    target = {"plain": memory[:, :33, :68], "columns side by side": memory[:, :68, :33].swapaxes(1, 2)}
    target |= {"sliced": memory[:, 66::-2, 2:138:2][:, :33], "offset": memory[:, 1:34, 1:69]}
    out = target[kind]
    plan = plan_of(out, a, b)
    traces(plan, out, a, b)
    check(out, a, b, plan)
    out[...] = 77
    assert (memory == 77).all()


@pytest.mark.sampled(2, each="dtype")
@pytest.mark.parametrize("dtype", [dtype for dtype in MATMUL_DTYPES if dtype is not float32])
@pytest.mark.parametrize(("left", "right"), [("plain", "sliced"), ("turned", "plain")])
def test_other_element_types(dtype, left, right, monkeypatch):
    """Integers come from the whole range of their type, so that they wrap around."""
    force(monkeypatch, "matmul", SHAPES_BY_ITEMSIZE[dtype.itemsize][-1])
    random = np.random.default_rng(4)
    a, b = VIEWS[left](sample(random, (65, 19), dtype.numpy)), VIEWS[right](sample(random, (19, 9), dtype.numpy))
    out = empty_for(a, b)
    plan = plan_of(out, a, b)
    assert plan.launches[0].grid == (1, 3, 1)
    traces(plan, out, a, b)
    check(out, a, b, plan)


THIN = [
    ("matmul_rows", 32, "plain"),
    ("matmul_rows", 8, "plain"),
    ("matmul_rows", 32, "sliced"),
    ("matmul_dots", 1, "turned"),
]
FEW_ROWS = [(*kernel, sizes) for kernel in THIN for sizes in ((1, 5, 3), (1, 36, 1100), (3, 132, 132), (7, 6, 150))]
FEW_ROWS += [("matmul_dots", 8, "turned", sizes) for sizes in ((1, 5, 3), (1, 36, 1100), (1, 6, 2150))]


@pytest.mark.sampled(16, each="kernel")
@pytest.mark.parametrize("dtype", MATMUL_DTYPES)
@pytest.mark.parametrize(("kernel", "shared", "right", "sizes"), FEW_ROWS, ids=str)
def test_few_rows(dtype, kernel, shared, right, sizes, monkeypatch):
    """Of a kernel for one row and of that for some: `shared` is how many lanes lie along rows, or share out k."""
    most = 1 if sizes[0] == 1 else max_rows(dtype)
    force(monkeypatch, kernel, (row_tile if kernel == "matmul_rows" else dot_tile)(most, shared))
    (M, N, K), random = sizes, np.random.default_rng(5)
    a, b = sample(random, (M, K), dtype.numpy), VIEWS[right](sample(random, (K, N), dtype.numpy))
    out = empty_for(a, b)
    plan = plan_of(out, a, b)
    traces(plan, out, a, b)
    check(out, a, b, plan)
    assert plan.launches[0].kernel.constants[1] is (right != "sliced" and K % 4 == N % 4 == 0)


FLOAT64 = [("plain", "plain", 20), ("turned", "turned", 20), ("plain", "unaligned", 18), ("sliced", "plain", 19)]


@pytest.mark.sampled(2, each="parts")
@pytest.mark.parametrize(("left", "right", "K"), FLOAT64, ids=str)
@pytest.mark.parametrize("parts", [1, 2])
def test_float64_by_tensor_cores(left, right, K, parts, monkeypatch):
    """A tile and a bit more of it, of operands that come 16 bytes at a time, and of others."""
    force(monkeypatch, "matmul_double", parts=parts)
    random, (BM, BN, BK) = np.random.default_rng(12), FLOAT64_MMA.tile
    K += BK * (parts - 1)
    a, b = VIEWS[left](sample(random, (BM + 4, K), "float64")), VIEWS[right](sample(random, (K, BN + 4), "float64"))
    out = empty_for(a, b)
    plan = plan_of(out, a, b)
    modes = {"plain": "k4" if K % 4 == 0 else "k", "turned": "x4", "sliced": "x"}[left]
    modes = modes, {"plain": "x4", "turned": "k4", "unaligned": "x"}[right]
    assert plan.launches[0].kernel.constants[5:7] == modes
    for trace in traces(plan, out, a, b, is_traced=parts == 1):
        assert parts > 1 or trace.hazards() == []
    check(out, a, b, plan)


PARTS = {
    ("matmul", "int64"): [((3, 8, 33), 2)],
    ("matmul_rows", "float64"): [((3, 6, 70), 3)],
    ("matmul_dots", "bool"): [((3, 10, 200), 2)],
    ("matmul", "float32"): [
        ((5, 65, 50), 3),
        ((5, 8, 33), 2),
        ((5, 134, 310), MIN_TALL_PARTS + 4),
        ((3, 8, 16 * MIN_TALL_PARTS), MIN_TALL_PARTS),
    ],
    ("matmul", "bool"): [((2, 9, 310), MIN_TALL_PARTS + 4)],
}


@pytest.mark.sampled(7, each="name")
@pytest.mark.parametrize("batch", ["none", "across"])
@pytest.mark.parametrize(
    ("name", "dtype", "sizes", "parts"), [(*key, *case) for key, cases in PARTS.items() for case in cases], ids=str
)
def test_split_k_sums_are_added(batch, name, dtype, sizes, parts, monkeypatch):
    shape = SHAPES_BY_ITEMSIZE[np.dtype(dtype).itemsize][-1]
    force(monkeypatch, name, shape if name == "matmul" else None, parts)
    (M, N, K), (left, right), random = sizes, BATCHES[batch], np.random.default_rng(6)
    a, b = sample(random, (*left, M, K), dtype), sample(random, (*right, K, N), dtype)
    b = VIEWS["turned"](b) if name == "matmul_dots" else b
    for out in (empty_for(a, b), empty_for(a, b).swapaxes(-1, -2).copy().swapaxes(-1, -2)):
        plan = plan_of(out, a, b)
        assert [launch.kernel.name for launch in plan.launches] == [name, "add_parts"]
        assert plan.workspace == parts * out.nbytes
        traces(plan, out, a, b)
        check(out, a, b, plan)


def test_split_k_sums_are_added_in_order(monkeypatch):
    """1e8 + 1 - 1e8 - 1 depends on the order: only k upwards gives what Python gives."""
    force(monkeypatch, "matmul", NARROW, 4)
    a = np.repeat(np.array([1e8, 3.0, -1e8, -1.0], np.float32), 16)[None] / 16
    out, b = np.zeros((1, 1), np.float32), np.ones((64, 1), np.float32)
    traces(plan_of(out, a, b), out, a, b)
    total = np.float32(0)
    for part in np.split(a[0], 4):
        total += np.float32(np.cumsum(part, dtype=np.float32)[-1])
    assert out[0, 0] == total != a.sum(dtype=float)


def force_turns(monkeypatch, sides):
    """Let plans turn operands over that they would take as they are for such small sizes."""

    def chosen(p, gpu):
        found = [way for way in transposed_configs(p, gpu) if way.shape == NARROW and way.parts == 1]
        return next(way for way in found if "".join("ab"[turn.is_b] for turn in way.transposes) == sides)

    monkeypatch.setattr(planning, "choose_config", chosen)


@pytest.mark.sampled(8, each="sides")
@pytest.mark.parametrize("batch", ["none", "one", "b repeated", "across"])
@pytest.mark.parametrize("sides", ["a", "b", "ab"])
@pytest.mark.parametrize("K", [20, 67], ids=str)
def test_operands_are_turned_over(batch, sides, K, monkeypatch):
    """The rows of a, and the columns of b, come 16 bytes at a time wherever they lie; each matrix is turned over once."""
    force_turns(monkeypatch, sides)
    (left, right), random = BATCHES[batch], np.random.default_rng(11)
    a, b = sample(random, (*left, 68, K), "float32"), sample(random, (*right, K, 72), "float32")
    b = VIEWS["turned"](b) if "b" in sides else b
    out = empty_for(a, b)
    plan = plan_of(out, a, b)
    *turns, product = plan.launches
    assert [launch.kernel.name for launch in turns] == ["turn"] * len(sides)
    assert product.kernel.constants[5:7] == ("x4" if "a" in sides else "k", "x4")
    assert plan.workspace == sum({"a": a, "b": b}[side].nbytes for side in sides)
    is_traced = batch == "none"  # a trace holds a million events
    for trace in traces(plan, out, a, b, is_traced):
        assert not is_traced or [str(error) for error in trace.hazards()] == []
    check(out, a, b, plan)


def test_large_matmuls_transpose_operands_contiguous_along_k():
    def turns(n, *views):
        layouts = [row_major((n, n)).transpose(0, 1) if view == "T" else row_major((n, n)) for view in views]
        way = choose_config(plain_problem(float32, row_major((n, n)), *layouts), H200)
        return "".join("ab"[turn.is_b] for turn in way.transposes), way.problem.is_transposed

    assert turns(4096, "N", "N") == ("a", False)
    assert turns(4096, "N", "T") == ("ab", False)
    assert turns(4096, "T", "N") == ("", False)
    assert turns(512, "N", "T")[0] == ""
    assert turns(4095, "N", "N")[0] == ""  # rows of 4095 elements cannot come in fours


@pytest.mark.parametrize("dtype", MATMUL_DTYPES)
def test_sums_of_nothing_are_zero(dtype):
    a, b = np.zeros((3, 0), dtype.numpy), np.zeros((0, 5), dtype.numpy)
    out = np.ones((3, 5), dtype.numpy)
    traces(plan_of(out, a, b), out, a, b)
    assert not out.any()


def test_an_empty_output_takes_no_launch():
    for M, N in ((0, 5), (5, 0), (0, 0)):
        inputs = [row_major((M, 3)), row_major((3, N))]
        assert plan_matmul(plain_matmul(float32), [row_major((M, N))], inputs) == GpuPlan((), 0)
    assert (
        plan_matmul(plain_matmul(float32), [row_major((0, 2, 2))], [row_major((0, 2, 3)), row_major((3, 2))]).launches == ()
    )


def test_nan_and_infinity_stay_where_they_are(monkeypatch):
    """What a thread copies past the edge of an operand must not touch a sum."""
    random = np.random.default_rng(7)
    for name, shape in (("matmul", NARROW), ("matmul_rows", None), ("matmul_dots", None)):
        force(monkeypatch, name, shape)
        a, b = sample(random, (5, 21), "float32"), sample(random, (21, 6), "float32")
        b = VIEWS["turned"](b) if name == "matmul_dots" else b
        a[2, 20], b[20, 3] = np.nan, np.inf
        out = empty_for(a, b)
        traces(plan_of(out, a, b), out, a, b)
        with np.errstate(invalid="ignore"):
            exact = a @ b
        assert np.array_equal(np.isnan(out), np.isnan(exact))
        assert np.array_equal(np.isinf(out), np.isinf(exact))


@pytest.mark.sampled(2, each="sizes")
@pytest.mark.parametrize(
    ("name", "sizes", "parts"),
    [
        ("matmul", (33, 68, 40), 1),
        ("matmul", (33, 67, 70), 2),
        ("matmul_rows", (3, 132, 40), 1),
        ("matmul_dots", (3, 34, 132), 1),
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_no_hazards(name, sizes, parts, seed, monkeypatch):
    force(monkeypatch, name, NARROW if name == "matmul" else None, parts)
    (M, N, K), random = sizes, np.random.default_rng(8)
    a, b = sample(random, (M, K), "float32"), sample(random, (K, N), "float32")
    b = VIEWS["turned"](b) if name == "matmul_dots" else b
    out = empty_for(a, b)
    plan = plan_of(out, a, b)
    for trace in traces(plan, out, a, b, is_traced=True):
        assert [str(error) for error in trace.hazards()] == []
    check(out, a, b, plan)


def test_no_hazards_in_the_tiles_of_every_type(monkeypatch):
    force(monkeypatch, "matmul", SLIM)
    random = np.random.default_rng(9)
    a, b = sample(random, (33, 17), "int64"), sample(random, (17, 66), "int64")
    out = empty_for(a, b)
    [trace] = traces(plan_of(out, a, b), out, a, b, is_traced=True)
    assert trace.hazards() == []


@st.composite
def operands(draw):
    """Operands of random sizes, batches, strides and element types."""
    M, N, K = (draw(st.sampled_from([1, 2, 3, 4, 7, 8, 12, 33])) for _ in range(3))
    batch = BATCHES[draw(st.sampled_from(list(BATCHES)))]
    dtype = draw(st.sampled_from([np.float32] * 4 + [np.float64, np.int32, np.int64, bool]))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    a, b = (
        VIEWS[draw(st.sampled_from(list(VIEWS)))](sample(random, (*dims, *sizes), dtype))
        for dims, sizes in zip(batch, ((M, K), (K, N)), strict=True)
    )
    return a, b, draw(st.sampled_from([1, 4, 132]))


@share(0.5)
@given(operands())
def test_any_product(found):
    a, b, multiprocessors = found
    out = empty_for(a, b)
    plan = plan_of(out, a, b, multiprocessors)
    traces(plan, out, a, b)
    check(out, a, b, plan)


# Plans: integers only.


def best(M, N, K, dtype=float32, batch=(), **more):
    p = plain_problem(dtype, row_major((*batch, M, N)), row_major((*batch, M, K)), row_major((*batch, K, N)))
    return choose_config(p, H200._replace(**more))


def test_shapes_of_tiles_by_size():
    assert best(4096, 4096, 4096).shape == LARGE
    assert best(1152, 1152, 1152).shape == SMALL
    assert best(256, 64, 64).shape == NARROW
    assert best(4096, 4096, 4096, float64).shape == FLOAT64_MMA
    assert best(60, 100, 4096, float64).shape in (WIDE, SLIM)  # smaller than its tile, either way round
    assert best(4096, 4096, 4096, max_shared_bytes=48 * 1024).shape == SMALL
    assert [best(n, n, n).parts for n in (2048, 4096, 8192)] == [1, 1, 1]
    assert best(512, 512, 8192).parts > 8
    assert best(512, 512, 8192, batch=(64,)).parts == 1


def test_a_few_rows_take_one_pass():
    assert best(1, 4096, 4096).kernel().name == "matmul_rows"
    column = best(4096, 1, 4096)
    assert column.problem.is_transposed
    assert column.kernel().name == "matmul_dots"
    assert column.kernel().constants[1] is True  # 16 bytes at a time, though the vector has no rows that lie apart
    assert column.parts == 1
    turned = plain_problem(float32, row_major((1, 512)), row_major((1, 512)), row_major((512, 512)).transpose(0, 1))
    assert choose_config(turned, H200).kernel().name == "matmul_dots"
    assert best(1, 4096, 4096, float64).kernel().name == "matmul_rows"


def test_splits_cover_k():
    for M, N, K in ((64, 64, 65536), (256, 256, 1000), (1, 4096, 4096), (40, 40, 130)):
        p = plain_problem(float32, row_major((M, N)), row_major((M, K)), row_major((K, N)))
        for way in candidate_configs(p, H200):
            assert (way.parts - 1) * way.part_K < K <= way.parts * way.part_K
            assert way.parts == 1 or way.part_K % way.shape.tile[2] == 0  # so that rows of parts stay aligned


def test_a_model_of_time():
    p = plain_problem(float32, row_major((1024, 1024)), row_major((1024, 1024)), row_major((1024, 1024)))
    few, many = (estimate_cycles(SMALL, (0.5, 0.6), p, n, 1, 1024) for n in (132, 16))
    assert few < many
    assert estimate_cycles(SMALL, (0.5, 0.6), p, 132, 4, 256) > estimate_cycles(SMALL, (0.5, 0.6), p, 528, 1, 256)


def test_rows_of_a_batch_are_rows_of_one_product():
    p = plain_problem(float32, row_major((8, 32, 10)), row_major((8, 32, 64)), row_major((64, 10)))
    assert (p.M, p.N, p.K, p.batch) == (256, 10, 64, ())
    p = plain_problem(float32, row_major((8, 32, 10)), row_major((8, 32, 64)), row_major((8, 64, 10)))
    assert (p.M, p.N, p.K, p.batch) == (32, 10, 64, (8,))
    assert (p.out.batch, p.a.batch, p.b.batch) == ((320,), (2048,), (640,))


def problem_of(sizes, out, a, b, batch=(), fused=()):
    """A problem of float32 by strides: of out along m, n and the batch, of a along m, k, and of b along k, n."""
    operands = MatmulOperand(0, "out", *out[:2], 0, out[2:]), MatmulOperand(1, "a", a[0], 0, a[1], a[2:])
    return MatmulProblem(float32, *sizes, *operands, MatmulOperand(2, "b", 0, b[1], b[0], b[2:]), batch, fused)


@pytest.mark.parametrize(
    ("shape", "strides", "aligned", "mode"),
    [
        ((64, 16), (1, 64), True, "x4"),
        ((64, 16), (1, 64), False, "x"),
        ((64, 16), (1, 66), True, "x"),
        ((66, 16), (1, 68), True, "x"),
        ((64, 16), (16, 1), True, "k"),
        ((64, 16), (-16, 1), False, "k"),
        ((64, 16), (32, 2), True, "x"),
        ((64, 16), (-1, 64), True, "x"),
    ],
)
def test_modes_of_operands(shape, strides, aligned, mode):
    assert operand_mode(shape[0], *strides, [], aligned) == mode
    assert operand_mode(shape[0], *strides, [4, 8], aligned) == mode
    if mode == "x4":
        assert operand_mode(shape[0], *strides, [4, 6], aligned) == "x"


@pytest.mark.parametrize(
    "product",
    [
        problem_of((10, 10, 3), (10, 1, 100), (3, 1, 30), (10, 1, 30), (100_000,)),
        problem_of((10, 10, 3), (10, 1, 30_000, 100), (3, 1, 9_000, 30), (10, 1, 0, 30), (300, 300)),
        problem_of((2, 2, 3), (2, 1, 60, 20, 4), (3, 1, 90, 30, 6), (2, 1, 1, 1, 0), (2, 3, 5)),
        problem_of((1_000_000, 7, 3), (7, 1), (3, 1), (7, 1)),
        problem_of((7, 1_000_000, 3), (1_000_000, 1), (3, 1), (1_000_000, 1)),
    ],
    ids=["many matrices", "many in two axes", "three axes", "many rows", "many columns"],
)
def test_pieces_fit_a_grid_and_cover_the_product(product):
    found = list(split_for_grid(product))
    assert len(found) > 1
    for p in found:
        for shape, (M, N) in choices((LARGE, SMALL, NARROW), ((p.M, p.N), (p.N, p.M))):
            assert max(ceil_div(M, shape.tile[0]), p.matrix_count) <= MAX_GRID_YZ, N
        assert len(p.batch) <= 2
        assert ceil_div(max(p.M, p.N), 4) <= MAX_GRID_YZ
    assert sum(p.matrix_count * p.M * p.N for p in found) == product.matrix_count * product.M * product.N
    assert len({(p.out.start, p.a.start, p.b.start) for p in found}) == len(found)

    def last(p):
        along_batch = sum((size - 1) * stride for size, stride in zip(p.batch, p.out.batch, strict=True))
        return p.out.start + (p.M - 1) * p.out.m + (p.N - 1) * p.out.n + along_batch

    assert max(map(last, found)) == last(product)


def test_batch_offsets_move_with_the_splits():
    """A bias of columns, one of rows of b, and an operand of the epilogue in a batch, each by its own strides."""
    beside = (("out", 0, 1, 0, (0,)), ("b", 0, 2, 7, (21,)), ("out", 11, 1, 0, (55,)))
    fused = tuple(MatmulOperand(3 + k, *x) for k, x in enumerate(beside))
    many = problem_of((5, 5, 3), (5, 1, 25), (3, 1, 15), (5, 1, 0), (100_000,), fused)
    fused = tuple(x._replace(batch=()) for x in fused)
    rows = problem_of((300_000, 300_000, 3), (7, 1), (3, 1), (7, 1), (), fused)
    for p in split_for_grid(rows):
        j = p.b.start
        i = (p.out.start - j) // 7
        assert p.a.start == 3 * i
        assert [x.start for x in p.fused] == [j, 2 * j, 11 * i + j]
    for p in split_for_grid(many):
        k = p.out.start // 25
        assert [x.start for x in p.fused] == [0, 21 * k, 55 * k]
    assert len(list(split_for_grid(rows))) == 4
    assert len(list(split_for_grid(many))) == 2


def test_a_swapped_product_is_its_transpose():
    p = problem_of((2, 3, 5), (30, 1, 100), (50, 1, 200), (7, 2, 300), (4,))._replace(cost_a=6)
    q = p.transposed()
    assert (q.M, q.N, q.K, q.batch, q.cost_a, q.cost_b) == (3, 2, 5, (4,), 0, 6)
    assert q.out.matrix_strides == (1, 30)
    assert (q.a.m, q.a.k, q.a.batch, q.a.address_index) == (2, 7, (300,), 2)
    assert (q.b.k, q.b.n, q.b.batch, q.b.address_index) == (1, 50, (200,), 1)
    assert q.is_transposed
    assert q.transposed() == p


def test_arguments_have_the_types_of_the_signature():
    for dtype in MATMUL_DTYPES:
        for M, N, K in ((33, 65, 20), (1, 4096, 4096), (512, 512, 2048), (4096, 1, 64)):
            plan = plan_matmul(plain_matmul(dtype), [row_major((M, N))], [row_major((M, K)), row_major((K, N))])
            for launch in plan.launches:
                for kind, x in zip(launch.kernel.signature, launch.arguments, strict=True):
                    assert isinstance(
                        x, OperandAddress if kind[0] == "*" else {"i64": int, "f32": float, "f64": float}[kind]
                    )
                assert launch.block[0] * launch.block[1] * launch.block[2] == launch.kernel.threads
                assert len(launch.kernel.signature) == launch.kernel.function.__code__.co_argcount
            names = [launch.kernel.name for launch in plan.launches]
            assert (names[-1] == "add_parts") == (plan.workspace > 0)
            assert plan.launches[-1].arguments[0] == OperandAddress(OUT)
            assert (OperandAddress(WORKSPACE) in plan.launches[0].arguments) == (plan.workspace > 0)


def argument(launch, name):
    return launch.arguments[launch.kernel.function.__code__.co_varnames.index(name)]


def test_split_sums_are_stored_as_vectors():
    strided, odd = Layout((64, 64), (128, 2), 0), row_major((63, 63))
    for out, wide in ((row_major((64, 64)), [1, 1]), (strided, [1, 0]), (odd, [0, 0])):
        n = out.shape[0]
        plan = plan_matmul(plain_matmul(float32), [out], [row_major((n, 4096)), row_major((4096, n))])
        assert [argument(launch, "wide") for launch in plan.launches] == wide
    [alone] = plan_matmul(plain_matmul(float32), [strided], [row_major((64, 64))] * 2).launches
    assert argument(alone, "wide") == 0


def test_few_kernels_serve_all_products():
    """Sizes and strides are arguments; the docstring of plan_product says how many kernels there are at most."""
    random, seen = np.random.default_rng(10), set()
    for _ in range(600):
        M, N, K = (int(2 ** random.uniform(0, 12)) * int(random.choice([1, 4])) for _ in range(3))
        step, turned, aligned = random.integers(1, 3, 2), random.random(3) < 0.4, tuple(random.random(3) < 0.8)
        layouts = [
            Layout(shape, (int(s), shape[0] * int(s)) if t else (shape[1] * int(s), int(s)), 0)
            for shape, s, t in zip(((M, N), (M, K), (K, N)), (1, *step), turned, strict=True)
        ]
        plan = plan_matmul(plain_matmul(float32), layouts[:1], layouts[1:], int(random.choice([20, 132])), aligned)
        seen |= {(launch.kernel.name, launch.kernel.constants) for launch in plan.launches}
    assert 30 < len(seen) <= 80
    assert {name for name, _ in seen} == {"matmul", "matmul_rows", "matmul_dots", "add_parts", "turn"}
