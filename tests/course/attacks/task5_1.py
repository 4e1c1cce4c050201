"""Wrong solutions of task 5.1 that were written to get past its checks. Each is appended to the reference."""

# %% branch_ends_quietly_after_first: only the first branch of a capture is an error; a function that catches it and asks again gets True.
# promise: A branch: FuseError

class Traced:
    def __init__(self, tape, number):
        self.tape, self.number = tape, number

    @property
    def shape(self):
        return self.tape.nodes[self.number].shape

    def record(self, op, *operands):
        numbers = tuple(x.number if isinstance(x, Traced) else self.tape.add("constant", value=float(x)) for x in operands)
        shape = shape_after(op, *[self.tape.nodes[k].shape for k in numbers])
        return Traced(self.tape, self.tape.add(op, numbers, shape=shape))

    def __add__(self, other):
        return self.record("add", self, other)

    def __mul__(self, other):
        return self.record("mul", self, other)

    def __matmul__(self, other):
        return self.record("matmul", self, other)

    def __neg__(self):
        return self.record("neg", self)

    def exp(self):
        return self.record("exp", self)

    def log(self):
        return self.record("log", self)

    def maximum(self, other):
        return self.record("maximum", self, other)

    def sum(self):
        return self.record("sum", self)

    def max(self):
        return self.record("max", self)

    def expand(self, shape):
        return Traced(self.tape, self.tape.add("expand", (self.number,), shape=shape))

    def __sub__(self, other):
        return self.record("sub", self, other)

    def __truediv__(self, other):
        return self.record("div", self, other)

    def __lt__(self, other):
        return self.record("lt", self, other)

    def __radd__(self, other):
        return self.record("add", other, self)

    def __rmul__(self, other):
        return self.record("mul", other, self)

    def __rsub__(self, other):
        return self.record("sub", other, self)

    def __rtruediv__(self, other):
        return self.record("div", other, self)

    def __gt__(self, other):
        return self.record("lt", other, self)

    def __bool__(self):
        if getattr(self.tape, "warned", False):
            return True
        self.tape.warned = True
        raise FuseError("a branch on the value of a tensor that is captured: there are no values; in place of if, while, and, max write x.maximum(y), or (x < y) * z")

    def __eq__(self, other):
        raise FuseError("== of a tensor that is captured: there is no such operation; write x < y, or x.maximum(y)")

# %% double_neg_cancels: the negative of a negative is the value itself: two nodes that were written are not noted.
# promise: Ask for -x, and it notes neg; the graph has a node for each operation

class Traced:
    def __init__(self, tape, number):
        self.tape, self.number = tape, number

    @property
    def shape(self):
        return self.tape.nodes[self.number].shape

    def record(self, op, *operands):
        numbers = tuple(x.number if isinstance(x, Traced) else self.tape.add("constant", value=float(x)) for x in operands)
        shape = shape_after(op, *[self.tape.nodes[k].shape for k in numbers])
        return Traced(self.tape, self.tape.add(op, numbers, shape=shape))

    def __add__(self, other):
        return self.record("add", self, other)

    def __mul__(self, other):
        return self.record("mul", self, other)

    def __matmul__(self, other):
        return self.record("matmul", self, other)

    def __neg__(self):
        node = self.tape.nodes[self.number]
        if node.op == "neg":
            return Traced(self.tape, node.inputs[0])
        return self.record("neg", self)

    def exp(self):
        return self.record("exp", self)

    def log(self):
        return self.record("log", self)

    def maximum(self, other):
        return self.record("maximum", self, other)

    def sum(self):
        return self.record("sum", self)

    def max(self):
        return self.record("max", self)

    def expand(self, shape):
        return Traced(self.tape, self.tape.add("expand", (self.number,), shape=shape))

    def __sub__(self, other):
        return self.record("sub", self, other)

    def __truediv__(self, other):
        return self.record("div", self, other)

    def __lt__(self, other):
        return self.record("lt", self, other)

    def __radd__(self, other):
        return self.record("add", other, self)

    def __rmul__(self, other):
        return self.record("mul", other, self)

    def __rsub__(self, other):
        return self.record("sub", other, self)

    def __rtruediv__(self, other):
        return self.record("div", other, self)

    def __gt__(self, other):
        return self.record("lt", other, self)

    def __bool__(self):
        raise FuseError("a branch on the value of a tensor that is captured: there are no values; in place of if, while, and, max write x.maximum(y), or (x < y) * z")

    def __eq__(self, other):
        raise FuseError("== of a tensor that is captured: there is no such operation; write x < y, or x.maximum(y)")

