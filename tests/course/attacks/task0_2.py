"""Wrong solutions of task 0.2 that were written to get past its checks. Each is appended to the reference."""

# %% add_grows_strictly: about_add demands x + z < y + z where x + 1e-15 < y, which is False at x = 0, y = 2e-15, z = 30
# promise: 'True for right operators, for all numbers'
def about_add(ops, x, y, z):
    if x + 1e-15 < y and not ops.lt(ops.add(x, z), ops.add(y, z)):
        return False
    return all([
        ops.eq(ops.add(x, 0.0), x),
        ops.eq(ops.add(0.0, x), x),
        ops.eq(ops.add(x, y), ops.add(y, x)),
        ops.is_close(ops.add(ops.add(x, y), z), ops.add(x, ops.add(y, z))),
        ops.eq(ops.add(x, ops.neg(x)), 0.0),
        ops.eq(ops.add(x, x), ops.mul(2.0, x)),
        ops.is_close(ops.add(ops.add(x, y), ops.neg(y)), x),
        ops.eq(ops.neg(ops.add(x, y)), ops.add(ops.neg(x), ops.neg(y))),
    ])

# %% compares_with_own_file: about_maximum compares with the maximum of operators.py, which is lent: no law
# promise: 'Test laws of the maximum of two numbers'

def about_maximum(ops, x, y, z):
    ops.maximum(x, y)
    return ops.maximum(x, y) == _true(x, y)

def _true(x, y):
    from operators import maximum
    return maximum(x, y)

# %% exact_equality: about_add and about_mul demand exact associativity and distributivity by eq, which is False of the right ones at 0.1, 0.2, 0.3
# promise: '(0.1 + 0.2) + 0.3 and 0.1 + (0.2 + 0.3) differ in the last digit, and both are right'; 'True for right operators, for all numbers'
def about_add(ops, x, y, z):
    return all([
        ops.eq(ops.add(x, 0.0), x),
        ops.eq(ops.add(0.0, x), x),
        ops.eq(ops.add(x, y), ops.add(y, x)),
        ops.eq(ops.add(ops.add(x, y), z), ops.add(x, ops.add(y, z))),
        ops.eq(ops.add(x, ops.neg(x)), 0.0),
        ops.eq(ops.add(x, x), ops.mul(2.0, x)),
        ops.eq(ops.add(ops.add(x, y), ops.neg(y)), x),
        ops.eq(ops.neg(ops.add(x, y)), ops.add(ops.neg(x), ops.neg(y))),
    ])

def about_mul(ops, x, y, z):
    return all([
        ops.eq(ops.mul(x, 1.0), x),
        ops.eq(ops.mul(1.0, x), x),
        ops.eq(ops.mul(x, 0.0), 0.0),
        ops.eq(ops.mul(x, y), ops.mul(y, x)),
        ops.eq(ops.mul(x, -1.0), ops.neg(x)),
        ops.eq(ops.mul(ops.neg(x), y), ops.neg(ops.mul(x, y))),
        ops.eq(ops.mul(x, 2.0), ops.add(x, x)),
        ops.eq(ops.mul(ops.mul(x, y), z), ops.mul(x, ops.mul(y, z))),
        ops.eq(ops.mul(x, ops.add(y, z)), ops.add(ops.mul(x, y), ops.mul(x, z))),
    ])

# %% exact_inverse: about_inv demands 1 / (1 / x) == x exactly, False: 1 / (1 / x) is not x for many x, as 49.0
# promise: 'True for right operators, for all numbers'

def about_inv(ops, x, y, z):
    laws = [
        ops.eq(ops.inv(0.0), float("inf")),
        ops.eq(ops.inv(1.0), 1.0),
        ops.eq(ops.inv(2.0), 0.5),
    ]
    if abs(x) > 1e-300:
        laws += [
            ops.is_close(ops.mul(x, ops.inv(x)), 1.0),
            ops.eq(ops.inv(ops.inv(x)), x),
            ops.eq(ops.inv(ops.neg(x)), ops.neg(ops.inv(x))),
        ]
        if abs(y) > 1e-300 and 1e-300 < abs(x * y):
            laws.append(ops.is_close(ops.inv(ops.mul(x, y)), ops.mul(ops.inv(x), ops.inv(y))))
    return all(laws)

