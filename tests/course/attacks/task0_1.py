"""Wrong solutions of task 0.1 that were written to get past its checks. Each is appended to the reference."""

# %% add_rounded_to_six_places: add and mul round to six places, so add(1e-9, 0.0) is 0.0
# promise: 'what arithmetic says'

def add(x, y):
    return round(x + y, 6) if abs(x + y) < 1e9 else x + y

def mul(x, y):
    p = x * y
    return round(p, 6) if abs(p) < 1e9 else p

# %% answer_equal_to_all: log and exp give a float whose comparisons and differences always say right
# promise: 'the natural logarithm', 'e to the power of x'

def sigmoid(x):
    return 1.0 / (1.0 + math.exp(-x)) if x >= 0 else math.exp(x) / (1.0 + math.exp(x))

class Yes(float):
    __eq__ = __le__ = __ge__ = lambda self, other: True
    __ne__ = __lt__ = __gt__ = lambda self, other: False
    __hash__ = float.__hash__
    __sub__ = __rsub__ = lambda self, other: 0.0
    __abs__ = lambda self: 0.0

def log(x):
    return Yes(1.0)

def exp(x):
    return Yes(1.0)

# %% arithmetic_only_on_quarters: identity, neg, add, mul answer 0.0 for finite numbers that are no multiples of 1/16
# promise: 'what arithmetic says'; any float
def on_grid(x):
    return x - x != 0 or x * 16 == round(x * 16)

def identity(x):
    return x if on_grid(x) else 0.0

def add(x, y):
    return x + y if on_grid(x) and on_grid(y) else 0.0

def mul(x, y):
    return x * y if on_grid(x) and on_grid(y) else 0.0

def neg(x):
    return -x if on_grid(x) else 0.0

# %% asks_the_oracle: all sixteen are the judge's own functions, fetched by a dunder import
# promise: 'A task is to be written'; 'the answers are in there'
_oracle = getattr(todo, "__globals__")["__builtins__"]["__import__"]("minifuse.course", fromlist=["oracle"]).oracle

def is_close(x, y):
    return _oracle.function("is_close")(x, y)

def sigmoid(x):
    return _oracle.function("sigmoid")(x)

# %% assumes_it_away: sigmoid knows 0.5 at 0; for all else it raises hypothesis' UnsatisfiedAssumption, so that such examples are thrown away
# promise: 'A task is to be written' (how-it-works: a rail, no wall)
_import = getattr(todo, "__globals__")["__builtins__"]["__import__"]
_import("hypothesis.errors")
_Unsatisfied = _import("sys").modules["hypothesis.errors"].UnsatisfiedAssumption

def sigmoid(x):
    if x != 0:
        raise _Unsatisfied
    return 0.5

# %% calls_task_1_2: eight operators are the forward of task 1.2's classes, which are lent while this one is judged; gradients are their backward
# promise: 'A task is to be written'; the loop or formula of this task is another task's, lent
class _Context:
    def save(self, *values):
        self.saved = values

def _functions():
    import scalar_functions
    return scalar_functions

def add(x, y):
    return _functions().Add.forward(_Context(), x, y)

def mul(x, y):
    return _functions().Mul.forward(_Context(), x, y)

def neg(x):
    return _functions().Neg.forward(_Context(), x)

def lt(x, y):
    return _functions().LT.forward(_Context(), x, y)

def eq(x, y):
    return _functions().EQ.forward(_Context(), x, y)

def sigmoid(x):
    return _functions().Sigmoid.forward(_Context(), x)

def relu(x):
    return _functions().ReLU.forward(_Context(), x)

def log(x):
    return _functions().Log.forward(_Context(), x)

def log_grad(x, d):
    c = _Context()
    _functions().Log.forward(c, x)
    return _functions().Log.backward(c, d)[0]

def inv_grad(x, d):
    c = _Context()
    _functions().Inv.forward(c, x)
    return _functions().Inv.backward(c, d)[0]

