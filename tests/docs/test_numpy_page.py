"""The page on NumPy's functions shows the tables as they are."""

import inspect

import numpy as np
import pytest

from docs.make_numpy import BEGIN, END, PAGE, SECTIONS, entries, names, page, row
from minifuse.core.operators import Operator
from minifuse.ir.numpy_api import FUNCTIONS, UFUNCS, reductions
from minifuse.ir.numpy_api.table import implements


@pytest.fixture
def convolve():
    """An entry that is in the table as long as the test runs."""

    @implements(np.convolve)
    def convolve(a, axis=None):
        """The one | in the middle."""

    convolve.__module__ = reductions.__name__
    reductions.convolve = convolve
    yield convolve
    del FUNCTIONS[np.convolve], reductions.convolve


@pytest.mark.skipif(not hasattr(np, "cumulative_sum"), reason="the page shows what NumPy 2.1 and newer have")
def test_the_page_shows_the_tables_as_they_are():
    text = PAGE.read_text(encoding="utf-8")
    assert BEGIN in text
    assert END in text
    assert page(text) == text, "docs/guide/numpy.md is behind the tables; run: python docs/make_numpy.py"


def test_a_new_entry_makes_the_page_differ(convolve):
    assert row(convolve) == "| `np.convolve` | `a, axis` | The one \\| in the middle |\n"
    text = PAGE.read_text(encoding="utf-8")
    assert row(convolve) not in text
    assert row(convolve) in page(text)


def test_every_entry_has_a_line():
    shown = {entry for module in SECTIONS.values() for entry in entries(module)}
    composed = {entry for entry in UFUNCS.values() if inspect.isfunction(entry) and not isinstance(entry, Operator)}
    assert shown >= set(FUNCTIONS.values())
    assert {entry.__name__ for entry in composed - shown} == {"matmul"}  # it stands among the operators
    assert sum(len(names(entry)) for entry in shown) == len(FUNCTIONS) + sum(entry in shown for entry in UFUNCS.values())
