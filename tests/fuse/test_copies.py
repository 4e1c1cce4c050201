"""Copies and pickles of fused functions."""

import copy
import pickle

import minifuse as mf


@mf.fuse
def doubled(x):
    return x * 2


def halved(x):
    return x / 2


def test_a_fused_function_is_its_own_copy():
    assert copy.deepcopy(doubled) is doubled
    assert copy.copy(doubled) is doubled


def test_a_copy_of_a_fused_module_has_parameters_of_its_own():
    linear, x = mf.nn.Linear(2, 2), mf.ones(1, 2)
    fused = mf.fuse(linear)
    before = fused(x)
    copied = copy.deepcopy({"f": fused})["f"]
    with mf.no_grad():
        linear.weight.zero_()
    assert copied(x).tolist() == before.tolist() != fused(x).tolist()


def test_a_fused_function_is_pickled_by_its_name():
    assert pickle.loads(pickle.dumps(doubled)) is doubled
    assert pickle.loads(pickle.dumps(mf.fuse(halved)))(mf.ones(2)).tolist() == [0.5, 0.5]