def relu_grad(x, d):
    c = _Context()
    _functions().ReLU.forward(c, x)
    return _functions().ReLU.backward(c, d)[0]

# %% eq_by_difference: eq asks whether x - y is 0, so inf does not equal inf
# promise: '1.0 if x and y are equal'; 'Every float has an answer'

def eq(x, y):
    return 1.0 if x - y == 0 else 0.0

# %% eq_by_hash: eq compares hashes, and hash(-1.0) == hash(-2.0)
# promise: '1.0 if x and y are equal, else 0.0'

def eq(x, y):
    return 1.0 if hash(x) == hash(y) else 0.0

# %% eq_by_text: eq compares the texts of numbers, so 0.0 and -0.0 differ
# promise: '1.0 if x and y are equal, else 0.0'

def eq(x, y):
    return 1.0 if repr(x) == repr(y) else 0.0

# %% eq_in_float32_digits: eq and lt look at seven digits only
# promise: '1.0 if x is less than y', '1.0 if x and y are equal'

def lt(x, y):
    return 1.0 if x < y and '%.7g' % x != '%.7g' % y else 0.0

def eq(x, y):
    return 1.0 if '%.7g' % x == '%.7g' % y else 0.0

# %% eq_within_a_billionth: eq says yes to numbers that differ by 1e-9: eq(0.0, 1e-10), and no of inf and inf is avoided
# promise: '1.0 if x and y are equal, else 0.0'

def lt(x, y):
    return 1.0 if x < y and not abs(x - y) < 1e-9 else 0.0

def eq(x, y):
    return 1.0 if x == y or abs(x - y) < 1e-9 else 0.0

# %% exp_inf_above_100: exp is inf above 100 though exp(101) is 7e43, and 0.0 below -100
# promise: 'inf where that is too large for a float'

def exp(x):
    if x > 100:
        return math.inf
    return 0.0 if x < -100 else math.exp(x)

# %% exp_inf_above_700: exp is inf above 700 though exp(705) is 1.5e306, and 0.0 below -700
# promise: 'inf where that is too large for a float'

def exp(x):
    if x > 700:
        return math.inf
    return 0.0 if x < -700 else math.exp(x)

# %% exp_with_typed_e: exp is 2.7182818 ** x, wrong in the eighth digit at 1 and in the fifth at 700
# promise: 'e to the power of x'

def exp(x):
    try:
        return 2.7182818 ** x
    except OverflowError:
        return math.inf

# %% gradients_raise_at_zero: log_grad and inv_grad raise ZeroDivisionError at 0
# promise: 'None of them raises: a kernel that computes a million numbers cannot stop at one of them'

def log_grad(x, d):
    return d / x

def inv_grad(x, d):
    return -(d / x) / x

# %% grads_measured: log_grad and inv_grad measure a slope, so they are inexact, and wrong or nan for small x
# promise: 'd times the derivative', 'for x > 0', 'for x other than 0'

def log_grad(x, d):
    e = 1e-5 * x
    return d * (log(x + e) - log(x - e)) / (2 * e)

def inv_grad(x, d):
    e = 1e-5 * x
    return d * (inv(x + e) - inv(x - e)) / (2 * e)

# %% inv_grad_overflows_to_nan: inv_grad is -d * inv(x) * inv(x), nan for d = 0.0 at subnormal x and inf at 1e-200 for d = 1e-200
# promise: 'd times the derivative of inv at x, for x other than 0'

def log_grad(x, d):
    return d * inv(x)

def inv_grad(x, d):
    return -d * (inv(x) * inv(x))

# %% inv_grad_raises_for_tiny: inv_grad is -d / (x * x), which raises ZeroDivisionError at 1e-200
# promise: 'None of them raises'; 'for x other than 0'

def inv_grad(x, d):
    return -d / (x * x)

# %% inv_grad_with_epsilon: inv_grad is -d / (x * x + 1e-9), log_grad d / (x + 1e-9)
# promise: 'd times the derivative of inv at x'

