"""derivatives are passed on before all have arrived"""


def backpropagate(root, d):
    received = {root: d}
    for variable in topological_order(root):
        total = received.pop(variable, None)
        if variable is root and variable.history is None:
            variable.accumulate(d)
        if variable.history is None:
            continue
        for x, dx in chain_rule(variable.history, total):
            if x.history is None:
                x.accumulate(dx)
            else:
                received[x] = received[x] + dx if x in received else dx
