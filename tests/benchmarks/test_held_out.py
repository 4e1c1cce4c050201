"""The programs of the suites held-out and loop-nests: values and gradients, eager and fused, on the CPU; and their rows."""

import re
from collections import Counter
from functools import cache

import numpy as np
import pytest

import minifuse as mf
from minifuse.testing.tolerances import tolerance_for
from project.benchmarks import gpu, loop_nests, peers, timer
from project.benchmarks.held_out import KINDS, PROGRAMS
from project.benchmarks.held_out.program import HostDraw, weights
from project.benchmarks.row import TOLERANCE, US, Bench, to_float64
from project.benchmarks.rows import held_out, rows_of
from project.benchmarks.run import error_of, measure
from project.benchmarks.suites import suite_of
from tests.benchmarks.test_gpu_benchmarks import FakeEvents, needs_no_gpu

DIFFERENTIATED = [program for program in PROGRAMS if program.gradients]
STEP = 1e-6
programs = pytest.mark.parametrize("program", [*PROGRAMS, *loop_nests.PROGRAMS], ids=lambda program: program.name)
differentiated = pytest.mark.parametrize("program", DIFFERENTIATED, ids=lambda program: program.name)


def as_tuple(result):
    return result if isinstance(result, tuple) else (result,)


def inputs_of(program, dtype):
    rng = np.random.default_rng(1)
    return list(program.inputs(HostDraw(rng, dtype), *program.tiny))


def check_values(program, work, lend):
    """Compare float32 results of a program with NumPy's in float64."""
    inputs = inputs_of(program, "float32")
    results = as_tuple(work(*map(lend, inputs)))
    expected = as_tuple(program.exact(*map(to_float64, inputs)))
    for result, exact in zip(results, expected, strict=True):
        assert error_of(result.numpy(), np.asarray(exact), program.dtype) <= TOLERANCE["float32"]


@cache
def central_differences(program):
    """Return float64 inputs, the gradients of a loss by differences of NumPy's results, and the size of the loss's terms."""
    inputs = inputs_of(program, "float64")
    y = program.exact(*inputs)
    w = weights(HostDraw(np.random.default_rng(2), "float64"), np.shape(y))

    def loss(k, index, step):
        changed = [x.copy() if j == k else x for j, x in enumerate(inputs)]
        changed[k][index] += step
        return np.sum(program.exact(*changed) * w)

    gradients = [
        np.array([loss(k, i, STEP) - loss(k, i, -STEP) for i in np.ndindex(x.shape)]).reshape(x.shape) / (2 * STEP)
        for k, x in enumerate(inputs[: program.gradients])
    ]
    return [*inputs, w], gradients, float(np.abs(y * w).sum())


def check_gradients(program, loss, lend):
    """Compare float64 gradients of a program with central differences."""
    inputs, expected, scale = central_differences(program)
    tensors = [lend(x) for x in inputs]
    leaves = [x.requires_grad_() for x in tensors[: program.gradients]]
    loss(*tensors).backward()
    tolerance = tolerance_for("difference", "float64", scale=scale + 1)
    for x, exact in zip(leaves, expected, strict=True):
        np.testing.assert_allclose(x.grad.numpy(), exact, rtol=tolerance.rtol, atol=tolerance.atol)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["python", "parallel"])
@programs
def test_eager_and_fused_results_are_those_of_numpy(program, backend):
    def lend(x):
        return mf.from_numpy(x, backend=backend)

    check_values(program, program.on(mf), lend)
    check_values(program, mf.fuse(program.on(mf)), lend)


@pytest.mark.sampled(3)
@differentiated
def test_eager_and_fused_gradients_are_central_differences(program):
    check_gradients(program, program.loss(mf), mf.from_numpy)
    check_gradients(program, mf.fuse(program.loss(mf)), mf.from_numpy)


@pytest.mark.sampled(3)
@programs
def test_torch_has_the_same_results_and_gradients(program):
    torch = pytest.importorskip("torch")
    check_values(program, program.on(torch), torch.from_numpy)
    if program.gradients:
        check_gradients(program, program.loss(torch), torch.from_numpy)