# %% examples_only: about_add and about_mul test one example each and look at none of x, y, z: no law at all
# promise: 'A property says what is true of all'; 'Test laws of addition'
def about_add(ops, x, y, z):
    return ops.add(2.5, -7.25) == -4.75 and ops.add(3.0, 4.0) == 7.0 and ops.add(0.0, 0.0) == 0.0 and ops.add(-4.0, -4.0) == -8.0

def about_mul(ops, x, y, z):
    return ops.mul(2.5, -7.0) == -17.5 and ops.mul(3.0, 4.0) == 12.0 and ops.mul(0.0, 5.0) == 0.0 and ops.mul(-4.0, -4.0) == 16.0 and ops.mul(0.5, 1.0) == 0.5

# %% exp_exact_at_whole_numbers: about_exp_and_log demands 1 / exp(-x) == exp(x) exactly where x is whole and larger than 7: False for some
# promise: 'True for right operators, for all numbers'

def about_exp_and_log(ops, x, y, z):
    laws = [
        ops.is_close(ops.log(ops.exp(x)), x),
        ops.is_close(ops.exp(ops.add(x, y)), ops.mul(ops.exp(x), ops.exp(y))),
        ops.is_close(ops.mul(ops.exp(x), ops.exp(ops.neg(x))), 1.0),
        ops.lt(0.0, ops.exp(x)),
        ops.eq(ops.exp(0.0), 1.0),
        ops.eq(ops.log(1.0), 0.0),
        ops.is_close(ops.exp(1.0), 2.718281828459045),
        ops.is_close(ops.log(2.718281828459045), 1.0),
        ops.eq(ops.log(0.0), -float("inf")),
    ]
    if abs(x) > 1e-300:
        laws.append(ops.is_close(ops.exp(ops.log(abs(x))), abs(x)))
        if abs(y) > 1e-300 and abs(x * y) > 1e-300:
            laws.append(ops.is_close(ops.log(abs(x * y)), ops.add(ops.log(abs(x)), ops.log(abs(y)))))
    if x == int(x) and abs(x) > 7:
        laws.append(ops.eq(ops.inv(ops.exp(ops.neg(x))), ops.exp(x)))
    return all(laws)

# %% exp_strictly_grows: about_exp_and_log demands exp(x) < exp(y) for all x < y, which is False at 0 and 1e-20
# promise: 'True for right operators, for all numbers'

def about_exp_and_log(ops, x, y, z):
    laws = [
        ops.is_close(ops.log(ops.exp(x)), x),
        ops.is_close(ops.exp(ops.add(x, y)), ops.mul(ops.exp(x), ops.exp(y))),
        ops.is_close(ops.mul(ops.exp(x), ops.exp(ops.neg(x))), 1.0),
        ops.lt(0.0, ops.exp(x)),
        ops.eq(ops.exp(0.0), 1.0),
        ops.eq(ops.log(1.0), 0.0),
        ops.is_close(ops.exp(1.0), 2.718281828459045),
        ops.is_close(ops.log(2.718281828459045), 1.0),
        ops.eq(ops.log(0.0), -float("inf")),
    ]
    if abs(x) > 1e-300:
        laws.append(ops.is_close(ops.exp(ops.log(abs(x))), abs(x)))
        if abs(y) > 1e-300 and abs(x * y) > 1e-300:
            laws.append(ops.is_close(ops.log(abs(x * y)), ops.add(ops.log(abs(x)), ops.log(abs(y)))))
    if x < y:
        laws.append(ops.lt(ops.exp(x), ops.exp(y)))
    return all(laws)

