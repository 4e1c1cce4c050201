"""derivatives are passed on before all have arrived"""


def backpropagate(root, d):
    stack = [] if root.is_constant else [(root, d)]
    while stack:
        variable, dx = stack.pop()
        if variable.history is None:
            variable.accumulate(dx)
        else:
            stack += chain_rule(variable.history, dx)
