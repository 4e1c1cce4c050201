"""Write the tables of docs/guide/numpy.md, from the tables of minifuse/ir/numpy_api and minifuse/functions/numpy_names.py.

    python docs/make_numpy.py

The description of an entry is its docstring. Only the text between the two markers is replaced.
`tests/docs/test_numpy_page.py` fails if the page and the tables differ.
"""

import inspect
from pathlib import Path
from typing import Any

from minifuse.core.operators import Operator
from minifuse.functions import load, nan_reductions, numpy_names
from minifuse.ir.numpy_api import (
    FUNCTIONS,
    UFUNCS,
    elementwise,
    number_parts,
    order,
    reductions,
    shaping,
    trigonometry,
    ufuncs,
)
from minifuse.ir.numpy_api.order import AT_OPERATORS
from minifuse.ir.numpy_api.protocol import name_of
from minifuse.ir.numpy_api.reductions import REDUCTIONS

PAGE = Path(__file__).parent / "guide" / "numpy.md"
BEGIN, END = "<!-- made by docs/make_numpy.py -->\n", "<!-- end of what is made -->\n"
SECTIONS = {
    "Reductions": reductions,
    "Elementwise functions and products": elementwise,
    "Shapes and new arrays": shaping,
    "Order and indices": order,
    "Composed ufuncs": ufuncs,
    "Signs, angles and hyperbolic functions": trigonometry,
    "Parts of numbers": number_parts,
    "Functions of the library": numpy_names,
    "Reductions without NaN": nan_reductions,
}


load()  # adds the entries of numpy_names


def names(entry: Any) -> list[str]:
    """Return all NumPy names of an entry."""
    return [f"np.{name_of(function)}" for function, found in [*FUNCTIONS.items(), *UFUNCS.items()] if found is entry]


def entries(module: Any) -> list[Any]:
    """Return the entries defined in a module, in order."""
    return [entry for entry in dict.fromkeys([*FUNCTIONS.values(), *UFUNCS.values()]) if is_defined_in(module, entry)]


def is_defined_in(module: Any, entry: Any) -> bool:
    """Return whether an entry is a function of a module."""
    return inspect.isfunction(entry) and entry.__module__ == module.__name__


def row(entry: Any) -> str:
    """Return the table row of one entry."""
    parameters = ", ".join(name for name in inspect.signature(entry).parameters if name != "newshape")
    text = inspect.getdoc(entry).rstrip(".").replace("|", r"\|")
    return f"| {', '.join(f'`{name}`' for name in names(entry))} | `{parameters}` | {text} |\n"


def operators() -> str:
    """Return the ufuncs that are operators of the table, as one line."""
    found = [ufunc.__name__ for ufunc, entry in UFUNCS.items() if isinstance(entry, Operator)]
    return ", ".join(f"`np.{name}`" for name in sorted({*found, "matmul", "positive"}))


def tables() -> str:
    """Return all tables, each under its heading."""
    reduce = ", ".join(f"`np.{ufunc.__name__}`" for ufunc in REDUCTIONS)
    text = f"### Ufuncs that are operators\n\n{operators()}.\n\n"
    text += f"{reduce} have the method `reduce`; all ufuncs of two operands have `outer`.\n"
    text += f"{', '.join(f'`np.{ufunc.__name__}`' for ufunc in AT_OPERATORS)} have the method `at`.\n"
    for heading, module in SECTIONS.items():
        rows = "".join(map(row, entries(module)))
        text += f"\n### {heading}\n\n| NumPy | parameters | here |\n|---|---|---|\n{rows}"
    return text


def page(text: str) -> str:
    """Return the text of the page with up-to-date tables."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + "\n" + tables() + "\n" + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
