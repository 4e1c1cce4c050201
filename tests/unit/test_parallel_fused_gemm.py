"""backends.parallel.fused_gemm against NumPy, on whole numbers, so that no sum is rounded."""

import platform
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minifuse.backends.matmul.problem import MatmulOperand, MatmulProblem
from minifuse.backends.parallel.backend import ParallelBackend
from minifuse.backends.parallel.fused_gemm import THREAD_LOCAL, FusedMatmul
from minifuse.backends.parallel.gemm_config import (
    BLOCK_BYTES,
    BLOCK_M,
    BLOCK_N,
    DOT,
    OUTER,
    PACKED_A_BYTES,
    PACKED_B_BYTES,
    ROW,
    ROWS,
    SET_BYTES,
    SUMS_BYTES,
    candidate_configs,
    ceil_div,
    lanes_of,
    max_accumulated_rows,
)
from minifuse.backends.python import PythonBackend
from minifuse.core.dtypes import BY_NUMPY, bool_, float32, float64, int32, int64
from minifuse.core.errors import DTypeError
from minifuse.core.layout import Layout
from minifuse.core.operators import TABLE
from minifuse.ir.kernel_ir import (
    Accumulator,
    Constant,
    Expression,
    IndexValue,
    KernelParameter,
    Load,
    ReadOutput,
    cast,
    constant,
    replace,
)
from minifuse.ir.step_kernels import MatmulKernel
from minifuse.runtime.kernel_cache import cache
from minifuse.testing.tolerances import tolerance_for
from tests.steps import matmul_step
from tests.unit.test_parallel_gemm import GUARD, layout_of, run, spread

BACKEND = ParallelBackend()
NUMPY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "maximum": np.maximum,
    "gt": np.greater,
    "and_": np.logical_and,
    "where": np.where,
    "tanh": np.tanh,
    "invert": np.logical_not,
}


def apply(name, *inputs):
    """An operator of the table on expressions."""
    return next(x for x in inputs if isinstance(x, Expression)).apply(TABLE[name], *inputs)


def relu(x):
    return apply("maximum", x, 0)


def gelu(x):
    inner = apply("mul", apply("add", x, apply("mul", apply("mul", apply("mul", x, x), x), 0.044715)), 0.7978845608)
    return apply("mul", apply("mul", x, 0.5), apply("add", apply("tanh", inner), 1.0))


def masked(g, x):
    return apply("where", apply("gt", x, 0), g, constant(0, g.dtype))


# The judge.


def value(e, operands, outputs, numbers, dot):
    """An expression in NumPy, floats in float64; `dot` are the sums."""
    if isinstance(e, IndexValue):
        first, layout = operands[e.index]
        return first + sum(i * s for i, s in zip(np.indices(layout.shape), layout.strides, strict=True))
    if isinstance(e, Accumulator):
        return dot
    if isinstance(e, Load | ReadOutput):
        return wide(operands[e.index] if isinstance(e, Load) else outputs[e.index])
    if isinstance(e, KernelParameter | Constant):
        return np.asarray(numbers[e.index] if isinstance(e, KernelParameter) else e.value, wide_type(e.dtype))
    inputs = [value(x, operands, outputs, numbers, dot) for x in e.inputs]
    result = NUMPY[e.operator.name](*inputs) if e.operator else inputs[0]
    return np.asarray(result).astype(wide_type(e.dtype))


def wide(x):
    return x.astype(wide_type(BY_NUMPY[x.dtype]))


def wide_type(dtype):
    return np.float64 if dtype.is_float else dtype.numpy


def expected(kernel, outputs, operands, numbers=()):
    """What a launch should store."""
    a, b = (value(e, operands, outputs, numbers, None) for e in (kernel.a, kernel.b))
    shape = outputs[0].shape
    found = [np.broadcast_to(value(e, operands, outputs, numbers, a @ b), shape) for e in kernel.pointwise_outputs]
    return [x.astype(out.dtype) for x, out in zip(found, outputs, strict=True)]


# Launches.


def layouts(operands):
    return [x[1] if isinstance(x, tuple) else layout_of(x) for x in operands]


def addresses(operands):
    """Of arrays; of positions, that of the first."""
    return [x[0] if isinstance(x, tuple) else x.__array_interface__["data"][0] for x in operands]


