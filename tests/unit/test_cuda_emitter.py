"""The text of CUDA kernels: what a reader sees, and what of a kernel reaches its text."""

from textwrap import dedent

import pytest

import minifuse as mf
from minifuse.backends.cuda.emitter import printed
from minifuse.graph.plan import Plan
from minifuse.kernels import Nest

from ..cuda.simulated import simulated

A, B = mf.ones(4, 6), mf.ones(4, 6)


def kernels(function, *inputs, targets=()):
    """The texts of the kernels of a call, with what their launches must know."""
    found = []
    for step in Plan(function, inputs, targets).steps:
        outputs, operands = step.layouts()
        nest = Nest(step.shape, step.dims, [*outputs, *operands])
        found.append(printed(step.kernel, nest.rows, nest.classes))
    return found


def text(function, *inputs, **more):
    """The text of the only kernel of a call."""
    (kernel,) = kernels(function, *inputs, **more)
    return kernel.text


def lines(source):
    return dedent(source).lstrip("\n")


# The three forms


def test_a_map_takes_four_neighbours_and_then_the_rest():
    assert text(lambda x: mf.exp(x) * 2 + 0.5, A) == lines("""
        def point(x0, p0):
            return (exp(x0) * f32(2.0)) + p0


        def kernel(out0, in0, p0, n0, fours):
            first = 4 * cuda.blockDim.x * cuda.blockIdx.x  # elements before this block's
            i0 = first + 4 * cuda.threadIdx.x
            if i0 < fours:
                x0 = load4(in0, i0)
                store4(out0, i0, (point(x0[0], p0), point(x0[1], p0), point(x0[2], p0), point(x0[3], p0)))
            for i0 in range(max(first, fours) + cuda.threadIdx.x, min(first + 4 * cuda.blockDim.x, n0), cuda.blockDim.x):  # one at a time
                out0[i0] = point(in0[i0], p0)
    """)  # noqa: E501


def test_operands_in_steps_are_taken_one_by_one():
    assert text(lambda x: x + 1, mf.ones(4, 13)[:, :12:2]) == lines("""
        def point(x0):
            return x0 + f32(1.0)


        def kernel(out0, in0, n0, n1, out0_0, in0_0, in0_1):
            i1 = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
            for i0 in range(cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y, n0, cuda.gridDim.y * cuda.blockDim.y):
                if i1 < n1:
                    out0[i0 * out0_0 + i1] = point(in0[i0 * in0_0 + i1 * in0_1])
    """)


def test_a_sum_along_rows_is_folded_by_the_threads_of_the_row():
    source = text(lambda x: x.sum(1), A)
    assert source.splitlines()[0] == "def kernel(out0, in0, n0, n1, in0_0, fours):"
    assert dedent(source[source.index("    fold0 =") :]) == lines("""
        fold0 = f32(0.0)
        if is_row:
            for i1 in range(4 * cuda.threadIdx.x, fours, 4 * cuda.blockDim.x):
                x0 = load4(in0, i0 * in0_0 + i1)
                fold0 += (x0[0] + x0[1]) + (x0[2] + x0[3])
            for i1 in range(fours + cuda.threadIdx.x, n1, cuda.blockDim.x):
                fold0 += in0[i0 * in0_0 + i1]
        fold0 = fold_along_x(add, fold0, parts0)
        if is_row and cuda.threadIdx.x == 0:
            out0[i0] = fold0
    """)


def test_a_sum_along_columns_is_folded_by_the_threads_of_the_column():
    source = text(lambda x: x.sum(0), A)
    assert "i0 = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x" in source  # neighbours in memory
    assert "cuda.threadIdx.y, n1, cuda.blockDim.y):" in source
    assert dedent(source[source.index("    fold0 = fold_along") :]) == lines("""
        fold0 = fold_along_y(add, fold0, parts0)
        if is_row and cuda.threadIdx.y == 0:
            out0[i0] = fold0
    """)


# What the words promise


def test_softmax_is_three_sweeps_and_each_computes_anew():
    source = text(lambda x: x.softmax(1), A)
    assert source.count("def point") == 2  # of the maximum only what is loaded
    assert source.count("fold_along_x") == 2
    assert source.count("load4(") == 3
    assert source.count("store4(") == 1
    assert source.count("exp(") == 2


def test_two_outputs_share_what_they_have_in_common():
    source = text(lambda x: (x / x.sum(1, True), x.sum(1), x.max(1)), A)
    assert source.count("load4(") == 2
    assert source.count("fold_along_x") == 2


def test_what_is_the_same_along_a_row_is_loaded_before_it():
    source = text(lambda x, b: x * mf.exp(b), A, mf.ones(4, 1))
    assert source.index("exp(in1[i0])") < source.index("load4(in0")


