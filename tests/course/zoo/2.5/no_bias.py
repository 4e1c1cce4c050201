"""the biases are left out"""


class TensorLinear(TensorLinear):
    def __call__(self, xs):
        return xs @ self.weights
