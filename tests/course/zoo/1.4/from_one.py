"""it begins with 1, not with d"""


def backpropagate(root, d):
    received = {root: 1.0}
    for variable in topological_order(root):
        total = received.pop(variable)
        if variable.history is None:
            variable.accumulate(total)
            continue
        for x, dx in chain_rule(variable.history, total):
            received[x] = received[x] + dx if x in received else dx
