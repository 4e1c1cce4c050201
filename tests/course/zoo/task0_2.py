"""Wrong solutions of task 0.2, one a cell: `# %% name: the mistake that the check must name`."""


# %% always_true: the property is true whatever the operator does
def about_mul(ops, x, y, z):
    return ops.mul(x, y) == ops.mul(x, y)


# %% compared_exactly: floats are compared exactly
def about_add(ops, x, y, z):
    return ops.add(ops.add(x, y), z) == ops.add(x, ops.add(y, z))


# %% error_raised: the property raises an error instead of answering
def about_maximum(ops, x, y, z):
    return ops.maximum(x, y) / x >= 1 / y


# %% examples: a few numbers are tested, and the others are not
def about_mul(ops, x, y, z):
    pairs = [(a / 2, b / 2) for a in range(-6, 7) for b in range(-6, 7)]
    return all(ops.mul(a, b) == a * b for a, b in pairs)


# %% law_that_others_keep: the wrong operator keeps this law too
def about_sigmoid(ops, x, y, z):
    return ops.is_close(ops.add(ops.sigmoid(x), ops.sigmoid(ops.neg(x))), 1.0)


# %% never_asked: the operator is never asked
def about_relu(ops, x, y, z):
    return max(x, 0.0) >= 0.0


# %% next_to_zero: numbers next to zero are not thought of
def about_inv(ops, x, y, z):
    return x == 0 or ops.is_close(ops.mul(x, ops.inv(x)), 1.0)


# %% no_yes_or_no: the answer is neither yes nor no
def about_add(ops, x, y, z):
    return ops.add(x, y), ops.add(y, x)


# %% nothing_returned: nothing is returned
def about_maximum(ops, x, y, z):
    assert ops.maximum(x, y) >= x


# %% zero_forgotten: zero is not thought of
def about_inv(ops, x, y, z):
    return ops.is_close(ops.mul(x, ops.inv(x)), 1.0)
