"""all weights begin alike"""


class ScalarLinear(ScalarLinear):
    def __init__(self, engine, inputs, outputs, random):
        self.weights = [[engine.scalar(0.5) for _ in range(outputs)] for _ in range(inputs)]
        self.biases = [engine.scalar(0.5) for _ in range(outputs)]
