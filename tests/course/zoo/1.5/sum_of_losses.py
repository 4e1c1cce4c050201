"""the loss is a sum, not a mean"""


def scalar_loss(outputs, labels):
    """The mean over all points of -log(p), where p is what the network gives for the label (1 or 0) that is right."""
    total = 0.0
    for output, label in zip(outputs, labels):
        right = output if label == 1 else 1.0 - output
        total = total - right.log()
    return total
