"""`minifuse race`: time one operation on each backend and in NumPy, for several sizes, like the page "Race the backends"."""

from typing import Any

from rich.console import Console
from rich.markup import escape

from ..core.errors import MinifuseError
from ..inspect.report import make_table, number_column
from .layout import FactRecord, facts_as_dicts, import_views, show_facts
from .output import new_console, print_json, print_report, report_error


def run(operation: str, players: str | None, has_roof: bool, json: bool) -> int:
    """Time and print; return 2 if the request is invalid or a result is wrong."""
    race, race_facts = import_views("race", "race_facts")
    names = players.split(",") if players else [name for name in race.players() if name != "python"]
    try:
        results = race.run_race(operation, names)
        roofs = race.measure_rooflines(names) if has_roof else None
    except MinifuseError as error:
        return report_error("race", error)
    rows, sentence = race_facts.rows(results, roofs), race_facts.sentence(results, roofs)
    facts = facts_as_dicts(race_facts.facts(results, roofs))
    if json:
        print_json({"sentence": sentence, "times": rows, "facts": facts})
    else:
        show(rows, sentence, facts, new_console())
    return 0


def show(rows: list[dict[str, Any]], sentence: str, facts: list[FactRecord], console: Console) -> None:
    """Print one line for each size, with a column for each player, and the facts."""
    console.print(escape(sentence) + "\n")
    names = list(dict.fromkeys(row["who"] for row in rows))
    times = {(row["who"], row["elements"]): row["us"] for row in rows}
    sizes = sorted({row["elements"] for row in rows})
    columns = number_column("elements"), *[number_column(f"{name},", "us", ",.4g") for name in names]
    print_report(make_table(columns, [(n, *[times.get((name, n)) for name in names]) for n in sizes]), console)
    show_facts(facts, console)