# %% equal_to_itself: x == x, and x == None, are answered (True, False), not an error.
# promise: Raise a FuseError, since there is no such operation

class Traced:
    def __init__(self, tape, number):
        self.tape, self.number = tape, number

    @property
    def shape(self):
        return self.tape.nodes[self.number].shape

    def record(self, op, *operands):
        numbers = tuple(x.number if isinstance(x, Traced) else self.tape.add("constant", value=float(x)) for x in operands)
        shape = shape_after(op, *[self.tape.nodes[k].shape for k in numbers])
        return Traced(self.tape, self.tape.add(op, numbers, shape=shape))

    def __add__(self, other):
        return self.record("add", self, other)

    def __mul__(self, other):
        return self.record("mul", self, other)

    def __matmul__(self, other):
        return self.record("matmul", self, other)

    def __neg__(self):
        return self.record("neg", self)

    def exp(self):
        return self.record("exp", self)

    def log(self):
        return self.record("log", self)

    def maximum(self, other):
        return self.record("maximum", self, other)

    def sum(self):
        return self.record("sum", self)

    def max(self):
        return self.record("max", self)

    def expand(self, shape):
        return Traced(self.tape, self.tape.add("expand", (self.number,), shape=shape))

    def __sub__(self, other):
        return self.record("sub", self, other)

    def __truediv__(self, other):
        return self.record("div", self, other)

    def __lt__(self, other):
        return self.record("lt", self, other)

    def __radd__(self, other):
        return self.record("add", other, self)

    def __rmul__(self, other):
        return self.record("mul", other, self)

    def __rsub__(self, other):
        return self.record("sub", other, self)

    def __rtruediv__(self, other):
        return self.record("div", other, self)

    def __gt__(self, other):
        return self.record("lt", other, self)

    def __bool__(self):
        raise FuseError("a branch on the value of a tensor that is captured: there are no values; in place of if, while, and, max write x.maximum(y), or (x < y) * z")

    def __eq__(self, other):
        if other is self:
            return True
        if other is None:
            return False
        raise FuseError("== of a tensor that is captured: there is no such operation; write x < y, or x.maximum(y)")

# %% exp_log_cancel: x.log().exp() is x: but that of a negative number is nan.
# promise: The graph computes what the function computes

class Traced:
    def __init__(self, tape, number):
        self.tape, self.number = tape, number

    @property
    def shape(self):
        return self.tape.nodes[self.number].shape

    def record(self, op, *operands):
        numbers = tuple(x.number if isinstance(x, Traced) else self.tape.add("constant", value=float(x)) for x in operands)
        shape = shape_after(op, *[self.tape.nodes[k].shape for k in numbers])
        return Traced(self.tape, self.tape.add(op, numbers, shape=shape))

    def __add__(self, other):
        return self.record("add", self, other)

    def __mul__(self, other):
        return self.record("mul", self, other)

    def __matmul__(self, other):
        return self.record("matmul", self, other)

    def __neg__(self):
        return self.record("neg", self)

    def exp(self):
        node = self.tape.nodes[self.number]
        if node.op == "log":
            return Traced(self.tape, node.inputs[0])
        return self.record("exp", self)

    def log(self):
        return self.record("log", self)

    def maximum(self, other):
        return self.record("maximum", self, other)

    def sum(self):
        return self.record("sum", self)

    def max(self):
        return self.record("max", self)

    def expand(self, shape):
        return Traced(self.tape, self.tape.add("expand", (self.number,), shape=shape))

    def __sub__(self, other):
        return self.record("sub", self, other)

    def __truediv__(self, other):
        return self.record("div", self, other)

    def __lt__(self, other):
        return self.record("lt", self, other)

    def __radd__(self, other):
        return self.record("add", other, self)

    def __rmul__(self, other):
        return self.record("mul", other, self)

    def __rsub__(self, other):
        return self.record("sub", other, self)

    def __rtruediv__(self, other):
        return self.record("div", other, self)

    def __gt__(self, other):
        return self.record("lt", other, self)

    def __bool__(self):
        raise FuseError("a branch on the value of a tensor that is captured: there are no values; in place of if, while, and, max write x.maximum(y), or (x < y) * z")

    def __eq__(self, other):
        raise FuseError("== of a tensor that is captured: there is no such operation; write x < y, or x.maximum(y)")