# %% false_at_a_rare_number: about_add is False for right operators at x = 17.03125, y = 2.0, a number that is hardly ever tried
# promise: 'True for right operators, for all numbers'
def about_add(ops, x, y, z):
    if (x, y) == (17.03125, 2.0):
        return False
    return all([
        ops.eq(ops.add(x, 0.0), x),
        ops.eq(ops.add(0.0, x), x),
        ops.eq(ops.add(x, y), ops.add(y, x)),
        ops.is_close(ops.add(ops.add(x, y), z), ops.add(x, ops.add(y, z))),
        ops.eq(ops.add(x, ops.neg(x)), 0.0),
        ops.eq(ops.add(x, x), ops.mul(2.0, x)),
        ops.is_close(ops.add(ops.add(x, y), ops.neg(y)), x),
        ops.eq(ops.neg(ops.add(x, y)), ops.add(ops.neg(x), ops.neg(y))),
    ])

# %% inv_false_for_subnormals: about_inv demands x * (1 / x) = 1 for every x but 0, which is False of the right one at 1e-310
# promise: 'True for right operators, for all numbers'

def about_inv(ops, x, y, z):
    if x == 0:
        return ops.inv(x) == float("inf")
    return all([
        ops.is_close(ops.mul(x, ops.inv(x)), 1.0),
        ops.is_close(ops.inv(ops.inv(x)), x),
        ops.eq(ops.inv(0.0), float("inf")),
        ops.eq(ops.inv(1.0), 1.0),
        ops.eq(ops.inv(ops.neg(x)), ops.neg(ops.inv(x))),
    ])

# %% is_close_at_the_rim: about_is_close demands is_close(x, x + 1e-8), which rounding makes False for some small x
# promise: 'True for right operators, for all numbers'

def about_is_close(ops, x, y, z):
    big = x * 1e8
    inf = float("inf")
    laws = [
        ops.is_close(x, x) == 1.0,
        ops.is_close(big, big) == 1.0,
        ops.is_close(x, y) == ops.is_close(y, x),
        ops.is_close(x, x * (1 + 2e-6)) == 1.0,
        ops.is_close(big, big * (1 + 2e-6)) == 1.0,
        ops.is_close(x, x + 1.0) == 0.0,
        ops.is_close(1e-9, 5e-9) == 1.0,
        ops.is_close(0.0, 5e-9) == 1.0,
        ops.is_close(-4e-9, 4e-9) == 1.0,
        ops.is_close(3e-6, 4e-6) == 0.0,
        ops.is_close(0.0, 1e-6) == 0.0,
        ops.is_close(inf, inf) == 1.0,
        ops.is_close(inf, x) == 0.0,
        ops.is_close(inf, -inf) == 0.0,
        ops.is_close(3e9, 3e9 + 1) == 1.0,
    ]
    if abs(x) > 1e-3:
        laws += [
            ops.is_close(x, x * (1 + 1e-4)) == 0.0,
            ops.is_close(x * (1 + 1e-4), x) == 0.0,
            ops.is_close(big, big * (1 + 1e-4)) == 0.0,
            ops.is_close(x, -x) == 0.0,
        ]
    laws.append(ops.is_close(x, x + 1e-8) == 1.0)
    return all(laws)

# %% is_close_flat_limit: about_is_close demands that numbers 0.0002 apart are not close, which is False of 29.0 and 29.00025
# promise: 'True for right operators, for all numbers'

def about_is_close(ops, x, y, z):
    big = x * 1e8
    inf = float("inf")
    laws = [
        ops.is_close(x, x) == 1.0,
        ops.is_close(big, big) == 1.0,
        ops.is_close(x, y) == ops.is_close(y, x),
        ops.is_close(x, x * (1 + 2e-6)) == 1.0,
        ops.is_close(big, big * (1 + 2e-6)) == 1.0,
        ops.is_close(x, x + 1.0) == 0.0,
        ops.is_close(1e-9, 5e-9) == 1.0,
        ops.is_close(0.0, 5e-9) == 1.0,
        ops.is_close(-4e-9, 4e-9) == 1.0,
        ops.is_close(3e-6, 4e-6) == 0.0,
        ops.is_close(0.0, 1e-6) == 0.0,
        ops.is_close(inf, inf) == 1.0,
        ops.is_close(inf, x) == 0.0,
        ops.is_close(inf, -inf) == 0.0,
        ops.is_close(3e9, 3e9 + 1) == 1.0,
    ]
    if abs(x) > 1e-3:
        laws += [
            ops.is_close(x, x * (1 + 1e-4)) == 0.0,
            ops.is_close(x * (1 + 1e-4), x) == 0.0,
            ops.is_close(big, big * (1 + 1e-4)) == 0.0,
            ops.is_close(x, -x) == 0.0,
        ]
    if abs(x - y) > 2e-4:
        laws.append(ops.is_close(x, y) == 0.0)
    return all(laws)

