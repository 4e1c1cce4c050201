"""points of kind 0 do not count"""


def tensor_loss(outputs, labels):
    """The mean over all points of -log(p), a tensor with one element. Outputs and labels have shape (points, 1)."""
    return -(labels * outputs.log()).mean()