def executable(kernel, outputs, operands, backend=BACKEND):
    return backend.compile(matmul_step(kernel, layouts(outputs), layouts(operands)))


def launch(kernel, outputs, operands, numbers=(), backend=BACKEND):
    bound = executable(kernel, outputs, operands, backend).load()
    bound(*addresses(outputs), *addresses(operands), *numbers)
    return outputs


def product_of(kernel, outputs, operands, threads=1):
    return FusedMatmul(kernel, layouts(outputs), layouts(operands), threads)


def check(kernel, outputs, operands, numbers=()):
    """Launch and compare, bit by bit."""
    wanted = expected(kernel, outputs, operands, numbers)
    for found, want in zip(launch(kernel, outputs, operands, numbers), wanted, strict=True):
        assert found.tobytes() == want.tobytes()


def small(rng, shape, dtype):
    """Whole numbers of which sums of products are exact; of integers, some whose products wrap around."""
    if dtype is bool_:
        return rng.random(shape) < 0.3
    if dtype is int32:
        return rng.choice(np.array([-3, 2, 1 << 20, -(1 << 30)], np.int32), shape)
    return rng.integers(-4, 5, shape).astype(dtype.numpy)


def like(shape, dtype):
    return np.full(shape, GUARD, dtype.numpy)


# Kernels of every kind. Each takes the element type and gives expressions of loads that are counted from `k`, with the
# element type of each load.


def plain(t, k):
    return Load(k, t), [t]


A_SIDES = {
    "a": plain,
    "relu": lambda t, k: (relu(Load(k, t)), [t]),
    "masked": lambda t, k: (masked(Load(k, t), Load(k + 1, t)), [t, t]),
    "cast": lambda t, k: (cast(Load(k, int64), t), [int64]),
    "of a bool": lambda t, k: (cast(Load(k, bool_), t), [bool_]),
    "scaled": lambda t, k: (apply("mul", Load(k, t), KernelParameter(0, t)), [t]),
}


def biased(t):
    return apply("add", Accumulator(t), Load(0, t))


EPILOGUES = {  # elements, the types of their loads
    "sums": lambda t: ((Accumulator(t),), []),
    "relu": lambda t: ((relu(Accumulator(t)),), []),
    "bias and relu": lambda t: ((relu(biased(t)),), [t]),
    "mask alone": lambda t: ((apply("gt", biased(t), 0),), [t]),
    "scaled": lambda t: ((apply("add", apply("mul", Accumulator(t), KernelParameter(0, t)), Load(0, t)),), [t]),
    "sums and relu": lambda t: ((relu(biased(t)), Accumulator(t)), [t]),
    "relu and mask": lambda t: ((relu(biased(t)), apply("gt", biased(t), 0)), [t]),
    "in place": lambda t: ((apply("add", ReadOutput(0, t), Accumulator(t)),), []),
    "in place and apart": lambda t: (
        (apply("sub", ReadOutput(0, t), Accumulator(t)), apply("add", Accumulator(t), ReadOutput(0, t))),
        [],
    ),
    "two in place": lambda t: (
        (apply("add", ReadOutput(1, t), Accumulator(t)), apply("sub", ReadOutput(0, t), ReadOutput(1, t))),
        [],
    ),
    "another type": lambda t: ((cast(apply("gt", Accumulator(t), 1), int64), cast(Accumulator(t), float64)), []),
}


def shifted(e, by):
    """The same expression with its loads counted from `by`."""
    return replace(e, Load, lambda x: type(x)(x.index + by, x.dtype))


def kernel_of(dtype, a="a", b="a", epilogue="sums"):
    """(kernel, element types of a's loads, of b's, of the epilogue's)."""
    left, of_left = A_SIDES[a](dtype, 0)
    right, of_right = A_SIDES[b](dtype, len(of_left))
    elements, others = EPILOGUES[epilogue](dtype)
    elements = tuple(shifted(e, len(of_left) + len(of_right)) for e in elements)
    return MatmulKernel(left, right, elements), of_left, of_right, others


def spaces_of(sizes, batch=()):
    """The shapes of a, of b and of the output."""
    rows, columns, depth = sizes
    return [(*batch, rows, depth), (*batch, depth, columns), (*batch, rows, columns)]


def numbers_of(kernel):
    return [2] * len(kernel.find_all(KernelParameter))