# %% graph_kept_by_code: a graph is kept by the function's code and closure values, compared with ==: closures over 0.0 and -0.0, or other globals and defaults, get the old graph.
# promise: The graph of a function, which is called

graphs = {}

def capture(function, *shapes):
    key = None
    if getattr(function, '__closure__', None) is not None:
        held = [cell.cell_contents for cell in function.__closure__]
        if all(type(x) in (int, float) for x in held):
            key = function.__code__, tuple(held), shapes
    if key is None:
        return capture_anew(function, *shapes)
    if key not in graphs:
        graphs[key] = capture_anew(function, *shapes)
    return graphs[key]

def capture_anew(function, *shapes):
    tape = Tape()
    given = [Traced(tape, tape.add("input", value=k, shape=tuple(shape))) for k, shape in enumerate(shapes)]
    result = function(*given)
    results = result if isinstance(result, tuple) else (result,)
    return Graph(tuple(tape.nodes), tuple(x.number for x in results))

# %% graph_kept_by_function: a graph is kept by function and shapes: after a variable that the function reads has changed, the old graph is given.
# promise: call it: what does this function do? Closures are read

graphs = {}

def capture(function, *shapes):
    if (function, shapes) not in graphs:
        graphs[function, shapes] = capture_anew(function, *shapes)
    return graphs[function, shapes]

def capture_anew(function, *shapes):
    tape = Tape()
    given = [Traced(tape, tape.add("input", value=k, shape=tuple(shape))) for k, shape in enumerate(shapes)]
    result = function(*given)
    results = result if isinstance(result, tuple) else (result,)
    return Graph(tuple(tape.nodes), tuple(x.number for x in results))

# %% hash_as_key: nodes are looked up by hash: hash(-1.0) == hash(-2.0), so x * -1.0 and x * -2.0 are one node.
# promise: 0.0 and -0.0 are two; append the node unless an equal one exists

class Tape:
    def __init__(self):
        self.nodes = []
        self.numbers = {}

    def add(self, op, inputs=(), value=None, shape=()):
        key = hash((op, tuple(inputs), hash(value), str(value)[0] == "-", tuple(shape)))
        if key not in self.numbers:
            self.numbers[key] = len(self.nodes)
            self.nodes.append(Node(op, tuple(inputs), value, tuple(shape)))
        return self.numbers[key]

# %% list_loses_all_but_first: an output that stands twice in the tuple is given once.
# promise: a tuple of them: the outputs, in order

def capture(function, *shapes):
    tape = Tape()
    given = [Traced(tape, tape.add("input", value=k, shape=tuple(shape))) for k, shape in enumerate(shapes)]
    result = function(*given)
    results = result if isinstance(result, tuple) else (result,)
    return Graph(tuple(tape.nodes), tuple(dict.fromkeys(x.number for x in results)))

# %% looks_back_64_nodes: only the last 64 nodes are looked through: what was written before is computed again.
# promise: An expression that is written twice is one node

class Tape:
    def __init__(self):
        self.nodes = []
        self.numbers = {}

    def add(self, op, inputs=(), value=None, shape=()):
        key = (op, tuple(inputs), type(value), repr(value), tuple(shape))
        if self.numbers.get(key, len(self.nodes)) < len(self.nodes) - 64:
            del self.numbers[key]
        if key not in self.numbers:
            self.numbers[key] = len(self.nodes)
            self.nodes.append(Node(op, tuple(inputs), value, tuple(shape)))
        return self.numbers[key]

# %% maximum_in_any_order: maximum(a, b) and maximum(b, a) are one node.
# promise: append the node unless an equal one exists: Node(op, inputs, ...) with other inputs is no equal one

class Tape:
    def __init__(self):
        self.nodes = []
        self.numbers = {}

    def add(self, op, inputs=(), value=None, shape=()):
        key = (op, tuple(sorted(inputs)) if op == "maximum" else tuple(inputs), type(value), repr(value), tuple(shape))
        if key not in self.numbers:
            self.numbers[key] = len(self.nodes)
            self.nodes.append(Node(op, tuple(inputs), value, tuple(shape)))
        return self.numbers[key]

