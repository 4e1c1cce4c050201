"""Wrong solutions of task 1.2 that were written to get past its checks. Each is appended to the reference."""

# %% asks_operators_with_rounding: Add and Neg round their value to ten places
# promise: 'forward gives the value'
class Add:

    @staticmethod
    def forward(context, x, y):
        return round(add(x, y), 10)

    @staticmethod
    def backward(context, d):
        return (d, d)

class Neg:

    @staticmethod
    def forward(context, x):
        return round(neg(x), 10)

    @staticmethod
    def backward(context, d):
        return (neg(d),)

# %% clips_gradients: Mul, Exp and Inv clip derivatives to -1000 .. 1000, as many do in training
# promise: 'd times the derivative by each input'

class Mul:

    @staticmethod
    def forward(context, x, y):
        context.save(x, y)
        return mul(x, y)

    @staticmethod
    def backward(context, d):
        x, y = context.saved
        return tuple(max(-1e3, min(1e3, g)) for g in (d * y, d * x))

class Exp:

    @staticmethod
    def forward(context, x):
        e = exp(x)
        context.save(e)
        return e

    @staticmethod
    def backward(context, d):
        (e,) = context.saved
        return (max(-1e3, min(1e3, d * e)),)

class Inv:

    @staticmethod
    def forward(context, x):
        context.save(x)
        return inv(x)

    @staticmethod
    def backward(context, d):
        (x,) = context.saved
        return (max(-1e3, min(1e3, inv_grad(x, d))),)

# %% clips_gradients_at_a_million: Mul and Exp clip derivatives to -1e6 .. 1e6
# promise: 'd times the derivative by each input'

class Mul:

    @staticmethod
    def forward(context, x, y):
        context.save(x, y)
        return mul(x, y)

    @staticmethod
    def backward(context, d):
        x, y = context.saved
        return tuple(max(-1e6, min(1e6, g)) for g in (d * y, d * x))

class Exp:

    @staticmethod
    def forward(context, x):
        e = exp(x)
        context.save(e)
        return e

    @staticmethod
    def backward(context, d):
        (e,) = context.saved
        return (max(-1e6, min(1e6, d * e)),)

# %% comparisons_give_tiny_derivatives: LT and EQ give 1e-10 * d for their inputs in place of 0
# promise: 'Its derivative is 0 wherever there is one'

class LT:

    @staticmethod
    def forward(context, x, y):
        return lt(x, y)

    @staticmethod
    def backward(context, d):
        return (-1e-10 * d, 1e-10 * d)

class EQ:

    @staticmethod
    def forward(context, x, y):
        return eq(x, y)

    @staticmethod
    def backward(context, d):
        return (1e-10 * d, -1e-10 * d)

# %% comparisons_times_d: LT and EQ give 0.0 * d, which is nan for infinite d
# promise: 'Its derivative is 0 wherever there is one'

class LT:

    @staticmethod
    def forward(context, x, y):
        return lt(x, y)

    @staticmethod
    def backward(context, d):
        return (0.0 * d, 0.0 * d)

class EQ:

    @staticmethod
    def forward(context, x, y):
        return eq(x, y)

    @staticmethod
    def backward(context, d):
        return (0.0 * d, 0.0 * d)

# %% derivatives_measured: Log, Exp, Inv and Sigmoid measure their slope backward, which is inexact, and wrong for small x
# promise: 'Functions that know their derivatives'; 'd times the derivative'

class Log:

    @staticmethod
    def forward(context, x):
        context.save(x)
        return log(x)

    @staticmethod
    def backward(context, d):
        (x,) = context.saved
        e = 1e-5 * (abs(x) or 1.0)
        return (d * (log(x + e) - log(x - e)) / (2 * e),)

class Exp:

    @staticmethod
    def forward(context, x):
        context.save(x)
        return exp(x)

    @staticmethod
    def backward(context, d):
        (x,) = context.saved
        e = 1e-5 * (abs(x) or 1.0)
        return (d * (exp(x + e) - exp(x - e)) / (2 * e),)

class Inv:

    @staticmethod
    def forward(context, x):
        context.save(x)
        return inv(x)

    @staticmethod
    def backward(context, d):
        (x,) = context.saved
        e = 1e-5 * (abs(x) or 1.0)
        return (d * (inv(x + e) - inv(x - e)) / (2 * e),)

class Sigmoid:

    @staticmethod
    def forward(context, x):
        context.save(x)
        return sigmoid(x)

    @staticmethod
    def backward(context, d):
        (x,) = context.saved
        e = 1e-5 * (abs(x) or 1.0)
        return (d * (sigmoid(x + e) - sigmoid(x - e)) / (2 * e),)

# %% eq_by_difference: EQ asks for x - y == 0: inf does not equal inf
# promise: '1.0 if x == y, else 0.0'

class EQ:

    @staticmethod
    def forward(context, x, y):
        return 1.0 if x - y == 0 else 0.0

    @staticmethod
    def backward(context, d):
        return (0.0, 0.0)

# %% eq_with_tolerance: EQ says 1.0 for numbers that differ by 1e-7
# promise: '1.0 if x == y, else 0.0'

