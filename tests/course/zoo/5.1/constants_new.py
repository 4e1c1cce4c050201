"""each number is a new constant"""


class Tape(Tape):
    def add(self, op, inputs=(), value=None, shape=()):
        node = Node(op, tuple(inputs), value, tuple(shape))
        if op != "constant" and node in self.numbers:
            return self.numbers[node]
        self.numbers[node] = len(self.nodes)
        self.nodes.append(node)
        return len(self.nodes) - 1
