"""The examples in the docstrings of the package are right."""

import doctest
from importlib import import_module

import pytest

from tests.sources import modules


@pytest.mark.parametrize("name", modules())
def test_the_examples_of_a_module_are_right(name, capsys):
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed, _ = doctest.testmod(import_module(name), optionflags=flags, verbose=False)
    assert not failed, capsys.readouterr().out
