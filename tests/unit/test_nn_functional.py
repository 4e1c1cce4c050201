"""nn: every public name exists in PyTorch's module of that name."""

import inspect
import re

import pytest

import minifuse as mf
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
    public = {name for name in vars(F) if not name.startswith(("_", "@"))}  # pytest adds @pytest_ar to an installed plugin
    assert set(F.__all__) <= public
    assert {name for name in public if not name.endswith("_")} <= {*F.__all__, *lazy.exported()}


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


ANTIALIASED = [  # results of PyTorch 2.13
    ("bilinear", {"size": (2, 3)}, [7.2, 13.0, 21.6, 50.2, 68.0, 88.6]),
    ("bilinear", {"scale_factor": 0.6}, [8.7551, 18.1587]),
    ("bicubic", {"size": (2, 3)}, [4.2188, 9.7492, 18.5728, 50.4896, 70.4876, 93.7787]),
    (
        "bicubic",
        {"size": (2, 6), "align_corners": True},
        [13.9881, 16.3346, 20.8566, 25.6484, 31.4888, 38.2718, 56.5387, 62.6774, 74.0992, 84.8562, 96.9434, 110.1273],
    ),
]


@pytest.mark.parametrize(("mode", "options", "expected"), ANTIALIASED)
def test_interpolation_without_aliasing_is_as_in_pytorch(mode, options, expected):
    x = mf.arange(12, dtype="float64", backend="python").reshape(1, 1, 3, 4).square().requires_grad_()
    y = mf.nn.functional.interpolate(x, mode=mode, antialias=True, **options)
    assert y.detach().reshape(-1).tolist() == pytest.approx(expected, abs=1e-4)
    y.sum().backward()
    assert x.grad.sum().item() == pytest.approx(y.numel())  # the weights of each point add up to 1


def test_interpolation_without_aliasing_has_two_modes():
    with pytest.raises(ValueError, match="expected bilinear or bicubic"):
        mf.nn.functional.interpolate(mf.ones(1, 1, 4, 4), 2, antialias=True)
