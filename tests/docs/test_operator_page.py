"""The page on operators is up to date, and each formula on it computes the same values as the entry."""

import math

import numpy as np
import pytest

from docs.make_operators import (
    BEGIN,
    END,
    PAGE,
    RULES,
    Symbol,
    definition,
    format_formula,
    input_symbols,
    page,
    python_forms,
    row,
    vjp_formulas,
)
from minifuse.core.operators import TABLE, exp, operator
from minifuse.core.traceable import Traceable
from tests.docs.pages import parse

POINTS = [(0.75, 2.5, 1.25), (-0.75, 0.5, 2.0), (2.0, 2.0, -3.0)]


@pytest.fixture
def softplus():
    """An operator that is in the table only during the test."""

    @operator(lambda g, y, x: (g * (1 - exp(-y)),), result="float")
    def softplus(x):
        """log(1 + exp(x))."""
        return TABLE["log1p"](exp(x))

    yield softplus
    del TABLE["softplus"]
    del Traceable.softplus


def evaluated(text, entry, values, **more):
    """Evaluate a formula of the page."""
    names = [x.function for x in input_symbols(entry)]
    return eval(text, {**TABLE, "nan": math.nan, **dict(zip(names, values, strict=True)), **more})


def test_the_page_shows_the_table_as_it_is():
    text = PAGE.read_text(encoding="utf-8")
    assert BEGIN in text
    assert END in text
    assert page(text) == text, "docs/guide/operators.md is behind the operator table; run: python docs/make_operators.py"


def test_every_operator_has_one_line():
    cells = [token.content for token in parse(PAGE) if token.type == "inline"]
    for name in TABLE:
        assert cells.count(name) == 1, name


def test_a_new_operator_makes_the_page_differ(softplus):
    assert row(softplus) in page(PAGE.read_text(encoding="utf-8"))
    assert row(softplus) not in PAGE.read_text(encoding="utf-8")
    assert row(softplus).split(" | ")[2:] == [
        "`x.softplus()`, `mf.softplus(x)`",
        "any → float",
        "`log1p(exp(x))`",
        "`g * (1 - exp(-y))` |\n",
    ]


@pytest.mark.parametrize("entry", TABLE.values(), ids=str)
def test_every_operator_can_be_written(entry):
    assert python_forms(entry) or entry.name == "detach"


@pytest.mark.parametrize("entry", [entry for entry in TABLE.values() if entry.vjp], ids=str)
def test_the_formula_of_a_derivative_computes_it(entry):
    for point in POINTS:
        values = [point[0] > 0, *point][: entry.arity] if entry.name == "where" else point[: entry.arity]
        values = [np.float64(x) if isinstance(x, float) else x for x in values]  # 0.0 to a negative power is inf, no error
        with np.errstate(all="ignore"):
            y = entry.body(*values)
            for text, right in zip(vjp_formulas(entry), entry.vjp(3.0, y, *values), strict=True):
                assert (text is None) is (right is None)
                if text is not None:
                    found = evaluated(text, entry, values, g=3.0, y=y)
                    assert found == pytest.approx(float(right), rel=1e-6, nan_ok=True), text


@pytest.mark.parametrize("entry", [entry for entry in TABLE.values() if not entry.is_primitive], ids=str)
def test_the_formula_of_a_body_computes_it(entry):
    text = format_formula(entry.body(*input_symbols(entry)))[0]
    for point in POINTS:
        values = [abs(x) for x in point[: entry.arity]]
        assert evaluated(text, entry, values) == pytest.approx(float(entry.body(*values)), rel=1e-6), text


@pytest.mark.parametrize(
    "text",
    [
        "a - (b - c)",
        "a - b - c",
        "a / (b * c)",
        "a * b / c",
        "(a + b) * c",
        "-(a + b)",
        "-a * b",
        "(a == b) == c",
        "(a ** b) ** c",
        "(a == 0) & (b >= 1)",
        "a & b | c",
        "a & (b | c)",
        "~(a & b)",
        "a // b % c",
        "a // (b % c)",
        "log(a + b) * c",
    ],
)
def test_parentheses_appear_only_where_needed(text):
    assert format_formula(eval(text, {**TABLE, **{name: Symbol(name) for name in "abc"}}))[0] == text


def test_a_long_body_is_described_by_its_operators():
    assert definition(TABLE["clip"]) == "several `gt`, `lt`, `ne`, `where`"
    assert definition(TABLE["relu"]) == "`maximum(x, 0)`"
    assert definition(TABLE["exp"]) == "primitive"


def test_described_derivatives_belong_to_operators():
    assert RULES.keys() <= TABLE.keys()
