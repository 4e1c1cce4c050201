"""all weights begin alike"""


class TensorLinear(TensorLinear):
    def __init__(self, engine, inputs, outputs, random):
        self.weights = engine.tensor([[0.5 for _ in range(outputs)] for _ in range(inputs)])
        self.biases = engine.tensor([0.5 for _ in range(outputs)])