@st.composite
def products(draw):
    """(kernel, outputs, memory of these, operands): sizes from 0 to past a panel, and all strides that views make."""
    dtype = draw(st.sampled_from([float32, int32]))
    a, b = (draw(st.sampled_from(["a", *A_SIDES])) for _ in range(2))
    kernel, *types = kernel_of(dtype, a, b, draw(st.sampled_from([*EPILOGUES])))
    batch = draw(st.sampled_from([(), (), (3,), (2, 3)]))
    rows, columns, depth = [draw(st.sampled_from([1, 2, 7, 31, 33, 65]) | st.integers(0, 70)) for _ in range(3)]
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))

    def operand(shape, dtype, may_repeat=True):
        own = [1 if may_repeat and n and draw(st.integers(0, 5)) == 0 else n for n in shape]
        order = (*range(len(own)),) if draw(st.booleans()) else draw(st.permutations(range(len(own))))
        steps = [draw(st.sampled_from([1, 1, 1, 2, -1])) for _ in own]
        view, memory = spread(small(rng, own, dtype), order, steps)
        return (np.broadcast_to(view, shape), memory) if may_repeat else (view, memory)

    spaces = zip(types, spaces_of((rows, columns, depth), batch), strict=True)
    operands = [operand(shape, t)[0] for of, shape in spaces for t in of]
    outputs = [operand((*batch, rows, columns), e.dtype, may_repeat=False) for e in kernel.pointwise_outputs]
    return kernel, [view for view, _ in outputs], [memory for _, memory in outputs], operands


@given(products())
def test_any_kernel_over_any_strides_equals_numpy(case):
    kernel, outputs, memories, operands = case
    check(kernel, outputs, operands, numbers_of(kernel))
    for out, memory in zip(outputs, memories, strict=True):
        out[...] = GUARD
        assert (memory == memory.dtype.type(GUARD)).all()


def operands_of(rng, dtype, types, sizes, orders="CCC", batch=()):
    """An array for each load: those of a in the first order, those of b in the second, the others in the third."""
    spaces = zip(types, spaces_of(sizes, batch), orders, strict=True)
    return [np.asarray(small(rng, shape, t), order=order) for of, shape, order in spaces for t in of]