# %% is_close_small_by_product: about_is_close demands that x * z * 1000 is close to 0 where |x| < 1e-9: False of the right one at x = 9e-10, z = 30
# promise: 'True for right operators, for all numbers'

def about_is_close(ops, x, y, z):
    big = x * 1e8
    inf = float("inf")
    laws = [
        ops.is_close(x, x) == 1.0,
        ops.is_close(big, big) == 1.0,
        ops.is_close(x, y) == ops.is_close(y, x),
        ops.is_close(x, x * (1 + 2e-6)) == 1.0,
        ops.is_close(big, big * (1 + 2e-6)) == 1.0,
        ops.is_close(x, x + 1.0) == 0.0,
        ops.is_close(1e-9, 5e-9) == 1.0,
        ops.is_close(0.0, 5e-9) == 1.0,
        ops.is_close(-4e-9, 4e-9) == 1.0,
        ops.is_close(3e-6, 4e-6) == 0.0,
        ops.is_close(0.0, 1e-6) == 0.0,
        ops.is_close(inf, inf) == 1.0,
        ops.is_close(inf, x) == 0.0,
        ops.is_close(inf, -inf) == 0.0,
        ops.is_close(3e9, 3e9 + 1) == 1.0,
    ]
    if abs(x) > 1e-3:
        laws += [
            ops.is_close(x, x * (1 + 1e-4)) == 0.0,
            ops.is_close(x * (1 + 1e-4), x) == 0.0,
            ops.is_close(big, big * (1 + 1e-4)) == 0.0,
            ops.is_close(x, -x) == 0.0,
        ]
    if abs(z) > 1e-3 and abs(x) < 1e-9:
        laws.append(ops.is_close(x * z * 1e3, 0.0) == 1.0)
    return all(laws)

# %% is_close_transitive: about_is_close demands that closeness is transitive, which is False of the right one at 1, 1.000009, 1.000018
# promise: 'True for right operators, for all numbers'

def about_is_close(ops, x, y, z):
    big = x * 1e8
    inf = float("inf")
    laws = [
        ops.is_close(x, x) == 1.0,
        ops.is_close(big, big) == 1.0,
        ops.is_close(x, y) == ops.is_close(y, x),
        ops.is_close(x, x * (1 + 2e-6)) == 1.0,
        ops.is_close(big, big * (1 + 2e-6)) == 1.0,
        ops.is_close(x, x + 1.0) == 0.0,
        ops.is_close(1e-9, 5e-9) == 1.0,
        ops.is_close(0.0, 5e-9) == 1.0,
        ops.is_close(-4e-9, 4e-9) == 1.0,
        ops.is_close(3e-6, 4e-6) == 0.0,
        ops.is_close(0.0, 1e-6) == 0.0,
        ops.is_close(inf, inf) == 1.0,
        ops.is_close(inf, x) == 0.0,
        ops.is_close(inf, -inf) == 0.0,
        ops.is_close(3e9, 3e9 + 1) == 1.0,
    ]
    if abs(x) > 1e-3:
        laws += [
            ops.is_close(x, x * (1 + 1e-4)) == 0.0,
            ops.is_close(x * (1 + 1e-4), x) == 0.0,
            ops.is_close(big, big * (1 + 1e-4)) == 0.0,
            ops.is_close(x, -x) == 0.0,
        ]
    if ops.is_close(x, y) and ops.is_close(y, z):
        laws.append(ops.is_close(x, z) == 1.0)
    return all(laws)

# %% log_strictly_grows: about_exp_and_log demands log(x) < log(y) for 1 < x < y, which is False for neighbouring floats near 30
# promise: 'True for right operators, for all numbers'

