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
        # begin 5.1a
        key = (op, tuple(inputs), repr(value), tuple(shape))  # 0.0 == -0.0, and they are two; nan != nan, and it is one
        if key not in self.numbers:
            self.numbers[key] = len(self.nodes)
            self.nodes.append(Node(op, tuple(inputs), value, tuple(shape)))
        return self.numbers[key]
        # end


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
        # begin 5.1b
        numbers = []
        for x in operands:
            numbers.append(x.number if isinstance(x, Traced) else self.tape.add("constant", value=float(x)))
        shape = shape_after(op, *[self.tape.nodes[k].shape for k in numbers])
        return Traced(self.tape, self.tape.add(op, numbers, shape=shape))
        # end

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
        # begin 5.1c
        return self.record("sub", self, other)
        # end

    def __truediv__(self, other):
        """self / other"""
        # begin 5.1d
        return self.record("div", self, other)
        # end

    def __lt__(self, other):
        """self < other, as 1.0 or 0.0"""
        # begin 5.1e
        return self.record("lt", self, other)
        # end

    def __radd__(self, other):
        """other + self, where other is a number"""
        # begin 5.1f
        return self.record("add", other, self)
        # end

    def __rmul__(self, other):
        """other * self, where other is a number"""
        # begin 5.1g
        return self.record("mul", other, self)
        # end

    def __rsub__(self, other):
        """other - self, where other is a number"""
        # begin 5.1h
        return self.record("sub", other, self)
        # end

    def __rtruediv__(self, other):
        """other / self, where other is a number"""
        # begin 5.1i
        return self.record("div", other, self)
        # end

    def __gt__(self, other):
        """self > other; Python also comes here for `number < self`"""
        # begin 5.1j
        return self.record("lt", other, self)
        # end

    def __bool__(self):
        """Raise a FuseError that says what to write instead of `if x`, `while x`, `x and y` or `max(x, y)`."""
        # begin 5.1k
        raise FuseError(
            "a branch on a value that is captured: there are no elements yet; write x.maximum(y), or compute with x < y"
        )
        # end

    def __eq__(self, other):
        """Raise a FuseError, since there is no such operation. Without this method, Python would return False."""
        # begin 5.1l
        raise FuseError("== asks for values, and there are none while a function is captured; < gives 1.0 or 0.0")
        # end


def capture(function, *shapes):
    """Return the Graph of a function that returns a tensor or a tuple of tensors, for arguments of these shapes."""
    # begin 5.1m
    tape = Tape()
    arguments = [Traced(tape, tape.add("input", value=k, shape=shape)) for k, shape in enumerate(shapes)]
    results = function(*arguments)
    if not isinstance(results, tuple):
        results = (results,)
    return Graph(tuple(tape.nodes), tuple(x.number for x in results))
    # end
