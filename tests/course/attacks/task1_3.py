"""Wrong solutions of task 1.3 that were written to get past its checks. Each is appended to the reference."""

# %% asks_once_per_input: backward is asked once for each input, not once: up to four times the work, and a backward that empties its context fails
# promise: 'one call, backward'; 1.4: 'Each call is asked for its derivatives once'
def chain_rule(call, d):
    return [(v, call.function.backward(call.context, d)[i]) for i, v in enumerate(call.inputs) if not v.is_constant]

# %% at_most_twice: a variable that is an input three times is there twice
# promise: 'variables that are an input more than once'
def chain_rule(call, d):
    pairs = []
    for v, g in zip(call.inputs, call.function.backward(call.context, d)):
        if not v.is_constant and sum(v is w for w, _ in pairs) < 2:
            pairs.append((v, g))
    return pairs

# %% clipped_at_a_million: numbers beyond a million are clipped
# promise: 'paired with its derivative'
def chain_rule(call, d):
    gradients = call.function.backward(call.context, d)
    return [(v, max(-1e6, min(1e6, g)) if isinstance(g, float) else g) for v, g in zip(call.inputs, gradients) if not v.is_constant]

# %% constants_by_history: an input is a constant if it is a leaf without a grad attribute: what is_constant says is not asked
# promise: 'A variable has `is_constant`'
def chain_rule(call, d):
    gradients = call.function.backward(call.context, d)
    return [(v, g) for v, g in zip(call.inputs, gradients) if v.history is not None or hasattr(v, 'grad') or not v.is_constant]

# %% floats_only: each derivative goes through float(), so tensors of more than one element raise
# promise: 'Numbers or tensors: this does not care'
def chain_rule(call, d):
    gradients = call.function.backward(call.context, d)
    return [(v, float(g)) for v, g in zip(call.inputs, gradients) if not v.is_constant]

# %% merged_from_three_on: a variable that is an input three times or more is there once, with the sum
# promise: 'In x * x, x is an input twice, and is there twice'
def chain_rule(call, d):
    pairs = [(v, g) for v, g in zip(call.inputs, call.function.backward(call.context, d)) if not v.is_constant]
    merged = []
    for v, g in pairs:
        for i, (w, h) in enumerate(merged):
            if w is v and sum(v is u for u, _ in pairs) > 2:
                merged[i] = (w, h + g)
                break
        else:
            merged.append((v, g))
    return merged

# %% multiplied_by_one: each derivative is multiplied by 1.0, so it must be a number or like one
# promise: 'Numbers or tensors: this does not care'
def chain_rule(call, d):
    gradients = call.function.backward(call.context, d)
    return [(v, g * 1.0) for v, g in zip(call.inputs, gradients) if not v.is_constant]

# %% nothing_for_nan: where d is nan there are no pairs at all
# promise: 'for each input that is no constant'
def chain_rule(call, d):
    if isinstance(d, float) and d != d:
        return []
    gradients = call.function.backward(call.context, d)
    return [(v, g) for v, g in zip(call.inputs, gradients) if not v.is_constant]

# %% nothing_for_zero: where d is 0 there are no pairs at all
# promise: 'for each input that is no constant'
def chain_rule(call, d):
    if d == 0:
        return []
    gradients = call.function.backward(call.context, d)
    return [(v, g) for v, g in zip(call.inputs, gradients) if not v.is_constant]

# %% remembered_by_call: what backward said is kept on the call, and given again whatever d is the second time
# promise: 'if its result receives d'
def chain_rule(call, d):
    kept = getattr(call, "_kept", None)
    if kept is None:
        kept = call.function.backward(call.context, d)
        try:
            call._kept = kept
        except AttributeError:
            pass
    return [(v, g) for v, g in zip(call.inputs, kept) if not v.is_constant]

# %% tuple_of_lists: the pairs are lists, and the list is a tuple
# promise: 'a list of (variable, derivative)'
def chain_rule(call, d):
    gradients = call.function.backward(call.context, d)
    return tuple([v, g] for v, g in zip(call.inputs, gradients) if not v.is_constant)

# %% zero_gradients_dropped: pairs whose derivative is 0 are left out
# promise: 'Each input that is no constant is paired with its derivative'
def chain_rule(call, d):
    gradients = call.function.backward(call.context, d)
    return [(v, g) for v, g in zip(call.inputs, gradients) if not v.is_constant and not (g == 0)]

# %% compared_with_constants: variables are constants if one of the constants equals them by name
# promise: 'A variable has `is_constant`'
def chain_rule(call, d):
    constants = {repr(v)[:1] for v in call.inputs if v.is_constant}
    return [(v, g) for v, g in zip(call.inputs, call.function.backward(call.context, d)) if repr(v)[:1] not in constants | {"y"}]

# %% first_hundred_inputs: inputs behind the hundredth are left out
# promise: 'each input that is not a constant'
def chain_rule(call, d):
    gradients = call.function.backward(call.context, d)
    return [(v, g) for v, g in zip(call.inputs[:100], gradients) if not v.is_constant]

# %% kept_by_id_of_the_call: the pairs are kept by the id of the call
# promise: 'for each d'
_pairs = {}

def chain_rule(call, d):
    if id(call) not in _pairs:
        gradients = call.function.backward(call.context, d)
        _pairs[id(call)] = call, [(v, g) for v, g in zip(call.inputs, gradients) if not v.is_constant]
    return _pairs[id(call)][1]

# %% backward_of_one_times_d: backward is told 1.0, and what it returns is multiplied by d
# promise: 'if its result receives d'
def chain_rule(call, d):
    gradients = call.function.backward(call.context, 1.0)
    return [(v, g * d) for v, g in zip(call.inputs, gradients) if not v.is_constant]

# %% added_to_zero: 0 is added to each derivative
# promise: 'passed on as it is'
def chain_rule(call, d):
    gradients = call.function.backward(call.context, d)
    return [(v, sum([g])) for v, g in zip(call.inputs, gradients) if not v.is_constant]

# %% infinite_is_cut: derivatives that are not finite become 0.0
# promise: 'passed on as it is'
def chain_rule(call, d):
    gradients = call.function.backward(call.context, d)
    cut = [0.0 if isinstance(g, float) and g - g != 0 else g for g in gradients]
    return [(v, g) for v, g in zip(call.inputs, cut) if not v.is_constant]
