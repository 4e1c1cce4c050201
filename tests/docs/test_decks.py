"""The slides: a deck for each module, notes for the speaker, and figures that a page or an example has."""

import re

import pytest

from docs import make_decks
from docs.make_decks import DECKS, notes, slides, speaker_notes, to_html
from minifuse.course.registry import MODULES, TASKS
from tests.docs.pages import parse

FOUND = sorted(DECKS.glob("[0-9]*.md"))
each_deck = pytest.mark.parametrize("deck", [pytest.param(deck, id=deck.stem) for deck in FOUND])
NUMBER = re.compile(r"\d[\d,.]*\d|\d")
CODE = re.compile(r"```.*?```|`[^`]*`|<!--.*?-->|!\[.*?\]\(.*?\)", re.DOTALL)


def module_of(deck):
    return int(deck.stem[0])


def test_each_module_has_a_deck_with_its_name():
    names = [f"{module}-{name.lower().replace(' ', '-')}" for module, name in MODULES.items()]
    assert [deck.stem for deck in FOUND] == names


@each_deck
def test_a_deck_has_a_title_and_notes_on_each_slide(deck):
    found = slides(deck.read_text())
    assert 12 <= len(found) <= 20
    assert found[0].startswith(f"# Module {module_of(deck)}: {MODULES[module_of(deck)]}\n")
    for slide in found[1:]:
        assert slide.startswith("## "), slide.splitlines()[0]
    for slide in found:
        assert len(notes(slide)) > 30, slide.splitlines()[0]


@each_deck
def test_a_deck_names_each_task_of_its_first_lessons(deck):
    text = deck.read_text()
    tasks = [task.id for task in TASKS if task.module == module_of(deck)]
    named = [task for task in tasks if re.search(rf"\b{re.escape(task)}\b", text)]
    assert len(named) >= min(5, len(tasks))


@each_deck
def test_common_mistakes_are_those_that_checks_name(deck):
    (slide,) = [slide for slide in slides(deck.read_text()) if slide.startswith("## Common mistakes")]
    known = {mistake.name for task in TASKS if task.module == module_of(deck) for mistake in task.mistakes}
    shown = re.findall(r"^- (.+)$", slide, re.MULTILINE)
    assert len(shown) >= 5
    assert set(shown) <= known


@each_deck
def test_figures_in_sentences_are_on_a_page_of_the_module(deck):
    """Numbers in examples are compared when the examples run; those of two and more digits in sentences stand on a page."""
    pages = "".join(page.read_text() for page in sorted(DECKS.parent.glob(f"{module_of(deck)}.*.md")))
    shown = {number for number in NUMBER.findall(CODE.sub("", deck.read_text())) if len(number) > 1}
    ids = {task.id for task in TASKS}
    assert [number for number in sorted(shown - ids) if number not in pages] == []


@each_deck
def test_the_notes_of_a_deck_have_the_number_and_title_of_each_slide(deck):
    found = slides(deck.read_text())
    parts = re.split(r"^(\d+)\. (.+)\n", speaker_notes(deck), flags=re.MULTILINE)[1:]
    assert parts[::3] == [str(number + 1) for number in range(len(found))]
    assert parts[1::3] == [re.search(r"^#+ (.+)$", slide, re.MULTILINE)[1] for slide in found]
    assert [" ".join(part.split()) for part in parts[2::3]] == [notes(slide) for slide in found]


def test_a_missing_browser_is_named_with_its_package(monkeypatch, tmp_path):
    monkeypatch.setattr(make_decks, "find_chromium", lambda: None)
    with pytest.raises(SystemExit, match=r"install one of chromium, .* \(on Debian: apt install chromium\)"):
        make_decks.render(FOUND[0], tmp_path)


@each_deck
def test_a_deck_becomes_a_section_for_each_slide_without_notes(deck):
    html = to_html(deck)
    assert html.count("<section ") == len(slides(deck.read_text()))
    assert "<!--" not in html
    assert parse(deck)
