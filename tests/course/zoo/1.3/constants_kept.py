"""constants are kept"""


def chain_rule(call, d):
    return list(zip(call.inputs, call.function.backward(call.context, d)))
