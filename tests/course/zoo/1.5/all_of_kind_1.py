"""every point counts as one of kind 1"""


def scalar_loss(outputs, labels):
    """The mean over all points of -log(p), where p is what the network gives for the label (1 or 0) that is right."""
    total = 0.0
    for output in outputs:
        right = output
        total = total - right.log()
    return total / len(labels)