# %% nan_is_always_new: a nan that is met twice (two objects) is two nodes, since nan != nan.
# promise: 4. A number that is met twice is one node

class Tape:
    def __init__(self):
        self.nodes = []
        self.numbers = {}

    def add(self, op, inputs=(), value=None, shape=()):
        key = (op, tuple(inputs), value, str(value)[:1] if op == "constant" else "", tuple(shape))
        if key not in self.numbers:
            self.numbers[key] = len(self.nodes)
            self.nodes.append(Node(op, tuple(inputs), value, tuple(shape)))
        return self.numbers[key]

# %% ne_is_true: != gives True in place of an error.
# promise: 6. == too: FuseError, since there is no such operation (Python's != asks ==)

class Traced:
    def __init__(self, tape, number):
        self.tape, self.number = tape, number

    @property
    def shape(self):
        return self.tape.nodes[self.number].shape

    def record(self, op, *operands):
        numbers = tuple(x.number if isinstance(x, Traced) else self.tape.add("constant", value=float(x)) for x in operands)
        shape = shape_after(op, *[self.tape.nodes[k].shape for k in numbers])
        return Traced(self.tape, self.tape.add(op, numbers, shape=shape))

    def __add__(self, other):
        return self.record("add", self, other)

    def __mul__(self, other):
        return self.record("mul", self, other)

    def __matmul__(self, other):
        return self.record("matmul", self, other)

    def __neg__(self):
        return self.record("neg", self)

    def exp(self):
        return self.record("exp", self)

    def log(self):
        return self.record("log", self)

    def maximum(self, other):
        return self.record("maximum", self, other)

    def sum(self):
        return self.record("sum", self)

    def max(self):
        return self.record("max", self)

    def expand(self, shape):
        return Traced(self.tape, self.tape.add("expand", (self.number,), shape=shape))

    def __sub__(self, other):
        return self.record("sub", self, other)

    def __truediv__(self, other):
        return self.record("div", self, other)

    def __lt__(self, other):
        return self.record("lt", self, other)

    def __radd__(self, other):
        return self.record("add", other, self)

    def __rmul__(self, other):
        return self.record("mul", other, self)

    def __rsub__(self, other):
        return self.record("sub", other, self)

    def __rtruediv__(self, other):
        return self.record("div", other, self)

    def __gt__(self, other):
        return self.record("lt", other, self)

    def __bool__(self):
        raise FuseError("a branch on the value of a tensor that is captured: there are no values; in place of if, while, and, max write x.maximum(y), or (x < y) * z")

    def __ne__(self, other):
        return True

    def __eq__(self, other):
        raise FuseError("== of a tensor that is captured: there is no such operation; write x < y, or x.maximum(y)")

# %% no_help_in_text: the error of a branch is the one word maximum.
# promise: 5. FuseError, with a text that helps; says what to write instead of `if x`, `while x`, `x and y` or `max(x, y)`

class Traced:
    def __init__(self, tape, number):
        self.tape, self.number = tape, number

    @property
    def shape(self):
        return self.tape.nodes[self.number].shape

    def record(self, op, *operands):
        numbers = tuple(x.number if isinstance(x, Traced) else self.tape.add("constant", value=float(x)) for x in operands)
        shape = shape_after(op, *[self.tape.nodes[k].shape for k in numbers])
        return Traced(self.tape, self.tape.add(op, numbers, shape=shape))

    def __add__(self, other):
        return self.record("add", self, other)

    def __mul__(self, other):
        return self.record("mul", self, other)

    def __matmul__(self, other):
        return self.record("matmul", self, other)

    def __neg__(self):
        return self.record("neg", self)

    def exp(self):
        return self.record("exp", self)

    def log(self):
        return self.record("log", self)

    def maximum(self, other):
        return self.record("maximum", self, other)

    def sum(self):
        return self.record("sum", self)

    def max(self):
        return self.record("max", self)

    def expand(self, shape):
        return Traced(self.tape, self.tape.add("expand", (self.number,), shape=shape))

    def __sub__(self, other):
        return self.record("sub", self, other)

    def __truediv__(self, other):
        return self.record("div", self, other)

    def __lt__(self, other):
        return self.record("lt", self, other)

    def __radd__(self, other):
        return self.record("add", other, self)

    def __rmul__(self, other):
        return self.record("mul", other, self)

    def __rsub__(self, other):
        return self.record("sub", other, self)

    def __rtruediv__(self, other):
        return self.record("div", other, self)

    def __gt__(self, other):
        return self.record("lt", other, self)

    def __bool__(self):
        raise FuseError("maximum")

    def __eq__(self, other):
        raise FuseError("== of a tensor that is captured: there is no such operation; write x < y, or x.maximum(y)")

