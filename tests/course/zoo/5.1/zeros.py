"""0.0 and -0.0 are one constant"""


class Tape(Tape):
    def add(self, op, inputs=(), value=None, shape=()):
        node = Node(op, tuple(inputs), value, tuple(shape))
        if node not in self.numbers:
            self.numbers[node] = len(self.nodes)
            self.nodes.append(node)
        return self.numbers[node]
