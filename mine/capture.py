"""Module 5: capture a function of tensors as a graph.

A `Node` is (op, inputs, value, shape), a `Graph` is (nodes, outputs); print a graph to look at it.
`shape_after(op, *shapes)` returns the shape of the result of an operation.
"""

from minifuse.course import todo
from minifuse.course.fusion import FuseError, Graph, Node, shape_after

# Task 5.1


class Tape:
    """The nodes of a graph that is being captured, in order: `tape.nodes` is a list."""

    def __init__(self):
        self.nodes = []
        self.numbers = {}

    def add(self, op, inputs=(), value=None, shape=()):
        """Return the number of Node(op, inputs, value, shape); append the node unless an equal one exists."""
        todo("5.1a")


class Traced:
    """A tracer, which replaces a tensor during capture: it has a shape and a number on a tape, but no elements."""

    def __init__(self, tape, number):
        self.tape, self.number = tape, number

    @property
    def shape(self):
        """Return the shape of the tensor."""
        return self.tape.nodes[self.number].shape

    def record(self, op, *operands):
        """Record an operation on operands, each a Traced or a number, and return its result: a new Traced."""
        todo("5.1b")

    def __add__(self, other):
        return self.record("add", self, other)

    def __mul__(self, other):
        return self.record("mul", self, other)

    def __matmul__(self, other):
        return self.record("matmul", self, other)

    def __neg__(self):
        return self.record("neg", self)

    def exp(self):
        """e to the power of each element."""
        return self.record("exp", self)

    def log(self):
        """The natural logarithm of each element."""
        return self.record("log", self)

    def maximum(self, other):
        """The larger of both, element by element."""
        return self.record("maximum", self, other)

    def sum(self):
        """The sum along the last dim, which then has size 1."""
        return self.record("sum", self)

    def max(self):
        """The largest along the last dim, which then has size 1."""
        return self.record("max", self)

    def expand(self, shape):
        """Repeat the values to a larger shape."""
        return Traced(self.tape, self.tape.add("expand", (self.number,), shape=shape))

    def __sub__(self, other):
        """self - other"""
        todo("5.1c")

    def __truediv__(self, other):
        """self / other"""
        todo("5.1c")

    def __lt__(self, other):
        """self < other, as 1.0 or 0.0"""
        todo("5.1c")

    def __radd__(self, other):
        """other + self, where other is a number"""
        todo("5.1d")

    def __rmul__(self, other):
        """other * self, where other is a number"""
        todo("5.1d")

    def __rsub__(self, other):
        """other - self, where other is a number"""
        todo("5.1d")

    def __rtruediv__(self, other):
        """other / self, where other is a number"""
        todo("5.1d")

    def __gt__(self, other):
        """self > other; Python also comes here for `number < self`"""
        todo("5.1d")

    def __bool__(self):
        """Raise a FuseError that says what to write instead of `if x`, `while x`, `x and y` or `max(x, y)`."""
        todo("5.1e")

    def __eq__(self, other):
        """Raise a FuseError, since there is no such operation. Without this method, Python would return False."""
        todo("5.1e")


def capture(function, *shapes):
    """Return the Graph of a function that returns a tensor or a tuple of tensors, for arguments of these shapes."""
    todo("5.1f")
