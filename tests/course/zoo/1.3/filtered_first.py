"""constants are left out before inputs and derivatives are paired"""


def chain_rule(call, d):
    inputs = [x for x in call.inputs if not x.is_constant]
    return list(zip(inputs, call.function.backward(call.context, d)))