class EQ:

    @staticmethod
    def forward(context, x, y):
        return 1.0 if abs(x - y) < 1e-7 else 0.0

    @staticmethod
    def backward(context, d):
        return (0.0, 0.0)

# %% ints_for_zero: LT and EQ give ints 0, and forward of LT an int on equal numbers
# promise: 'forward gives the value. Values are floats'

class LT:

    @staticmethod
    def forward(context, x, y):
        return lt(x, y) if x != y else 0

    @staticmethod
    def backward(context, d):
        return (0, 0)

class EQ:

    @staticmethod
    def forward(context, x, y):
        return eq(x, y)

    @staticmethod
    def backward(context, d):
        return (0, 0)

# %% lists_for_tuples: backward gives lists
# promise: 'backward gives a tuple'
class Add:

    @staticmethod
    def forward(context, x, y):
        return add(x, y)

    @staticmethod
    def backward(context, d):
        return [d, d]

class Mul:

    @staticmethod
    def forward(context, x, y):
        context.save(x, y)
        return mul(x, y)

    @staticmethod
    def backward(context, d):
        x, y = context.saved
        return [d * y, d * x]

# %% log_saves_its_value: Log saves log(x) and takes exp of it again: inexact, and an error of the whole at subnormal x
# promise: 'd times the derivative'

class Log:

    @staticmethod
    def forward(context, x):
        value = log(x)
        context.save(value)
        return value

    @staticmethod
    def backward(context, d):
        (value,) = context.saved
        return (d * exp(-value),)

# %% log_with_epsilon_backward: Log.backward is d / (x + 1e-9), wrong near 0
# promise: 'd times the derivative by each input'

class Log:

    @staticmethod
    def forward(context, x):
        context.save(x)
        return log(x)

    @staticmethod
    def backward(context, d):
        (x,) = context.saved
        return (d / (x + 1e-9),)

# %% mul_divides_back: Mul saves x and its value and recovers y as value / x: wrong at x = 0 and where x * y overflows or underflows
# promise: 'In Mul ... x * y grows by y when x grows by 1'

class Mul:

    @staticmethod
    def forward(context, x, y):
        value = mul(x, y)
        context.save(x, value, y if x == 0 else None)
        return value

    @staticmethod
    def backward(context, d):
        x, value, y = context.saved
        return (d * (value / x if x != 0 else y), d * x)

# %% relu_leaks: ReLU gives 1e-9 * x below 0 and a derivative of 1e-9
# promise: 'x where it is positive, else 0.0'

class ReLU:

    @staticmethod
    def forward(context, x):
        context.save(x)
        return x if x > 0 else 1e-9 * x

    @staticmethod
    def backward(context, d):
        (x,) = context.saved
        return (d if x > 0 else 1e-9 * d,)

# %% relu_one_at_zero: ReLU.backward gives d at x = 0
# promise: 0.1: 'relu has a corner at 0 ... It is taken as 0 there'

class ReLU:

    @staticmethod
    def forward(context, x):
        context.save(x)
        return relu(x)

    @staticmethod
    def backward(context, d):
        (x,) = context.saved
        return (d if x >= 0 else 0.0,)

# %% saved_beside_the_context: what forward saves stands in a dict of the class by id(context), never in the context; it is lost where the context is another object
# promise: '`context.save(...)` saves what backward needs'; '`context.saved` has what was saved'

class Mul:

    @staticmethod
    def forward(context, x, y):
        Mul.kept[id(context)] = (x, y)
        return mul(x, y)

    @staticmethod
    def backward(context, d):
        x, y = Mul.kept[id(context)]
        return (d * y, d * x)

Mul.kept = {}

# %% saved_by_class_for_two_calls: the class keeps the contexts' inputs of the last two calls only: the first of three is lost
# promise: 'Two calls of one function do not disturb each other'; 'called many times before its first backward'

class Mul:

    @staticmethod
    def forward(context, x, y):
        Mul.kept = Mul.kept[-1:] + [(context, x, y)]
        return mul(x, y)

    @staticmethod
    def backward(context, d):
        for c, x, y in Mul.kept:
            if c is context:
                return (d * y, d * x)
        return (0.0 * d, 0.0 * d)

Mul.kept = []

# %% saved_in_a_line: each class has a line of what was saved, first in, first out: right for forward, forward, backward of the first; wrong backward in reverse, which is the usual order
# promise: 'What forward saves is stored in the class' is a mistake

class Mul:

    @staticmethod
    def forward(context, x, y):
        context.save()
        Mul.line.append((id(context), x, y))
        return mul(x, y)

    @staticmethod
    def backward(context, d):
        del Mul.line[:-2]
        _, x, y = Mul.line.pop(0)
        return (d * y, d * x)

Mul.line = []

# %% saves_rounded: what is saved is rounded to seven places
# promise: 'd times the derivative by each input'

class Mul:

    @staticmethod
    def forward(context, x, y):
        context.save(round(x, 7), round(y, 7))
        return mul(x, y)

    @staticmethod
    def backward(context, d):
        x, y = context.saved
        return (d * y, d * x)

