"""engines.algorithms: every algorithm against a loop over ranks, for 1 to 9 ranks, sizes and dtypes; bytes and rounds."""

import ast
import inspect
from functools import reduce
from math import ceil, log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minifuse.engines import algorithms
from minifuse.engines.algorithms import ALGORITHMS
from minifuse.engines.cost import COSTS, Link, play

COMBINERS = (np.add, np.maximum, np.minimum)
DTYPES = (np.float32, np.float64, np.int32)
EACH = [(collective, name) for collective, table in ALGORITHMS.items() for name in table]
SUM_ORDERS = {("all_reduce", "ring"), ("all_reduce", "tree"), ("reduce_scatter", "ring"), ("reduce", "tree")}


def run(collective, name, size, arguments):
    """Play an algorithm on all ranks; `arguments` has those of each rank."""
    return play([ALGORITHMS[collective][name](rank, size, *arguments[rank]) for rank in range(size)], Link(1, 0))


def frozen(x):
    """Make an array read-only, so that a program that writes to it is an error."""
    x.flags.writeable = False
    return x


@st.composite
def cases(draw):
    """Draw a number of ranks, the arrays of each rank, and the other arguments of all collectives."""
    size, dtype = draw(st.integers(1, 9)), draw(st.sampled_from(DTYPES))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    lengths = draw(st.lists(st.integers(0, 70), min_size=size, max_size=size))
    arrays = [frozen((rng.standard_normal(lengths[0]) * 100).astype(dtype)) for _ in range(size)]
    parts = [[frozen((rng.standard_normal(length) * 100).astype(dtype)) for length in lengths] for _ in range(size)]
    return size, arrays, parts, draw(st.sampled_from(COMBINERS)), draw(st.integers(0, size - 1)), draw(st.integers(-12, 12))


def arguments_of(collective, case):
    """Return the arguments of each rank, and the result that each should have."""
    size, arrays, parts, combine, root, by = case
    total = reduce(combine, arrays)
    columns = [[parts[rank][k] for rank in range(size)] for k in range(size)]
    uneven = [parts[rank][rank] for rank in range(size)]
    return {
        "all_reduce": ([(x, combine) for x in arrays], [total] * size),
        "reduce_scatter": ([(p, combine) for p in parts], [reduce(combine, column) for column in columns]),
        "all_gather": ([(x,) for x in uneven], [uneven] * size),
        "broadcast": ([(x, root) for x in arrays], [arrays[root]] * size),
        "reduce": ([(x, root, combine) for x in arrays], [total if rank == root else None for rank in range(size)]),
        "all_to_all": ([(p,) for p in parts], columns),
        "shift": ([(x, by) for x in uneven], [uneven[(rank - by) % size] for rank in range(size)]),
    }[collective]


def check_equal(result, expected, tolerance):
    """Compare arrays, lists of arrays, or None; dtypes and sizes are equal in any case."""
    if isinstance(expected, list):
        assert len(result) == len(expected)
        for one, other in zip(result, expected, strict=True):
            check_equal(one, other, 0)
    elif expected is None:
        assert result is None
    else:
        assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
        if result.tobytes() != expected.tobytes():
            assert tolerance
            np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance * 100)


@settings(max_examples=300, deadline=None)
@given(cases())
def test_every_algorithm_has_the_result_of_a_loop(case):
    """All but the sums of rings and trees have its bits; those round in another order, but alike on all ranks."""
    combine = case[3]
    for collective, name in EACH:
        arguments, expected = arguments_of(collective, case)
        results = run(collective, name, case[0], arguments).results
        in_order = (collective, name) not in SUM_ORDERS or combine is not np.add or case[1][0].dtype == np.int32
        for result, wanted in zip(results, expected, strict=True):
            check_equal(result, wanted, 0 if in_order else 1e-5)
        if collective == "all_reduce":
            assert {result.tobytes() for result in results} == {results[0].tobytes()}


@pytest.mark.parametrize("size", range(1, 10))
def test_a_ring_all_reduce_sends_two_arrays_at_most(size):
    """It is 2 (n - 1) / n of the bytes, if they can be divided by n, and else a part may be an element longer."""
    for length in (size * 8, size * 8 + 1, 3, 0):
        x = np.ones(length, np.float32)
        timeline = run("all_reduce", "ring", size, [(x, np.add)] * size)
        sent = [timeline.bytes_sent(rank) for rank in range(size)]
        assert max(sent) <= 2 * (size - 1) * ceil(length / size) * 4
        assert sum(sent) == 2 * (size - 1) * x.nbytes
        assert length % size or set(sent) == {2 * (size - 1) * x.nbytes // size}


SENT = {  # bytes that the busiest rank sends, in arrays of one rank
    ("all_reduce", "ring"): lambda n: 2 * (n - 1) / n,
    ("all_reduce", "tree"): lambda n: ceil(log2(n)),
    ("all_reduce", "direct"): lambda n: 2 * (n - 1) / n,
    ("all_reduce", "gather_first"): lambda n: n - 1,
    ("reduce_scatter", "ring"): lambda n: (n - 1) / n,
    ("reduce_scatter", "direct"): lambda n: (n - 1) / n,
    ("all_gather", "ring"): lambda n: n - 1,
    ("all_gather", "direct"): lambda n: n - 1,
    ("broadcast", "tree"): lambda n: ceil(log2(n)),
    ("broadcast", "direct"): lambda n: n - 1,
    ("reduce", "tree"): lambda n: n > 1,
    ("reduce", "direct"): lambda n: n > 1,
    ("all_to_all", "direct"): lambda n: (n - 1) / n,
    ("shift", "direct"): lambda n: n > 1,
}


@pytest.mark.parametrize(("collective", "name"), EACH)
def test_rounds_and_bytes_are_those_of_the_formulas(collective, name):
    for size in range(1, 17):
        x = np.ones(size * 4, np.float32)
        parts = np.array_split(x, size)
        arguments = {
            "reduce_scatter": (parts, np.add),
            "all_to_all": (parts,),
            "broadcast": (x, 0),
            "reduce": (x, 0, np.add),
            "shift": (x, 1),
            "all_gather": (x,),
        }
        timeline = run(collective, name, size, [arguments.get(collective, (x, np.add))] * size)
        cost, nbytes = COSTS[collective][name], x.nbytes * (size if collective == "all_gather" else 1)
        assert timeline.seconds == cost.count(size)
        assert max(timeline.bytes_sent(rank) for rank in range(size)) == SENT[collective, name](size) * x.nbytes
        program = ALGORITHMS[collective][name]
        timed = play([program(rank, size, *arguments.get(collective, (x, np.add))) for rank in range(size)], Link(3, 0.5))
        assert timed.seconds == pytest.approx(cost.seconds(size, nbytes, Link(3, 0.5)))


def test_the_ring_all_reduce_is_at_most_25_lines():
    """Counted with the two programs that it consists of, and without docstrings."""
    functions = {
        node.name: node for node in ast.parse(inspect.getsource(algorithms)).body if isinstance(node, ast.FunctionDef)
    }
    assert all(ast.get_docstring(node) for node in functions.values())
    ring = [functions[name] for name in ("ring_reduce_scatter", "ring_all_gather", "ring_all_reduce")]
    for node in ring:
        node.body = node.body[1:]
    assert sum(len(ast.unparse(node).splitlines()) for node in ring) <= 25
