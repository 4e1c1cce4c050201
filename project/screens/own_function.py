"""The chosen function: an example of the page, or one that is typed, with the shapes of its inputs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from ..views.formulas import OWN, FunctionChoice

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

TEXT, SHAPES = "(x @ w).relu().sum()", "x: n, 3; w: 3, 2"
WIDTHS = 0.8, 1.1, 0.8  # of the columns for the list, for a typed function, and for the shapes of its inputs
HELP = "Operators, reductions and views, as in x * x + sin(x) or (x @ w).softmax(1). It is parsed, never run as Python."
SHAPES_HELP = "A name, a colon and sizes; semicolons between inputs. n is the size that is chosen beside it."


def column_widths(prefix: str) -> tuple[float, ...]:
    """Return the widths of one column, or of three if the function is typed.

    An address that has a typed function, but no name of one, chooses it.
    """
    state, key, parameters = st.session_state, f"{prefix}_function", st.query_params
    if key not in state and key not in parameters and f"{prefix}_own" in parameters:
        state[key] = OWN
    return WIDTHS if state.get(key, parameters.get(key)) == OWN else (1.0,)


def choose_function(
    columns: "Sequence[DeltaGenerator]", prefix: str, names: Sequence[str], index: int = 0
) -> FunctionChoice:
    """Draw the list of examples into the first column, and the fields of a typed function into the others.

    Parameters
    ----------
    columns : sequence of DeltaGenerator
        One column, or three if the function is typed.
    prefix : str
        The beginning of the keys of the controls.
    names : sequence of str
        The names of the examples.
    index : int
        The example that is chosen at first.
    """
    options = [*names, OWN]
    name = columns[0].selectbox("a function", options, index, key=f"{prefix}_function", bind="query-params") or names[index]
    if name != OWN or len(columns) == 1:
        return FunctionChoice(name)
    text = columns[1].text_input("your function", TEXT, key=f"{prefix}_own", help=HELP, bind="query-params")
    shapes = columns[2].text_input("its inputs", SHAPES, key=f"{prefix}_shapes", help=SHAPES_HELP, bind="query-params")
    return FunctionChoice(name, text or "", shapes or "")
