"""Round integers up: to multiples, and to powers of two."""


def ceil_div(a: int, b: int) -> int:
    """Return a / b, rounded up.

    >>> ceil_div(9, 4), ceil_div(8, 4), ceil_div(0, 4)
    (3, 2, 0)
    """
    return -(-a // b)


def power_of_two(n: float) -> int:
    """Return the smallest power of two that is at least n, and at least 1.

    >>> power_of_two(9), power_of_two(8), power_of_two(2.5), power_of_two(0)
    (16, 8, 4, 1)
    """
    return 1 << max(int(-(-n // 1)) - 1, 0).bit_length()
