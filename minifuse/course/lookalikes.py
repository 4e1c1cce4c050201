"""Numbers that a careless text, key or comparison takes for one another."""

from math import inf, nan, nextafter
from random import Random

LOOKALIKES: tuple[tuple[float, float], ...] = (
    (0.0, -0.0),  # equal
    (0.3, 0.1 + 0.2),  # equal to 16 digits
    (1 / 3, 0.3333333333333333 + 2**-54),
    (-1.0, -2.0),  # of one hash, as are 1 and 2 ** 61
    (1.0, 2.0**61),
    (1e-13, 2e-13),  # both 0.0 with 12 decimals
    (5e-324, 0.0),
    (1e16, 1e16 + 2),
    (1e300, 1.0000000000000002e300),
    (inf, 1.7976931348623157e308),
    (nan, inf),
    (-inf, inf),
    (7.0, 7.000000001),
)


def lookalikes(random: Random) -> tuple[float, float]:
    """Return two different numbers: a pair of LOOKALIKES, a number and the next one, or two that differ far behind."""
    kind = random.randrange(4)
    if kind < 2:
        return random.choice(LOOKALIKES)
    x = random.uniform(-9.0, 9.0) * 10.0 ** random.randint(-280, 280) if random.random() < 0.5 else random.uniform(-9.0, 9.0)
    if kind == 2:
        return x, nextafter(x, inf)
    return x, float(f"{x:.{random.randint(3, 15)}g}")


def exact_text(x: float) -> str:
    """Return a text that is equal for two numbers exactly if they are one: 0.0 and -0.0 are two, and nan is one."""
    return float(x).hex()
