"""The view of result files of `minifuse equivalence`: what the command wrote is shown, and nothing else is read."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minifuse as mf
from minifuse.cli import equivalence as command
from minifuse.core.errors import MinifuseError
from project.views import equivalence
from project.views.picture import MAX_CELLS, MAX_NBYTES, OTHER, WRONG

pytest.importorskip("streamlit", reason='the app needs: pip install "minifuse[app]"')

LAYOUTS = ("plain", "flipped")
HOSTILE = [
    b"", b"{", b"[", b"null", b"3", b"[]", b"{}", b"[1]", b"[{}]", b"\xff\xfe", b"[" * 100_000, b"9" * 10_000,
    b'{"format": "minifuse equivalence 1"}', b'{"format": "minifuse equivalence 1", "cells": []}',
    b'{"format": "minifuse equivalence 1", "cells": {}}', b'{"format": "minifuse equivalence 2", "cells": [1]}',
    b" " * (equivalence.MAX_NBYTES + 1),
]  # fmt: skip


def sines(x):
    """A sum whose last bits depend on the order of its terms."""
    return x.sin().exp().sum(0)


def compared(program, layout, backend, **changes):
    """Compare a function with float64, with another function on one backend."""

    def function(x):
        return changes.get(x.backend, program)(x)

    return command.compare("program", function, command.make_operands(command.LAYOUTS[layout], 1, "float"), layout, backend)


@pytest.fixture(scope="module")
def cells():
    """Comparisons of a right program, and of one that is wrong on parallel in the second of its layouts."""
    names = mf.backends()
    good = [compared(sines, "flipped", name) for name in names]  # of which the last bits differ
    right = [compared(mf.exp, layout, name) for layout in LAYOUTS for name in names]
    wrong = [compared(mf.exp, "plain", name, parallel=lambda x: mf.exp(x) + (x > 1.5)) for name in names]
    return [*right, *(command.Cell("wrong", *list(vars(cell).values())[1:]) for cell in [*good, *wrong])]


@pytest.fixture(scope="module")
def read(cells):
    return equivalence.read_file(command.result_file(cells, mf.backends()))


def test_file_of_the_command_is_read_back(cells, read):
    assert len(read.cells) == len(cells)
    for found, cell in zip(read.cells, cells, strict=True):
        assert found == cell or (cell.failure and math.isnan(found.value) and found.first == cell.first)
    assert read.programs == ("program", "wrong")
    assert read.about["minifuse"] == mf.__version__
    assert set(read.about) == set(equivalence.ABOUT)
    assert equivalence.worst_program(read) == "wrong"


def test_first_element_that_differs_is_that_of_the_results():
    x = command.make_operands(command.LAYOUTS["plain"], 1, "float")[0]
    exact = np.exp(x.astype("f8")).astype("f4")
    for name in mf.backends():
        got = mf.exp(mf.tensor(x, backend=name)).numpy()
        first = compared(mf.exp, "plain", name).first
        differing = np.argwhere(got != exact)
        if first is not None and first.what == "output 0":
            assert first.index == tuple(differing[0])
            assert (first.expected, first.got) == (str(exact[first.index]), str(got[first.index]))
        else:
            assert not len(differing)


def test_a_wrong_cell_names_the_first_element_beyond_the_tolerance(cells):
    [wrong] = [cell for cell in cells if cell.failure]
    x = command.make_operands(command.LAYOUTS["plain"], 1, "float")[0]
    assert wrong.backend == "parallel"
    assert wrong.first.index == tuple(np.argwhere(x > 1.5)[0])
    assert str(wrong.first.index) in wrong.failure


@pytest.mark.parametrize("program", ["program", "wrong"])
def test_picture_has_each_error_and_the_first_element(read, cells, program):
    shown = equivalence.picture(read, program)
    grids = {grid.name: grid for grid in shown.grids}
    mine = {(cell.backend, cell.layout): cell for cell in cells if cell.operation == program}
    for name in ("value", "gradient"):
        grid = grids[name]
        assert len(grid.cells) == len(mine)
        for found in grid.cells:
            cell = mine[grid.row_names[found.row].removesuffix(" (simulated)"), grid.column_names[found.column]]
            error = getattr(cell, name)
            assert found.text == ("wrong" if cell.failure else command.format_deviation(error))
            assert found.kind == (WRONG if cell.failure else OTHER if error else "")
    rows = {}
    for found in grids["first"].cells:
        rows.setdefault(grids["first"].row_names[found.row].removesuffix(" (simulated)"), []).append(found.text)
    for backend, texts in rows.items():
        firsts = [cell for cell in mine.values() if cell.backend == backend and cell.first]
        expected = next((cell for cell in firsts if cell.failure), next(iter(firsts), None))
        assert texts == (
            ["none"]
            if expected is None
            else [
                expected.layout,
                f"{equivalence.short_name(expected.first.what)}{list(expected.first.index)}",
                expected.first.expected,
                expected.first.got,
            ]
        )
    numbers = {words: value for value, words in shown.numbers}
    assert numbers["wrong here"] == f"{program == 'wrong':d} of {len(mine)}"
    assert (f"parallel wrong in 1 of {len(mine)}" in shown.sentence) == (program == "wrong")
    assert (read.simulated == ()) or any("(simulated)" in name for name in grids["value"].row_names)


def test_what_is_not_in_a_file_is_said(read, cells):
    rows = [cell.as_dict() for cell in cells]
    for row in rows:
        del row["first"]
    old = equivalence.read_file(json.dumps(rows).replace("null", "NaN"))  # as --json printed it before
    facts = {fact.name: fact.value for fact in equivalence.facts(old, "wrong")}
    missing = [name for name, value in facts.items() if value == equivalence.NOT_IN_FILE]
    assert missing == [
        *equivalence.ABOUT.values(),
        "which backends were simulated",
        "the first element that differs",
        "the inputs",
    ]
    assert [grid.name for grid in equivalence.picture(old, "wrong").grids] == ["value", "gradient"]
    known = {fact.name: fact.value for fact in equivalence.facts(read, "wrong")}
    assert [name for name, value in known.items() if value == equivalence.NOT_IN_FILE] == ["the inputs"]
    assert known["wrong"] == 1


@pytest.mark.parametrize("content", HOSTILE, ids=range(len(HOSTILE)))
def test_other_files_are_refused(content):
    with pytest.raises(MinifuseError, match="file"):
        equivalence.read_file(content)


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 2**70), st.floats(), st.text(max_size=5), st.just("x" * 9999), st.just([[]]),
    st.dictionaries(st.text(max_size=3), st.none(), max_size=2), st.just("a\nb"), st.just("<script>"),
)  # fmt: skip
KEYS = ("operation", "layout", "backend", "value", "gradient", "failure", "first")


@settings(derandomize=True, max_examples=150, deadline=None)
@given(st.sampled_from(KEYS), VALUES)
def test_changed_cells_are_refused_or_drawn(key, value):
    row = {"operation": "a", "layout": "b", "backend": "c", "value": 0.0, "gradient": 1e-7, "failure": "", "first": None}
    content = json.dumps([row | {key: value}])
    if found := read_or_refuse(content):
        program = found.programs[0]
        assert equivalence.picture(found, program).grids
        assert equivalence.facts(found, program)


def read_or_refuse(content):
    """Return the content of a file, or None if it is refused in few words that name the cell."""
    try:
        return equivalence.read_file(content)
    except MinifuseError as error:
        said = str(error)
    assert "cell 0" in said
    assert len(said) < 300
    return None


def test_large_files_show_a_part_and_say_so():
    row = {"operation": "a", "value": 0.1, "gradient": 0.1, "failure": ""}
    rows = [row | {"layout": f"layout {k}", "backend": f"b{n}"} for k in range(150) for n in range(100)]
    found = equivalence.read_file(json.dumps(rows))
    shown = equivalence.picture(found, "a")
    assert sum(len(grid.cells) for grid in shown.grids) <= MAX_CELLS
    assert len(json.dumps(shown.as_data())) <= MAX_NBYTES
    assert f"Shown: the first {equivalence.SHOWN}." in shown.sentence
    with pytest.raises(MinifuseError, match="20,000"):
        equivalence.read_file(json.dumps([row | {"layout": str(k), "backend": "b"} for k in range(20_001)]))


def test_twice_the_same_comparison_is_refused(cells):
    with pytest.raises(MinifuseError, match="two cells"):
        equivalence.read_file(json.dumps([cells[0].as_dict()] * 2))


# The page.


def app():
    from project.screens.race import page

    page()


@pytest.fixture
def page():
    testing = pytest.importorskip("streamlit.testing.v1")
    at = testing.AppTest.from_function(app, default_timeout=60)
    at.session_state["race_file"] = "an equivalence file"
    return at


def test_page_opens_an_uploaded_file(page, cells):
    at = page.run()
    assert not at.exception
    assert not at.error
    at.session_state["race_equivalence_text"] = command.result_file(cells, mf.backends())
    at.run()
    assert not at.exception
    assert at.selectbox(key="race_program").value == "wrong"
    assert any("as the file has it" in str(table.value) for table in at.table)
    at.selectbox(key="race_program").set_value("program").run()
    assert not at.exception
    assert not at.error


def test_page_shows_the_error_of_a_file(page):
    page.session_state["race_equivalence_text"] = "[1]"
    at = page.run()
    assert not at.exception
    assert "cell 0 of the file" in at.error[0].value
