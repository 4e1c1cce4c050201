"""optim.Adam: steps counted in fused functions, and AdamW's decay."""

import re

import numpy as np
import pytest

import minifuse as mf
from minifuse.optim import Adam, AdamW


def params(count):
    return [mf.tensor(np.sin(np.arange(k + 2) + k), "float32", requires_grad=True) for k in range(count)]


def step_of(optimizer, chosen):
    """A step in which only some parameters have a gradient."""

    def step():
        optimizer.zero_grad()
        for p in chosen:
            (p * p).sum().backward()
        optimizer.step()

    return step


def counts(optimizer, ps):
    return [optimizer.state.get(p, {}).get("step", 0) for p in ps]


def test_parameters_that_took_equally_many_steps_have_one_count():
    ps = params(5)
    optimizer = Adam(ps, lr=0.1)
    step = mf.fuse(step_of(optimizer, ps))
    for k in range(4):
        step()
        assert step.stats().captures == min(k + 1, 2)  # once without gradients from before, once with them
    assert counts(optimizer, ps) == [4] * 5
    assert len(re.findall(r"count\d+\(\)", step.plan().text)) == 1


@pytest.mark.parametrize("kind", [Adam, AdamW])
def test_counts_that_part_between_calls(kind):
    """Steps that miss parameters come between the calls of a function that was captured when all had one count."""
    worlds = []
    for is_fused in (False, True):
        ps = params(3)
        optimizer = kind(ps, lr=0.1, weight_decay=0.1)
        steps = {name: step_of(optimizer, chosen) for name, chosen in (("all", ps), ("some", ps[1:]), ("last", ps[2:]))}
        for k, name in enumerate(["all", "all", "some", "all", "last", "some", "all", "all", "last", "all"]):
            if is_fused and k % 4 != 3:  # and some unfused
                fused = steps[f"{name} fused"] = steps.get(f"{name} fused") or mf.fuse(steps[name])
                fused()
            else:
                steps[name]()
        worlds.append([counts(optimizer, ps), *[p.detach().numpy() for p in ps]])
    (counted, *eager), (again, *fused) = worlds
    assert counted == again == [6, 8, 10]
    for x, y in zip(eager, fused, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5)


def test_a_new_pattern_of_counts_is_captured_once():
    ps = params(2)
    optimizer = Adam(ps, lr=0.1)
    both = mf.fuse(step_of(optimizer, ps))
    both()
    both()
    known = both.stats().captures
    step_of(optimizer, ps[1:])()
    ps[0].grad = mf.ones(2)
    for _ in range(4):  # the counts differ by one from now on
        both()
    assert both.stats().captures == known + 1
    assert counts(optimizer, ps) == [6, 7]


def test_a_loaded_state_brings_its_counts():
    ps = params(2)
    optimizer = Adam(ps, lr=0.1)
    both = mf.fuse(step_of(optimizer, ps))
    both()
    state = optimizer.state_dict()
    state["state"][1] = {**state["state"][1], "step": 7}
    optimizer.load_state_dict(state)
    both()
    assert counts(optimizer, ps) == [2, 8]


def test_weight_decay_beside_the_gradient_shrinks_whatever_the_gradient():
    large, small = (mf.tensor([2.0], requires_grad=True) for _ in range(2))
    optimizer = AdamW([large, small], lr=0.1, weight_decay=0.5, eps=0)
    large.grad, small.grad = mf.tensor([1e3]), mf.tensor([1e-3])
    optimizer.step()
    assert large.item() == pytest.approx(2 * 0.95 - 0.1)
    assert small.item() == pytest.approx(large.item())
    assert AdamW([large]).param_groups[0]["weight_decay"] == 0.01


def test_errors_name_the_class():
    with pytest.raises(ValueError, match=r"AdamW: got betas=\(0.9, 1.0\)"):
        AdamW(params(1), betas=(0.9, 1.0))