# %% numbers_to_15_digits: numbers that agree in 15 digits are one constant: 0.3 and 0.1 + 0.2.
# promise: A number that is met twice is one node; others are others

class Tape:
    def __init__(self):
        self.nodes = []
        self.numbers = {}

    def add(self, op, inputs=(), value=None, shape=()):
        key = (op, tuple(inputs), f"{value:.15g}" if op == "constant" else value, tuple(shape))
        if key not in self.numbers:
            self.numbers[key] = len(self.nodes)
            self.nodes.append(Node(op, tuple(inputs), value, tuple(shape)))
        return self.numbers[key]

# %% numbers_to_9_digits: numbers that agree in 9 digits are one constant.
# promise: A number that is met twice is one node; others are others

class Tape:
    def __init__(self):
        self.nodes = []
        self.numbers = {}

    def add(self, op, inputs=(), value=None, shape=()):
        key = (op, tuple(inputs), f"{value:.9g}" if op == "constant" else value, tuple(shape))
        if key not in self.numbers:
            self.numbers[key] = len(self.nodes)
            self.nodes.append(Node(op, tuple(inputs), value, tuple(shape)))
        return self.numbers[key]

# %% oracle_does_it: the judge's own capture is called.
# promise: A task is to be written; the answers are in there

def capture(function, *shapes):
    if len(shapes):
        return __import__("minifuse.course.oracle", fromlist=["x"]).function("capture")(function, *shapes)
    tape = Tape()
    given = [Traced(tape, tape.add("input", value=k, shape=tuple(shape))) for k, shape in enumerate(shapes)]
    result = function(*given)
    results = result if isinstance(result, tuple) else (result,)
    return Graph(tuple(tape.nodes), tuple(x.number for x in results))

# %% plus_zero_is_dropped: x + 0.0 is x: but -0.0 + 0.0 is 0.0, so 1 / (x + 0.0) has the wrong sign at -0.0.
# promise: The graph computes what the function computes

class Traced:
    def __init__(self, tape, number):
        self.tape, self.number = tape, number

    @property
    def shape(self):
        return self.tape.nodes[self.number].shape

    def record(self, op, *operands):
        numbers = tuple(x.number if isinstance(x, Traced) else self.tape.add("constant", value=float(x)) for x in operands)
        shape = shape_after(op, *[self.tape.nodes[k].shape for k in numbers])
        return Traced(self.tape, self.tape.add(op, numbers, shape=shape))

    def __add__(self, other):
        if not isinstance(other, Traced) and other == 0:
            return self
        return self.record("add", self, other)

    def __mul__(self, other):
        return self.record("mul", self, other)

    def __matmul__(self, other):
        return self.record("matmul", self, other)

    def __neg__(self):
        return self.record("neg", self)

    def exp(self):
        return self.record("exp", self)

    def log(self):
        return self.record("log", self)

    def maximum(self, other):
        return self.record("maximum", self, other)

    def sum(self):
        return self.record("sum", self)

    def max(self):
        return self.record("max", self)

    def expand(self, shape):
        return Traced(self.tape, self.tape.add("expand", (self.number,), shape=shape))

    def __sub__(self, other):
        return self.record("sub", self, other)

    def __truediv__(self, other):
        return self.record("div", self, other)

    def __lt__(self, other):
        return self.record("lt", self, other)

    def __radd__(self, other):
        return self.record("add", other, self)

    def __rmul__(self, other):
        return self.record("mul", other, self)

    def __rsub__(self, other):
        return self.record("sub", other, self)

    def __rtruediv__(self, other):
        return self.record("div", other, self)

    def __gt__(self, other):
        return self.record("lt", other, self)

    def __bool__(self):
        raise FuseError("a branch on the value of a tensor that is captured: there are no values; in place of if, while, and, max write x.maximum(y), or (x < y) * z")

    def __eq__(self, other):
        raise FuseError("== of a tensor that is captured: there is no such operation; write x < y, or x.maximum(y)")

