"""the biases are left out"""


class ScalarLinear:
    """A layer: output j is the sum over i of xs[i] * weights[i][j], plus biases[j].

    `weights` has a list of `outputs` scalars for each input, `biases` is a list of scalars. Each is drawn by
    `random.uniform(-1, 1)`, so that no two outputs begin alike.
    """

    def __init__(self, engine, inputs, outputs, random):
        self.weights = [[engine.scalar(random.uniform(-1, 1)) for _ in range(outputs)] for _ in range(inputs)]
        self.biases = [engine.scalar(random.uniform(-1, 1)) for _ in range(outputs)]

    def __call__(self, xs):
        """A list of scalars, from a list of scalars or floats."""
        outputs = []
        for j in range(len(self.biases)):
            total = 0.0
            for i, x in enumerate(xs):
                total = total + self.weights[i][j] * x
            outputs.append(total)
        return outputs

    def parameters(self):
        """All that can be learnt."""
        return [w for row in self.weights for w in row] + list(self.biases)
