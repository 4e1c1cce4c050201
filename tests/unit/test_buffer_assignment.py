"""compiler.buffer_assignment: offsets of temporaries in one arena, and the host programs that use one."""

import re
from textwrap import dedent

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minifuse as mf
from minifuse.backends.base import Backend
from minifuse.compiler.buffer_assignment import ALIGNMENT, Arena, assign_offsets
from minifuse.compiler.graph import Lifetime
from minifuse.compiler.plan import Plan
from tests.examples import share

SIZES = st.integers(0, 3000)


@given(st.lists(st.tuples(SIZES, st.integers(0, 5)), max_size=60))
@share(6)
def test_allocated_blocks_never_overlap(requests):
    arena, used = Arena(), []
    most = in_use = 0
    for nbytes, freed in requests:
        start = arena.alloc(nbytes)
        assert start % ALIGNMENT == 0
        assert start + nbytes <= arena.nbytes
        assert all(start + max(nbytes, 1) <= low or high <= start for low, high in used)
        used.append((start, start + max(nbytes, 1)))
        in_use = sum(-(-(high - low) // ALIGNMENT) for low, high in used) * ALIGNMENT
        most = max(most, in_use)
        for _ in range(min(freed, len(used))):
            low, high = used.pop(len(used) // 2)
            arena.free(low, high - low)
    assert arena.nbytes >= most
    for low, high in used:
        arena.free(low, high - low)
    assert arena.free_blocks == ({0: arena.nbytes} if arena.nbytes else {})


def test_the_smallest_free_block_that_fits_is_allocated():
    arena = Arena()
    starts = {n: arena.alloc(n * ALIGNMENT) for n in (4, 1, 2, 1, 3, 1)}
    for n in (4, 2, 3):
        arena.free(starts[n], n * ALIGNMENT)
    nbytes = arena.nbytes
    assert arena.alloc(2 * ALIGNMENT) == starts[2]
    assert arena.alloc(3 * ALIGNMENT) == starts[3]
    assert arena.alloc(3 * ALIGNMENT) == starts[4]
    assert arena.nbytes == nbytes


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), SIZES), max_size=40))
@share(6)
def test_buffers_overlap_only_if_their_lifetimes_do_not(drawn):
    lifetimes = [Lifetime(min(a, b), max(a, b), nbytes) for a, b, nbytes in drawn]
    offsets, nbytes = assign_offsets(lifetimes)
    for k, (x, start) in enumerate(zip(lifetimes, offsets, strict=True)):
        assert start % ALIGNMENT == 0
        assert start + x.nbytes <= nbytes
        for y, other in zip(lifetimes[:k], offsets[:k], strict=True):
            if x.first_step <= y.last_step and y.first_step <= x.last_step:
                assert start + max(x.nbytes, 1) <= other or other + max(y.nbytes, 1) <= start


@pytest.fixture
def joining(monkeypatch):
    """Let the default backend submit all launches of a call together."""
    monkeypatch.setattr(Backend, "join", lambda self, launches, counts, waits: None)


def layers(x, *weights):
    """Compute a chain of matmuls: only the next matmul reads the result of one."""
    for w in weights:
        x = mf.relu(x @ w)
    return x


@pytest.mark.usefixtures("joining")
def test_temporaries_of_a_joined_program_share_one_arena():
    text = Plan(layers, [mf.ones(10, 10)] * 4).text
    assert text == dedent("""\
        def run(x0, x1, x2, x3):
            m2 = allocate(448)
            workspace = allocate(1024)
            launches(
                workspace.address + 0, x0.address, x1.address,  # launch0
                workspace.address + 512, workspace.address + 0, x2.address,  # launch1
                m2.address, workspace.address + 512, x3.address,  # launch2
            )
            del workspace
            y0 = Tensor(m2, m2.address, meta0)
            return y0
        """)


@pytest.mark.usefixtures("joining")
def test_a_joined_program_agrees_with_numpy():
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((9, 9)) for _ in range(8)]
    inputs = [mf.tensor(a) for a in arrays]
    plan = Plan(layers, inputs)
    assert "workspace" in plan.text
    expected = arrays[0]
    for w in arrays[1:]:
        expected = np.maximum(expected @ w, 0)
    for _ in range(3):
        np.testing.assert_allclose(plan.run(*inputs), expected, rtol=1e-12)


@pytest.mark.usefixtures("joining")
def test_the_arena_is_as_large_as_two_live_buffers():
    inputs = [mf.ones(64, 64)] * 20
    (nbytes,) = re.findall(r"workspace = allocate\((\d+)\)", Plan(layers, inputs).text)
    assert int(nbytes) == 2 * 64 * 64 * 4  # the input and the output of a matmul