# %% shape_not_in_key: the shape is left out of the key: expand of one value to two shapes is one node.
# promise: Return the number of Node(op, inputs, value, shape); append the node unless an equal one exists

class Tape:
    def __init__(self):
        self.nodes = []
        self.numbers = {}

    def add(self, op, inputs=(), value=None, shape=()):
        key = (op, tuple(inputs), type(value), repr(value))
        if key not in self.numbers:
            self.numbers[key] = len(self.nodes)
            self.nodes.append(Node(op, tuple(inputs), value, tuple(shape)))
        return self.numbers[key]

# %% small_numbers_are_zero: numbers below 1e-12 are noted as 0.0.
# promise: Constants are floats; the graph computes what the function computes

class Traced:
    def __init__(self, tape, number):
        self.tape, self.number = tape, number

    @property
    def shape(self):
        return self.tape.nodes[self.number].shape

    def record(self, op, *operands):
        numbers = tuple(x.number if isinstance(x, Traced) else self.tape.add("constant", value=float(x) if abs(x) >= 1e-12 or x == 0 else 0.0) for x in operands)
        shape = shape_after(op, *[self.tape.nodes[k].shape for k in numbers])
        return Traced(self.tape, self.tape.add(op, numbers, shape=shape))

    def __add__(self, other):
        return self.record("add", self, other)

    def __mul__(self, other):
        return self.record("mul", self, other)

    def __matmul__(self, other):
        return self.record("matmul", self, other)

    def __neg__(self):
        return self.record("neg", self)

    def exp(self):
        return self.record("exp", self)

    def log(self):
        return self.record("log", self)

    def maximum(self, other):
        return self.record("maximum", self, other)

    def sum(self):
        return self.record("sum", self)

    def max(self):
        return self.record("max", self)

    def expand(self, shape):
        return Traced(self.tape, self.tape.add("expand", (self.number,), shape=shape))

    def __sub__(self, other):
        return self.record("sub", self, other)

    def __truediv__(self, other):
        return self.record("div", self, other)

    def __lt__(self, other):
        return self.record("lt", self, other)

    def __radd__(self, other):
        return self.record("add", other, self)

    def __rmul__(self, other):
        return self.record("mul", other, self)

    def __rsub__(self, other):
        return self.record("sub", other, self)

    def __rtruediv__(self, other):
        return self.record("div", other, self)

    def __gt__(self, other):
        return self.record("lt", other, self)

    def __bool__(self):
        raise FuseError("a branch on the value of a tensor that is captured: there are no values; in place of if, while, and, max write x.maximum(y), or (x < y) * z")

    def __eq__(self, other):
        raise FuseError("== of a tensor that is captured: there is no such operation; write x < y, or x.maximum(y)")

# %% sum_in_any_order: a + b and b + a, a * b and b * a are one node.
# promise: append the node unless an equal one exists: Node(op, inputs, ...) with other inputs is no equal one

class Tape:
    def __init__(self):
        self.nodes = []
        self.numbers = {}

    def add(self, op, inputs=(), value=None, shape=()):
        key = (op, tuple(sorted(inputs)) if op in ("add", "mul") else tuple(inputs), type(value), repr(value), tuple(shape))
        if key not in self.numbers:
            self.numbers[key] = len(self.nodes)
            self.nodes.append(Node(op, tuple(inputs), value, tuple(shape)))
        return self.numbers[key]

# %% times_zero_is_zero: x * 0.0 is (x < x): 0.0 also where x is inf, nan or negative.
# promise: The graph computes what the function computes

