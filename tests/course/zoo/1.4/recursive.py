"""a function calls itself once for each variable on the way"""


def topological_order(root):
    order, seen = [], set()

    def visit(x):
        if x.is_constant or x in seen:
            return
        seen.add(x)
        if x.history is not None:
            for y in x.history.inputs:
                visit(y)
        order.append(x)

    visit(root)
    return order[::-1]
