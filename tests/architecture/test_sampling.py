"""`--sample` keeps each value of each parameter, and a part of the cases of tests marked `sampled(n)`."""

from types import SimpleNamespace

import pytest

from .. import conftest


class Item:
    """A case of a test, whose parameters have their ids in brackets, separated by `-`."""

    def __init__(self, nodeid, n=None, **params):
        each = {"each": next(iter(params))} if params else {}
        self.nodeid, self.marker, self.added = nodeid, pytest.mark.sampled(n, **each).mark if n else None, []
        self.callspec = SimpleNamespace(params=params, _idlist=nodeid.partition("[")[2][:-1].split("-"))

    def get_closest_marker(self, name):
        return self.marker if name == "sampled" else None

    def add_marker(self, name):
        self.added.append(name)


def sampled(items, is_asked=True):
    """The names of the items that are left, and of those that pytest is told about."""
    left, deselected = list(items), []
    hook = SimpleNamespace(pytest_deselected=lambda items: deselected.extend(items))
    conftest.pytest_collection_modifyitems(SimpleNamespace(getoption=lambda name: is_asked, hook=hook), left)
    return [x.nodeid for x in left], [x.nodeid for x in deselected]


MARKED = [Item(f"a.py::test_x[{k}]", 3) for k in range(10)]
ITEMS = [*MARKED, Item("a.py::test_y[1]", 3), *(Item(f"a.py::test_z[{k}]") for k in range(4))]


def test_a_part_of_the_cases_of_each_marked_test_is_left():
    left, deselected = sampled(ITEMS)
    assert sum("test_x" in name for name in left) == 4
    assert [name for name in left if "test_x" not in name] == ["a.py::test_y[1]", *(f"a.py::test_z[{k}]" for k in range(4))]
    assert sorted(left + deselected) == sorted(x.nodeid for x in ITEMS)
    assert sampled(ITEMS) == (left, deselected)


def test_a_case_of_each_value_of_a_parameter_is_left():
    items = [Item(f"a.py::test_x[{k}{name}]", 4, name=name) for k in range(6) for name in "abc"]
    left, _ = sampled(items)
    assert sorted(name[-2] for name in left) == [*"aabbcc"]
    assert len({name[-3] for name in left}) > 1


def product(n=None):
    """The cases of a test with three parameters of 6, 3 and 2 values."""
    return [Item(f"a.py::test_x[{a}-{b}-{c}]", n) for a in "abcdef" for b in "xyz" for c in "01"]


def test_of_several_parameters_each_value_is_left_once():
    left, _ = sampled(product())
    ids = [name[-6:-1].split("-") for name in left]
    assert [{*values} for values in zip(*ids, strict=True)] == [{*"abcdef"}, {*"xyz"}, {*"01"}]
    assert len(left) == 6
    assert sampled(product())[0] == left


def test_each_value_is_left_on_each_backend():
    items = [Item(f"a.py::test_x[{a}-{b}-{c}]") for a in "abcdef" for b in ("python", "cuda") for c in "01"]
    left, _ = sampled(items)
    assert len({name.rpartition("-")[0] for name in left}) == 12
    assert len(left) < len(items)


def test_a_product_is_marked_so_that_all_of_it_runs_in_make_thorough():
    for is_asked in (False, True):
        cases, others = product(), [Item(f"a.py::test_y[{k}]") for k in range(3)]
        sampled([*cases, *others], is_asked)
        assert all(case.added == ["sampled"] for case in cases)
        assert not any(other.added for other in others)


def test_one_case_of_one_keeps_all_combinations():
    assert len(sampled(product(1))[0]) == len(product())


def test_fewer_cases_of_a_marked_product_are_left():
    assert 0 < len(sampled(product(12))[0]) <= 3


def test_tests_of_a_file_keep_the_same_cases():
    left, _ = sampled([Item(f"a.py::{test}[{k}]", 3) for test in ("test_x", "test_y") for k in range(10)])
    assert [name[-2] for name in left if "test_x" in name] == [name[-2] for name in left if "test_y" in name]


def test_without_the_option_all_are_left():
    assert sampled(ITEMS, is_asked=False) == ([x.nodeid for x in ITEMS], [])


def test_a_slow_case_is_drawn_the_more_seldom_the_slower_it_is():
    names = [f"a.py::test_x[{k}]" for k in range(2000)]
    times = [conftest.DRAWN_S * n for n in (1, 2, 10, 100)]
    drawn = [sum(conftest.is_drawn(name, s, conftest.DRAWN_S) for name in names) for s in times]
    assert drawn[0] == 2000
    assert drawn[1:] == pytest.approx([1000, 200, 20], rel=0.5)


def test_the_list_of_slow_cases_is_sorted_and_has_no_fast_ones():
    slow = conftest.read_slow()
    assert [*slow] == sorted(slow)
    assert min(slow.values()) >= conftest.SLOW_S
