"""Write the table of docs/guide/operators.md, from the operator table.

    python docs/make_operators.py

Formulas are not copied from the source: bodies and derivative rules run on symbols, and the result is printed. Only the text
between the two markers is replaced. `tests/docs/test_operator_page.py` fails if the page and the operator table differ.
"""

from pathlib import Path
from typing import Any

import minifuse as mf
from minifuse.core.operators import TABLE, Operator
from minifuse.functions import load
from minifuse.ir.array_methods import Array

load()  # adds the methods of the library of functions
PAGE = Path(__file__).parent / "guide" / "operators.md"
BEGIN, END = "<!-- made by docs/make_operators.py -->\n", "<!-- end of what is made -->\n"
HEAD = ("operator", "value", "in Python", "input → result type", "definition", "gradient of each input")

BINARY = ("+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", ">", "<=", ">=", "&", "|", "^", "<<", ">>")
PYTHON = {
    1: ("~x", "-x", "+x", "abs(x)"),
    2: [f"a {symbol} b" for symbol in BINARY],
}  # Python syntax, by arity
REDUCTIONS = ("sum", "prod", "max", "min", "all", "any")
SYMBOLS = {  # symbols of operators that have none in generated source
    "floordiv": "//", "mod": "%", "pow": "**", "invert": "~", "lshift": "<<", "rshift": ">>",
}  # fmt: skip
PRECEDENCE = (
    "== != < > <= >=",
    "|",
    "^",
    "&",
    "<< >>",
    "+ -",
    "* / // %",
    "unary- ~",
    "**",
)  # precedence, lowest first
MAX_FORMULA_LENGTH = 60  # characters; for a longer body, the operators in it are listed
ATOM = len(PRECEDENCE)  # names and calls, which need no parentheses
RULES = {  # derivative rules whose formula is hard to read
    "pow": "`g * b * a ** (b - 1)`, `g * y * log(a)`; 0 where b, or a, is 0; NaN for b where a < 0",
    "abs": "`g` with the sign of x; 0 at 0",
    "maximum": "`g` for the larger one; half of it each if they are equal",
    "minimum": "`g` for the smaller one; half of it each if they are equal",
}


class Symbol(Array):
    """A name, or a function of symbols and numbers, which can be printed as a formula."""

    def __init__(self, function: Any, inputs: tuple[Any, ...] = ()) -> None:
        self.function, self.inputs, self.shape, self.dtype = function, inputs, (), mf.float32

    def apply(self, function: Any, *inputs: Any) -> "Symbol":
        """Return the symbol of a function of these inputs."""
        return Symbol(function, inputs)


def input_symbols(entry: Operator) -> list[Symbol]:
    """Return a symbol for each input of an operator, named like the parameter of its body."""
    return [Symbol(name) for name in entry.body.__code__.co_varnames[: entry.arity]]


def format_formula(x: Any) -> tuple[str, int]:
    """Return the Python text of a symbol or number, and its level in PRECEDENCE."""
    if not isinstance(x, Symbol):
        return f"{x:.7g}", ATOM
    if not isinstance(x.function, Operator):
        return x.function, ATOM
    symbol = SYMBOLS.get(x.function.name, x.function.symbol)
    if symbol is None:
        return f"{x.function.name}({', '.join(format_formula(i)[0] for i in x.inputs)})", ATOM
    is_unary = len(x.inputs) == 1
    (level,) = (k for k, row in enumerate(PRECEDENCE) if ("unary-" if is_unary and symbol == "-" else symbol) in row.split())
    texts = []
    for k, (text, inner) in enumerate(map(format_formula, x.inputs)):
        groups_left = level not in (0, ATOM - 1)  # a - b - c is (a - b) - c; not for comparisons and powers
        fits = inner > level or (inner == level and (is_unary or (groups_left and k == 0)))
        texts.append(text if fits else f"({text})")
    return symbol * is_unary + f" {symbol} ".join(texts), level


def vjp_formulas(entry: Operator) -> list[str | None]:
    """Return the gradient of each input as a formula; None if it has none."""
    found = entry.vjp(Symbol("g"), Symbol("y"), *input_symbols(entry)) if entry.vjp else ()
    return [None if x is None else format_formula(x)[0] for x in found]


def gradient(entry: Operator) -> str:
    """Return the cell with the gradients of the inputs, in words or as formulas."""
    if entry.vjp is None:
        return "none" if entry.is_primitive or entry.result == "bool" else "that of its definition"
    return RULES.get(entry.name) or ", ".join("none" if text is None else f"`{text}`" for text in vjp_formulas(entry))


def python_forms(entry: Operator) -> list[str]:
    """Return the ways to write the operator: a Python symbol, a method, a function, a reduction."""
    inputs = input_symbols(entry)
    names = ", ".join(x.function for x in inputs)
    first, _, others = names.partition(", ")
    given = dict(zip("x" if entry.arity == 1 else "ab", inputs, strict=False))
    found = [text for text in PYTHON.get(entry.arity, ()) if eval(text, dict(given)).function is entry]
    node = getattr(inputs[0], entry.name)(*inputs[1:]) if hasattr(Array, entry.name) else None
    if node is not None and node.function is entry and all(x is y for x, y in zip(node.inputs, inputs, strict=True)):
        found.append(f"{first}.{entry.name}({others})")
    if hasattr(mf, entry.name):
        found.append(f"mf.{entry.name}({names})")
    reductions = [name for name in REDUCTIONS if getattr(Symbol("x"), name)().function.parameters[-1] is entry]
    return found + [f"x.{name}()" for name in reductions]


def definition(entry: Operator) -> str:
    """Return the body of an operator as a formula, or the operators in it if the formula is long."""
    if entry.is_primitive:
        return "primitive"
    body = entry.body(*input_symbols(entry))
    formula = format_formula(body)[0]
    return (
        f"`{formula}`"
        if len(formula) <= MAX_FORMULA_LENGTH
        else "several " + ", ".join(f"`{name}`" for name in sorted(operators_in(body)))
    )


def operators_in(x: Any) -> set[str]:
    """Return the names of the operators in a symbol."""
    if not isinstance(x, Symbol) or not isinstance(x.function, Operator):
        return set()
    return {x.function.name}.union(*map(operators_in, x.inputs))


def row(entry: Operator) -> str:
    """Return the table row of one operator."""
    cells = [
        entry.name,
        (entry.__doc__ or "").strip().rstrip("."),
        ", ".join(f"`{text}`" for text in python_forms(entry)),
        f"{entry.accepts} → {entry.result}",
        definition(entry) + f"; reduction starts at {entry.identity}" * (entry.identity is not None),
        gradient(entry),
    ]
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |\n"


def table() -> str:
    """Return the whole table, one row per operator."""
    return "| " + " | ".join(HEAD) + " |\n" + "|---" * len(HEAD) + "|\n" + "".join(map(row, TABLE.values()))


def page(text: str) -> str:
    """Return the text of the page with an up-to-date table."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + "\n" + table() + "\n" + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
