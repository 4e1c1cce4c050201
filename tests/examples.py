"""How many examples Hypothesis tries: a share of those of the profile."""

from hypothesis import settings

FEWEST = 6


def share(part: float) -> settings:
    """Return settings with this share of the profile's examples: more for cheap ones, fewer for those that compile."""
    return settings(max_examples=max(FEWEST, round(settings().max_examples * part)))
