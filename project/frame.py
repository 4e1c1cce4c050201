"""The frame of a page: source, picture, facts, and downloads."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from .components.board import board
from .views.cited_facts import MEANINGS, Fact, Line, as_rows
from .views.picture import Picture

MARKS, ESCAPED = re.compile(r"([\\`*_{}\[\]()#+.!~$:<>|-])"), r"\\\1"  # characters with a meaning in Markdown


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


def show_page(shown: PageContent) -> str | None:
    """Draw the frame with its content, and return the link of the selected cell."""
    if shown.source:
        left, right = st.columns(2, gap="medium")
        with left:
            show_source(shown)
    else:
        right = st.container()
    with right:
        chosen = board(shown.picture, key=f"board-{shown.name}")
    show_facts(shown.facts)
    show_downloads(shown)
    return chosen


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
    """Draw the picture as a table, the buttons to download it, and the command."""
    rows = shown.picture.as_rows()
    with st.expander("The same as a table"):
        st.dataframe(rows, hide_index=True, width="stretch")
    with st.container(horizontal=True):
        st.download_button("SVG", shown.picture.as_svg(), f"{shown.name}.svg", "image/svg+xml", key=f"svg-{shown.name}")
        st.download_button("CSV", as_csv(rows), f"{shown.name}.csv", "text/csv", key=f"csv-{shown.name}")
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


def show_error(error: Exception) -> None:
    """Show an error in the input. The rest of the page is still drawn."""
    st.error(str(error))
