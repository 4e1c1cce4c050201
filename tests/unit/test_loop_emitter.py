"""backends.codegen.loop_emitter: the exact texts that the CPU backend compiles.

Each text begins with the operands, numbers, sizes and strides that it unpacks; the first test contains one whole preamble,
and the others leave it out.
"""

import re
from textwrap import dedent

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.registry import get_backend
from minifuse.compiler.plan import Plan
from minifuse.core.dtypes import float32, int32, int64

A, B = mf.ones(4, 6), mf.ones(4, 6)


def kernels(function, *inputs, targets=()):
    """The source of each kernel of a call."""
    plan = Plan(function, inputs, targets)
    return [plan.backend.compile(step).source for step in plan.steps]


def body(function, *inputs, **more):
    """The loops of the only kernel of a call."""
    (text,) = kernels(function, *inputs, **more)
    lines = text.splitlines()[1:]
    first = next(k for k, line in enumerate(lines) if line.startswith("    for"))
    return dedent("\n".join(lines[first:])) + "\n"


# What is generated


def test_a_map_unpacks_its_operands_and_runs_along_one_axis(golden):
    (text,) = kernels(lambda x: mf.exp(x) * 2 + 0.5, A)
    golden(text)


def test_a_zip_with_a_broadcast_operand_has_two_axes(golden):
    golden(body(lambda x, b: x + b, A, mf.ones(6)))


def test_a_sum_along_rows(golden):
    golden(body(lambda x: x.sum(1), A))


def test_a_sum_along_columns_reduces_a_block_of_them_at_once(golden):
    golden(body(lambda x: x.sum(0), A))


def test_softmax_is_three_passes_that_compute_exponentials_once(golden):
    text = body(lambda x: x.softmax(1), A)
    golden(text)
    assert text.count("exp(") == 1


def test_two_outputs_share_common_subexpressions(golden):
    golden(body(lambda x: (x / x.sum(1, True), x.sum(1), x.max(1)), A))


def test_an_in_place_kernel_reads_its_output(golden):
    golden(body(lambda x: x * 2 + 1, A, targets=(0,)))


def test_in_place_on_two_targets_reads_both_before_it_writes_either(golden):
    golden(body(lambda x, y: (x + y, x - y), A, B, targets=(0, 1)))


def test_a_transposed_operand_is_read_in_tiles(golden):
    golden(body(lambda x, y: x + y, A, mf.ones(6, 4).T))


def test_a_gather_is_stored_in_blocks_so_that_it_is_vectorized(golden):
    golden(body(lambda x, i: mf.gather(x, 1, i), A, mf.zeros(4, 6, dtype=int64)))


def test_blocks_of_gathers_end_with_their_row():
    x, index = np.arange(7.0 * 600, dtype=np.float32).reshape(7, 600), np.arange(7 * 700).reshape(7, 700) * 11 % 600
    y, is_large = mf.fuse(lambda x, i: (mf.gather(x, 1, i), mf.gather(x, 1, i) > 1000))(mf.tensor(x), mf.tensor(index))
    expected = np.take_along_axis(x, index, 1)
    np.testing.assert_array_equal(y.numpy(), expected)
    np.testing.assert_array_equal(is_large.numpy(), expected > 1000)


def test_operands_that_are_all_transposed_are_not_tiled(golden):
    golden(body(lambda x, y: x + y, A.T, B.T))


def test_a_value_that_is_the_same_along_the_row_is_computed_once_a_row(golden):
    text = body(lambda x, b: x * mf.exp(b), A, mf.ones(4, 1))
    golden(text)


def test_the_size_of_short_rows_is_in_the_text(golden):
    x = mf.ones(4096, 20).unfold(1, 4, 2)
    (text,) = kernels(lambda x: x.sum(2), x)
    golden(text)
    assert "n2 = args" in kernels(lambda x: x.sum(2), x[:9])[0]


def test_short_rows_have_the_right_results():
    x = np.random.default_rng(0).standard_normal((3, 1999, 5)).astype(np.float32)
    exact = np.exp(x.astype(np.float64))
    exact /= exact.sum(2, keepdims=True)
    for order in ((0, 1, 2), (2, 1, 0)):  # as it is, and with adjacent elements across rows
        y = mf.from_numpy(np.transpose(np.transpose(x, order).copy(), order))
        assert np.allclose(mf.fuse(lambda y: y.softmax(2))(y).numpy(), exact, rtol=1e-5)
        assert np.array_equal(mf.fuse(lambda y: y.argmax(2))(y).numpy(), x.argmax(2))


