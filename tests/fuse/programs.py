"""Programs as source text: one text runs on tensors, inside `mf.fuse`, and with NumPy in float64. `growth` makes them."""

from dataclasses import dataclass

import numpy as np

from minifuse.testing import Recipe

from .judge import Judged


@dataclass(frozen=True)
class Argument:
    """A tensor over one of the bases of a program."""

    base: int
    recipe: Recipe
    requires_grad: bool = False


@dataclass(frozen=True)
class Program:
    """A function as text, and what it is called with.

    Attributes
    ----------
    bases : tuple of (shape, dtype)
        Memory that arguments look at; two arguments over one base may overlap.
    arguments : tuple of Argument
        x0, x1, ...
    numbers : tuple of numbers
        n0, n1, ...: further arguments.
    outside : tuple of Argument or number
        g0, g1, ...: what the function reads from outside.
    lines : tuple of str
        Of the body; the last one returns.
    """

    bases: tuple = ()
    arguments: tuple = ()
    numbers: tuple = ()
    outside: tuple = ()
    lines: tuple = ()
    inner: tuple = ()

    @property
    def text(self):
        """The program as source."""
        names = [f"x{k}" for k in range(len(self.arguments))] + [f"n{k}" for k in range(len(self.numbers))]
        return "\n".join([*self.inner, f"def program({', '.join(names)}):", *[f"    {line}" for line in self.lines]])

    def __repr__(self):
        about = [f"# base{k}: {dtype} {shape}" for k, (shape, dtype) in enumerate(self.bases)]
        about += [f"# x{k} = {show(x)}" for k, x in enumerate(self.arguments)]
        about += [f"# n{k} = {n!r}" for k, n in enumerate(self.numbers)]
        about += [f"# g{k} = {show(x) if isinstance(x, Argument) else repr(x)}" for k, x in enumerate(self.outside)]
        return "\n".join(["", *about, self.text])

    @property
    def writes(self):
        """Whether something is changed in place."""
        return any(not line.split("(")[0].split(" = ")[0].isidentifier() for line in self.lines[:-1]) or "+=" in "".join(
            self.inner
        )

    def data(self, seed):
        """Arrays for the bases, of few digits."""
        random = np.random.default_rng(seed)
        return [numbers_of(random, shape, dtype) for shape, dtype in self.bases]

    def function(self, names):
        """The text as a function, with names such as `mf`."""
        scope = {"__name__": "fuzzed", **names}
        exec(compile(self.text, "<program>", "exec"), scope)
        return scope["program"]


def show(x):
    return repr(x.recipe).replace("x", f"base{x.base}", 1) + ", requires_grad" * x.requires_grad


def numbers_of(random, shape, dtype):
    """Numbers of few digits: multiples of a quarter, or small integers."""
    if dtype == "bool":
        return random.random(shape) < 0.5
    if dtype.startswith("int"):
        return random.integers(-4, 5, shape).astype(dtype)
    return (random.integers(-8, 9, shape) / 4).astype(dtype)


def bound(program, judge, bases):
    """The names of a program's arguments, over the bases of a judge."""
    see = lambda x: Judged(x.recipe(bases[x.base].a), judge)  # noqa: E731
    named = {f"x{k}": see(x) for k, x in enumerate(program.arguments)}
    named |= {f"n{k}": n for k, n in enumerate(program.numbers)}
    return named | {f"g{k}": see(x) if isinstance(x, Argument) else x for k, x in enumerate(program.outside)}
