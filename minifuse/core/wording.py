"""Formats numbers with their nouns."""


def format_count(number: int, noun: str, plural: str = "") -> str:
    """Format a number with its noun, in the singular or plural.

    Examples
    --------
    >>> format_count(1, "kernel"), format_count(12_000, "kernel"), format_count(2, "index", "indices")
    ('1 kernel', '12,000 kernels', '2 indices')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