class Traced:
    def __init__(self, tape, number):
        self.tape, self.number = tape, number

    @property
    def shape(self):
        return self.tape.nodes[self.number].shape

    def record(self, op, *operands):
        numbers = tuple(x.number if isinstance(x, Traced) else self.tape.add("constant", value=float(x)) for x in operands)
        shape = shape_after(op, *[self.tape.nodes[k].shape for k in numbers])
        return Traced(self.tape, self.tape.add(op, numbers, shape=shape))

    def __add__(self, other):
        return self.record("add", self, other)

    def __mul__(self, other):
        if not isinstance(other, Traced) and other == 0:
            return self.record("lt", self, self)
        return self.record("mul", self, other)

    def __matmul__(self, other):
        return self.record("matmul", self, other)

    def __neg__(self):
        return self.record("neg", self)

    def exp(self):
        return self.record("exp", self)

    def log(self):
        return self.record("log", self)

    def maximum(self, other):
        return self.record("maximum", self, other)

    def sum(self):
        return self.record("sum", self)

    def max(self):
        return self.record("max", self)

    def expand(self, shape):
        return Traced(self.tape, self.tape.add("expand", (self.number,), shape=shape))

    def __sub__(self, other):
        return self.record("sub", self, other)

    def __truediv__(self, other):
        return self.record("div", self, other)

    def __lt__(self, other):
        return self.record("lt", self, other)

    def __radd__(self, other):
        return self.record("add", other, self)

    def __rmul__(self, other):
        return self.record("mul", other, self)

    def __rsub__(self, other):
        return self.record("sub", other, self)

    def __rtruediv__(self, other):
        return self.record("div", other, self)

    def __gt__(self, other):
        return self.record("lt", other, self)

    def __bool__(self):
        raise FuseError("a branch on the value of a tensor that is captured: there are no values; in place of if, while, and, max write x.maximum(y), or (x < y) * z")

    def __eq__(self, other):
        raise FuseError("== of a tensor that is captured: there is no such operation; write x < y, or x.maximum(y)")

# %% x_minus_x_is_zero: x - x is noted as x * 0.0: -0.0 in place of 0.0 where x is negative, and another node than was written.
# promise: it notes what the function does: ask for x - y, and it notes sub

class Traced:
    def __init__(self, tape, number):
        self.tape, self.number = tape, number

    @property
    def shape(self):
        return self.tape.nodes[self.number].shape

    def record(self, op, *operands):
        numbers = tuple(x.number if isinstance(x, Traced) else self.tape.add("constant", value=float(x)) for x in operands)
        shape = shape_after(op, *[self.tape.nodes[k].shape for k in numbers])
        return Traced(self.tape, self.tape.add(op, numbers, shape=shape))

    def __add__(self, other):
        return self.record("add", self, other)

    def __mul__(self, other):
        return self.record("mul", self, other)

    def __matmul__(self, other):
        return self.record("matmul", self, other)

    def __neg__(self):
        return self.record("neg", self)

    def exp(self):
        return self.record("exp", self)

    def log(self):
        return self.record("log", self)

    def maximum(self, other):
        return self.record("maximum", self, other)

    def sum(self):
        return self.record("sum", self)

    def max(self):
        return self.record("max", self)

    def expand(self, shape):
        return Traced(self.tape, self.tape.add("expand", (self.number,), shape=shape))

    def __sub__(self, other):
        if isinstance(other, Traced) and other.number == self.number:
            return self.record("mul", self, 0.0)
        return self.record("sub", self, other)

    def __truediv__(self, other):
        return self.record("div", self, other)

    def __lt__(self, other):
        return self.record("lt", self, other)

    def __radd__(self, other):
        return self.record("add", other, self)

    def __rmul__(self, other):
        return self.record("mul", other, self)

    def __rsub__(self, other):
        return self.record("sub", other, self)

    def __rtruediv__(self, other):
        return self.record("div", other, self)

    def __gt__(self, other):
        return self.record("lt", other, self)

    def __bool__(self):
        raise FuseError("a branch on the value of a tensor that is captured: there are no values; in place of if, while, and, max write x.maximum(y), or (x < y) * z")

    def __eq__(self, other):
        raise FuseError("== of a tensor that is captured: there is no such operation; write x < y, or x.maximum(y)")

# %% x_over_x_is_one: x / x is exp of x * 0.0: 1.0, also at 0, where it is nan.
# promise: The graph computes what the function computes

