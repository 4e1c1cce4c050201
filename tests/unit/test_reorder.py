"""compiler.reorder: steps that free memory run early, and no step runs before one that it depends on."""

from itertools import combinations, pairwise
from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import minifuse as mf
from minifuse.compiler import reorder
from minifuse.compiler.reorder import reorder_for_memory
from minifuse.ir.steps import NO_BUFFER

ARGUMENTS, BUFFERS = 2, 6  # the first slots are arguments of the call, which are never freed
WHOLE = None  # a layout: the order does not depend on it


def step(outputs, inputs):
    stored, read = [(slot, WHOLE) for slot in outputs], [(slot, WHOLE) for slot in inputs]
    return SimpleNamespace(kernel=None, outputs=stored, buffer_views=lambda: [*stored, *read])


slots = st.sets(st.integers(0, ARGUMENTS + BUFFERS - 1), max_size=3)
pairs = st.lists(st.tuples(slots.filter(bool), slots), max_size=12)
bytes_of = st.lists(st.integers(1, 4), min_size=BUFFERS, max_size=BUFFERS)


def program(pairs):
    """Return steps that read arguments, and buffers that earlier steps have stored."""
    steps, there = [], {*range(ARGUMENTS)}
    for outputs, inputs in pairs:
        steps.append(step(outputs, inputs & there))
        there |= outputs
    return steps


def touched(of):
    return {slot for slot, _ in of.buffer_views()}


def stored(of):
    return {slot for slot, _ in of.outputs}


def depend(a, b):
    return stored(a) & touched(b) or stored(b) & touched(a)


def frees(k, rest, held, steps, sizes, results):
    if not stored(steps[k]) <= {*sizes}:
        return False
    last = touched(steps[k]) - {slot for n in rest if n != k for slot in touched(steps[n])} - results
    return sum(sizes.get(slot, 0) for slot in last) > sum(sizes[slot] for slot in stored(steps[k]) - held)


@given(st.builds(program, pairs), bytes_of, slots)
def test_dependent_steps_stay_in_order_and_freeing_steps_do_not_wait(steps, nbytes, results):
    sizes = dict(enumerate(nbytes, ARGUMENTS))
    order = reorder_for_memory(steps, sizes, results)
    assert sorted(order) == [*range(len(steps))]
    place = {k: n for n, k in enumerate(order)}
    for a, b in combinations(range(len(steps)), 2):
        if depend(steps[a], steps[b]):
            assert place[a] < place[b]
    rest, held = {*order}, set()
    for now, coming in pairwise([*order, None]):
        rest.discard(now)
        held |= stored(steps[now])
        may = [n for n in rest if not any(depend(steps[m], steps[n]) for m in rest if m < n)]
        free = [n for n in may if frees(n, rest, held, steps, sizes, results)]
        assert coming in free or not free


def test_iotas_have_no_buffer_and_no_dependencies():
    assert reorder_for_memory(
        [step([3], [NO_BUFFER]), step([4], [NO_BUFFER, 3]), step([5], [NO_BUFFER])], {3: 8, 4: 8, 5: 8}, ()
    ) == [0, 1, 2]


def test_stores_in_arguments_stay_in_place():
    steps = [step([2], [0]), step([3], [0]), step([1], [2]), step([4], [3])]
    assert reorder_for_memory(steps, {2: 8, 3: 8, 4: 4}, {4}) == [0, 1, 3, 2]


def layers(x, *weights):
    """Return the loss of a network with one layer per weight, and the gradient of each weight, in order."""
    y = x
    for w in weights:
        w.grad = None
        y = mf.tanh(y @ w)
    (y * y).sum().backward()
    return tuple(w.grad for w in weights)


def test_the_gradient_of_a_weight_runs_right_after_its_inputs(monkeypatch):
    random = np.random.default_rng(3)
    x = mf.tensor(random.standard_normal((256, 16)))
    weights = [mf.tensor(random.standard_normal((16, 16)), requires_grad=True) for _ in range(6)]
    now = mf.fuse(layers)
    peak, found = now.explain(x, *weights).forward.peak, now(x, *weights)
    monkeypatch.setattr(reorder, "reorder_for_memory", lambda steps, sizes, results: [*range(len(steps))])
    before = mf.fuse(lambda *given: layers(*given))
    assert peak < before.explain(x, *weights).forward.peak - 2 * 8 * x.size
    for a, b in zip(found, before(x, *weights), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_the_fusion_log_names_steps_after_reordering():
    x, w = mf.rand(64, 8), mf.rand(8, 8, requires_grad=True)
    told = mf.fuse(layers).explain(x, w, w)
    made = {step.launch: step.text for step in told.steps if step.kind == "made"}
    assert sorted(made) == [*range(len(made))]
    assert all(text.startswith(f"launch{k} is complete") for k, text in made.items())
