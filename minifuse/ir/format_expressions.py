"""Format scalar expressions as Python: operators with as few parentheses as possible, and rounded numbers."""

from collections.abc import Sequence

REDUCTION_NAMES = {"add": "sum", "mul": "prod", "maximum": "max", "minimum": "min", "or_": "any", "and_": "all"}
PRECEDENCE = {
    "==": 1, "!=": 1, "<": 1, ">": 1, "<=": 1, ">=": 1, "|": 2, "^": 3, "&": 4, "+": 5, "-": 5, "*": 6, "/": 6, "@": 6,
}  # fmt: skip
PREFIX_PRECEDENCE, ATOM_PRECEDENCE = 7, 9  # precedence of -x, and of texts that never need parentheses

FormattedExpression = tuple[str, int]  # a text, and the precedence of its outermost operator


def reduction_name(operator: str) -> str:
    """Return the name of a reduction with an operator: sum for add."""
    return REDUCTION_NAMES.get(operator, operator)


def format_call(name: str, symbol: str | None, xs: Sequence[FormattedExpression]) -> FormattedExpression:
    """Format a function of operands: as a binary operator, a prefix operator, or a call."""
    if symbol and len(xs) == 2:
        return format_binary(symbol, *xs)
    if symbol:
        return f"{symbol}{parenthesize(xs[0], PREFIX_PRECEDENCE)}", PREFIX_PRECEDENCE
    return f"{name}({', '.join(x for x, _ in xs)})", ATOM_PRECEDENCE


def format_binary(symbol: str, a: FormattedExpression, b: FormattedExpression) -> FormattedExpression:
    """Format a binary operator."""
    precedence = PRECEDENCE[symbol]
    return f"{parenthesize(a, precedence + (symbol == '@'))} {symbol} {parenthesize(b, precedence + 1)}", precedence


def parenthesize(text: FormattedExpression, precedence: int) -> str:
    """Return a text as an operand, in parentheses if its precedence is lower."""
    return text[0] if text[1] >= precedence else f"({text[0]})"


def format_number(text: str) -> str:
    """Round a literal to four digits.

    Examples
    --------
    >>> format_number("2.0"), format_number("0.7071067811865475"), format_number("True")
    ('2', '0.7071', 'True')
    """
    try:
        return f"{float(text):.4g}"
    except ValueError:
        return text
