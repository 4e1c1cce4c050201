"""Unusual right solutions of task 5.1. Each is appended to the reference."""

# %% equal_nodes_by_search: the tape has no dict; it compares texts of nodes, one after the other.


class Tape:
    def __init__(self):
        self.nodes = []

    def add(self, op, inputs=(), value=None, shape=()):
        node = Node(op, tuple(inputs), value, tuple(shape))
        for k, other in enumerate(self.nodes):
            if repr(other) == repr(node):
                return k
        self.nodes.append(node)
        return len(self.nodes) - 1


# %% key_by_sign_and_hex: the number in a key is its hexadecimal text, which has its sign and all its bits.


class Tape:
    def __init__(self):
        self.nodes = []
        self.numbers = {}

    def add(self, op, inputs=(), value=None, shape=()):
        bits = value.hex() if isinstance(value, float) else value
        number = self.numbers.setdefault((op, tuple(inputs), bits, tuple(shape)), len(self.nodes))
        if number == len(self.nodes):
            self.nodes.append(Node(op, tuple(inputs), value, tuple(shape)))
        return number


# %% operators_from_a_table: the operators are set on the class by a loop, after it is defined; x > y is lt of y and x.


def operator(op, is_reflected):
    def method(self, other):
        return self.record(op, other, self) if is_reflected else self.record(op, self, other)

    return method


def refusal(message):
    def method(self, *others):
        raise FuseError(message)

    return method


for name, op in {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div"}.items():
    setattr(Traced, f"__{name}__", operator(op, False))
    setattr(Traced, f"__r{name}__", operator(op, True))
Traced.__lt__, Traced.__gt__ = operator("lt", False), operator("lt", True)
Traced.__bool__ = refusal("a branch on the value of a tensor that is captured: write maximum(x, y), or multiply by x < y")
Traced.__eq__ = refusal("x == y is not an operation of a graph: write (x < y) + (y < x) instead, and see where it is 0")


# %% record_by_a_generator: operands are turned to numbers of nodes one by one, by a helper that is a method of the tape.


def number_of(tape, operand):
    match operand:
        case Traced(number=number):
            return number
        case _:
            return tape.add("constant", (), float(operand), ())


def record(self, op, *operands):
    numbers = []
    while len(numbers) < len(operands):
        numbers.append(number_of(self.tape, operands[len(numbers)]))
    shape = shape_after(op, *(self.tape.nodes[k].shape for k in numbers))
    return type(self)(self.tape, self.tape.add(op, tuple(numbers), None, shape))


Traced.record = record
