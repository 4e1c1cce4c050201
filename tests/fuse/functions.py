"""Counting how often Python runs a function, in a way that is no change outside: a counter of the standard library."""

import itertools


class Counter:
    """`count()` where something happens; `total` afterwards."""

    def __init__(self):
        self.count = itertools.count(1).__next__

    @property
    def total(self):
        """How often `count` was called; asking starts anew."""
        total = self.count() - 1
        self.count = itertools.count(1).__next__
        return total
