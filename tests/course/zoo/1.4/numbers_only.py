"""a derivative is taken for a number"""


def backpropagate(root, d):
    received = {root: d}
    for variable in topological_order(root):
        total = received.pop(variable)
        if variable.history is None:
            variable.accumulate(float(total))
            continue
        for x, dx in chain_rule(variable.history, total):
            received[x] = received[x] + dx if x in received else dx
