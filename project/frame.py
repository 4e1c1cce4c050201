"""The frame of a page: title, controls in one row, the stage, and a drawer with facts."""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from mimetypes import guess_type
from typing import TYPE_CHECKING, Any

import streamlit as st

from .components.stage import NO_GESTURES, Gestures, stage
from .public import policy
from .views.cited_facts import MEANINGS, Fact, Line, as_rows
from .views.picture import Picture

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator
    from streamlit.elements.lib.mutable_expander_container import ExpanderContainer

MARKS, ESCAPED = re.compile(r"([\\`*_{}\[\]()#+.!~$:<>|-])"), r"\\\1"  # characters with a meaning in Markdown
FORMATS, CODE = re.compile(r"([\\`*_\[\]$<~])"), " " * 4  # those that format words; the beginning of a line of code
SPACE = "<div style='height: 0.4rem'></div>"  # of a label, above a button beside controls


@dataclass(frozen=True)
class PageContent:
    """The content of a page for one choice of its controls, computed by `project.views`."""

    name: str
    """Stem of the files that can be downloaded, such as "strides"."""
    picture: Picture
    facts: Sequence[Fact]
    source: Sequence[Line] = ()
    source_title: str = "The source that runs"
    command: str = ""
    """The command that prints the same facts."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Other files to download: name -> text."""


def show_head(title: str, text: str, *widths: float) -> "list[DeltaGenerator]":
    """Draw the title and one sentence, and return columns of these widths beside them for the controls.

    On a phone, the controls stand below the picture.
    """
    with st.container(key="head"):
        words, *columns = st.columns([1.5, *widths] if widths else 1, vertical_alignment="top")
    words.title(title, anchor=False)
    words.caption(text)
    return columns


def show_page(shown: PageContent, gestures: Gestures = NO_GESTURES) -> str | None:
    """Draw the frame with its content, and return the link of the selected cell, as `stage` does."""
    chosen = stage(shown.picture, f"board-{shown.name}", shown.source, shown.source_title, gestures)
    with drawer("Facts", "facts") as is_open:
        if is_open:
            show_facts(shown.facts)
            show_downloads(shown)
    return chosen


@contextmanager
def drawer(label: str, key: str) -> Iterator[bool]:
    """Draw an expander, and yield if it is open. What a closed one would show is neither computed nor sent.

    Tables and highlighted code load three megabytes of scripts in the browser, which most visits do not need.
    """
    place = st.expander(label, key=key, bind="query-params")
    with place:
        yield is_open(place)


def is_open(place: "ExpanderContainer") -> bool:
    """Return if an expander is open."""
    return bool(place.open)


def show_source(shown: PageContent) -> None:
    """Draw the lines of the source with the counts of each."""
    st.markdown(f"**{shown.source_title}**")
    kinds = list(dict.fromkeys(kind for line in shown.source for kind, _ in line.counts))
    head = "".join(f"{kind} " for kind in kinds)
    rows = [head] if kinds else []
    for line in shown.source:
        counts = dict(line.counts)
        rows.append("".join(f"{counts.get(kind, ''):>{len(kind)}} " for kind in kinds) + f" {line.number:>3}  {line.text}")
    st.code("\n".join(rows), language="python", wrap_lines=False)


def show_facts(found: Sequence[Fact]) -> None:
    """Draw the table of facts, and the meaning of its labels."""
    show_table(as_rows(list(found)))
    used = dict.fromkeys(fact.truth for fact in found)
    st.caption(" · ".join(f"{truth}: {MEANINGS[truth]}" for truth in used))


def show_table(rows: Sequence[Mapping[str, Any]]) -> None:
    """Draw a table whose texts wrap, and are not interpreted as Markdown."""
    st.table(
        [{name: MARKS.sub(ESCAPED, str(value)) for name, value in row.items()} for row in rows],
        hide_index=True,
        border="horizontal",
    )


def show_downloads(shown: PageContent) -> None:
    """Draw the picture as a table, the button to download it, and the command."""
    rows = shown.picture.as_rows()
    st.markdown("**The picture as a table**")
    st.dataframe(rows, hide_index=True, width="stretch")
    st.download_button("CSV", as_csv(rows), f"{shown.name}.csv", "text/csv", key=f"csv-{shown.name}")
    for name, text in shown.files.items():
        st.download_button(name, text, name, guess_type(name)[0] or "text/plain", key=f"file-{name}")
    if shown.command:
        st.code(shown.command, language="console", wrap_lines=True)
    st.caption("The address of this page is the whole of its state: copy it to show somebody the same picture.")


def as_csv(rows: list[dict[str, Any]]) -> str:
    """Convert a table to CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def show_verdict(place: "DeltaGenerator", text: str) -> None:
    """Say in one line how a run ended, in a place that was kept for it."""
    line = policy().clean_message(text).partition("\n")[0]
    place.caption(MARKS.sub(ESCAPED, line))


def show_error(error: Exception, instead: str = "") -> None:
    """Show an error in the input, and what the picture shows instead. The rest of the page is still drawn."""
    text = policy().clean_message(str(error))
    lines = f"{text}\n\nUntil the input is valid, the picture shows {instead}." if instead else text
    st.error("\n".join(line if line.startswith(CODE) else FORMATS.sub(ESCAPED, line) for line in lines.split("\n")))
