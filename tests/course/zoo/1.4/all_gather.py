"""variables that were computed gather derivatives too"""


def backpropagate(root, d):
    received = {root: d}
    for variable in topological_order(root):
        total = received.pop(variable)
        variable.accumulate(total)
        if variable.history is not None:
            for x, dx in chain_rule(variable.history, total):
                received[x] = received[x] + dx if x in received else dx
