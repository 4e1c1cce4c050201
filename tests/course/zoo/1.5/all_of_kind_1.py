"""every point counts as one of kind 1"""


def scalar_loss(outputs, labels):
    total = 0.0
    for output in outputs:
        right = output
        total = total - right.log()
    return total / len(labels)
