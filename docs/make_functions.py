"""Write the tables of docs/guide/functions.md, from the table of minifuse/functions.

    python docs/make_functions.py

The description of a function is the first line of its docstring. Only the text between the two markers is replaced.
`tests/docs/test_function_page.py` fails if the page and the table differ.
"""

from importlib import import_module
from pathlib import Path

from minifuse.functions import MODULES, load

PAGE = Path(__file__).parent / "guide" / "functions.md"
BEGIN, END = "<!-- made by docs/make_functions.py -->\n", "<!-- end of what is made -->\n"


def rows(module: str) -> list[str]:
    """Return a row of the table for each function of a module of the library: its names, and what it does."""
    names: dict[int, list[str]] = {}
    table = load()
    for name, entry in table.items():
        if entry.__module__ == f"minifuse.functions.{module}" and not name.startswith("_"):
            names.setdefault(id(entry), []).append(name)
    lines = []
    for group in names.values():
        text = (table[group[0]].__doc__ or "").strip().partition("\n")[0].replace("|", "\\|")
        lines.append(f"| {', '.join(f'`{name}`' for name in group)} | {text} |\n")
    return lines


def tables() -> str:
    """Return the tables of all modules, each under the first line of its docstring."""
    text = ""
    for module in MODULES:
        if found := rows(module):
            title = (import_module(f"minifuse.functions.{module}").__doc__ or "").partition("\n")[0].rstrip(".")
            title = title if len(title) < 70 else module.capitalize()
            text += f"\n### {title}\n\n| functions | |\n|---|---|\n{''.join(found)}"
    return text.lstrip("\n")


def page(text: str) -> str:
    """Return the text of the page with up-to-date tables."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + "\n" + tables() + "\n" + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
