"""`minifuse trace --cell`: the elements that one result is computed from, against NumPy and each backend's stored value."""

import json
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from typer.testing import CliRunner

from minifuse.backends.parallel import driver
from minifuse.cli import cells
from minifuse.cli.commands import app
from minifuse.cli.subjects import reduction_named
from minifuse.core.errors import MinifuseError
from minifuse.core.operators import TABLE
from minifuse.inspect.provenance import BACKENDS, compute_cell, trace_cell
from minifuse.inspect.provenance.traced_values import FIRST_ID, ID_LIMIT, ProvenanceLog, all_stages, decode_id, split_stages

FOLDS = ("sum", "prod", "max", "min")
bounded = settings(derandomize=True, max_examples=120, deadline=None)


def folded(name, dims):
    def fold(x):
        return getattr(x, name)(dims)

    return fold


@some.composite
def questions(draw):
    """A shape, the dims that are folded, an operator, a backend, and numbers whose order shows."""
    shape = tuple(draw(some.lists(some.one_of(some.integers(0, 5), some.sampled_from((1, 31, 33, 70))), max_size=3)))
    dims = tuple(d for d in range(len(shape)) if draw(some.booleans()))
    if prod(shape) > 5000 or (shape and not dims):
        shape, dims = (3, 33), (1,)
    name = draw(some.sampled_from(FOLDS))
    kept = prod(n for d, n in enumerate(shape) if d not in dims)
    seed, cell = draw(some.integers(0, 99)), draw(some.integers(0, max(kept - 1, 0)))
    x = np.random.default_rng(seed).uniform(0.5, 1.5, shape).astype(np.float32) * 10.0 ** (name != "prod")
    return name, dims, np.asarray(x, np.float32), draw(some.sampled_from(BACKENDS)), cell


def of_cell(x, dims, cell):
    """The places of the elements that NumPy folds for a cell."""
    places = np.arange(x.size).reshape(x.shape)
    dims = dims or tuple(range(x.ndim))
    kept = [d for d in range(x.ndim) if d not in dims]
    rows = places.transpose(*kept, *dims).reshape(prod(x.shape[d] for d in kept), prod(x.shape[d] for d in dims))
    return rows[cell].tolist()


@pytest.mark.parametrize("backend", ["parallel", "cuda"])
def test_launches_over_several_arrays_are_followed_one_by_one(backend):
    """What the first launches make is read by the last one."""

    def both(x, y):
        return (x.T.exp().reshape(3, 4) * y.T.exp().reshape(3, 4)).sum(0)

    arrays = [np.random.default_rng(k).uniform(1, 2, (3, 4)).astype(np.float32) for k in range(2)]
    origin = trace_cell(both, arrays, backend, 2)
    flat = {f"in{k}": x.ravel() for k, x in enumerate(arrays)}
    assert len(origin.tree.elements()) == 6
    assert origin.tree.values(flat, np.float32)[-1] == pytest.approx(compute_cell(both, arrays, backend, 2), rel=1e-6)


@bounded
@given(questions())
def test_adding_in_the_shown_order_gives_the_stored_value(question):
    name, dims, x, backend, cell = question
    function = folded(name, dims or None)
    is_empty = 0 in [x.shape[d] for d in dims or range(x.ndim)]
    kept = prod(n for d, n in enumerate(x.shape) if d not in (dims or range(x.ndim)))
    if kept == 0 or (is_empty and name in ("max", "min")):
        with pytest.raises(MinifuseError):
            trace_cell(function, [x], backend, cell)
        return
    origin = trace_cell(function, [x], backend, cell)
    value = compute_cell(function, [x], backend, cell)
    flat = {"in0": x.reshape(-1)}
    wide, narrow = (origin.tree.values(flat, kind)[-1] for kind in (np.float64, np.float32))
    elements = [element for _, element in origin.tree.elements()]
    assert sorted(elements) == sorted(of_cell(x, dims, cell))
    assert sorted(read.element for read in origin.reads) == sorted(elements)
    smallest = np.finfo(np.float32).tiny  # a product of hundreds of numbers may be smaller
    np.testing.assert_allclose(wide, value, rtol=1e-6 * max(len(elements), 1), atol=smallest)
    if backend == "cuda" or name in ("max", "min"):
        assert narrow == value  # bit by bit: this order, and no other
    if backend == "python":
        assert np.float32(wide) == value


def test_another_order_rounds_differently():
    """What the test above relies on."""
    x = np.random.default_rng(0).uniform(0, 10, 512).astype(np.float32)
    values = {
        backend: trace_cell(folded("sum", None), [x], backend, 0).tree.values({"in0": x}, np.float32)[-1]
        for backend in BACKENDS
    }
    assert values["cuda"] != values["python"] == values["parallel"]