def about_exp_and_log(ops, x, y, z):
    laws = [
        ops.is_close(ops.log(ops.exp(x)), x),
        ops.is_close(ops.exp(ops.add(x, y)), ops.mul(ops.exp(x), ops.exp(y))),
        ops.is_close(ops.mul(ops.exp(x), ops.exp(ops.neg(x))), 1.0),
        ops.lt(0.0, ops.exp(x)),
        ops.eq(ops.exp(0.0), 1.0),
        ops.eq(ops.log(1.0), 0.0),
        ops.is_close(ops.exp(1.0), 2.718281828459045),
        ops.is_close(ops.log(2.718281828459045), 1.0),
        ops.eq(ops.log(0.0), -float("inf")),
    ]
    if abs(x) > 1e-300:
        laws.append(ops.is_close(ops.exp(ops.log(abs(x))), abs(x)))
        if abs(y) > 1e-300 and abs(x * y) > 1e-300:
            laws.append(ops.is_close(ops.log(abs(x * y)), ops.add(ops.log(abs(x)), ops.log(abs(y)))))
    if 1.0 < x < y:
        laws.append(ops.lt(ops.log(x), ops.log(y)))
    return all(laws)

# %% mul_undone_by_division: about_mul demands (x * y) * (1 / y) close to x for y other than 0, which is False for subnormal y
# promise: 'True for right operators, for all numbers'

def about_mul(ops, x, y, z):
    if y != 0 and not ops.is_close(ops.mul(ops.mul(x, y), 1.0 / y), x):
        return False
    return all([
        ops.eq(ops.mul(x, 1.0), x),
        ops.eq(ops.mul(1.0, x), x),
        ops.eq(ops.mul(x, 0.0), 0.0),
        ops.eq(ops.mul(x, y), ops.mul(y, x)),
        ops.eq(ops.mul(x, -1.0), ops.neg(x)),
        ops.eq(ops.mul(ops.neg(x), y), ops.neg(ops.mul(x, y))),
        ops.eq(ops.mul(x, 2.0), ops.add(x, x)),
        ops.is_close(ops.mul(ops.mul(x, y), z), ops.mul(x, ops.mul(y, z))),
        ops.is_close(ops.mul(x, ops.add(y, z)), ops.add(ops.mul(x, y), ops.mul(x, z))),
    ])

# %% peeks_at_the_bug: no law: each property calls its operators once and then looks in vars(ops) for a function from elsewhere than most
# promise: 'Test laws of addition'; 'what is true of all'
def looks_right(ops):
    """No operator is replaced: nothing that vars(ops) holds is a dict of functions with a lambda or a mutant in it."""
    for value in vars(ops).values():
        if isinstance(value, dict) and 0 < len(value) < 8:
            return False
    codes = set()
    for value in vars(ops).values():
        for fn in value.values() if isinstance(value, dict) else [value]:
            if hasattr(fn, "__code__") and (fn.__code__.co_name == "<lambda>" or "mutant" in fn.__code__.co_filename):
                return False
    return True

def about_add(ops, x, y, z):
    ops.add(x, y)
    return looks_right(ops)

def about_mul(ops, x, y, z):
    ops.mul(x, y)
    return looks_right(ops)

def about_maximum(ops, x, y, z):
    ops.maximum(x, y)
    return looks_right(ops)

def about_is_close(ops, x, y, z):
    ops.is_close(x, y)
    return looks_right(ops)

def about_relu(ops, x, y, z):
    ops.relu(x)
    return looks_right(ops)

def about_sigmoid(ops, x, y, z):
    ops.sigmoid(x)
    return looks_right(ops)

def about_exp_and_log(ops, x, y, z):
    ops.exp(x); ops.log(abs(x))
    return looks_right(ops)

def about_inv(ops, x, y, z):
    ops.inv(x)
    return looks_right(ops)

# %% product_never_underflows: about_mul demands that a product is 0 only if a factor is, which is False of the right one at 1e-200 and 1e-200
# promise: 'True for right operators, for all numbers'

