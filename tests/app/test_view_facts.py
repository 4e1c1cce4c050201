"""Facts and their truth labels."""

import pytest

from project.views.cited_facts import DERIVED, MEANINGS, MEASURED, THEORY, TRACED, Fact, as_rows


def test_unknown_truth_label_is_an_error():
    with pytest.raises(ValueError, match="loads: the truth label is 'GUESSED', expected one of TRACED, DERIVED"):
        Fact("loads", 3, "GUESSED")


def test_every_truth_label_has_a_meaning():
    assert set(MEANINGS) == {TRACED, DERIVED, MEASURED, THEORY}
    assert all(MEANINGS.values())


def test_facts_are_rows_of_text_in_their_order():
    rows = as_rows([Fact("shape", (2, 3), DERIVED, "why"), Fact("loads", 6, TRACED)])
    assert rows == [
        {"fact": "shape", "value": "(2, 3)", "truth": "DERIVED", "why": "why"},
        {"fact": "loads", "value": "6", "truth": "TRACED", "why": ""},
    ]
