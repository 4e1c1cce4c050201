"""a variable is noted when it is found, not when all that it is for has been"""


def topological_order(root):
    order = [] if root.is_constant else [root]
    for x in order:
        if x.history is not None:
            for y in x.history.inputs:
                if not y.is_constant and y not in order:
                    order.append(y)
    return order
