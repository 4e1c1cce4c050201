"""backends.cuda.codegen: kernel texts, and which facts of a kernel change them."""

import pytest

import minifuse as mf
from minifuse.backends.cuda.codegen import select
from minifuse.backends.cuda.codegen.select import generate_kernel
from minifuse.compiler.plan import Plan
from minifuse.ir.kernel_ir import LoopNest

from ..cuda.simulated import simulated

A, B = mf.ones(4, 6), mf.ones(4, 6)


def kernels(function, *inputs, targets=()):
    """The texts of the kernels of a call, with what their launches must know."""
    found = []
    for step in Plan(function, inputs, targets).steps:
        outputs, operands = step.layouts()
        nest = LoopNest(step.shape, step.dims, [*outputs, *operands])
        found.append(generate_kernel(step.kernel, nest))
    return found


def text(function, *inputs, **more):
    """The text of the only kernel of a call."""
    (kernel,) = kernels(function, *inputs, **more)
    return kernel.text


@pytest.fixture
def in_shared_memory(monkeypatch):
    """Rows are cached in shared memory, as those that no registers can hold."""
    monkeypatch.setattr(select, "schedule_by_closed_form", lambda *operands, **options: None)


# The schedules


def test_a_map_of_two_operands_loads_four_elements_then_the_rest(golden):
    golden(text(lambda x, y: x - y, A, B))


def test_a_map_of_one_operand_issues_two_loads_at_once(golden):
    golden(text(lambda x: mf.exp(x) * 2 + 0.5, A))


def test_strided_operands_are_loaded_one_element_at_a_time(golden):
    golden(text(lambda x: x + 1, mf.ones(4, 13)[:, :12:2]))


def test_the_threads_of_a_row_reduce_it(golden):
    golden(text(lambda x: x.sum(1), mf.ones(64, 200)))


def test_the_threads_of_a_column_reduce_it(golden):
    golden(text(lambda x: x.sum(0), mf.ones(300, 101)))


def test_transposed_operands_go_through_a_tile(golden):
    golden(text(lambda x, y: x * 2 + y.T, mf.ones(64, 128), mf.ones(128, 64)))


# What the words promise


def test_softmax_is_three_sweeps_and_keeps_its_exponentials(in_shared_memory):
    source = text(lambda x: x.softmax(1), A)
    assert source.count("def point") == 2  # of the maximum only what is loaded
    assert source.count("fold_along_x") == 2
    assert source.count("load4(") == 3
    assert source.count("exp(") == 1
    assert "kept0 = row0 if held else at(out0, i0 * out0_0)" in source  # where nobody needs the row any more
    assert source.index("store4(kept0, i1") < source.index("load4(kept0, i1)") < source.index("store4(out0")


def test_a_pass_that_waits_for_memory_issues_two_groups_of_loads(in_shared_memory):
    source = text(lambda x, w: x.softmax(1) * w, A, mf.ones(6))
    assert source.count("both groups") == 1  # the last sweep, for the weights
    assert source.count("= load4(in1, j1)") == source.count("= load4(kept0, j1)") == 1
    assert text(lambda x: x.softmax(1), A).count("both groups") == 0
    assert "both groups" not in text(lambda x: (x**3.5 + x**2.5).sum(1), A)  # so dear that memory does not matter


def test_a_row_that_a_later_sweep_needs_is_not_replaced(in_shared_memory):
    source = text(lambda x: mf.exp(x) / mf.exp(x).sum(1, True) + x, A)
    assert "kept" not in source
    assert source.count("exp(") == 2


def test_each_dtype_has_its_own_row_in_shared_memory(in_shared_memory):
    x, g = mf.ones(4, 6), mf.ones(4, 6, dtype="float64")
    source = text(lambda x, g: mf.exp(x) / mf.exp(x).sum(1, True) + g / g.sum(1, True), x, g)
    assert "row0 = hold_f64(in1" in source
    assert "kept" not in source  # the last sweep needs the row of float64 itself, and the value is wanted as one of them
    source = text(lambda x: mf.exp(x.to("float64")) / mf.exp(x.to("float64")).sum(1, True), x)
    assert "kept" not in source