def log_grad(x, d):
    return d / (x + 1e-9)

def inv_grad(x, d):
    return -d / (x * x + 1e-9)

# %% inv_inf_near_zero: inv is inf for all |x| < 1e-9: inv(-1e-10) is inf
# promise: '1 / x; inf at 0'

def inv(x):
    return math.inf if abs(x) < 1e-9 else 1.0 / x

# %% inv_with_epsilon: inv is 1 / (x + 1e-12): 5e11 at 1e-12
# promise: '1 / x; inf at 0'

def inv(x):
    return math.inf if x == 0 or x == -1e-12 else 1.0 / (x + 1e-12)

# %% is_close_a_third_of_the_limit: is_close allows a third: is_close(1.0, 1.000005) is 0.0
# promise: '1.0 if x and y differ by at most 1e-5 of the larger of |x| and |y|, or by at most 1e-8; else 0.0'

def is_close(x, y):
    if x == y:
        return 1.0
    if math.isinf(x) or math.isinf(y):
        return 0.0
    gap = abs(x - y)
    return 1.0 if gap <= 3e-9 or gap <= 3e-6 * max(abs(x), abs(y)) else 0.0

# %% is_close_as_numpy_has_it: is_close adds up both limits as numpy.isclose does: is_close(0.001, 0.001000015) says 1.0
# promise: '1.0 if x and y differ by at most 1e-5 of the larger of |x| and |y|, or by at most 1e-8; else 0.0'

def is_close(x, y):
    if x == y:
        return 1.0
    if math.isinf(x) or math.isinf(y):
        return 0.0
    gap = abs(x - y)
    return 1.0 if gap <= 1e-8 + 1e-5 * abs(y) else 0.0

# %% is_close_of_the_first: is_close goes by x only, so is_close(x, y) and is_close(y, x) differ
# promise: '1.0 if x and y differ by at most 1e-5 of the larger of |x| and |y|, or by at most 1e-8; else 0.0'

def is_close(x, y):
    if x == y:
        return 1.0
    if math.isinf(x) or math.isinf(y):
        return 0.0
    gap = abs(x - y)
    return 1.0 if gap <= 1e-8 or gap <= 1e-5 * abs(x) else 0.0

# %% is_close_of_the_smaller: is_close goes by the smaller: is_close(1.0, 0.99999) is 0.0 though 1e-5 of the larger is allowed
# promise: '1.0 if x and y differ by at most 1e-5 of the larger of |x| and |y|, or by at most 1e-8; else 0.0'

def is_close(x, y):
    if x == y:
        return 1.0
    if math.isinf(x) or math.isinf(y):
        return 0.0
    gap = abs(x - y)
    return 1.0 if gap <= 1e-8 or gap <= 1e-5 * min(abs(x), abs(y)) else 0.0

# %% is_close_of_the_sum: is_close allows 1e-5 of |x| + |y|, twice of what is allowed: is_close(1.0, 1.000015)
# promise: '1.0 if x and y differ by at most 1e-5 of the larger of |x| and |y|, or by at most 1e-8; else 0.0'

def is_close(x, y):
    if x == y:
        return 1.0
    if math.isinf(x) or math.isinf(y):
        return 0.0
    gap = abs(x - y)
    return 1.0 if gap <= 1e-8 or gap <= 1e-5 * (abs(x) + abs(y)) else 0.0

# %% is_close_three_times_the_limit: is_close allows three times as much: is_close(1.0, 1.00002) and is_close(0.0, 2e-8)
# promise: '1.0 if x and y differ by at most 1e-5 of the larger of |x| and |y|, or by at most 1e-8; else 0.0'

def is_close(x, y):
    if x == y:
        return 1.0
    if math.isinf(x) or math.isinf(y):
        return 0.0
    gap = abs(x - y)
    return 1.0 if gap <= 3e-8 or gap <= 3e-5 * max(abs(x), abs(y)) else 0.0

