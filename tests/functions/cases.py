"""The table of cases: for each function, calls of minifuse beside the same values by NumPy.

A case is `call = reference`, two expressions of the variables of `arrays`: tensors on the left, NumPy arrays on the right.
`mf` is minifuse with its `nn` and `F`, `np` NumPy, and `sp` scipy.special. A reference that starts with `~` has no gradient
to check, as at a kink. One that starts with `!` has a shape that depends on values, so a fused function refuses it. One that
starts with `@` is computed on the host, so a fused function refuses it, too; `@~` has no gradient to check.
"""

import re
from importlib import import_module
from typing import NamedTuple

import numpy as np

PATTERN = re.compile(r"([\w.]+): (.*?) = ([~!@]*)(.*)")
MODULES = (
    "elementwise", "methods", "joining", "shaping", "products", "statistics", "creation", "attributes", "scans",
    "special", "fft", "linalg", "indexing", "ordering", "neural", "activations", "losses",
)  # fmt: skip


class Case(NamedTuple):
    """A call of a function and its reference."""

    function: str
    call: str
    reference: str
    has_gradient: bool
    is_eager_only: bool
    is_on_host: bool


def parse(table: str) -> list[Case]:
    """Read a table: a line `name: call = reference` for each case."""
    cases = []
    for line in filter(None, map(str.strip, table.splitlines())):
        name, call, marks, reference = PATTERN.fullmatch(line).groups()
        cases.append(Case(name, call, reference, not {*marks} & {*"~!"}, "!" in marks, "@" in marks))
    return cases


def all_cases() -> list[Case]:
    """Return the cases of all modules, except calls of functions that the installed NumPy lacks."""
    cases = [case for module in MODULES for case in parse(import_module(f"tests.functions.{module}").CASES)]
    return [case for case in cases if all(hasattr(np, name) for name in re.findall(r"\bnp\.(\w+)", case.call))]


def arrays() -> dict[str, np.ndarray]:
    """Return the variables of the cases, as NumPy arrays.

    x, y : (3, 4), positive and negative    p : (3, 4), between 0 and 1    m : (3, 4), bool    v : (4,)
    a, b : (3, 4), integers                 i : (3,), indices below 4      s : (3, 3), symmetric positive definite
    t : (2, 3, 4)    img : (1, 4, 4, 5)
    """
    rng = np.random.default_rng(0)
    return {
        "x": rng.normal(size=(3, 4)),
        "y": rng.normal(size=(3, 4)),
        "p": rng.uniform(0.1, 0.9, (3, 4)),
        "m": rng.uniform(size=(3, 4)) < 0.5,
        "v": rng.normal(size=4),
        "a": rng.integers(-9, 9, (3, 4)),
        "b": rng.integers(1, 9, (3, 4)),
        "i": np.array([2, 0, 3]),
        "s": np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.25], [0.5, -0.25, 2.0]]),
        "t": rng.normal(size=(2, 3, 4)),
        "img": rng.normal(size=(1, 4, 4, 5)),
    }
