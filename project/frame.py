"""The frame of a page: the source that runs, the picture, the facts, and what can be taken along."""

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

MARKS, ESCAPED = re.compile(r"([\\`*_{}\[\]()#+.!~$:<>|-])"), r"\\\1"  # what Markdown would take for its own


@dataclass(frozen=True)
class Shown:
    """All that a page shows for one choice of its controls; made in `project.views`."""

    name: str
    """Of files that are taken along: "strides"."""
    picture: Picture
    facts: Sequence[Fact]
    source: Sequence[Line] = ()
    source_title: str = "The source that runs"
    command: str = ""
    """The line on a terminal that tells the same facts."""


def show(shown: Shown) -> str | None:
    """The frame, filled in; gives the link of the cell that was chosen."""
    if shown.source:
        left, right = st.columns(2, gap="medium")
        with left:
            source(shown)
    else:
        right = st.container()
    with right:
        chosen = board(shown.picture, key=f"board-{shown.name}")
    facts(shown.facts)
    take_along(shown)
    return chosen


def source(shown: Shown) -> None:
    """The lines of the source, with what was counted at each."""
    st.markdown(f"**{shown.source_title}**")
    kinds = list(dict.fromkeys(kind for line in shown.source for kind, _ in line.counts))
    head = "".join(f"{kind} " for kind in kinds)
    rows = [head] if kinds else []
    for line in shown.source:
        counts = dict(line.counts)
        rows.append("".join(f"{counts.get(kind, ''):>{len(kind)}} " for kind in kinds) + f" {line.number:>3}  {line.text}")
    st.code("\n".join(rows), language="python", wrap_lines=False)


def facts(found: Sequence[Fact]) -> None:
    """The table of facts, and what its labels mean."""
    table(as_rows(list(found)))
    used = dict.fromkeys(fact.truth for fact in found)
    st.caption(" · ".join(f"{truth}: {MEANINGS[truth]}" for truth in used))


def table(rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows whose texts are read whole, as they stand: they wrap, and nothing in them is Markdown."""
    st.table(
        [{name: MARKS.sub(ESCAPED, str(value)) for name, value in row.items()} for row in rows],
        hide_index=True,
        border="horizontal",
    )


def take_along(shown: Shown) -> None:
    """The picture as a table, as files, and as a line for the terminal."""
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
    """A table as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def mistake(error: Exception) -> None:
    """A mistake in what was typed, in words; the page goes on."""
    st.error(str(error))
