"""Wrong solutions of task 5.1, one a cell: `# %% name: the mistake that the check must name`."""


# %% always_new: each operation is a new node
class Tape(Tape):
    def add(self, op, inputs=(), value=None, shape=()):
        node = Node(op, tuple(inputs), value, tuple(shape))
        if op == "constant" and node in self.nodes:
            return self.nodes.index(node)
        self.nodes.append(node)
        return len(self.nodes) - 1


# %% branch: a branch is decided without a value
class Traced(Traced):
    def __bool__(self):
        return True


# %% constants_new: each number is a new constant
class Tape(Tape):
    def add(self, op, inputs=(), value=None, shape=()):
        node = Node(op, tuple(inputs), value, tuple(shape))
        if op != "constant" and node in self.numbers:
            return self.numbers[node]
        self.numbers[node] = len(self.nodes)
        self.nodes.append(node)
        return len(self.nodes) - 1


# %% equality: == compares identities
class Traced(Traced):
    def __eq__(self, other):
        return self is other


# %% first_shape: a result has the shape of its first operand
class Traced(Traced):
    def record(self, op, *operands):
        numbers = []
        for x in operands:
            numbers.append(x.number if isinstance(x, Traced) else self.tape.add("constant", value=float(x)))
        return Traced(self.tape, self.tape.add(op, numbers, shape=self.tape.nodes[numbers[0]].shape))


# %% reflected: a number on the left is taken for one on the right
class Traced(Traced):
    def __rsub__(self, other):
        return self.record("sub", self, other)

    def __rtruediv__(self, other):
        return self.record("div", self, other)

    def __gt__(self, other):
        return self.record("lt", self, other)


# %% zeros: 0.0 and -0.0 are one constant
class Tape(Tape):
    def add(self, op, inputs=(), value=None, shape=()):
        node = Node(op, tuple(inputs), value, tuple(shape))
        if node not in self.numbers:
            self.numbers[node] = len(self.nodes)
            self.nodes.append(node)
        return self.numbers[node]


# %% simplified: the tracer simplifies what the function calls for
class Traced(Traced):
    def __neg__(self):
        node = self.tape.nodes[self.number]
        return Traced(self.tape, node.inputs[0]) if node.op == "neg" else self.record("neg", self)


# %% kept: an earlier graph is returned again
kept = {}
capture_anew = capture


def capture(function, *shapes):
    if (function, shapes) not in kept:
        kept[function, shapes] = capture_anew(function, *shapes)
    return kept[function, shapes]


# %% number_as_it_is: a constant is not a float
class Traced(Traced):
    def record(self, op, *operands):
        numbers = []
        for x in operands:
            numbers.append(x.number if isinstance(x, Traced) else self.tape.add("constant", value=x))
        shape = shape_after(op, *[self.tape.nodes[k].shape for k in numbers])
        return Traced(self.tape, self.tape.add(op, numbers, shape=shape))
