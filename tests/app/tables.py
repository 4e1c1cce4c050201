"""The tables of facts of a page, as its tests read them."""

import re

ESCAPE = re.compile(r"\\(?=[^\w\s])")  # before what Markdown would take for its own


def tables(app):
    """The tables of an AppTest that wrap, without what keeps Markdown away."""
    return [found.value.map(lambda text: ESCAPE.sub("", text)) for found in app.table]


def facts_tables(app):
    """Those of facts."""
    return [found for found in tables(app) if "truth" in found.columns]


def facts_of(app):
    """The first of them: the name -> the value."""
    table = facts_tables(app)[0]
    return dict(zip(table["fact"], table["value"], strict=True))
