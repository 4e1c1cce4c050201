"""Right solutions of task 1.3 that are written in unusual ways. Each is appended to the reference."""


# %% compress: filters the pairs by an iterator of flags
def chain_rule(call, d):
    from itertools import compress

    pairs = zip(call.inputs, call.function.backward(call.context, d))
    return list(compress(pairs, [not x.is_constant for x in call.inputs]))


# %% backwards_while: a while loop from the last input to the first
def chain_rule(call, d):
    backward = getattr(call.function, "backward")
    derivatives, i, pairs = backward(call.context, d), len(call.inputs), []
    while i > 0:
        i -= 1
        if call.inputs[i].is_constant:
            continue
        pairs.insert(0, (call.inputs[i], derivatives[i]))
    return pairs


# %% named_pairs: a generator of named tuples, made to a list
def chain_rule(call, d):
    from typing import NamedTuple

    class Share(NamedTuple):
        variable: object
        derivative: object

    def shares():
        derivatives = iter(call.function.backward(call.context, d))
        for x in call.inputs:
            dx = next(derivatives)
            if not x.is_constant:
                yield Share(x, dx)

    return [*shares()]
