"""a variable is noted when it is found, not when all that it is for has been"""


def topological_order(root):
    order, seen = [], set()
    stack = [root]
    while stack:
        x = stack.pop()
        if x.is_constant or x in seen:
            continue
        seen.add(x)
        order.append(x)
        if x.history is not None:
            stack += x.history.inputs
    return order