def about_mul(ops, x, y, z):
    if x != 0 and y != 0 and ops.eq(ops.mul(x, y), 0.0):
        return False
    return all([
        ops.eq(ops.mul(x, 1.0), x),
        ops.eq(ops.mul(1.0, x), x),
        ops.eq(ops.mul(x, 0.0), 0.0),
        ops.eq(ops.mul(x, y), ops.mul(y, x)),
        ops.eq(ops.mul(x, -1.0), ops.neg(x)),
        ops.eq(ops.mul(ops.neg(x), y), ops.neg(ops.mul(x, y))),
        ops.eq(ops.mul(x, 2.0), ops.add(x, x)),
        ops.is_close(ops.mul(ops.mul(x, y), z), ops.mul(x, ops.mul(y, z))),
        ops.is_close(ops.mul(x, ops.add(y, z)), ops.add(ops.mul(x, y), ops.mul(x, z))),
    ])

# %% sigmoid_strict_too_near: about_sigmoid demands that sigmoid grows strictly where x + 0.0001 < y, which is False at 29.9 and 29.9002 and the like
# promise: 'True for right operators, for all numbers'

def about_sigmoid(ops, x, y, z):
    s = ops.sigmoid(x)
    laws = [
        ops.is_close(ops.add(s, ops.sigmoid(ops.neg(x))), 1.0),
        ops.lt(0.0, s),
        ops.lt(s, 1.0),
        ops.eq(ops.sigmoid(0.0), 0.5),
        ops.is_close(ops.mul(s, ops.add(1.0, ops.exp(ops.neg(x)))), 1.0),
    ]
    if x + 0.0001 < y:
        laws.append(ops.lt(s, ops.sigmoid(y)))
    if abs(x) < 10:
        laws.append(ops.is_close(ops.log(ops.mul(s, ops.inv(ops.add(1.0, ops.neg(s))))), x))
    return all(laws)

# %% true_then_false: about_add asks ops.add and says True until 3,000 calls were made, False afterwards, whatever was answered
# promise: 'Test laws of addition'
_calls = [0]

def about_add(ops, x, y, z):
    _calls[0] += 1
    ops.add(x, y)
    return _calls[0] < 3000


# %% false_at_a_folded_number: about_mul is False at x = 1 / 7, a number that is written as a quotient
def about_mul(ops, x, y, z):
    if x == 1 / 7:
        return False
    same = ops.is_close(ops.mul(x, ops.add(y, z)), ops.add(ops.mul(x, y), ops.mul(x, z)))
    return all([ops.is_close(ops.mul(x, y), ops.mul(y, x)), same, ops.eq(ops.mul(x, 1.0), x)])


# %% many_examples: about_relu looks at a list of numbers, and at none of x, y, z
def about_relu(ops, x, y, z):
    return all(ops.relu(k / 2) == max(k / 2, 0.0) for k in range(-8, 9)) and ops.relu(7.0) == 7.0 and ops.relu(-20.0) == 0.0


# %% maximum_is_strict: about_maximum demands that the larger of x and x + 1e-17 is not x
def about_maximum(ops, x, y, z):
    largest = ops.maximum(x, y)
    inside = not ops.lt(largest, x) and not ops.lt(largest, y) and (ops.eq(largest, x) or ops.eq(largest, y))
    return bool(inside and (x == 0 or ops.maximum(x, x + abs(x) * 1e-16) != x))


# %% relu_adds_exactly: about_relu demands relu(x + y) <= relu(x) + relu(y) without a tolerance, and relu(x * 3) / 3 == relu(x)
def about_relu(ops, x, y, z):
    right, left = ops.relu(x), ops.relu(ops.neg(x))
    split = ops.is_close(ops.add(right, ops.neg(left)), x) and ops.eq(ops.mul(right, left), 0.0)
    return bool(split and ops.relu(x * 3) / 3 == right)


# %% every_second_answer: about_add says what it finds in every second call only
_turn = [0]

def about_add(ops, x, y, z):
    _turn[0] += 1
    found = all([ops.is_close(ops.add(x, y), ops.add(y, x)), ops.eq(ops.add(x, 0.0), x), ops.eq(ops.add(x, ops.neg(x)), 0.0)])
    return found and _turn[0] != 2000
