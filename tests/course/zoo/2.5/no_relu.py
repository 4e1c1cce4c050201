"""the ReLU between the layers is left out"""


class TensorNetwork(TensorNetwork):
    def __call__(self, xs):
        first, last = self.layers
        return last(first(xs)).sigmoid()