def test_operands_of_several_passes_are_cached_in_shared_memory(in_shared_memory):
    """Loaded once, where the launch has room; memory is named once, and each sweep reads the row."""
    source = text(lambda x: x.softmax(1), A)
    assert source.count("in0,") == 2  # in the head, and here
    assert "row0 = hold_f32(in0, i0 * in0_0, cuda.threadIdx.y * held, held, fours, n1)" in source
    assert source.count("load4(row0, i1)") == source.count("row0[i1]") == 2  # then the exponentials stand there
    assert source.index("wait_for_copies()") < source.index("load4(row0")


def test_a_row_in_registers_is_split_into_groups(golden):
    """All but the last are whole; the divisor of the exponentials is inverted once."""
    golden(text(lambda x: x.softmax(1), mf.ones(2048, 200)))


def test_single_elements_are_all_loaded_before_the_first_is_stored():
    source = text(lambda x, w, b: (x - x.sum(1, True)) * w + b, mf.zeros(2048, 101), mf.zeros(101), mf.zeros(101))
    first = source.index("out0[")
    for name in ("in0", "in1", "in2"):
        assert source.count(f"= {name}[") == 1
        assert source.index(f"= {name}[") < first


def test_threads_take_four_columns_of_aligned_rows(golden):
    source = text(lambda x: x.sum(0) * 2, mf.ones(40, 512))
    assert "load4(in0, " in source
    assert "store4(out0, " in source
    golden(source)


def test_operands_of_one_pass_are_not_cached(in_shared_memory):
    for function in (lambda x: x.sum(1), lambda x: (x.sum(1), x.max(1)), lambda x: x.softmax(0)):
        (kernel,) = kernels(function, A)
        assert kernel.held == 0
        assert "held" not in kernel.text
    source = text(lambda x, w: x.softmax(1) * w, A, mf.ones(6))
    assert "load4(in1, i1)" in source  # the last sweep alone needs it


def test_cached_rows_are_ordered_by_element_size(in_shared_memory):
    x, g, mask = mf.ones(4, 6), mf.ones(4, 6, dtype="float64"), mf.ones(4, 6) > 0
    (kernel,) = kernels(lambda x, g, m: mf.where(m, x * g, 0) - mf.where(m, x * g, 0).sum(1, True), x, g, mask)
    assert kernel.held == 8 + 4 + 1
    words = [line.strip().split(" = ") for line in kernel.text.splitlines() if "= hold_" in line]
    assert [(word.split("(")[0], word.split(", ", 2)[2].split(" * held")[0]) for _, word in words] == [
        ("hold_f64", "cuda.threadIdx.y"),
        ("hold_f32", "(2 * cuda.blockDim.y + cuda.threadIdx.y)"),
        ("hold_u8", "(12 * cuda.blockDim.y + cuda.threadIdx.y)"),
    ]


def test_two_outputs_share_common_subexpressions(in_shared_memory):
    source = text(lambda x: (x / x.sum(1, True), x.sum(1), x.max(1)), A)
    assert source.count("load4(") == 2
    assert source.count("fold_along_x") == 2


def test_operands_constant_along_a_row_are_loaded_once():
    source = text(lambda x, b: x * mf.exp(b), mf.ones(4, 8), mf.ones(4, 1))
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


def test_an_in_place_kernel_reads_its_output():
    source = text(lambda x: x * 2 + 1, A, targets=(0,))
    assert "put4(old0, 0, load4(out0, i0))" in source
    assert "in0" not in source


def test_a_bool_is_a_byte_in_memory_and_an_integer_in_sums():
    (kernel,) = kernels(lambda x: (x > 0).any(1), mf.ones(4, 600))
    assert ("out0", "*u8") in kernel.parameters
    assert "cuda.shared.array(32, i32)" in kernel.text
    (kernel,) = kernels(lambda c, x: mf.where(c, x, 0), A > 0, A)
    assert kernel.parameters[1:3] == (("in0", "*u8"), ("in1", "*f32"))
    assert "(x0[v0] != 0)" in kernel.text


