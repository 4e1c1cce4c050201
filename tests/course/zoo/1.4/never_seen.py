"""a variable that two others need comes twice"""


def topological_order(root):
    if root.is_constant:
        return []
    order = [root]
    if root.history is not None:
        for x in root.history.inputs:
            order += topological_order(x)
    return order
