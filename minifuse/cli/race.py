"""`minifuse race`: time one operation on each backend and in NumPy, for several sizes, as the page "Race the backends"."""

import json as json_
import sys
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..core.errors import MinifuseError
from .layout import WIDTH, facts_as_dicts, import_views, show_facts


def run(operation: str, players: str | None, has_roof: bool, json: bool) -> int:
    """Time and print; return 2 if the request is invalid or a result is wrong."""
    (race,) = import_views("race")
    who = players.split(",") if players else [name for name in race.players() if name != "python"]
    try:
        found = race.race(operation, who)
        roofs = race.roofs_of(who) if has_roof else None
    except MinifuseError as error:
        sys.stderr.write(f"minifuse race: {error}\n")
        return 2
    rows, sentence, facts = race.rows(found, roofs), race.sentence(found), facts_as_dicts(race.facts(found, roofs))
    if json:
        sys.stdout.write(json_.dumps({"sentence": sentence, "times": rows, "facts": facts}, indent=2) + "\n")
    else:
        show(rows, sentence, facts, Console(width=min(WIDTH, Console().width), highlight=False))
    return 0


def show(rows: list[dict[str, Any]], sentence: str, facts: list[dict[str, Any]], console: Console) -> None:
    """Print one line for each size, with a column for each player, and the facts."""
    console.print(escape(sentence) + "\n")
    names = list(dict.fromkeys(row["who"] for row in rows))
    times = {(row["who"], row["elements"]): row["us"] for row in rows}
    table = Table("elements", *[f"{name}, us" for name in names], box=None, pad_edge=False)
    for n in sorted({row["elements"] for row in rows}):
        table.add_row(f"{n:,}", *[f"{times[name, n]:,.4g}" if (name, n) in times else "-" for name in names])
    console.print(table)
    show_facts(facts, console)
