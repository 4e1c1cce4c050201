"""Prologues and epilogues in every matmul kernel of cuda, in the interpreter, against NumPy in float64."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minifuse import simt
from minifuse.backends.cuda.matmul import launches as planning
from minifuse.backends.cuda.matmul.epilogue import build_hooks, hook_expressions
from minifuse.backends.cuda.matmul.launches import plan_matmul
from minifuse.backends.cuda.planned_launcher import CudaMatmulLauncher
from minifuse.backends.cuda.tile_shapes import LARGE, NARROW, SLIM
from minifuse.backends.fallback import MatmulSequence
from minifuse.backends.registry import get_backend
from minifuse.core.dtypes import BY_NUMPY, HIGHEST, bool_, float32, float64, int32, int64
from minifuse.core.layout import Layout, row_major
from minifuse.core.operators import abs as absolute
from minifuse.core.operators import div, exp, ge, gelu, gt, log, maximum, relu, tanh, where
from minifuse.ir.kernel_ir import (
    Accumulator,
    Constant,
    IndexValue,
    KernelParameter,
    Load,
    ReadOutput,
    cast,
    constant,
)
from minifuse.ir.step_kernels import MatmulKernel
from tests.examples import share

from ..cuda.simulated import simulated
from .test_cuda_matmul_launches import BATCHES, VIEWS, address_of, force, layout_of, sample

LOAD, STORE = 0, 1
NUMPY = {"mul": np.multiply, "div": np.true_divide, "sub": np.subtract, "add": np.add, "neg": np.negative, "abs": np.abs}
NUMPY |= {"maximum": np.maximum, "gt": np.greater, "ge": np.greater_equal, "where": np.where, "tanh": np.tanh, "exp": np.exp}
NUMPY |= {"erf": np.vectorize(math.erf, otypes=[float]), "log": np.log, "and_": np.logical_and, "or_": np.logical_or}


class Case:
    """A product over arrays: `make(a, b, others, numbers, dot, old)` gives the two operands and the outputs' expressions.

    `of_a`, `of_b` and `others` are the arrays that are loaded, of shapes that broadcast to those of their operand. An
    integer array in `ranges` lies in no memory.
    """

    def __init__(self, make, of_a, of_b, others=(), numbers=(), outs=None, ranges=(), precision=HIGHEST):
        batch = np.broadcast_shapes(*[x.shape[:-2] for x in (*of_a, *of_b)])
        (M, K), N = np.broadcast_shapes(*[x.shape[-2:] for x in of_a]), of_b[0].shape[-1]
        spaces = [(*batch, M, K)] * len(of_a) + [(*batch, K, N)] * len(of_b) + [(*batch, M, N)] * len(others)
        self.inputs = [np.broadcast_to(x, s) for x, s in zip((*of_a, *of_b, *others), spaces, strict=True)]
        self.ranges = {k for k, x in enumerate((*of_a, *of_b, *others)) if any(x is y for y in ranges)}
        kinds = [BY_NUMPY[x.dtype] for x in self.inputs]
        loads = [(IndexValue if k in self.ranges else Load)(k, dtype) for k, dtype in enumerate(kinds)]
        self.numbers = numbers
        p = [KernelParameter(k, float32 if isinstance(x, float) else int64) for k, x in enumerate(numbers)]
        na, nb = len(of_a), len(of_a) + len(of_b)
        a, b, elements = make(loads[:na], loads[na:nb], loads[nb:], p)
        self.kernel = MatmulKernel(a, b, elements, precision)
        self.outs = outs or [np.full((*batch, M, N), 77).astype(e.dtype.numpy) for e in elements]
        self.old = [out.copy() for out in self.outs]

    def exact(self, e, dot=None):
        """An expression in NumPy; floats in float64."""
        if isinstance(e, Load):
            x = self.inputs[e.index]
            return x.astype(float) if x.dtype.kind == "f" else x
        if isinstance(e, ReadOutput):
            return self.old[e.index]
        if isinstance(e, Accumulator):
            return dot
        if isinstance(e, KernelParameter):
            return self.numbers[e.index]
        if isinstance(e, Constant):
            return e.dtype.numpy.type(e.value) if e.dtype.is_integer else e.value
        inputs = [self.exact(x, dot) for x in e.inputs]
        if e.operator is None:
            return np.asarray(inputs[0]).astype(float if e.dtype.is_float else e.dtype.numpy)
        return NUMPY[e.operator.name](*inputs)

    def expected(self):
        """What each output should hold."""
        with np.errstate(all="ignore"):
            a, b = self.exact(self.kernel.a), self.exact(self.kernel.b)
            return [self.exact(e, a @ b) for e in self.kernel.pointwise_outputs]

    def layouts(self):
        return [layout_of(x) for x in self.outs], [layout_of(x) for x in self.inputs]

    def values(self):
        """What a launch is given: addresses, of ranges the first position, and numbers."""
        addresses = [address_of(x) for x in (*self.outs, *self.inputs)]
        for k in self.ranges:
            addresses[len(self.outs) + k] = int(self.inputs[k].flat[0])
        return *addresses, *self.numbers

    def bound(self):
        outputs, inputs = self.layouts()
        for k in self.ranges:  # position p holds p: strides are steps
            x = self.inputs[k]
            steps = [int(x.take(1, d).flat[0] - x.flat[0]) if n > 1 else 0 for d, n in enumerate(x.shape)]
            inputs[k] = Layout(x.shape, tuple(steps), 0)
        return CudaMatmulLauncher(simulated().device, self.kernel, outputs, inputs)

    def run(self):
        """Launch, and compare. Gives the names of the kernels."""
        expected, bound = self.expected(), self.bound()
        bound(*self.values())
        self.check(expected)
        *_, (runs, _) = bound.prepared.values()
        return [launch.kernel.name for _, launch in runs]

    def check(self, expected, scale=1.0):
        for out, exact in zip(self.outs, expected, strict=True):
            if out.dtype.kind == "f":
                np.testing.assert_allclose(out, np.broadcast_to(exact, out.shape), rtol=3e-5 * scale, atol=3e-5 * scale)
            else:
                np.testing.assert_array_equal(out, np.broadcast_to(exact, out.shape))


def floats(seed, *shapes):
    random = np.random.default_rng(seed)
    return [sample(random, shape, "float32") for shape in shapes]


def whole(seed, *shapes):
    """Floats whose sums and products are exact."""
    random = np.random.default_rng(seed)
    return [random.integers(-3, 4, shape).astype(np.float32) for shape in shapes]


DOT = Accumulator(float32)


KERNELS = {
    "tiles": ("matmul", NARROW, 1, (33, 68, 20)),
    "guarded tiles": ("matmul", NARROW, 1, (5, 7, 33)),
    "parts": ("matmul", NARROW, 3, (5, 65, 50)),
    "wide parts": ("matmul", NARROW, 2, (6, 8, 33)),
    "rows": ("matmul_rows", None, 1, (3, 132, 20)),
    "parts of rows": ("matmul_rows", None, 2, (2, 6, 70)),
    "dots": ("matmul_dots", None, 1, (7, 6, 33)),
}
on_each_kernel = pytest.mark.parametrize("kernel", KERNELS)


def prepared(kernel, monkeypatch, batch="none"):
    """Operands for a kernel, which is the one that will be taken."""
    name, shape, parts, (M, N, K) = KERNELS[kernel]
    force(monkeypatch, name, shape, parts)
    left, right = BATCHES[batch]
    a, b = floats(len(kernel), (*left, M, K), (*right, K, N))
    return a, (VIEWS["turned"](b) if name == "matmul_dots" else b)


# Epilogues.


@on_each_kernel
def test_an_epilogue_in_every_kernel(kernel, monkeypatch):
    a, b = prepared(kernel, monkeypatch)
    M, N = a.shape[-2], b.shape[-1]
    bias, residual = floats(1, (N,), (M, N))
    names = Case(lambda a, b, x, p: (a[0], b[0], (relu(DOT * p[0] + x[0]) + x[1],)), [a], [b], [bias, residual], [0.5]).run()
    assert names == [KERNELS[kernel][0], *["add_parts"] * ("parts" in kernel)]


BIAS, COLUMN, MATRIX = (68,), (33, 1), (33, 68)
EPILOGUES = {
    "gelu of a bias": ([BIAS], lambda dot, x: (gelu(dot + x[0]),)),
    "one number a row": ([COLUMN], lambda dot, x: (tanh(dot * x[0]),)),
    "one number": ([(1, 1)], lambda dot, x: (dot / (absolute(x[0]) + 1),)),
    "two outputs": ([BIAS], lambda dot, x: (relu(dot + x[0]), dot + x[0])),
    "three outputs": ([MATRIX], lambda dot, x: (dot, where(gt(dot, x[0]), dot, x[0]), gt(dot, x[0]))),
    "a bool first": ([MATRIX], lambda dot, x: (ge(dot, x[0]), dot * x[0])),
    "an int": ([BIAS], lambda dot, x: (cast(dot * 4.0, int32), cast(cast(x[0], int32), int64))),
    "a float64": ([BIAS], lambda dot, x: (cast(dot, float64) * 0.5,)),
    "no sum": ([MATRIX], lambda dot, x: (x[0] * 2.0, constant(3, int32))),
    "a load twice": ([BIAS], lambda dot, x: (dot * x[0] + x[0], x[0])),
}


@pytest.mark.parametrize("name", EPILOGUES)
def test_epilogues(name, monkeypatch):
    force(monkeypatch, "matmul", NARROW)
    shapes, make = EPILOGUES[name]
    a, b, *others = whole(2, (33, 20), (20, 68), *shapes)
    Case(lambda a, b, x, p: (a[0], b[0], make(DOT, x)), [a], [b], others).run()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("kernel", ["tiles", "parts", "rows"])
def test_operands_of_an_epilogue_may_have_any_layout(view, kernel, monkeypatch):
    a, b = prepared(kernel, monkeypatch)
    residual = VIEWS[view](floats(3, (a.shape[0], b.shape[1]))[0])
    Case(lambda a, b, x, p: (a[0], b[0], (DOT - x[0],)), [a], [b], [residual]).run()


@pytest.mark.parametrize("start", [0, 4])
def test_rows_that_are_no_multiple_of_16_bytes(start, monkeypatch):
    """Their first elements are: only the strides tell that others are not."""
    force(monkeypatch, "matmul", NARROW)
    a, b, residual, flat = floats(3, (33, 20), (20, 68), (33, 74), (4484,))
    take = slice(start, start + 68)
    Case(lambda a, b, x, p: (a[0], b[0], (DOT - x[0],)), [a], [b], [residual[:, take]]).run()
    Case(
        lambda a, b, x, p: (a[0], b[0], (DOT, DOT + 1.0)), [a], [b], outs=[residual[:, :68].copy(), residual[:, take]]
    ).run()
    apart = np.lib.stride_tricks.as_strided(flat, (2, 32, 68), (2242 * 4, 68 * 4, 4))  # two matrices, 2242 elements apart
    Case(lambda a, b, x, p: (a[0], b[0], (DOT - x[0],)), [np.stack([a[:32]] * 2)], [np.stack([b] * 2)], [apart]).run()


@pytest.mark.parametrize("view", ["plain", "turned", "sliced"])
def test_outputs_may_have_any_layout(view, monkeypatch):
    force(monkeypatch, "matmul", NARROW)
    a, b = floats(4, (33, 18), (18, 68))
    outs = [np.full((33, 68), 77, np.float32), VIEWS[view](np.full((33, 68), 77, np.float32))]
    make = lambda a, b, x, p: (a[0], b[0], (DOT, relu(DOT)))  # noqa: E731
    Case(make, [a], [b], outs=outs).run()
    Case(make, [a], [b], outs=outs[::-1]).run()


@on_each_kernel
def test_an_epilogue_in_place(kernel, monkeypatch):
    """What an output holds is read before it is stored: the first one's, and another's."""
    a, b = prepared(kernel, monkeypatch)
    outs = floats(5, (a.shape[0], b.shape[1]), (a.shape[0], b.shape[1]))
    old = ReadOutput(0, float32), ReadOutput(1, float32)
    Case(lambda a, b, x, p: (a[0], b[0], (old[0] + DOT, old[1] * 0.5 + DOT * old[0])), [a], [b], outs=outs).run()


@on_each_kernel
def test_index_values_have_no_memory(kernel, monkeypatch):
    """A mask of what lies above the diagonal, from ranges along rows and columns."""
    a, b = prepared(kernel, monkeypatch)
    rows, columns = np.arange(5, 5 + a.shape[0])[:, None], np.arange(b.shape[1])

    def make(a, b, x, p):
        return a[0], b[0], (where(ge(x[0], x[1]), DOT, cast(x[1], float32) * p[0]),)

    Case(make, [a], [b], [rows, columns], [-2.0], ranges=[rows, columns]).run()


def test_epilogues_of_a_swapped_product(monkeypatch):
    """Computed as out.T = b.T @ a.T: rows are columns then."""
    for name, shape, sizes in (("matmul_dots", None, (20, 3, 33)), ("matmul", NARROW, (68, 33, 20))):
        force(monkeypatch, name, shape, is_transposed=True)
        M, N, K = sizes
        a, b, bias, column, matrix = floats(6, (2, M, K), (2, K, N), (N,), (M, 1), (2, M, N))

        def make(a, b, x, p):
            return a[0], b[0], (DOT * x[1] + x[0], DOT - x[2])

        Case(make, [a], [b], [bias, column, matrix]).run()


def test_four_neighbours_at_once(monkeypatch):
    force(monkeypatch, "matmul", NARROW)
    a, b, bias = floats(7, (33, 8), (8, 68), (76,))

    def make(a, b, x, p):
        return a[0], b[0], (DOT + x[0], gt(DOT, x[0]))

    def sizes(bias, N=68):
        case = Case(make, [a], [b[:, :N].copy()], [bias[:N]])
        expected = case.expected()
        [plan] = case.bound().plans(*case.values())
        trace = simt.trace(plan)
        assert trace.hazards() == []
        case.check(expected)
        own = np.array([info.name.startswith("argument") for info in trace.arrays])[trace.events.array]
        return {(int(kind), int(n)) for kind, n in zip(trace.events.kind[own], trace.events.nbytes[own], strict=True)}

    assert sizes(bias) == {(LOAD, 16), (STORE, 4)}
    assert sizes(bias[1:]) == {(LOAD, 4), (STORE, 1)}  # no multiple of 16 bytes
    assert sizes(bias, 67) == {(LOAD, 4), (STORE, 1)}


# Prologues.


def nothing_is_inside(x):
    """A function whose value at 0 would spoil every sum that it got into."""
    return div(constant(1, float32), x)


PROLOGUES = {
    "of a": lambda a, b, p: (nothing_is_inside(a[0]), b[0]),
    "of b": lambda a, b, p: (a[0], nothing_is_inside(b[0])),
    "of both": lambda a, b, p: (exp(a[0] * p[0]), b[0] + 1.0),
}


@pytest.mark.sampled(2)
@on_each_kernel
@pytest.mark.parametrize("prologue", PROLOGUES)
def test_a_prologue_in_every_kernel(kernel, prologue, monkeypatch):
    a, b = prepared(kernel, monkeypatch)
    a, b = np.where(np.abs(a) < 0.3, 1, a).astype(np.float32), np.where(np.abs(b) < 0.3, 1, b)
    b = VIEWS["turned"](b) if "dots" in kernel else b
    Case(lambda a, b, x, p: (*PROLOGUES[prologue](a, b, p), (DOT,)), [a], [b], (), [0.5] * (prologue == "of both")).run()


VECTORS = [("matmul", (36, 68, 18), *[view] * 2) for view in ("plain", "turned", "sliced")]
VECTORS += [("matmul", (4, 8, 5), *[view] * 2) for view in ("plain", "turned", "sliced")]
VECTORS += [("matmul_rows", (3, 5, 40), "plain", "plain"), ("matmul_dots", (3, 5, 40), "plain", "turned")]


@pytest.mark.parametrize(("kernel", "sizes", "left", "right"), VECTORS)
def test_vectors_of_rows_columns_and_depth(kernel, sizes, left, right, monkeypatch):
    """In every mode of loading: a normalised by rows and scaled along k, b shifted along k and by columns."""
    force(monkeypatch, kernel, NARROW if kernel == "matmul" else None)
    M, N, K = sizes
    a, b, mean, scale, shift, gain = floats(8, (M, K), (K, N), (M, 1), (K,), (K, 1), (1, N))

    def make(a, b, x, p):
        return (a[0] - a[1]) * a[2] + 1.0, exp(b[0] * 0.2) * b[2] + b[1], (DOT,)

    Case(make, [VIEWS[left](a), mean, scale], [VIEWS[right](b), shift, gain]).run()


@pytest.mark.parametrize("kernel", ["guarded tiles", "wide parts", "rows", "dots"])
def test_prologue_and_epilogue_in_batches(kernel, monkeypatch):
    a, b = prepared(kernel, monkeypatch, "across")
    M, N, K = a.shape[-2], b.shape[-1], a.shape[-1]
    rows, depth, bias, residual = floats(9, (2, 1, M, 1), (3, K, 1), (N,), (2, 3, M, N))

    def make(a, b, x, p):
        return tanh(a[0] + a[1]) + p[1], b[0] * b[1] + p[0], (relu(DOT + x[0]), DOT * p[2] + x[1] * p[0])

    Case(make, [a, rows], [b, depth], [bias, residual], [0.5, 1.0, 0.25]).run()


def test_a_prologue_of_the_large_tiles(monkeypatch):
    """Two stages only: what is changed was copied a step before."""
    force(monkeypatch, "matmul", LARGE)
    a, b, bias = floats(10, (128, 35), (35, 128), (128,))
    Case(lambda a, b, x, p: (exp(a[0] * 0.1), b[0], (DOT + x[0],)), [a], [b], [bias]).run()


def test_a_swapped_prologue(monkeypatch):
    force(monkeypatch, "matmul", NARROW, is_transposed=True)
    a, b, rows = floats(11, (68, 20), (20, 33), (68, 1))
    Case(lambda a, b, x, p: (exp(a[0] - a[1] * a[1]), b[0], (DOT,)), [a, rows], [b]).run()


def test_pieces_of_a_product_have_their_own_part_of_all_operands(monkeypatch):
    """A grid that holds few blocks: batches and rows go in several launches."""
    monkeypatch.setattr(planning, "MAX_GRID_YZ", 2)
    monkeypatch.setattr(planning, "MAX_LAUNCH_ROWS", 4)
    a, b, depth, bias, residual = floats(12, (3, 5, 6), (3, 6, 7), (3, 6, 1), (7,), (3, 5, 7))
    rows, columns = np.arange(2, 7)[:, None], np.arange(3, 10)

    def make(a, b, x, p):
        return exp(a[0]), b[0] * b[1], (where(ge(x[2], x[3]), DOT + x[0], x[1]), DOT - x[1])

    assert len(Case(make, [a], [b, depth], [bias, residual, rows, columns], ranges=[rows, columns]).run()) == 8


# Other element types.


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kernel", ["matmul", "matmul_rows", "matmul_dots"])
@pytest.mark.parametrize("dtype", [float64, int32, bool_])
@pytest.mark.parametrize("parts", [1, 2])
def test_other_element_types(dtype, kernel, parts, monkeypatch):
    """To the bit what the parts do one after the other."""
    shape = {float64: SLIM, int32: NARROW, bool_: NARROW}[dtype] if kernel == "matmul" else None
    force(monkeypatch, kernel, shape, parts)
    random, dot = np.random.default_rng(12), Accumulator(dtype)
    a, b, c = [sample(random, size, dtype.numpy) for size in ((7, 70), (70, 12), (7, 12))]
    b = VIEWS["turned"](b) if kernel == "matmul_dots" else b
    if dtype is bool_:
        elements = lambda x: (dot | x, where(dot, constant(1, float32), constant(2, float32)))  # noqa: E731
        change = lambda x: x & constant(True, bool_)  # noqa: E731
    else:
        elements, change = lambda x: (maximum(dot, x) - x, gt(dot, x)), lambda x: x * 3 + 1
    case = Case(lambda a, b, x, p: (change(a[0]), b[0], elements(x[0])), [a], [b], [c])
    case.bound()(*case.values())
    found = [out.copy() for out in case.outs]
    MatmulSequence(get_backend("python"), case.kernel, *case.layouts()).launch(*case.values())
    for got, other in zip(found, case.outs, strict=True):
        assert np.array_equal(got, other) if dtype is not float64 else np.allclose(got, other, rtol=1e-12, atol=1e-12)


# Sizes, keys, hazards.


@pytest.mark.parametrize("sizes", [(0, 5, 3), (5, 0, 3), (3, 4, 0), (1, 1, 1), (1, 7, 0), (0, 0, 0)], ids=str)
def test_sums_of_nothing_have_an_epilogue(sizes):
    M, N, K = sizes
    a, b, bias = floats(13, (M, K), (K, N), (N,))
    Case(lambda a, b, x, p: (exp(a[0]), b[0], (DOT + x[0], gt(DOT, x[0]))), [a], [b], [bias]).run()


@pytest.mark.sampled(2, each="kernel")
@pytest.mark.parametrize("kernel", ["tiles", "parts", "rows", "dots"])
@pytest.mark.parametrize("seed", [0, 1])
def test_no_hazards(kernel, seed, monkeypatch):
    a, b = prepared(kernel, monkeypatch)
    old = ReadOutput(0, float32)
    rows = floats(14, (a.shape[0], 1))[0]

    def make(a, b, x, p):
        return exp(a[0] * a[1]), b[0] * 0.5, (old + DOT * x[0], relu(DOT))

    case = Case(make, [a, rows], [b], [rows])
    expected = case.expected()
    for plan in case.bound().plans(*case.values()):
        assert [str(error) for error in simt.trace(plan, seed=seed).hazards()] == []
    case.check(expected)


def kernels_of(elements, M, N, K, a=None, **more):
    """The kernels of a product with a bias or a residual."""
    kernel = MatmulKernel(a or Load(0, float32), Load(1, float32), elements)
    layouts = [row_major((M, K)), row_major((K, N)), row_major((N,)).expand(M, N), row_major((M, N))]
    plan = plan_matmul(kernel, [row_major((M, N))], layouts[: 2 + len(kernel.loads()[2])], **more)
    return [launch.kernel for launch in plan.launches]


@pytest.mark.parametrize(
    ("one", "other", "names"),
    [
        ((4096, 4096, 4096), (4100, 5000, 3000), ["turn", "matmul"]),
        ((512, 512, 8192), (508, 512, 9000), ["matmul", "add_parts"]),
        ((1, 4096, 4096), (1, 4200, 5000), ["matmul_rows", "add_parts"]),
    ],
)
def test_a_new_size_compiles_nothing(one, other, names):
    elements, a = (relu(DOT + Load(2, float32)) * Load(3, float32),), relu(Load(0, float32))
    found = kernels_of(elements, *one, a=a)
    assert [kernel.name for kernel in found] == names
    assert kernels_of(elements, *other, a=a) == found  # the very same functions


def test_split_k_kernels_share_the_plain_matmul():
    with_bias, plain = [kernels_of(e, 512, 512, 8192) for e in ((DOT + Load(2, float32),), (DOT,))]
    assert with_bias[0] == plain[0]
    assert with_bias[1] != plain[1]


def test_another_epilogue_is_another_key():
    """Functions of one name, numbers of one type: the whole text tells them apart."""
    bias = Load(2, float32)
    elements = [(relu(DOT + bias),), (relu(DOT - bias),), (DOT + bias,), (DOT + bias * 2.0,), (DOT + bias * 3.0,), (DOT,)]
    for sizes in ((1024, 1024, 1024), (4, 512, 512)):
        found = [kernels_of(e, *sizes)[-1] for e in elements]
        assert len({kernel.source for kernel in found}) == len(elements)
        assert len({kernel.function.__qualname__ for kernel in found}) == 1
        for kernel in found[:-1]:
            assert "def finish(total, row, col, at):" in kernel.source


def test_the_text_knows_classes_not_strides():
    a, b, x = (Load(k, float32) for k in range(3))
    sides = hook_expressions(MatmulKernel(a, b, (DOT * x,)), (0, 1), False)
    assert "in2[outer * in2_outer + row * in2_row + col]" in build_hooks(sides, (("in2", "s0s10"),)).text
    assert "in2[0]" in build_hooks(sides, (("in2", "00000"),)).text
    strided = build_hooks(sides, (("in2", "00ss0"),))
    assert "in2[row * in2_row + (col + 3) * in2_col]" in strided.text
    assert strided.extra == ("in2", "in2_row", "in2_col")
    assert strided.types == ("*f32", "i64", "i64")


def test_a_long_epilogue_is_read_from_top_to_bottom():
    """Shared parts have names, so the text grows with the expression, not with its tree."""
    x = Load(2, float32)
    value = DOT + x
    for _ in range(40):
        value = value * value + x
    text = build_hooks(
        hook_expressions(MatmulKernel(Load(0, float32), Load(1, float32), (value,)), (0, 1), False), (("in2", "00010"),)
    ).text
    assert max(map(len, text.splitlines())) < 100
    assert text.count("t0") >= 2


@st.composite
def cases(draw):
    """Products of random sizes, layouts and batches, with a random prologue and epilogue."""
    M, N, K = (draw(st.sampled_from([1, 2, 3, 4, 8, 12])) for _ in range(3))
    left, right = BATCHES[draw(st.sampled_from(["none", "one", "b repeated"]))]
    batch, views = np.broadcast_shapes(left, right), st.sampled_from(list(VIEWS))
    a, b, other = floats(draw(st.integers(0, 99)), (*left, M, K), (*right, K, N), (*batch, M, N))
    other = draw(st.sampled_from([other, other[..., :1, :], other[..., :1], other[..., :1, :1]]))
    functions = st.sampled_from([lambda x: x, relu, tanh, lambda x: x * 0.5 + 1.0, lambda x: log(absolute(x) + 1.0)])
    of_a, of_b, of_sum, also = (draw(functions) for _ in range(4))

    def make(a, b, x, p):
        first = of_sum(DOT + x[0])
        return of_a(a[0]), of_b(b[0]), (first, also(DOT) * first) if draw_two else (first,)

    draw_two = draw(st.booleans())
    return Case(make, [VIEWS[draw(views)](a)], [VIEWS[draw(views)](b)], [VIEWS[draw(views)](other)])


@share(0.24)
@given(cases())
def test_any_product(case):
    case.run()