def test_names_of_the_second_sweep_do_not_hide_those_of_the_first():
    """A point function takes what was computed before as parameters, and names values of its own."""
    x = mf.ones(4, 6, dtype="float64", requires_grad=True)
    plan = Plan(lambda x: x.prod(1), (x,))
    for kernel in kernels(plan.backward.function, x, mf.ones(4, dtype="float64")):
        for function in kernel.text.split("\n\n\n")[:-1]:
            parameters = function[function.index("(") + 1 : function.index(")")].split(", ")
            assigned = [line.split(" = ")[0].strip() for line in function.splitlines()[1:] if " = " in line]
            assert not set(parameters) & set(assigned)
            assert len(assigned) == len(set(assigned))


def test_in_place_reads_what_it_writes():
    source = text(lambda x: x * 2 + 1, A, targets=(0,))
    assert "old0 = load4(out0, i0)" in source
    assert "in0" not in source


def test_a_bool_is_a_byte_in_memory_and_an_integer_in_folds():
    (kernel,) = kernels(lambda x: (x > 0).any(1), A)
    assert ("out0", "*u8") in kernel.parameters
    assert "cuda.shared.array(32, i32)" in kernel.text
    (kernel,) = kernels(lambda c, x: mf.where(c, x, 0), A > 0, A)
    assert kernel.parameters[1:3] == (("in0", "*u8"), ("in1", "*f32"))
    assert "(x0[0] != 0)" in kernel.text


@pytest.mark.parametrize(
    ("function", "word"),
    [(lambda i: i**3, "integer_pow("), (lambda i: i // 3, "integer_floordiv("), (lambda i: i % 3, "integer_mod(")],
)
def test_integers_have_words_of_their_own(function, word):
    assert word in text(function, mf.arange(6))
    assert word not in text(function, mf.ones(6))


def test_integers_wrap_around():
    assert text(lambda x: x * x + x, mf.ones(5, dtype="int32")).splitlines()[1].count("i32(") == 2


# What does not reach the text


def test_sizes_offsets_strides_and_the_grid_are_not_in_the_text():
    for function in (lambda x: x.softmax(1), lambda x: x.sum(0), lambda x: mf.tanh(x) + x):
        assert len({text(function, x) for x in (A, mf.ones(33, 1025), mf.ones(5, 9)[1:])}) == 1


def test_numbers_travel_with_the_launch():
    assert text(lambda x: x + 0.25, A) == text(lambda x: x - 3.5, A) or text(lambda x: x + 0.25, A) == text(
        lambda x: x + 3.5, A
    )
    (kernel,) = kernels(lambda x: x + 0.25, A)
    assert ("p0", "f32") in kernel.parameters


def test_parameters_are_the_head_of_the_kernel():
    for function, xs in [
        (lambda x: x * 2.5, (mf.ones(3, 4, 5)[::2, :, ::2],)),
        (lambda x: x.softmax(0), (A,)),
        (lambda x, y: (x + y).sum((0, 2)), (mf.ones(3, 4, 5), mf.ones(4, 1))),
    ]:
        (kernel,) = kernels(function, *xs)
        head = f"def kernel({', '.join(name for name, _ in kernel.parameters)}):"
        assert head in kernel.text.splitlines()


# Wide or not


def test_which_operands_are_taken_four_at_a_time():
    cases = [
        (lambda x, y: x + y, (A, B), "points", ("out0", "in0", "in1")),
        (lambda x, y: x + y, (A, mf.ones(4, 1)), "points", ("out0", "in0")),
        (lambda x, y: x + y, (A, mf.ones(6, 4).T), "points", ()),
        (lambda x: x.sum(1), (A,), "rows", ("in0",)),
        (lambda x: x.sum(0), (A,), "columns", ()),
    ]
    for function, xs, form, wide in cases:
        (kernel,) = kernels(function, *xs)
        assert kernel.form == form
        assert set(kernel.wide) == set(wide)


def test_no_line_is_longer_than_a_screen():
    def chain(x):
        for _ in range(100):
            x = x * 0.99 + 0.5
        return x

    for function in (chain, lambda x: x.softmax(1), lambda x: x.var(1)):
        source = text(function, A)
        compile(source, "kernel", "exec")
        assert max(line.count("(") for line in source.splitlines()) <= 14  # Python refuses some 200


# Shown to people


def test_the_source_of_a_call_shows_its_kernels():
    x = mf.ones(4, 6, backend=simulated())
    shown = mf.source(lambda x: x.sum(1) + 1, x)
    assert "def kernel(" in shown
    assert "fold_along_x(add" in shown
    assert "matmul of (4, 6) and (6, 4)" in mf.source(lambda x: x @ x.T, x)