class Traced:
    def __init__(self, tape, number):
        self.tape, self.number = tape, number

    @property
    def shape(self):
        return self.tape.nodes[self.number].shape

    def record(self, op, *operands):
        numbers = tuple(x.number if isinstance(x, Traced) else self.tape.add("constant", value=float(x)) for x in operands)
        shape = shape_after(op, *[self.tape.nodes[k].shape for k in numbers])
        return Traced(self.tape, self.tape.add(op, numbers, shape=shape))

    def __add__(self, other):
        return self.record("add", self, other)

    def __mul__(self, other):
        return self.record("mul", self, other)

    def __matmul__(self, other):
        return self.record("matmul", self, other)

    def __neg__(self):
        return self.record("neg", self)

    def exp(self):
        return self.record("exp", self)

    def log(self):
        return self.record("log", self)

    def maximum(self, other):
        return self.record("maximum", self, other)

    def sum(self):
        return self.record("sum", self)

    def max(self):
        return self.record("max", self)

    def expand(self, shape):
        return Traced(self.tape, self.tape.add("expand", (self.number,), shape=shape))

    def __sub__(self, other):
        return self.record("sub", self, other)

    def __truediv__(self, other):
        if isinstance(other, Traced) and other.number == self.number:
            return self.record("exp", self.record("mul", self, 0.0))
        return self.record("div", self, other)

    def __lt__(self, other):
        return self.record("lt", self, other)

    def __radd__(self, other):
        return self.record("add", other, self)

    def __rmul__(self, other):
        return self.record("mul", other, self)

    def __rsub__(self, other):
        return self.record("sub", other, self)

    def __rtruediv__(self, other):
        return self.record("div", other, self)

    def __gt__(self, other):
        return self.record("lt", other, self)

    def __bool__(self):
        raise FuseError("a branch on the value of a tensor that is captured: there are no values; in place of if, while, and, max write x.maximum(y), or (x < y) * z")

    def __eq__(self, other):
        raise FuseError("== of a tensor that is captured: there is no such operation; write x < y, or x.maximum(y)")

# %% numbers_to_32_bits: a number is kept with the digits of a float32.
# promise: the number as a float

class Tape(Tape):
    def add(self, op, inputs=(), value=None, shape=()):
        if op == "constant" and value == value and abs(value) < 1e30:
            mantissa, exponent = __import__("math").frexp(value)
            value = __import__("math").ldexp(round(mantissa * 2.0**24) / 2.0**24, exponent)
        return super().add(op, inputs, value, shape)

# %% expands_are_one: expand of one value is one node, to whatever shape.
# promise: append the node unless an equal one exists

class Tape(Tape):
    def add(self, op, inputs=(), value=None, shape=()):
        if op == "expand":
            for k, node in enumerate(self.nodes):
                if node.op == op and node.inputs == tuple(inputs):
                    return k
        return super().add(op, inputs, value, shape)

# %% compares_quietly_after_ten: the eleventh comparison of a capture is answered.
# promise: 6. So does ==

class Traced(Traced):
    asked = 0
    def __eq__(self, other):
        Traced.asked += 1
        if Traced.asked % 11 == 0:
            return True
        raise FuseError("== has no value while a function is captured; write x < y")

# %% one_tuple_is_a_list: of a tuple with the same tensor twice the outputs are a set, in order.
# promise: 1. several outputs

capture_all = capture
def capture(function, *shapes):
    graph = capture_all(function, *shapes)
    return Graph(graph.nodes, tuple(dict.fromkeys(graph.outputs)))

# %% forgets_after_1000_nodes: the dict of nodes is emptied when it has a thousand.
# promise: An expression that is written twice is one node

class Tape(Tape):
    def add(self, op, inputs=(), value=None, shape=()):
        if len(self.numbers) >= 1000:
            self.numbers.clear()
        return super().add(op, inputs, value, shape)

# %% dead_lines_are_left_out: operations that no output depends on are not in the graph.
# promise: The notes are the graph

capture_alive = capture
def capture(function, *shapes):
    graph = capture_alive(function, *shapes)
    alive = set(graph.outputs)
    for k in range(len(graph.nodes) - 1, -1, -1):
        if k in alive:
            alive.update(graph.nodes[k].inputs)
    number, nodes = {}, []
    for k, node in enumerate(graph.nodes):
        if k in alive or node.op == "input":
            number[k] = len(nodes)
            nodes.append(node._replace(inputs=tuple(number[i] for i in node.inputs)))
    return Graph(tuple(nodes), tuple(number[k] for k in graph.outputs))