@pytest.mark.parametrize(
    ("backend", "text"),
    [
        ("python", "((((((0 + in0[6]) + in0[7]) + in0[8]) + in0[9]) + in0[10]) + in0[11])"),
        ("parallel", "((((((0 + in0[6]) + in0[7]) + in0[8]) + in0[9]) + in0[10]) + in0[11])"),
    ],
)
def test_a_loop_reads_one_after_the_other(backend, text):
    origin = trace_cell(folded("sum", 1), [np.ones((3, 6), np.float32)], backend, 1)
    assert f"({origin.tree.text(len(origin.tree.nodes) - 1)})" == text
    assert [read.read_index for read in origin.reads] == list(range(6))
    assert [read.element for read in origin.reads] == list(range(6, 12))


def test_threads_reduce_their_elements_before_they_combine():
    origin = trace_cell(folded("sum", 1), [np.ones((4, 12), np.float32)], "cuda", 1)
    partials, first, last = split_stages(origin.tree)
    assert [origin.tree.text(k) for k in partials.nodes] == [
        "((0 + in0[12]) + (0 + in0[13])) + ((0 + in0[14]) + (0 + in0[15]))",
        "((0 + in0[16]) + (0 + in0[17])) + ((0 + in0[18]) + (0 + in0[19]))",
        "((0 + in0[20]) + (0 + in0[21])) + ((0 + in0[22]) + (0 + in0[23]))",
        "(0 + 0) + (0 + 0)",
    ]
    assert [(len(stage.nodes), stage.title[-2:]) for stage in (first, last)] == [(2, " 2"), (1, " 1")]
    assert origin.tree.depth() == 5


def test_columns_meet_in_shared_memory():
    origin = trace_cell(folded("sum", 0), [np.ones((1024, 256), np.float32)], "cuda", 77)
    first, *rest = all_stages(origin.tree)
    assert first.is_shared
    assert [stage.title for stage in rest[:3]] == [f"combined with the value of the thread at y = {k}" for k in range(1, 4)]


def test_warps_combine_through_shared_memory():
    found = split_stages(trace_cell(folded("sum", None), [np.ones((16, 32), np.float32)], "cuda", 0).tree)
    assert [len(stage.nodes) for stage in found] == [64, 32, 16, 8, 4, 2, 2, 1]
    assert [stage.is_shared for stage in found] == [False] * 6 + [True, False]


@pytest.mark.parametrize("backend", BACKENDS)
def test_long_rows_are_reduced_in_pieces(backend):
    x = np.random.default_rng(0).uniform(0, 1, (2, 65536)).astype(np.float32)
    origin = trace_cell(folded("sum", 1), [x], backend, 1)
    assert sorted(read.element for read in origin.reads) == list(range(65536, 131072))
    assert len(origin.tree.earlier_results) == 4
    np.testing.assert_allclose(origin.tree.values({"in0": x.reshape(-1)})[-1], x[1].sum(dtype=np.float64), rtol=1e-12)
    assert "results of earlier launches" in [stage.title for stage in all_stages(origin.tree)]


def test_only_the_blocks_that_make_the_cell_run():
    x = np.ones((1024, 256), np.float32)
    origin = trace_cell(folded("sum", 0), [x], "cuda", 77)
    assert [(ran.blocks_run, ran.block_count) for ran in origin.launches] == [
        (tuple(range(2, 128, 8)), 128),
        (tuple(range(8)), 8),
    ]
    assert [read.element for read in sorted(origin.reads, key=lambda r: r.element)] == list(range(77, 1024 * 256, 256))


def test_remainders_are_a_chunk():
    x = np.ones((1028, 256), np.float32)
    origin = trace_cell(folded("sum", 0), [x], "cuda", 5)
    assert len(origin.reads) == 1028
    assert (len(origin.tree.earlier_results), all_stages(origin.tree)[-1].title) == (13, "result of the launch")


def test_chunks_are_those_of_the_driver(monkeypatch):
    monkeypatch.setattr(driver, "THREADS", 2)
    x = np.ones((4096, 160), np.float32)  # more than 2^20 additions and loads
    origin = trace_cell(folded("sum", 1), [x], "parallel", 4095)
    assert [(ran.blocks_run, ran.block_count) for ran in origin.launches] == [((7,), 8)]
    assert {read.thread for read in origin.reads} == {(7, 0)}
    monkeypatch.setattr(driver, "THREADS", 1)
    assert trace_cell(folded("sum", 1), [x], "parallel", 1024).launches[0].blocks_run == (1,)


def test_every_name_is_followed_to_its_value():
    random = np.random.default_rng(0)
    refused = []
    for name in (*cells.REDUCTIONS, *cells.OPERATORS):
        entry = TABLE.get(name)
        function = entry or reduction_named(name, 1)
        arrays = [random.uniform(0.3, 0.9, (3, 37)).astype(np.float32) for _ in range(entry.arity if entry else 1)]
        for backend in BACKENDS:
            try:
                origin = trace_cell(function, arrays, backend, 2)
            except MinifuseError:
                refused.append((name, backend))
                continue
            found = origin.tree.values(cells.input_memory(arrays))[-1]
            np.testing.assert_allclose(
                found, compute_cell(function, arrays, backend, 2), rtol=1e-5, err_msg=f"{name} {backend}"
            )
    assert {name for name, _ in refused} <= {"where", "clip"}