EDGES = [  # M, N, K around panels, strips and blocks
    (ROWS - 1, 49, 33),
    (BLOCK_M + 1, BLOCK_N + 1, 31),
    (3 * ROWS + 1, 2 * BLOCK_N - 1, BLOCK_BYTES // 4 + 1),
    (5, 1023, 33),
    (1025, 7, 9),
    (300, 65, 1025),
    (1, 1000, 65),
    (300, 1, 513),
    (2, 3, 9001),
    (9, 33, 0),
]


@pytest.mark.sampled(2, each="epilogue")
@pytest.mark.parametrize("orders", ["CCC", "FCC", "CFF"])
@pytest.mark.parametrize("epilogue", ["bias and relu", "mask alone", "sums and relu", "in place"])
def test_epilogues_at_the_edges_of_panels_strips_and_blocks(epilogue, orders):
    rng = np.random.default_rng(0)
    kernel, *types = kernel_of(float32, epilogue=epilogue)
    for sizes in EDGES:
        operands = operands_of(rng, float32, types, sizes, orders)
        outputs = [np.asarray(like(sizes[:2], e.dtype), order=orders[2]) for e in kernel.pointwise_outputs]
        check(kernel, outputs, operands)


@pytest.mark.sampled(2, each="sides")
@pytest.mark.parametrize("orders", ["CCC", "FCC", "CFC", "CCF"])
@pytest.mark.parametrize("sides", [("relu", "a"), ("a", "relu"), ("masked", "cast"), ("of a bool", "masked")])
def test_prologues_at_the_edges_of_panels_and_blocks(sides, orders):
    rng = np.random.default_rng(1)
    kernel, *types = kernel_of(float32, *sides)
    for sizes in EDGES:
        out = np.asarray(like(sizes[:2], float32), order=orders[2])
        check(kernel, [out], operands_of(rng, float32, types, sizes, orders))


WAYS = {  # sizes, orders of a and b, prologue; which micro-kernel then runs
    "matrices": ((70, 130, 90), "CC", "a", "a", OUTER),
    "rows one page apart": ((SET_BYTES // 4, 200, 65), "FC", "a", "a", OUTER),
    "few rows by rows": ((4, 300, 200), "CF", "a", "a", DOT),
    "few evaluated rows by rows": ((4, 300, 200), "CF", "relu", "a", DOT),
    "an evaluated matrix by a vector": ((300, 1, 201), "CC", "relu", "a", DOT),
    "a vector by a matrix": ((1, 300, 201), "CC", "a", "a", ROW),
    "an evaluated vector by a matrix": ((1, 300, 201), "CC", "relu", "a", ROW),
    "a vector by an evaluated matrix": ((1, 300, 201), "CC", "a", "relu", OUTER),
}


@pytest.mark.sampled(2, each="way")
@pytest.mark.parametrize("epilogue", ["sums and relu", "mask alone"])
@pytest.mark.parametrize("way", WAYS)
def test_each_micro_kernel_has_stages(way, epilogue):
    sizes, orders, a, b, kind = WAYS[way]
    kernel, *types = kernel_of(float32, a, b, epilogue)
    operands = operands_of(np.random.default_rng(2), float32, types, sizes, orders + "C")
    outputs = [like(sizes[:2], e.dtype) for e in kernel.pointwise_outputs]
    assert product_of(kernel, outputs, operands).plan.config.kind == kind
    check(kernel, outputs, operands)


def test_where_sums_wait():
    rng = np.random.default_rng(3)
    waiting = {}
    for epilogue in EPILOGUES:
        kernel, *types = kernel_of(float32, epilogue=epilogue)
        outputs = [like((5, 6), e.dtype) for e in kernel.pointwise_outputs]
        waiting[epilogue] = product_of(kernel, outputs, operands_of(rng, float32, types, (5, 6, 7))).sums_output
    assert waiting == {
        "sums": 0,
        "relu": 0,
        "bias and relu": 0,
        "mask alone": THREAD_LOCAL,  # a bool holds no sum
        "scaled": 0,
        "sums and relu": 1,  # which need not be stored again
        "relu and mask": 0,
        "in place": THREAD_LOCAL,  # what the output holds is still needed
        "in place and apart": 1,
        "two in place": THREAD_LOCAL,
        "another type": THREAD_LOCAL,
    }


@pytest.mark.parametrize("dtype", [float64, int32, int64])
def test_element_types(dtype):
    rng = np.random.default_rng(4)
    for a, b, epilogue in [("masked", "relu", "relu and mask"), ("scaled", "a", "scaled"), ("a", "cast", "in place")]:
        kernel, *types = kernel_of(dtype, a, b, epilogue)
        operands = operands_of(rng, dtype, types, (33, 65, 31))
        check(kernel, [like((33, 65), e.dtype) for e in kernel.pointwise_outputs], operands, numbers_of(kernel))


def test_bools():
    rng = np.random.default_rng(5)
    a, b, c = (small(rng, shape, bool_) for shape in [(33, 20), (20, 65), (33, 65)])
    flipped = apply("invert", Load(0, bool_))
    kernel = MatmulKernel(flipped, Load(1, bool_), (apply("and_", Accumulator(bool_), Load(2, bool_)), Accumulator(bool_)))
    check(kernel, [like((33, 65), bool_), like((33, 65), bool_)], [a, b, c])


def test_batches_that_merge_with_the_rows_and_those_that_do_not():
    rng = np.random.default_rng(6)
    kernel, *types = kernel_of(float32, "masked", "relu", "bias and relu")
    x, g, w, bias = operands_of(rng, float32, types, (5, 7, 9), batch=(4, 3))
    one_w, row = np.broadcast_to(w[:1, :1], w.shape), np.broadcast_to(bias[:1, :1, :1], bias.shape)
    out = like((4, 3, 5, 7), float32)
    assert product_of(kernel, [out], [x, g, one_w, row]).problem.M == 60
    check(kernel, [out], [x, g, one_w, row])
    assert product_of(kernel, [out], [x, g, one_w, bias.swapaxes(0, 1).copy().swapaxes(0, 1)]).problem.batch
    check(kernel, [out], [x, g, one_w, bias.swapaxes(0, 1).copy().swapaxes(0, 1)])
    check(kernel, [out], [x, g, w, row])


def test_indices_of_elements():
    below = apply("gt", IndexValue(3, int64), IndexValue(2, int64))
    kernel = MatmulKernel(
        Load(0, float32), Load(1, float32), (apply("where", below, Accumulator(float32), constant(-9, float32)),)
    )
    rng = np.random.default_rng(7)
    shape = 2, 70, BLOCK_N + 8
    a, b = small(rng, (2, 70, 5), float32), small(rng, (2, 5, BLOCK_N + 8), float32)
    column, row = (2, Layout(shape, (0, 0, 1), 0)), (0, Layout(shape, (0, 3, 0), 0))
    check(kernel, [like(shape, float32)], [a, b, column, row])


def test_numbers_reach_the_stage_that_asks_for_them():
    first, second, third = (KernelParameter(k, float32) for k in range(3))
    scaled = apply("sub", apply("mul", Load(0, float32), second), third)
    kernel = MatmulKernel(scaled, Load(1, float32), (apply("sub", apply("mul", Accumulator(float32), third), first),))
    operands = operands_of(np.random.default_rng(20), float32, ([float32], [float32], []), (9, 33, 5))
    check(kernel, [like((9, 33), float32)], operands, [2.0, 3.0, 5.0])


def test_stages_walk_along_memory():
    def walks(a, epilogue, orders):
        kernel, *types = kernel_of(float32, a, "a", epilogue)
        operands = operands_of(np.random.default_rng(21), float32, types, (64, 10, 32), orders)
        operands[len(types[0]) + 1 :] = [np.broadcast_to(x[0], x.shape) for x in operands[len(types[0]) + 1 :]]
        outputs = [np.asarray(like((64, 10), float32), order=orders[2])]
        found = product_of(kernel, outputs, operands).traversals()
        return [(walk.is_transposed, walk.is_flat) for walk in found if walk]

    assert walks("relu", "relu", "CCC") == [(False, True), (False, True)]  # one row each
    assert walks("relu", "bias and relu", "FCC") == [(True, False), (False, False)]


@pytest.mark.parametrize("epilogue", EPILOGUES)
def test_the_python_backend_takes_the_product_apart_and_agrees(epilogue):
    rng = np.random.default_rng(8)
    kernel, *types = kernel_of(float32, "masked", "scaled", epilogue)
    operands = operands_of(rng, float32, types, (3, 4, 5))
    found, wanted = ([like((3, 4), e.dtype) for e in kernel.pointwise_outputs] for _ in range(2))
    launch(kernel, found, operands, numbers_of(kernel))
    launch(kernel, wanted, operands, numbers_of(kernel), PythonBackend())
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", [float32, float64])
def test_functions_that_round(dtype):
    rng = np.random.default_rng(9)
    x, w, bias = (rng.standard_normal(shape).astype(dtype.numpy) for shape in [(100, 300), (300, 200), (1, 200)])
    kernel = MatmulKernel(gelu(Load(0, dtype)), Load(1, dtype), (gelu(apply("add", Accumulator(dtype), Load(2, dtype))),))
    operands, out = [x, w, np.broadcast_to(bias, (100, 200))], like((100, 200), dtype)
    (wanted,) = expected(kernel, [out.astype(np.float64)], operands)
    scale = float((np.abs(x.astype(np.float64)) @ np.abs(w)).max())
    limit = tolerance_for("product", dtype, 300, 2 * scale)
    np.testing.assert_allclose(launch(kernel, [out], operands)[0], wanted, limit.rtol, limit.atol)


@pytest.mark.parametrize("side", ["relu", "a"])
def test_the_bits_do_not_depend_on_the_number_of_threads(side, monkeypatch):
    rng = np.random.default_rng(10)
    kernel, *_ = kernel_of(float32, side, side, "sums and relu")
    operands = [rng.standard_normal(shape).astype(np.float32) for shape in [(205, 301), (301, 390), (205, 390)]]
    found = set()
    for threads in (1, 2, 7):
        monkeypatch.setattr(FusedMatmul.__init__, "__defaults__", (threads,))
        outputs = launch(kernel, [like((205, 390), float32) for _ in range(2)], operands)
        found.add(b"".join(out.tobytes() for out in outputs))
    assert len(found) == 1


@pytest.mark.parametrize("shapes", [((0, 3), (3, 2)), ((2, 3), (3, 0)), ((0, 2, 3), (0, 3, 2))])
def test_an_empty_output_needs_no_launch(shapes):
    kernel, *_ = kernel_of(float32, "relu", "a", "relu")
    a, b = (np.ones(shape, np.float32) for shape in shapes)
    out = np.ones((*a.shape[:-1], b.shape[-1]), np.float32)
    assert launch(kernel, [out], [a, b]) == [out]
    assert executable(kernel, [out], [a, b]).cost() == (0, 0, 0)
    assert executable(kernel, [out], [a, b]).refusal is None
    assert "matmul" in executable(kernel, [out], [a, b]).source


def test_a_number_out_of_range_is_an_error():
    kernel, *types = kernel_of(int32, epilogue="scaled")
    operands = operands_of(np.random.default_rng(11), int32, types, (2, 3, 4))
    with pytest.raises(DTypeError, match="does not fit int32"):
        launch(kernel, [like((2, 3), int32)], operands, [1 << 40])


def test_a_new_size_compiles_nothing():
    rng = np.random.default_rng(12)
    kernel, *types = kernel_of(float32, "relu", "masked", "relu and mask")

    def count(sizes):
        operands = operands_of(rng, float32, types, sizes)
        check(kernel, [like(sizes[:2], e.dtype) for e in kernel.pointwise_outputs], operands)
        return cache.stats().in_memory

    assert len({count(sizes) for sizes in [(20, 30, 40), (64, 300, 513), (300, 70, 9), (1025, 3, 33)]}) == 1


SIZES = st.sampled_from([0, 1, 2, 9, 64, 301, 513, 4097]) | st.integers(1, 2000)


@given(st.tuples(SIZES, SIZES, SIZES), st.sampled_from([float32, float64, bool_]), st.tuples(*[st.booleans()] * 5))
def test_blocks_fit_their_reserved_memory(sizes, dtype, choices):
    rows, columns, depth = [max(n, least) for n, least in zip(sizes, (1, 1, 0), strict=True)]
    a_turned, b_turned, evaluates_a, evaluates_b, keeps_sums = choices
    (a_m, a_k), (b_k, b_n) = ((1, 2) if turned else (2, 1) for turned in (a_turned, b_turned))
    out = MatmulOperand(0, "out", columns, 1, 0, in_memory=not keeps_sums)
    a, b = MatmulOperand(1, "a", a_m, 0, a_k), MatmulOperand(2, "b", 0, b_n, b_k)
    product = MatmulProblem(dtype, rows, columns, depth, out, a, b, (), (), evaluates_a * 1.0, evaluates_b * 1.0, 1.0)
    for way in candidate_configs(product):
        p, n = way.problem, dtype.itemsize
        block_n, block_k = min(way.block_n, columns), min(way.block_k, depth)
        assert way.block_m >= rows or way.block_m % way.panel_m == 0
        assert way.block_n >= columns or way.block_n % way.panel_n == 0
        if way.packs_b:
            assert ceil_div(block_n, way.panel_n) * way.panel_n * block_k * n <= PACKED_B_BYTES
        if evaluates_a:
            last = (min(way.block_m, rows) - 1) * p.a.m + (block_k - 1) * p.a.k
            assert (last + 1) * n <= PACKED_A_BYTES
        if evaluates_b:
            last = (min(way.stage_k, block_k) - 1) * p.b.k + (block_n - 1) * p.b.n
            assert (last + 1) * n <= PACKED_A_BYTES
        if keeps_sums:
            kept = max_accumulated_rows(way)
            assert kept >= way.panel_m
            assert kept * p.out.m * n <= SUMS_BYTES


# What runs, in words.


def test_the_source_shows_each_stage():
    kernel, *types = kernel_of(float32, "relu", "a", "bias and relu")
    operands = operands_of(np.random.default_rng(13), float32, types, (20, 30, 40))
    text = executable(kernel, [like((20, 30), float32)], operands).source
    assert text.count("def kernel(start, stop, args):") == 2
    assert text.index("each block of a") < text.index("finished sums")
    assert "out0[i0 * out0_0 + i1] + in0" in text  # the sums are changed in place


LANES = 16  # floats in a vector of 512 bits
REFUSED = {  # sizes M, N, K and the prologues of a and b; whether they should be launches of their own
    "a hidden layer": ((64, 128, 784), "relu", "a", False),
    "its gradient": ((64, 784, 128), "masked", "a", False),
    "a gradient of weights": ((784, 128, 64), "a", "masked", False),
    "a matrix by a vector": ((784, 1, 512), "relu", "a", False),
    "a dear function, evaluated for each block": ((512, 1024, 512), "gelu", "a", True),
    "a vector by an evaluated matrix": ((1, 1024, 1024), "a", "gelu", True),
}


@pytest.mark.skipif(lanes_of(float32) != LANES, reason="shorter vectors have other costs")
@pytest.mark.parametrize("case", REFUSED)
def test_a_prologue_is_refused_where_a_launch_of_its_own_is_faster(case, monkeypatch):
    sizes, a, b, is_refused = REFUSED[case]
    monkeypatch.setitem(A_SIDES, "gelu", lambda t, k: (gelu(Load(k, t)), [t]))
    kernel, *types = kernel_of(float32, a, b, "bias and relu")
    operands = operands_of(np.random.default_rng(14), float32, types, sizes)
    reason = FusedMatmul(kernel, layouts([like(sizes[:2], float32)]), layouts(operands), threads=2).why_not_fused()
    assert bool(reason) == is_refused, reason


def test_an_epilogue_is_not_refused_for_its_cost():
    kernel, *types = kernel_of(float32, epilogue="mask alone")
    for sizes in EDGES:
        operands = operands_of(np.random.default_rng(15), float32, types, sizes)
        assert executable(kernel, [like(sizes[:2], bool_)], operands).refusal is None


def test_more_arguments_than_fit_are_launches_apart():
    total = Accumulator(float32)
    for k in range(100):
        total = apply("add", total, Load(k + 2, float32))
    kernel = MatmulKernel(Load(0, float32), Load(1, float32), (total,))
    operands = operands_of(np.random.default_rng(16), float32, ([float32], [float32], [float32] * 100), (3, 4, 5))
    out = like((3, 4), float32)
    assert "304 arguments" in executable(kernel, [out], operands).refusal
    assert executable(kernel, [out], operands).cost() == (2, 48, 120)
    check(kernel, [out], operands)


def test_the_cost_of_a_matmul_is_counted():
    kernel, *types = kernel_of(float32, "relu", "relu", "mask alone")
    operands = operands_of(np.random.default_rng(17), float32, types, (3, 4, 5))
    assert executable(kernel, [like((3, 4), bool_)], operands).cost() == (1, 0, 120)


# In processes of their own.

FENCED = """
import ctypes, mmap
from tests.unit.test_parallel_fused_gemm import *

def fence(array, at_end):
    nbytes = -(-array.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = np.frombuffer(mmap.mmap(-1, nbytes + 2 * mmap.PAGESIZE), np.uint8)
    for page in (0, nbytes + mmap.PAGESIZE):
        assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(memory.ctypes.data + page), mmap.PAGESIZE, 0) == 0
    start = mmap.PAGESIZE + (nbytes - array.nbytes) * at_end
    inside = np.ndarray(array.shape, array.dtype, memory, start, array.strides)
    inside[...] = array
    return inside

for sizes, orders, a, b, _ in WAYS.values():
    for epilogue in ("sums and relu", "mask alone"):
        kernel, *types = kernel_of(float32, a, b, epilogue)
        operands = operands_of(np.random.default_rng(18), float32, types, sizes, orders + "C")
        for at_end in (False, True):
            outputs = [fence(like(sizes[:2], e.dtype), at_end) for e in kernel.pointwise_outputs]
            check(kernel, outputs, [fence(x, at_end) for x in operands])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="memory is protected by mprotect")
def test_no_memory_outside_the_operands_is_read_or_written():
    run(FENCED)


NARROWER = """
from llvmlite import binding
features = binding.get_host_cpu_features()
features.update({name: False for name in features if name.startswith("avx512")})
binding.get_host_cpu_features = lambda: features

from tests.unit.test_parallel_fused_gemm import *
for sizes, orders, a, b, _ in WAYS.values():
    kernel, *types = kernel_of(float32, a, b, "mask alone")
    operands = operands_of(np.random.default_rng(19), float32, types, sizes, orders + "C")
    check(kernel, [like(sizes[:2], bool_)], operands)
"""


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the names of the features are those of x86")
def test_processors_with_narrower_vectors():
    run(NARROWER)
