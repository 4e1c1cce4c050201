"""points of kind 0 do not count"""


def tensor_loss(outputs, labels):
    return -(labels * outputs.log()).mean()
