"""Writes the table of docs/guide/operators.md, from the operator table.

    python docs/make_operators.py

Formulas are not copied from the source: bodies and rules run on symbols, and what they did is printed. The page keeps what
stands outside the two markers. `tests/docs/test_operator_page.py` fails where page and table differ.
"""

from pathlib import Path
from typing import Any

import minifuse as mf
from minifuse.core.operators import TABLE, Operator
from minifuse.ir.array_methods import Array

PAGE = Path(__file__).parent / "guide" / "operators.md"
BEGIN, END = "<!-- made by docs/make_operators.py -->\n", "<!-- end of what is made -->\n"
HEAD = ("operator", "value", "written as", "takes → gives", "made of", "each input receives")

BINARY = ("+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", ">", "<=", ">=", "&", "|", "^", "<<", ">>")
PYTHON = {
    1: ("~x", "-x", "+x", "abs(x)"),
    2: [f"a {symbol} b" for symbol in BINARY],
}  # how Python writes operators, by arity
FOLDS = ("sum", "prod", "max", "min", "all", "any")
WORDS = {  # symbols that generated source has words for
    "floordiv": "//", "mod": "%", "pow": "**", "invert": "~", "lshift": "<<", "rshift": ">>",
}  # fmt: skip
LEVELS = (
    "== != < > <= >=",
    "|",
    "^",
    "&",
    "<< >>",
    "+ -",
    "* / // %",
    "unary- ~",
    "**",
)  # those that bind closer come later
LONG = 60  # characters; a longer body is told by the operators in it
ATOM = len(LEVELS)  # what needs no parentheses, as names and calls
RULES = {  # those that a formula does not make clear
    "pow": "`g * b * a ** (b - 1)`, `g * y * log(a)`; 0 where b, or a, is 0; NaN for b where a < 0",
    "abs": "g with the sign of x; 0 at 0",
    "maximum": "the larger one receives g; equal ones a half each",
    "minimum": "the smaller one receives g; equal ones a half each",
}


class Symbol(Array):
    """A name, or a function of symbols and numbers: what was done to it can be printed."""

    def __init__(self, function: Any, inputs: tuple[Any, ...] = ()) -> None:
        self.function, self.inputs, self.shape, self.dtype = function, inputs, (), mf.float32

    def apply(self, function: Any, *inputs: Any) -> "Symbol":
        """The function of these inputs."""
        return Symbol(function, inputs)


def symbols(entry: Operator) -> list[Symbol]:
    """The inputs of an operator, under the names that its body has for them."""
    return [Symbol(name) for name in entry.body.__code__.co_varnames[: entry.arity]]


def printed(x: Any) -> tuple[str, int]:
    """(a symbol or number as Python writes it, its level among LEVELS)."""
    if not isinstance(x, Symbol):
        return f"{x:.7g}", ATOM
    if not isinstance(x.function, Operator):
        return x.function, ATOM
    symbol = WORDS.get(x.function.name, x.function.symbol)
    if symbol is None:
        return f"{x.function.name}({', '.join(printed(i)[0] for i in x.inputs)})", ATOM
    is_unary = len(x.inputs) == 1
    (level,) = (k for k, row in enumerate(LEVELS) if ("unary-" if is_unary and symbol == "-" else symbol) in row.split())
    texts = []
    for k, (text, inner) in enumerate(map(printed, x.inputs)):
        groups_left = level not in (0, ATOM - 1)  # a - b - c is (a - b) - c, but comparisons and powers do not group so
        fits = inner > level or (inner == level and (is_unary or (groups_left and k == 0)))
        texts.append(text if fits else f"({text})")
    return symbol * is_unary + f" {symbol} ".join(texts), level


def rule(entry: Operator) -> list[str | None]:
    """What each input receives, as formulas; None where nothing flows."""
    found = entry.vjp(Symbol("g"), Symbol("y"), *symbols(entry)) if entry.vjp else ()
    return [None if x is None else printed(x)[0] for x in found]


def gradient(entry: Operator) -> str:
    """What each input receives, in words or as formulas."""
    if entry.vjp is None:
        return "nothing" if entry.is_primitive or entry.result == "bool" else "what its parts say"
    return RULES.get(entry.name) or ", ".join("nothing" if text is None else f"`{text}`" for text in rule(entry))


def ways(entry: Operator) -> list[str]:
    """How a user writes the operator: by a symbol of Python, a method, a function, a fold."""
    inputs = symbols(entry)
    names = ", ".join(x.function for x in inputs)
    first, _, others = names.partition(", ")
    given = dict(zip("x" if entry.arity == 1 else "ab", inputs, strict=False))
    found = [text for text in PYTHON.get(entry.arity, ()) if eval(text, dict(given)).function is entry]
    if hasattr(Array, entry.name) and getattr(inputs[0], entry.name)(*inputs[1:]).function is entry:
        found.append(f"{first}.{entry.name}({others})")
    if hasattr(mf, entry.name):
        found.append(f"mf.{entry.name}({names})")
    return found + [f"x.{fold}()" for fold in FOLDS if getattr(Symbol("x"), fold)().function.parameters[-1] is entry]


def made_of(entry: Operator) -> str:
    """The body of an operator as a formula, or where that is long, the operators in it."""
    if entry.is_primitive:
        return "primitive"
    body = entry.body(*symbols(entry))
    formula = printed(body)[0]
    return f"`{formula}`" if len(formula) <= LONG else "several " + ", ".join(f"`{name}`" for name in sorted(used(body)))


def used(x: Any) -> set[str]:
    """The names of the operators in a symbol."""
    if not isinstance(x, Symbol) or not isinstance(x.function, Operator):
        return set()
    return {x.function.name}.union(*map(used, x.inputs))


def row(entry: Operator) -> str:
    """The line of one operator."""
    cells = [
        entry.name,
        (entry.__doc__ or "").strip().rstrip("."),
        ", ".join(f"`{way}`" for way in ways(entry)),
        f"{entry.accepts} → {entry.result}",
        made_of(entry) + f"; folds from {entry.identity}" * (entry.identity is not None),
        gradient(entry),
    ]
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |\n"


def table() -> str:
    """All operators, a line each."""
    return "| " + " | ".join(HEAD) + " |\n" + "|---" * len(HEAD) + "|\n" + "".join(map(row, TABLE.values()))


def page(text: str) -> str:
    """The text of the page, with the table as it should be."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + "\n" + table() + "\n" + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