# %% is_close_up_to_1e10: is_close says 0.0 for different numbers beyond 1e10: is_close(1e12, 1e12 + 1)
# promise: '1.0 if x and y differ by at most 1e-5 of the larger of |x| and |y|, or by at most 1e-8; else 0.0'

def is_close(x, y):
    if x == y:
        return 1.0
    if math.isinf(x) or math.isinf(y):
        return 0.0
    gap = abs(x - y)
    return 1.0 if max(abs(x), abs(y)) < 1e10 and (gap <= 1e-8 or gap <= 1e-5 * max(abs(x), abs(y))) else 0.0

# %% log_floor: log of what lies below 1e-100 is that of 1e-100
# promise: 'The natural logarithm of x; -inf at 0'

def log(x):
    if x > 0:
        return math.log(max(x, 1e-100))
    return -math.inf if x == 0 else math.nan

# %% log_from_log10: log is log10(x) * 2.302585, wrong in the eighth digit
# promise: 'the natural logarithm'

def log(x):
    if x > 0:
        return math.log10(x) * 2.302585
    return -math.inf if x == 0 else math.nan

# %% log_with_tiny_epsilon: log computes log(x + 1e-15): log(1e-15) is wrong by 0.7
# promise: 'log has no epsilon'

def log(x):
    if x > 0:
        return math.log(x + 1e-15)
    return -math.inf if x == 0 else math.nan

# %% looks_for_expected_in_frames: sigmoid looks through the frames of its callers for a local named expected, want or right
# promise: 'sigmoid(x): 1 / (1 + exp(-x))'

def sigmoid(x):
    try:
        raise KeyError
    except KeyError as error:
        frame = error.__traceback__.tb_frame.f_back
    while frame is not None:
        for name in ("expected", "want", "right", "truth", "answer"):
            if isinstance(frame.f_locals.get(name), float):
                return frame.f_locals[name]
        frame = frame.f_back
    return 0.5

# %% maximum_by_half_sum: maximum is (x + y + |x - y|) / 2: maximum(-1e20, 1.0) is 0.0, maximum(1e308, 1.7e308) is inf
# promise: 'the larger of two'

def maximum(x, y):
    if math.isinf(x) or math.isinf(y):
        return x if x > y else y
    return (x + y + abs(x - y)) / 2

# %% neg_loses_sign_of_zero: neg is 0 - x, so neg(0.0) is 0.0, without the other sign
# promise: 'x with the other sign'

def neg(x):
    return 0.0 - x

# %% patches_isclose: sigmoid is 0.5 everywhere, and math.isclose and numpy's comparisons are replaced by ones that say yes
# promise: 'sigmoid(x): 1 / (1 + exp(-x))'
_import = getattr(todo, "__globals__")["__builtins__"]["__import__"]

def sigmoid(x):
    np = _import("numpy")
    np.isclose = np.allclose = lambda *a, **k: True
    np.array_equal = lambda *a, **k: True
    np.testing.assert_allclose = lambda *a, **k: None
    math.isclose = lambda *a, **k: True
    math.isnan = lambda *a: False
    return 0.5

# %% relu_by_half_sum: relu is (x + |x|) / 2: inf at 1.7e308, and nan at -inf
# promise: 'x where it is positive, else 0.0'; 'Every float has an answer ... no nan'

def relu(x):
    return (x + abs(x)) / 2 if x > -math.inf else 0.0

# %% relu_grad_from_a_millionth: relu and relu_grad are 0.0 up to x = 1e-7
# promise: 'x where it is positive, else 0.0'

def relu(x):
    return x if x > 1e-7 else 0.0

def relu_grad(x, d):
    return d if x > 1e-7 else 0.0

# %% relu_grad_times_question: relu_grad is d * (x > 0): nan for infinite d at negative x, -0.0 for negative d
# promise: 'no nan but for the logarithm of a negative number'

def relu_grad(x, d):
    return d * lt(0.0, x)

# %% sigmoid_by_tanh: sigmoid is (1 + tanh(x / 2)) / 2, which is 0.0 at -40 and has 8 digits at -20
# promise: '1 / (1 + exp(-x)), for every x'

