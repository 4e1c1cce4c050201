"""derivatives are multiplied by d twice"""


def chain_rule(call, d):
    derivatives = call.function.backward(call.context, d)
    return [(x, dx * d) for x, dx in zip(call.inputs, derivatives) if not x.is_constant]