def test_the_suite_has_eighty_programs_of_all_kinds():
    assert len(PROGRAMS) == 80
    assert len(DIFFERENTIATED) >= 50
    assert set(Counter(program.name for program in PROGRAMS).values()) == {1}
    assert all(module.PROGRAMS for module in KINDS.values())


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_sources_name_a_year_and_a_place(program):
    assert re.search(r"\b(1[89]|20)\d\d\b", program.source)
    assert re.search(r"\b(eq|sec|fig|table|algorithm|appendix|lecture|chapter|step)\b", program.source)


@programs
def test_sizes_on_a_gpu_are_larger_and_their_numbers_match(program):
    assert len(program.gpu) == len(program.cpu) == len(program.tiny)
    assert np.prod(program.gpu) > np.prod(program.cpu) > np.prod(program.tiny)


def test_inputs_of_some_programs_are_strided_or_permuted():
    layouts = [x.flags.c_contiguous for program in PROGRAMS for x in inputs_of(program, "float32")]
    assert layouts.count(False) >= 2


# The rows.


@pytest.mark.parametrize("is_on_gpu", [False, True])
def test_each_program_is_a_row_and_those_with_gradients_are_two(is_on_gpu):
    rows = rows_of(is_on_gpu, "held-out")
    assert [row.name for row in rows] == [program.name for program in (*PROGRAMS, *DIFFERENTIATED)]
    assert {row.group for row in rows} == {f"{'gpu-' * is_on_gpu}held-out{end}" for end in ("", "-gradients")}


@pytest.mark.parametrize("is_on_gpu", [False, True])
def test_each_loop_nest_is_a_row(is_on_gpu):
    rows = rows_of(is_on_gpu, "loop-nests")
    assert [row.name for row in rows] == [program.name for program in loop_nests.PROGRAMS]
    assert {row.group for row in rows} == {f"{'gpu-' * is_on_gpu}loop-nests"}


def row_named(name, is_on_gpu=False):
    rows = [*rows_of(is_on_gpu, "held-out"), *rows_of(is_on_gpu, "loop-nests")]
    return [row for row in rows if row.name == name]


@pytest.mark.parametrize("name", ["Adam step", "hard swish of a strided input", "argmax of rows"])
def test_rows_are_checked_and_timed(name, tmp_path):
    bench = Bench({}, np.random.default_rng(0), tmp_path, is_quick=True)
    for row in row_named(name):
        result = measure(row, bench)
        assert "wrong" not in result
        assert set(result["times"]) == set(result["errors"]) == {US, f"{US}, eager"}


def test_a_wrong_gradient_is_found(tmp_path, monkeypatch):
    bench = Bench({}, np.random.default_rng(0), tmp_path, is_quick=True)
    (program,) = [program for program in PROGRAMS if program.name == "mish"]
    monkeypatch.setattr(held_out, "in_float64", lambda x: 2 * x)
    assert "wrong" in measure(held_out.gradient_row(program, False), bench)


@needs_no_gpu
@pytest.mark.parametrize("name", ["Adam step", "argmax of rows"])
def test_rows_of_a_gpu_are_checked_in_the_interpreter(name, tmp_path, monkeypatch):
    monkeypatch.setattr(gpu, "Events", FakeEvents)
    monkeypatch.setattr(timer, "MIN_ROUNDS", 1)
    bench = gpu.GpuBench({}, np.random.default_rng(0), tmp_path, is_quick=True)
    for row in row_named(name, is_on_gpu=True):
        result = measure(row, bench)
        assert "wrong" not in result
        assert set(result["errors"]) == {US, f"{US}, eager", f"{US}, fast math"}


@pytest.mark.parametrize("word", ["held-out", "held-out-gradients", "gpu-held-out", "gpu-loop-nests"])
def test_the_suite_is_compared_with_torch_alone(word):
    assert suite_of(word).peers == peers.PROGRAMS