@pytest.mark.parametrize(
    ("function", "word"),
    [(lambda i: i**5, "integer_pow("), (lambda i: i // 3, "integer_floordiv("), (lambda i: i % 3, "integer_mod(")],
)
def test_integers_have_their_own_intrinsics(function, word):
    assert word in text(function, mf.arange(6))
    assert word not in text(function, mf.ones(6))


def test_a_small_divisor_is_a_constant_and_a_size_is_not():
    for function in (lambda i: i // 15, lambda i: i.reshape(2, 3).T % 15):
        assert "i64(15)" in text(function, mf.arange(6))
    assert "i64(17)" not in text(lambda i: i // 17, mf.arange(6))
    assert "i64(16)" not in text(lambda i: i * 16, mf.arange(6))


def test_a_quotient_by_a_power_of_two_is_a_shift():
    i = mf.arange(-6, 6)
    assert ">> 3" in text(lambda i: i // 8, i)
    assert "& 7" in text(lambda i: i % 8, i)
    assert "i32(x0[v0] >> 3)" in text(lambda i: i // 8, i.to("int32"))
    assert ">>" not in text(lambda i: i // -8, i)
    assert ">>" not in text(lambda x: x // 8, mf.ones(6))


def test_integers_wrap_around():
    assert "= i32(i32(" in text(lambda x: x * x + x, mf.ones(5, dtype="int32"))


# What does not reach the text


def test_sizes_offsets_strides_and_the_grid_are_not_in_the_text(in_shared_memory):
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


# Tiles

W, L = mf.ones(64, 128), mf.ones(128, 64)  # wide and long


def form(function, *inputs, **more):
    """Form, axis across and tiled operands of the only kernel of a call."""
    (kernel,) = kernels(function, *inputs, **more)
    return kernel.form, kernel.across, kernel.tiled


def test_only_transposed_operands_are_transposed():
    assert form(lambda x, y: x + y.T, W, L) == ("tiles", 0, ("in1",))
    assert form(lambda x, y: x + y, W, W) == ("nest", None, ())
    assert form(lambda x: x.T * 2, W) == ("nest", None, ())  # the output lies as the operand does
    assert form(lambda x, y: x.T + y.T, W, W) == ("nest", None, ())
    assert form(lambda x, y, z: x.T * 2 + y + z.T, W, L, W) == ("tiles", 0, ("in1",))
    assert form(lambda x, column: x + column, W, mf.ones(64, 1)) == ("nest", None, ())
    assert form(lambda x, y: (x + y.T).sum(1), W, L)[0] == "nest"


def test_the_axis_across_is_that_of_most_operands():
    x, y, z = mf.ones(70, 65, 80), mf.ones(80, 65, 70).permute(2, 1, 0), mf.ones(70, 80, 65).permute(0, 2, 1)
    assert form(lambda x, y: x + y, x, y) == ("tiles", 0, ("in1",))
    assert form(lambda x, z: x + z, x, z) == ("tiles", 1, ("in1",))
    assert form(lambda x, y, z, w: x + y * z - w, x, y, z, mf.ones(70, 80, 65).permute(0, 2, 1)) == (
        "tiles",
        1,
        ("in2", "in3"),
    )


def test_operands_that_no_tile_takes_are_read_where_they_are():
    x, y = mf.ones(70, 65, 80), mf.ones(80, 65, 70).permute(2, 1, 0)
    (kernel,) = kernels(lambda x, y, z, w: x + y * z - w, x, y, *[mf.ones(70, 80, 65).permute(0, 2, 1) for _ in range(2)])
    assert "in1[" in kernel.text
    assert kernel.wide == ()  # one at a time, since the operand in steps has no four neighbours
    assert "is_wide" not in kernel.text


@pytest.mark.parametrize(("dtype", "most"), [("float32", 2), ("float64", 1), ("int32", 2), ("bool", 11)])
def test_tiles_fit_the_shared_memory_of_a_block(dtype, most):
    across = [mf.ones(128, 64, dtype=dtype) for _ in range(most + 1)]

    def add(x, *others):
        for y in others:
            x = x | y.T if dtype == "bool" else x + y.T
        return x

    (kernel,) = kernels(add, W.to(dtype), *across)
    assert kernel.form == "tiles"
    assert len(kernel.tiled) == most
    assert kernel.text.count("= cuda.shared.array(") == most


def test_narrow_operands_are_not_worth_a_tile():
    for a, b in ((63, 100), (100, 63), (3, 1000)):
        assert form(lambda x, y: x + y.T, mf.ones(a, b), mf.ones(b, a))[0] == "nest"
    assert form(lambda x, y: x + y.T, mf.ones(64, 64), mf.ones(64, 64))[0] == "tiles"


def test_no_size_is_in_the_text_of_tiles():
    def texts(*shapes):
        return {text(lambda x, y: x + y.transpose(-1, -2), mf.ones(*s), mf.ones(*s[:-2], s[-1], s[-2])) for s in shapes}

    assert len(texts((70, 72), (64, 64), (1000, 67))) == 1
    assert len(texts((2, 70, 72), (5, 64, 64), (3, 100, 67))) == 1


def test_a_target_in_place_is_read_and_stored_by_the_same_thread():
    (kernel,) = kernels(lambda x, y: x + y.T, W, L, targets=(0,))
    assert kernel.tiled == ("in0",)
    assert "old0 = load4(out0, i0 * out0_0 + i1)" in kernel.text


# Several groups of four


@pytest.mark.parametrize(
    ("function", "dtype", "each"),
    [
        (lambda x: mf.exp(x), "float32", 8),
        (lambda x: x.to("float64"), "float32", 8),
        (lambda x: x * 2.5, "float64", 4),  # 32 bytes already
        (lambda x: x[:, ::2] + 1, "float32", 4),
        (lambda x: x**3.5 + x**2.5, "float32", 4),  # so dear that memory does not matter
        (lambda x: x == x, "bool", 8),
    ],
)
def test_cheap_loops_with_few_loads_are_unrolled_twice(function, dtype, each):
    (kernel,) = kernels(function, mf.zeros(2048, 2048, dtype=dtype))
    assert max(tile.elements for tile in kernel.schedule.tiles) == each


def test_repeated_loads_are_issued_once():
    """A row that is added to all rows comes from the cache; each group takes its part. Of a column it is one number."""
    (row,) = kernels(lambda x, b: x + b, mf.ones(40, 64), mf.ones(64))
    assert row.text.count("load4(in1, ") == 1
    (column,) = kernels(lambda x, b: x + b, mf.ones(40, 64), mf.ones(40, 1))
    assert column.text.count("in1[") == 1


# Wide or not


def test_aligned_operands_are_loaded_four_elements_at_a_time():
    cases = [
        (lambda x, y: x + y, (A, B), "nest", ("out0", "in0", "in1")),
        (lambda x, y: x + y, (mf.ones(4, 8), mf.ones(4, 1)), "nest", ("out0", "in0")),
        (lambda x, y: x + y, (A, mf.ones(4, 1)), "nest", ()),  # rows of 6 begin where none can be moved
        (lambda x, y: x + y, (A, mf.ones(6, 4).T), "nest", ()),
        (lambda x, y: x + y, (W, L.T), "tiles", ("out0", "in0", "in1")),
        (lambda x: x.sum(1), (mf.ones(4, 600),), "nest", ("in0",)),
        (lambda x: x.sum(0), (A,), "nest", ()),
        (lambda x: x.sum(0), (mf.ones(40, 512),), "nest", ("out0", "in0")),
        (lambda x: x.softmax(1), (mf.ones(4, 80),), "nest", ("out0", "in0")),
        (lambda x: x.softmax(1), (A,), "nest", ()),
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
    x = mf.ones(4, 600, backend=simulated())
    shown = mf.source(lambda x: x.sum(1) + 1, x)
    assert "def kernel(" in shown
    assert "fold_along_x(add" in shown
    assert "# matmul" in mf.source(lambda x: x @ x.T, x)
