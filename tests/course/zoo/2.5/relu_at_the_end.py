"""there is a ReLU before the sigmoid"""


class TensorNetwork(TensorNetwork):
    def __call__(self, xs):
        first, last = self.layers
        return last(first(xs).relu()).relu().sigmoid()
