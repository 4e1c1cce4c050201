"""the loss has no minus sign"""


def digit_loss(likely, labels):
    chosen = [[float(digit == label) for digit in range(10)] for label in labels]
    return (likely * chosen).sum() * (1 / len(labels))