def test_values_in_shared_memory_keep_their_names():
    """The fold of a column whose block has one thread along y comes out of shared memory as it went in."""
    x, y = np.arange(12, dtype=np.float32).reshape(3, 4), np.arange(40, 52, dtype=np.float32).reshape(3, 4)
    for function, expected in ((lambda x, y: x.sum(0) + y.sum(0), x.sum(0) + y.sum(0)), (lambda x, y: -x.sum(0), -x.sum(0))):
        for cell in range(4):
            origin = trace_cell(function, [x, y], "cuda", cell)
            assert origin.tree.values(cells.input_memory([x, y]))[-1] == expected[cell]
            assert {element for _, element in origin.tree.elements()} == {cell, cell + 4, cell + 8}


def test_names_are_no_numbers():
    assert [decode_id(x) for x in (0.0, 1.0, -1.0, np.inf, 512.0)] == [(0.0,), (1.0,), (-1.0,), (np.inf,), (512.0,)]
    log = ProvenanceLog(lambda: (0, 0))
    one, two = log.record_load(400), log.record_load(404)
    assert [decode_id(x) for x in (one, two)] == [FIRST_ID, FIRST_ID + 1]
    total = 1.0 + one * two
    assert log.op_of(decode_id(total)).operands == ((1.0,), FIRST_ID + 2)
    with pytest.raises(MinifuseError, match="branches on the value"):
        bool(one > two)
    with pytest.raises(MinifuseError, match="use a smaller shape"):
        ProvenanceLog(lambda: (0, 0)).add_memory(0, ID_LIMIT)


# The command.


def invoke(*arguments):
    return CliRunner().invoke(app, ["trace", *map(str, arguments)], env={"COLUMNS": "80"})


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("layout", ["plain", "permuted", "sliced", "flipped", "expanded", "shifted"])
def test_the_command_prints_json(backend, layout):
    result = invoke("sum", "--shape", "4,12", "--dim", 1, "--cell", 1, "--backend", backend, "--layout", layout, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["backend"], found["cell"], found["TRACED"]["reads"]) == (backend, 1, 12)
    assert found["TRACED"]["value"] == pytest.approx(found["DERIVED"]["value_in_this_order"], rel=1e-6)
    *parts, root = found["tree"]
    assert root["operator"] == "add"
    assert all(p < k for k, part in enumerate(found["tree"]) for p in part.get("of", ()))
    assert sum("element" in part for part in parts) == 12
    assert ("caveat" in found) is (backend == "parallel")


def test_the_command_prints_sentences():
    told = invoke("sum", "--shape", "4,12", "--dim", 1, "--cell", 1).stdout
    assert max(map(len, told.splitlines())) <= 80
    for line in (
        "sum of float32 (4, 12), plain, dim 1: cell 1 on the cuda backend",
        "  block 0, thread 4: in0[12..15]",
        "shuffle: each lane adds the value of lane ^ 2 (2 numbers)",
        "  block 0, thread 7: 0  =  (0 + 0) + (0 + 0)",
    ):
        assert line in told.splitlines()
    loop = invoke("max", "--shape", "3,5", "--cell", 0, "--backend", "parallel").stdout
    assert "LLVM may reassociate sums" in loop
    assert "chunk 0: in0[0..14]" in loop


def test_a_long_reduction_fits_the_terminal():
    told = invoke("sum", "--shape", "2,65536", "--dim", 1, "--cell", 1).stdout
    assert max(map(len, told.splitlines())) <= 80
    assert "2: 4 partial results, then a reduction of them" in told
    assert "launch 2: value of each thread (4 numbers)" in told
    assert "block 0, thread 7: 18440.3  =  0 + piece3" in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sum", "--shape", "4,3", "--cell", 1], "cell 1 does not exist: the output has shape (), which has cells 0 to 0"),
        (["exp", "--shape", "0,3", "--cell", 0], "cell 0 does not exist: the output has shape (0, 3), which has no cells"),
        (["sum", "--cell", 0, "--backend", "gpu"], "--backend gpu: expected one of cuda, parallel, python"),
        (["softmax", "--cell", 0], "--cell: got softmax, expected sum, prod, max, min, mean, or a float operator"),
        (["sum", "--cell", 0, "--dtype", "float64"], "a cell can be traced in float32 only, got float64"),
        (["sum", "--backend", "parallel"], "--backend only applies with --cell"),
    ],
)
def test_an_untraceable_cell_is_an_error_of_one_line(arguments, message):
    result = invoke(*arguments)
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.stderr.split())
