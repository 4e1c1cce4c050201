"""Read the tables of a page."""

import re

ESCAPE = re.compile(r"\\(?=[^\w\s]|_)")  # before a character that has a meaning in Markdown


def tables(app):
    """Return the tables of an AppTest, without the escapes of Markdown characters."""
    return [table.value.map(lambda text: ESCAPE.sub("", text)) for table in app.table]


def facts_tables(app):
    """Return the tables of facts."""
    return [table for table in tables(app) if "truth" in table.columns]


def facts_of(app):
    """Return the first table of facts as a dict: the name -> the value."""
    table = facts_tables(app)[0]
    return dict(zip(table["fact"], table["value"], strict=True))
