"""a variable that is an input twice is there once"""


def chain_rule(call, d):
    derivatives = call.function.backward(call.context, d)
    return list({x: dx for x, dx in zip(call.inputs, derivatives) if not x.is_constant}.items())
