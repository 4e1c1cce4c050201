"""the biases are left out"""


class ScalarLinear(ScalarLinear):
    def __call__(self, xs):
        return [sum(row[j] * x for row, x in zip(self.weights, xs)) for j in range(len(self.biases))]
