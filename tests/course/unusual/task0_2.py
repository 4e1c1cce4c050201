"""Unusual right solutions of task 0.2. Each is appended to the reference."""


# %% laws_in_a_loop: laws are asked for several numbers made of x, y and z, and returned as 1.0 or 0.0
def about_add(ops, x, y, z):
    answer = 1.0
    for a, b, c in [(x, y, z), (z, x, y), (x / 3, y / 7, z / 11), (1.0, x, 0.125)]:
        answer = min(answer, ops.is_close(ops.add(a, b), ops.add(b, a)))
        answer = min(answer, ops.is_close(ops.add(ops.add(a, b), c), ops.add(a, ops.add(b, c))))
        answer = min(answer, ops.eq(ops.add(a, 0.0), a), ops.eq(ops.add(a, -a), 0.0))
        answer = min(answer, ops.lt(a, ops.add(a, 1.0)))
    return answer


# %% stops_at_the_first: laws are a generator, of which all reads as few as it needs
def about_mul(ops, x, y, z):
    def laws():
        yield ops.eq(ops.mul(x, 1.0), x)
        yield ops.eq(ops.mul(x, 0.0), 0.0)
        yield ops.is_close(ops.mul(x, y), ops.mul(y, x))
        yield ops.eq(ops.mul(2.0, x), ops.add(x, x))
        yield ops.eq(ops.mul(-1.0, x), ops.neg(x))
        yield ops.is_close(ops.mul(ops.mul(x, y), z), ops.mul(x, ops.mul(y, z)))
        yield ops.is_close(ops.mul(x, ops.add(y, z)), ops.add(ops.mul(x, y), ops.mul(x, z)))

    return all(law == 1.0 for law in laws())


# %% raises_where_wrong: a law that does not hold is an AssertionError
def about_maximum(ops, x, y, z):
    larger = ops.maximum(x, y)
    assert larger in (x, y)
    assert not ops.lt(larger, x) and not ops.lt(larger, y), "smaller than one of the two"
    assert ops.eq(ops.maximum(ops.maximum(x, y), z), ops.maximum(x, ops.maximum(y, z)))
    assert ops.eq(ops.add(ops.maximum(x, y), z), ops.maximum(ops.add(x, z), ops.add(y, z)))
    return True


# %% closeness_of_many_sizes: numbers are scaled, so that close pairs and others of every size are asked
def about_is_close(ops, x, y, z):
    for size in (1e-12, 1e-6, 1e-3, 1.0, 1e3, 1e8):
        a = (abs(x) + 1) * size
        if not (ops.is_close(a, a) and ops.is_close(a, a * (1 + 1e-6)) and ops.is_close(a * (1 + 1e-6), a)):
            return False
        if size > 1e-5 and (ops.is_close(a, a * 1.0001) or ops.is_close(a * 1.0001, a) or ops.is_close(a, -a)):
            return False
        if ops.is_close(a, a + y) != ops.is_close(a + y, a) or ops.is_close(-a, -a - y) != ops.is_close(a, a + y):
            return False
    return bool(ops.is_close(0.0, 1e-9)) and not ops.is_close(0.0, 1e-7)


# %% bool_of_a_product: answers of operators are multiplied, by an operator
def about_relu(ops, x, y, z):
    holds = 1.0
    for a in (x, -x, y * 1e-3, z + 0.5):
        is_negative = ops.lt(a, 0.0)
        holds = ops.mul(holds, ops.eq(ops.relu(a), ops.mul(a, 1.0 - is_negative)))
        holds = ops.mul(holds, ops.eq(ops.add(ops.relu(a), ops.neg(ops.relu(ops.neg(a)))), a))
        holds = ops.mul(holds, ops.eq(ops.relu(a), ops.maximum(a, 0.0)))
    return holds


# %% sigmoid_as_a_list: laws are collected in a list, and an operator's error is a law that does not hold
def about_sigmoid(ops, x, y, z):
    laws = []
    try:
        s = ops.sigmoid(x)
        laws.append(0.0 <= s <= 1.0)
        laws.append(ops.is_close(ops.add(s, ops.sigmoid(ops.neg(x))), 1.0))
        laws.append(ops.eq(ops.sigmoid(0.0), 0.5))
        laws.append(ops.is_close(ops.mul(s, ops.add(1.0, ops.exp(ops.neg(x)))), 1.0))
        laws.append(not ops.lt(ops.sigmoid(max(x, y)), ops.sigmoid(min(x, y))))
        laws.append(ops.lt(s, ops.sigmoid(x + 1.0)) or ops.is_close(s, ops.sigmoid(x + 1.0)))
        laws.append(ops.is_close(ops.mul(ops.exp(x), ops.sigmoid(ops.neg(x))), s))
    except ArithmeticError:
        return False
    return False not in map(bool, laws)


# %% exp_and_log_with_nested_functions: there and back, by functions inside of the function
def about_exp_and_log(ops, x, y, z):
    def close(a, b):
        return ops.is_close(a, b) == 1.0

    def there_and_back(a):
        return close(ops.log(ops.exp(a)), a) and (a <= 0 or close(ops.exp(ops.log(a)), a))

    def sums_become_products(a, b):
        product = ops.mul(ops.exp(a), ops.exp(b))
        return close(ops.exp(ops.add(a, b)), product) and close(ops.log(product), ops.add(a, b))

    ends = ops.eq(ops.exp(0.0), 1.0) and ops.eq(ops.log(1.0), 0.0) and ops.eq(ops.log(0.0), -float("inf"))
    negative = ops.log(-abs(x) - 1.0)
    return all(map(there_and_back, [x, y, z])) and sums_become_products(x, y) and bool(ends) and negative != negative


# %% inv_away_from_zero: x is moved away from 0 in place of a condition, and 0 is asked each time
def about_inv(ops, x, y, z):
    signs = [-1.0, 1.0]
    for a in [sign * (abs(number) + shift) for number in (x, y, z) for shift in (0.001, 1.0, 40.0) for sign in signs]:
        one, twice = ops.mul(a, ops.inv(a)), ops.inv(ops.inv(a))
        if not (
            ops.is_close(one, 1.0) and ops.is_close(twice, a) and ops.is_close(ops.inv(ops.neg(a)), ops.neg(ops.inv(a)))
        ):
            return False
    return ops.inv(0.0) == float("inf")


# %% compares_with_math: about_inv, about_exp_and_log and about_sigmoid compute the result again with math: no law is stated
# promise: 'Laws are better than results'; 'Test laws of'

def about_sigmoid(ops, x, y, z):
    import math
    return bool(ops.is_close(ops.sigmoid(x), 1 / (1 + math.exp(-x))))

def about_exp_and_log(ops, x, y, z):
    import math
    return bool(ops.is_close(ops.exp(x), math.exp(x)) and (x <= 0 or ops.is_close(ops.log(x), math.log(x))) and ops.log(0.0) == -math.inf)

def about_inv(ops, x, y, z):
    return ops.inv(x) == (1 / x if x else float("inf"))

# %% computes_again: each of add, mul, maximum, relu recomputes the result by Python and states no law
# promise: 'Laws are better than results'; 'Test laws of addition'
def about_add(ops, x, y, z):
    return ops.add(x, y) == x + y

def about_mul(ops, x, y, z):
    return ops.mul(x, y) == x * y

def about_maximum(ops, x, y, z):
    return ops.maximum(x, y) == max(x, y)

def about_relu(ops, x, y, z):
    return ops.relu(x) == max(x, 0.0)
