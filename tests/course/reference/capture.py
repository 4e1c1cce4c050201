"""Module 5: a function of tensors, captured as a graph.

A `Node` is (op, inputs, value, shape), a `Graph` is (nodes, outputs); print a graph to look at it.
`shape_after(op, *shapes)` says what shape an operation gives.
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
        """The number of the node Node(op, inputs, value, shape): of the one that is there, or of a new one at the end."""
        # begin 5.1a
        node = Node(op, tuple(inputs), value, tuple(shape))
        key = (node, repr(value))  # 0.0 == -0.0, and they are two numbers
        if key not in self.numbers:
            self.numbers[key] = len(self.nodes)
            self.nodes.append(node)
        return self.numbers[key]
        # end


class Traced:
    """Stands for a tensor while a function is captured: it has a shape and a number on a tape, and no elements."""

    def __init__(self, tape, number):
        self.tape, self.number = tape, number

    @property
    def shape(self):
        """The shape that the tensor will have."""
        return self.tape.nodes[self.number].shape

    def record(self, op, *operands):
        """The result of an operation on these operands, each a Traced or a number; a new Traced."""
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
        # begin 5.1c
        return self.record("div", self, other)
        # end

    def __lt__(self, other):
        """self < other, as 1.0 or 0.0"""
        # begin 5.1c
        return self.record("lt", self, other)
        # end

    def __radd__(self, other):
        """other + self, where other is a number"""
        # begin 5.1d
        return self.record("add", other, self)
        # end

    def __rmul__(self, other):
        """other * self, where other is a number"""
        # begin 5.1d
        return self.record("mul", other, self)
        # end

    def __rsub__(self, other):
        """other - self, where other is a number"""
        # begin 5.1d
        return self.record("sub", other, self)
        # end

    def __rtruediv__(self, other):
        """other / self, where other is a number"""
        # begin 5.1d
        return self.record("div", other, self)
        # end

    def __gt__(self, other):
        """self > other; Python also comes here for `number < self`"""
        # begin 5.1d
        return self.record("lt", other, self)
        # end

    def __bool__(self):
        """Python asks for it at `if x`, `while x`, `x and y`, `max(x, y)`: raise a FuseError; say what to write."""
        # begin 5.1e
        raise FuseError(
            "a branch on a value that is captured: there are no elements yet; write x.maximum(y), or compute with x < y"
        )
        # end

    def __eq__(self, other):
        """There is no such operation here: raise a FuseError. Without this method, Python says False, and goes on."""
        # begin 5.1e
        raise FuseError("== asks for values, and there are none while a function is captured; < gives 1.0 or 0.0")
        # end


def capture(function, *shapes):
    """The Graph of a function of tensors of these shapes, which gives a tensor or a tuple of them."""
    # begin 5.1f
    tape = Tape()
    arguments = [Traced(tape, tape.add("input", value=k, shape=shape)) for k, shape in enumerate(shapes)]
    results = function(*arguments)
    if not isinstance(results, tuple):
        results = (results,)
    return Graph(tuple(tape.nodes), tuple(x.number for x in results))
    # end
