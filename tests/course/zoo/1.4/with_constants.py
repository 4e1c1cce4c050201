"""constants are in the order"""


def topological_order(root):
    order, seen = [], set()
    stack = [(root, False)]
    while stack:
        variable, inputs_are_done = stack.pop()
        if inputs_are_done:
            order.append(variable)
        elif variable not in seen:
            seen.add(variable)
            stack.append((variable, True))
            if variable.history is not None:
                stack += [(x, False) for x in variable.history.inputs]
    order.reverse()
    return order
