"""The view of agreement: differences and first cells are those of the results."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.core.errors import MinifuseError
from project.views import agreement, race
from project.views.picture import OTHER, WRONG


@pytest.mark.parametrize("operation", race.OPERATIONS)
def test_backends_agree_with_numpy_within_the_tolerance(operation):
    found = agreement.compare(operation)
    assert list(found.results) == [race.NUMPY, *mf.backends()]
    chosen = race.OPERATIONS[operation]
    expected = np.asarray(chosen.numpys(*race.inputs(chosen, 1 << chosen.exponents[0]))).reshape(-1)
    assert np.array_equal(found.results[race.NUMPY], expected)
    assert WRONG not in {cell.kind for grid in agreement.grids(found) for cell in grid.cells}
    for name in mf.backends():
        assert found.difference(name) == np.abs(found.results[name].astype("f8") - expected).max()
    assert agreement.picture(found).sentence == agreement.sentence(found)


def changed(place, by, n=64):
    expected = np.linspace(1, 2, n, dtype=np.float32)
    result = expected.copy()
    result[place] += by
    return agreement.Agreement("a + b", {race.NUMPY: expected, "same": expected, "other": result})


@pytest.mark.parametrize(("place", "by", "kind"), [(0, 1e-6, OTHER), (40, 1e-6, OTHER), (63, 0.5, WRONG)])
def test_first_cell_that_differs_is_marked(place, by, kind):
    found = changed(place, by)
    verdicts, values = agreement.grids(found)
    told = {(c.row, c.column): c for c in verdicts.cells}
    assert told[1, 0].text == "0"
    assert told[1, 1].text == "none"
    assert told[2, 1].text == f"[{place}]"
    assert told[2, 1].kind == kind
    assert float(told[2, 0].text) == pytest.approx(by, rel=0.2)
    [marked] = [c for c in values.cells if c.kind]
    assert values.column_names[marked.column] == f"[{place}]"
    assert (marked.row, marked.kind) == (2, kind)
    assert ("disagree" in agreement.sentence(found)) == (kind == WRONG)


def test_equal_bits_are_said_to_be_equal():
    assert "have the same bits" in agreement.sentence(changed(3, 0))


def test_unknown_operation_is_an_error():
    with pytest.raises(MinifuseError, match="expected"):
        agreement.compare("a - b")
