"""nn: every public name exists in PyTorch's module of that name."""

import inspect
import re

import minifuse.nn.functional as F  # noqa: N812  # the name that people give it
from minifuse import nn
from minifuse.core.operators import Operator
from minifuse.nn import lazy

OTHERS = {"summary"}  # a function, and none of arrays


def test_it_holds_every_function_of_nn_and_nothing_else():
    values = {name: getattr(nn, name) for name in nn.__all__}
    functions = {name for name, value in values.items() if inspect.isfunction(value) or isinstance(value, Operator)}
    assert set(F.__all__) == functions - OTHERS
    assert all(getattr(F, name) is getattr(nn, name) for name in F.__all__)
    public = {name for name in vars(F) if not name.startswith("_")}
    assert public - {*lazy.exported()} - {name for name in public if name.endswith("_")} == set(F.__all__)


def test_every_name_of_nn_is_explained():
    for name in nn.__all__:
        text = inspect.getdoc(getattr(nn, name))
        assert text, name
        if inspect.isfunction(getattr(nn, name)):
            assert ">>>" in text, name


def test_every_class_is_listed_by_topic():
    listed = set(re.findall(r"\w+", nn.__doc__))
    names = [*nn.__all__, *lazy.exported()]
    classes = {name for name in names if inspect.isclass(getattr(nn, name))}
    families = {re.sub(r"\d", "1", name) for name in listed}  # ReflectionPad1d stands for those of two and three dims, too
    unlisted = {name for name in classes if re.sub(r"\d", "1", name) not in families}
    assert not unlisted, f"not in the docstring of mf.nn: {sorted(unlisted)}"
    assert {"init", "functional", "summary"} <= listed