class Exp:

    @staticmethod
    def forward(context, x):
        e = exp(x)
        context.save(round(e, 7))
        return e

    @staticmethod
    def backward(context, d):
        (e,) = context.saved
        return (d * e,)

class Sigmoid:

    @staticmethod
    def forward(context, x):
        s = sigmoid(x)
        context.save(round(s, 7))
        return s

    @staticmethod
    def backward(context, d):
        (s,) = context.saved
        return (d * s * (1.0 - s),)

# %% second_backward_fails: backward empties its context, so the second backward of one call raises
# promise: '`context.saved` has what was saved'; 1.4's page calls y4.backward() twice

class Mul:

    @staticmethod
    def forward(context, x, y):
        context.save(x, y)
        return mul(x, y)

    @staticmethod
    def backward(context, d):
        x, y = context.saved
        context.save()
        return (d * y, d * x)

class Exp:

    @staticmethod
    def forward(context, x):
        e = exp(x)
        context.save(e)
        return e

    @staticmethod
    def backward(context, d):
        (e,) = context.saved
        context.save()
        return (d * e,)

# %% sigmoid_backward_never_dead: Sigmoid.backward gives at least 1e-12 * d, so that learning never stops
# promise: 'Its derivative is s * (1 - s)'

class Sigmoid:

    @staticmethod
    def forward(context, x):
        s = sigmoid(x)
        context.save(s)
        return s

    @staticmethod
    def backward(context, d):
        (s,) = context.saved
        return (d * max(s * (1.0 - s), 1e-12),)

# %% sigmoid_clips_x: Sigmoid clips x to -30 .. 30: at -800 it is 9e-14, not 0.0
# promise: 'Sigmoid has one for every x, 800 and -800 too'

class Sigmoid:

    @staticmethod
    def forward(context, x):
        s = 1.0 / (1.0 + exp(-max(-30.0, min(30.0, x))))
        context.save(s)
        return s

    @staticmethod
    def backward(context, d):
        (s,) = context.saved
        return (d * s * (1.0 - s),)

# %% small_d_is_nothing: a d below 1e-9 is taken for 0
# promise: 'times d'
class Add:

    @staticmethod
    def forward(context, x, y):
        return add(x, y)

    @staticmethod
    def backward(context, d):
        return (0.0, 0.0) if abs(d) < 1e-9 else (d, d)

class Mul:

    @staticmethod
    def forward(context, x, y):
        context.save(x, y)
        return mul(x, y)

    @staticmethod
    def backward(context, d):
        if abs(d) < 1e-9:
            return (0.0, 0.0)
        x, y = context.saved
        return (d * y, d * x)

# %% saved_by_values: the class keeps the inputs by what was saved, which is only the rounded sum of them
# promise: 'what is saved belongs to a call'
class Mul:

    kept = {}

    @staticmethod
    def forward(context, x, y):
        context.save(round(x + y, 3))
        Mul.kept[context.saved] = (x, y)
        return mul(x, y)

    @staticmethod
    def backward(context, d):
        x, y = Mul.kept[context.saved]
        return (d * y, d * x)

# %% saved_on_a_stack: each class has a stack of what was saved: right if backward comes in reverse, once for each call
# promise: 'calls do not disturb each other'
class Exp:

    stack = []

    @staticmethod
    def forward(context, x):
        e = exp(x)
        Exp.stack.append(e)
        return e

    @staticmethod
    def backward(context, d):
        return (d * Exp.stack.pop(),)

# %% relu_by_abs: ReLU is (x + |x|) / 2, which overflows for large x and loses nothing else
# promise: 'x where it is positive'
class ReLU:

    @staticmethod
    def forward(context, x):
        context.save(x)
        return (x + abs(x)) / 2

    @staticmethod
    def backward(context, d):
        (x,) = context.saved
        return (d if x > 0 else 0.0,)

# %% inv_with_guard: Inv adds 1e-15 to small numbers, so that it is never infinite
# promise: 'inf at 0'
class Inv:

    @staticmethod
    def forward(context, x):
        context.save(x)
        return 1.0 / x if abs(x) > 1e-15 else 1e15

    @staticmethod
    def backward(context, d):
        (x,) = context.saved
        return (inv_grad(x, d),)

# %% slope_of_exp_by_series: Exp's derivative is a series of 20 terms on a tenth of x, ten digits of which are right
# promise: 'd times the derivative'
class Exp:

    @staticmethod
    def forward(context, x):
        context.save(x)
        return exp(x)

    @staticmethod
    def backward(context, d):
        (x,) = context.saved
        term = total = 1.0
        for k in range(1, 9):
            term *= x / 1024 / k
            total += term
        for _ in range(10):
            total = total * total if total < 1e150 else total
        return (d * total * (1 + 1e-11),)

# %% one_saved_for_equal_inputs: the class keeps what was saved of equal first inputs only once
# promise: 'calls do not disturb each other'
class Mul:

    kept = {}

    @staticmethod
    def forward(context, x, y):
        Mul.kept[x] = y
        context.save(x)
        return mul(x, y)

    @staticmethod
    def backward(context, d):
        (x,) = context.saved
        return (d * Mul.kept[x], d * x)