def test_transposed_operands_have_the_right_elements():
    x, y = (np.random.default_rng(k).standard_normal((3, 67, 131)).astype(np.float32) for k in range(2))
    operands = [
        mf.from_numpy(np.ascontiguousarray(z.transpose(0, 2, 1)).transpose(0, 2, 1)) for z in (y, y > 0, y.astype("f8"))
    ]
    for t in operands:
        z = mf.fuse(lambda x, t: mf.exp(x) * t + t)(mf.from_numpy(x), t)
        assert np.allclose(z.numpy(), np.exp(x) * t.numpy() + t.numpy(), rtol=1e-5)


def test_reductions_of_operands_in_different_memory_orders(golden):
    x, y = (np.random.default_rng(k).standard_normal((3, 70, 131)).astype(np.float32) for k in range(2))
    columns = mf.from_numpy(np.ascontiguousarray(x.transpose(0, 2, 1))).mT

    def normalize(x, y):
        d = x * y - (x * y).mean(2, True)
        return d / mf.sqrt((d * d).mean(2, True)), y + d

    golden(body(normalize, columns, mf.from_numpy(y)))
    exact = (x * y).astype("f8")
    d = exact - exact.mean(2, keepdims=True)
    z, w = mf.fuse(normalize)(columns, mf.from_numpy(y))
    assert np.allclose(z.numpy(), d / np.sqrt((d * d).mean(2, keepdims=True)), atol=1e-5)
    assert np.allclose(w.numpy(), y + d, atol=1e-5)


@pytest.mark.parametrize("shape", [(9, 12), (40, 3), (3, 40), (64, 65), (20, 300)])
def test_gradients_of_slices_are_added_up_in_one_kernel(shape):
    def loss(u, w):
        c = u[1:-1, 1:-1]
        return ((c * (u[2:, 1:-1] - u[:-2, 1:-1]) + 2 * u[1:-1, :-2]) * w).sum()

    draw, gradients, fused = np.random.default_rng(0), [], mf.fuse(loss)
    arrays = draw.standard_normal(shape), draw.standard_normal((shape[0] - 2, shape[1] - 2))
    for dtype, function in ((np.float32, fused), (np.float64, loss)):
        u, w = (mf.from_numpy(x.astype(dtype)) for x in arrays)
        function(u.requires_grad_(), w).backward()
        gradients.append(u.grad.numpy())
    assert np.allclose(*gradients, atol=1e-5)
    u, w = (mf.from_numpy(x.astype(np.float32)) for x in arrays)
    if shape[0] * shape[1] >= 4000:  # where little is padding
        assert len(fused.explain(u.requires_grad_(), w).backward.run.kernels) == 1


def test_strides_of_few_elements_are_in_the_text():
    pairs, x = mf.ones(2, 9001), mf.ones(9001, 2)
    assert "in1_1 = 2\n" in kernels(lambda a, b: a + b, pairs, x.T)[0]
    assert "n1 = 2\n" in kernels(lambda a, b: a + b, x, pairs.T)[0]


def test_few_columns_are_not_reduced_in_blocks():
    few, many = (mf.ones(3, 9001, n).permute(0, 2, 1) for n in (2, 64))
    assert "block_of" not in kernels(lambda x: x.sum(2), few)[0]
    assert "block_of" in kernels(lambda x: x.sum(2), many)[0]


# What does not reach the text


def test_sizes_offsets_and_strides_are_not_in_the_text():
    for function in (lambda x: x.softmax(1), lambda x: x.mean(0), lambda x: mf.tanh(x) + x):
        texts = {kernels(function, x)[0] for x in (A, mf.ones(33, 1025), mf.ones(5, 9)[1:])}
        assert len(texts) == 1


def test_numbers_travel_as_parameters_and_but_for_0_1_2():
    def shifted(c):
        return kernels(lambda x: x + c, A)

    assert shifted(0.25) == shifted(3.5) == shifted(-1.0)
    assert "p0" in shifted(0.25)[0]
    assert "f32(2.0)" in shifted(2.0)[0]
    assert "p0" not in shifted(2)[0]


