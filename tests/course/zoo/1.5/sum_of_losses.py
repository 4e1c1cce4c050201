"""the loss is a sum, not a mean"""


def scalar_loss(outputs, labels):
    total = 0.0
    for output, label in zip(outputs, labels):
        right = output if label == 1 else 1.0 - output
        total = total - right.log()
    return total
