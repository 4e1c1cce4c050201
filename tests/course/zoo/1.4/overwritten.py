"""a derivative that arrives replaces what has arrived before"""


def backpropagate(root, d):
    received = {root: d}
    for variable in topological_order(root):
        if variable.history is None:
            variable.accumulate(received[variable])
        else:
            received.update(chain_rule(variable.history, received[variable]))
