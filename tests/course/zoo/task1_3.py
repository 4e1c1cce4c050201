"""Wrong solutions of task 1.3, one a cell: `# %% name: the mistake that the check must name`."""


# %% constants_kept: constants are kept
def chain_rule(call, d):
    return list(zip(call.inputs, call.function.backward(call.context, d)))


# %% without_context: backward is called without the context
def chain_rule(call, d):
    return [(x, dx) for x, dx in zip(call.inputs, call.function.backward(d)) if not x.is_constant]


# %% d_twice: derivatives are multiplied by d twice
def chain_rule(call, d):
    derivatives = call.function.backward(call.context, d)
    return [(x, dx * d) for x, dx in zip(call.inputs, derivatives) if not x.is_constant]


# %% filtered_first: constants are left out before inputs and derivatives are paired
def chain_rule(call, d):
    inputs = [x for x in call.inputs if not x.is_constant]
    return list(zip(inputs, call.function.backward(call.context, d)))


# %% in_a_dict: a variable that is an input twice is there once
def chain_rule(call, d):
    derivatives = call.function.backward(call.context, d)
    return list({x: dx for x, dx in zip(call.inputs, derivatives) if not x.is_constant}.items())


# %% one_for_d: backward is told 1 in place of d
def chain_rule(call, d):
    derivatives = call.function.backward(call.context, 1.0)
    return [(x, dx) for x, dx in zip(call.inputs, derivatives) if not x.is_constant]


# %% asked_for_each_input: backward is not asked exactly once
def chain_rule(call, d):
    inputs = enumerate(call.inputs)
    return [(x, call.function.backward(call.context, d)[i]) for i, x in inputs if not x.is_constant]


# %% to_a_float: a derivative is taken for a number
def chain_rule(call, d):
    derivatives = call.function.backward(call.context, d)
    return [(x, float(dx)) for x, dx in zip(call.inputs, derivatives) if not x.is_constant]
