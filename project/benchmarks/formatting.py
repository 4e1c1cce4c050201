"""Numbers and targets as text, for all tables."""

from .row import Result

UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


def targets(row: Result) -> str:
    """Format the targets, and whether they are met."""
    words = {True: "met", False: "not met", None: "not measured"}
    return "; ".join(f"{words[target['met']]}: {target['words']}" for target in row.get("targets", []))


def number(x: float) -> str:
    """Format a number with three digits.

    Examples
    --------
    >>> number(0.9512), number(12.34), number(345.6)
    ('0.95', '12.3', '346')
    """
    return f"{x:.2f}" if x < 10 else f"{x:.1f}" if x < 100 else f"{x:,.0f}"


def duration(seconds: float) -> str:
    """Format seconds in a suitable unit.

    Examples
    --------
    >>> duration(1.234e-6), duration(0.0456), duration(2.0)
    ('1.23 us', '45.6 ms', '2.00 s')
    """
    size, unit = next(((size, unit) for size, unit in UNITS if seconds >= size), UNITS[-1])
    return f"{number(seconds / size)} {unit}"
