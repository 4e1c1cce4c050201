"""backward is told 1 in place of d"""


def chain_rule(call, d):
    derivatives = call.function.backward(call.context, 1.0)
    return [(x, dx) for x, dx in zip(call.inputs, derivatives) if not x.is_constant]
