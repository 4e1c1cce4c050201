"""weights have shape (outputs, inputs)"""


class TensorLinear(TensorLinear):
    def __init__(self, engine, inputs, outputs, random):
        self.weights = engine.tensor([[random.uniform(-1, 1) for _ in range(inputs)] for _ in range(outputs)])
        self.biases = engine.tensor([random.uniform(-1, 1) for _ in range(outputs)])
