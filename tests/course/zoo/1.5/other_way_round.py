"""weights lie the other way round"""


class ScalarLinear(ScalarLinear):
    def __call__(self, xs):
        outputs = []
        for j, bias in enumerate(self.biases):
            total = bias
            for i, x in enumerate(xs):
                total = total + self.weights[j][i] * x
            outputs.append(total)
        return outputs