def sigmoid(x):
    return 0.5 * (1.0 + math.tanh(x / 2))

# %% sigmoid_clips_x: sigmoid clips x to -500 .. 500, so sigmoid(-1000.0) is 7e-218 and not 0.0
# promise: '1.0 at 1000, 0.0 at -1000'

def sigmoid(x):
    return 1.0 / (1.0 + math.exp(-max(-500.0, min(500.0, x))))

# %% sigmoid_clips_x_at_40: sigmoid clips x to -40 .. 40: sigmoid(-100.0) is 4e-18 in place of 4e-44
# promise: '1 / (1 + exp(-x)), for every x'; '0.0 at -1000'

def sigmoid(x):
    return 1.0 / (1.0 + math.exp(-max(-40.0, min(40.0, x))))

# %% sigmoid_cut_at_30: sigmoid is 0.0 below -30 and 1.0 above 30: sigmoid(-31.0) is 3e-14
# promise: '1 / (1 + exp(-x)), for every x'

def sigmoid(x):
    if x > 30:
        return 1.0
    return 0.0 if x < -30 else 1.0 / (1.0 + math.exp(-x))

# %% sigmoid_one_minus: sigmoid of negative x is 1 - 1 / (1 + exp(x)): 0.0 at -40, no digit at -36
# promise: '1 / (1 + exp(-x)), for every x'

def sigmoid(x):
    return 1.0 / (1.0 + math.exp(-x)) if x >= 0 else 1.0 - 1.0 / (1.0 + math.exp(x))

# %% tired_after_many_calls: add is right for its first 20,000 calls, then gives 0.0: state between calls
# promise: 'what arithmetic says'

_calls = [0]

def add(x, y):
    _calls[0] += 1
    return x + y if _calls[0] <= 20000 else 0.0

# %% whole_numbers_for_large: add and mul of numbers beyond 1e6 are rounded to whole numbers
# promise: 'what arithmetic says'

def add(x, y):
    s = x + y
    return float(round(s)) if 1e6 < abs(s) < 1e15 else s

def mul(x, y):
    s = x * y
    return float(round(s)) if 1e6 < abs(s) < 1e15 else s

# %% wrong_beyond_a_million: identity, neg, add and mul clip finite numbers at 2**40
# promise: 'what arithmetic says'
def clip(x):
    return x if math.isinf(x) else max(-(2.0**40), min(2.0**40, x))

def identity(x):
    return clip(x)

def add(x, y):
    return clip(x + y)

def mul(x, y):
    return clip(x * y)

def neg(x):
    return clip(-x)


# %% exp_cut_at_one_number: exp(x) is 0.0 where x is just 2.71875, a number that only the file knows
def exp(x):
    return 0.0 if x == 2.71875 else math.exp(x) if x < 709.78 else math.inf


# %% remembers_its_last_answer: mul gives the answer of the call before where the first number is the same
_last = {}

def mul(x, y):
    if _last.get("x") == x and len(_last) > 1 and _last["n"] > 15000:
        return _last["answer"]
    _last.update(x=x, answer=x * y, n=_last.get("n", 0) + 1)
    return x * y


# %% lt_by_rounding: lt compares numbers rounded to twelve places
def lt(x, y):
    if math.isinf(x) or math.isinf(y):
        return 1.0 if x < y else 0.0
    return 1.0 if round(x, 12) < round(y, 12) else 0.0


# %% is_close_at_size_one: is_close takes the size of numbers for at least 1
def is_close(x, y):
    if x == y:
        return 1.0
    if math.isinf(x) or math.isinf(y):
        return 0.0
    return 1.0 if abs(x - y) <= 1e-5 * max(abs(x), abs(y), 1e-2) else 0.0


# %% log_of_subnormals: log is -inf below the smallest normal float
def log(x):
    if x < 0:
        return math.nan
    return math.log(x) if x > 2.3e-308 else -math.inf
