"""Wrong solutions of task 1.4, one a cell: `# %% name: the mistake that the check must name`."""


# %% all_gather: variables that were computed gather derivatives too
def backpropagate(root, d):
    received = {root: d}
    for variable in topological_order(root):
        total = received.pop(variable)
        variable.accumulate(total)
        if variable.history is not None:
            for x, dx in chain_rule(variable.history, total):
                received[x] = received[x] + dx if x in received else dx


# %% assigned: what a leaf has gathered before is lost
def backpropagate(root, d):
    received = {root: d}
    for variable in topological_order(root):
        total = received.pop(variable)
        if variable.history is None:
            variable.grad = total
            continue
        for x, dx in chain_rule(variable.history, total):
            received[x] = received[x] + dx if x in received else dx


# %% from_one: it begins with 1, not with d
def backpropagate(root, d):
    received = {root: 1.0}
    for variable in topological_order(root):
        total = received.pop(variable)
        if variable.history is None:
            variable.accumulate(total)
            continue
        for x, dx in chain_rule(variable.history, total):
            received[x] = received[x] + dx if x in received else dx


# %% level_by_level: a variable comes before one of its users
def topological_order(root):
    order = [] if root.is_constant else [root]
    for x in order:
        if x.history is not None:
            for y in x.history.inputs:
                if not y.is_constant and y not in order:
                    order.append(y)
    return order


# %% never_seen: a variable that two others need comes twice
def topological_order(root):
    if root.is_constant:
        return []
    order = [root]
    if root.history is not None:
        for x in root.history.inputs:
            order += topological_order(x)
    return order


# %% noted_when_found: a variable comes before one of its users
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


# %% numbers_only: a derivative is taken for a number
def backpropagate(root, d):
    received = {root: d}
    for variable in topological_order(root):
        total = received.pop(variable)
        if variable.history is None:
            variable.accumulate(float(total))
            continue
        for x, dx in chain_rule(variable.history, total):
            received[x] = received[x] + dx if x in received else dx


# %% overwritten: a derivative that arrives replaces what has arrived before
def backpropagate(root, d):
    received = {root: d}
    for variable in topological_order(root):
        if variable.history is None:
            variable.accumulate(received[variable])
        else:
            received.update(chain_rule(variable.history, received[variable]))


# %% passed_on_early: derivatives are passed on before all have arrived
def backpropagate(root, d):
    stack = [] if root.is_constant else [(root, d)]
    while stack:
        variable, dx = stack.pop()
        if variable.history is None:
            variable.accumulate(dx)
        else:
            stack += chain_rule(variable.history, dx)


# %% recursive: a function calls itself once for each variable on the way
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


# %% told_in_parts: derivatives are passed on before all have arrived
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


# %% with_constants: constants are in the order
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


# %% added_to_zero: the first gradient is added to 0
def backpropagate(root, d):
    received = {root: d}
    for x in topological_order(root):
        if x.history is None:
            x.accumulate(received[x])
            continue
        for i, di in chain_rule(x.history, received[x]):
            received[i] = received.get(i, 0) + di


# %% in_place: derivatives are added in place
def backpropagate(root, d):
    received = {root: d}
    for variable in topological_order(root):
        total = received.pop(variable)
        if variable.history is None:
            variable.accumulate(total)
            continue
        for x, dx in chain_rule(variable.history, total):
            if x in received:
                received[x] += dx
            else:
                received[x] = dx


# %% searched: all variables are gone through for each of them
def topological_order(root):
    order, seen = [], []
    stack = [(root, False)]
    while stack:
        variable, inputs_are_done = stack.pop()
        if inputs_are_done:
            order.append(variable)
        elif not variable.is_constant and variable not in seen:
            seen.append(variable)
            stack.append((variable, True))
            if variable.history is not None:
                stack += [(x, False) for x in variable.history.inputs]
    order.reverse()
    return order


# %% not_turned_round: the list is upside down: inputs come before their users
def topological_order(root):
    order, seen = [], set()
    stack = [(root, False)]
    while stack:
        variable, inputs_are_done = stack.pop()
        if inputs_are_done:
            order.append(variable)
        elif not variable.is_constant and variable not in seen:
            seen.add(variable)
            stack.append((variable, True))
            if variable.history is not None:
                stack += [(x, False) for x in variable.history.inputs]
    return order