def test_a_number_used_twice_is_one_parameter():
    (text,) = kernels(lambda x: (x + 0.3) * 0.3, A)
    assert "p0" in text
    assert "p1" not in text


def test_integers_and_floats_keep_their_dtype():
    (text,) = kernels(lambda i: i * 7, mf.arange(5))
    assert "p0 = i64(args[2])" in text
    assert "numbers" not in text
    (text,) = kernels(lambda i: i * 7 + 0.5, mf.arange(5))
    assert "i64(args[" in text
    assert "f64(numbers[" in text


def test_minus_zero_and_zero_differ():
    assert "f32(0.0)" in kernels(lambda x: x * 0.0, A)[0]
    assert "p0" in kernels(lambda x: x * -0.0, A)[0]


# Lines


@pytest.mark.parametrize("depth", [1, 8, 9, 100, 400])
def test_deep_chains_are_cut_into_lines(depth):
    def chain(x):
        for _ in range(depth):
            x = x * 0.99 + 0.5
        return x

    text = body(chain, A)
    deepest = max(line.count("(") for line in text.splitlines())
    assert deepest <= 9  # Python refuses some 200
    assert len(text.splitlines()) <= 2 + 2 * depth // 8 + 1
    assert text.count(" * ") == depth


def test_a_value_used_twice_gets_a_name(golden):
    text = body(lambda x: (t := mf.tanh(x)) * t + t, A)
    golden(text)


def test_a_bool_is_a_byte_in_memory(golden):
    text = body(lambda m, x: mf.where(m, x, 0), A > 0, A)
    golden(text)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integers_wrap_around(dtype):
    """Numba's + and * take for granted that nothing overflows, and widen int32; the words do neither."""
    x = mf.tensor([2 ** (31 if dtype == "int32" else 63) - 1] * 5, dtype=dtype)
    assert body(lambda x: x * x + x, x).splitlines()[-1] == "    out0[i0] = add(mul(t0, t0), t0)"
    widened = body(lambda x: x & 3, x).splitlines()[-1]
    assert widened == "    out0[i0] = " + ("i32(in0[i0] & p0)" if dtype == "int32" else "in0[i0] & p0")
    assert (x + x).tolist() == [-2] * 5


@pytest.mark.parametrize(("shape", "dim"), [((3, 0), 1), ((0, 3), 0), ((3, 0), None), ((2, 0, 3), 1), ((0, 1), None)])
def test_an_empty_reduction_reads_nothing(shape, dim):
    """What is the same all along a row is computed before it; of an input without elements there is no such thing."""
    x = mf.from_numpy(np.zeros(shape, np.float32))
    before, _, inside = body(lambda x: (mf.exp(x) * 2).sum(dim), x).partition("for i1 in range(n1):")
    assert "in0" not in before
    assert "in0" in inside


def test_the_smallest_integers_are_written_so_that_they_fit():
    (text,) = kernels(lambda x: x.max(), mf.arange(5))
    assert "i64(-9223372036854775807 - 1)" in text
    assert mf.tensor([-(2**63), -(2**63)]).max().item() == -(2**63)


def test_every_kernel_is_python():
    for function in (lambda x: x.var(1), lambda x: x.argmax(1), lambda x: x.logsumexp(), lambda x: x.T.softmax(0)):
        for text in kernels(function, A):
            compile(text, "kernel", "exec")
            assert re.match(r"def kernel\(start, stop, args\):\n    \w", text)


def test_a_backend_without_kernel_text_describes_its_steps():
    x = mf.ones(2, 3, backend="python")
    assert kernels(lambda x: x + 1, x) == ["# python: 1 outputs over (2, 3), one operation at a time\n"]
    text = mf.source(lambda x: x @ x.T, x)
    assert "# python: matmul of (2, 3) and (3, 2), float32" in text


def test_dtypes_have_names_in_the_text():
    parallel = get_backend("parallel")
    plan = Plan(lambda x: x.to(float32) * 1.5, [mf.ones(3, dtype=int32)])
    assert "f32(in0[i0])" in parallel.compile(plan.steps[0]).source
    plan = Plan(lambda x: x.to(mf.bool_).to(int64), [mf.ones(3)])
    assert "i64((in0[i0] != 0))" in parallel.compile(plan.steps[0]).source
