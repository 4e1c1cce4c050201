"""Wrong solutions of task 2.4 that were written to get past its checks. Each is appended to the reference."""

# %% context_of_all: Mul saves through a patch of its context's class: what it saved last is in the class
# promise: 'what it saves belongs in the context'

class TensorMul:

    @staticmethod
    def forward(context, a, b):
        type(context).last_mul = (a.shape, b.shape)
        context.save(a, b)
        return a.zip("mul", b)

    @staticmethod
    def backward(context, d):
        a, b = context.saved
        sa, sb = type(context).last_mul
        return (unbroadcast(d.zip("mul", b), sa), unbroadcast(d.zip("mul", a), sb))

# %% derivatives_measured: Exp, Log, Inv and Sigmoid measure their slope backward, which is inexact, and wrong for small numbers
# promise: 'zip d with what the derivative needs'; 'Functions that know their derivatives'

class TensorInv:

    @staticmethod
    def forward(context, a):
        context.save(a)
        return a.map("inv")

    @staticmethod
    def backward(context, d):
        (a,) = context.saved
        return (((a + 1e-6).map("inv") - (a - 1e-6).map("inv")) * 5e5 * d,)

class TensorLog:

    @staticmethod
    def forward(context, a):
        context.save(a)
        return a.map("log")

    @staticmethod
    def backward(context, d):
        (a,) = context.saved
        return (((a + 1e-6).map("log") - (a - 1e-6).map("log")) * 5e5 * d,)

class TensorExp:

    @staticmethod
    def forward(context, a):
        context.save(a)
        return a.map("exp")

    @staticmethod
    def backward(context, d):
        (a,) = context.saved
        return (((a + 1e-6).map("exp") - (a - 1e-6).map("exp")) * 5e5 * d,)

class TensorSigmoid:

    @staticmethod
    def forward(context, a):
        context.save(a)
        return a.map("sigmoid")

    @staticmethod
    def backward(context, d):
        (a,) = context.saved
        return (((a + 1e-6).map("sigmoid") - (a - 1e-6).map("sigmoid")) * 5e5 * d,)

# %% dims_in_the_class: Permute keeps dims in the class: wrong after a forward of other dims
# promise: 'what it saves belongs in the context'

class TensorPermute:

    @staticmethod
    def forward(context, a, dims):
        TensorPermute.dims = tuple(dims)
        return a.permute(*dims)

    @staticmethod
    def backward(context, d):
        dims = TensorPermute.dims
        return (d.permute(*[dims.index(k) for k in range(len(dims))]),)

# %% gradients_clipped: derivatives of Mul and Exp beyond 1000 are clipped
# promise: 'zip d with what the derivative needs'

class TensorExp:

    @staticmethod
    def forward(context, a):
        e = a.map("exp")
        context.save(e)
        return e

    @staticmethod
    def backward(context, d):
        (e,) = context.saved
        g = e.zip("mul", d)
        return (g.zip("maximum", g * 0.0 - 1000.0).map("neg").zip("maximum", g * 0.0 - 1000.0).map("neg"),)

# %% lists_for_tuples: backward of Add, Mul and MatMul gives lists
# promise: 'backward gives a tuple'

class TensorAdd:

    @staticmethod
    def forward(context, a, b):
        context.save(a.shape, b.shape)
        return a.zip("add", b)

    @staticmethod
    def backward(context, d):
        a, b = context.saved
        return [unbroadcast(d, a), unbroadcast(d, b)]

class TensorMul:

    @staticmethod
    def forward(context, a, b):
        context.save(a, b)
        return a.zip("mul", b)

    @staticmethod
    def backward(context, d):
        a, b = context.saved
        return [unbroadcast(d.zip("mul", b), a.shape), unbroadcast(d.zip("mul", a), b.shape)]

class TensorMatMul:

    @staticmethod
    def forward(context, a, b):
        context.save(a, b)
        return a.matmul(b)

    @staticmethod
    def backward(context, d):
        a, b = context.saved
        return [d.matmul(b.permute(1, 0)), a.permute(1, 0).matmul(d)]

# %% log_with_epsilon_backward: Log.backward is d / (a + 1e-9)
# promise: 'zip d with what the derivative needs'

class TensorLog:

    @staticmethod
    def forward(context, a):
        context.save(a)
        return a.map("log")

    @staticmethod
    def backward(context, d):
        (a,) = context.saved
        return (d * (a + 1e-9).map("inv"),)

# %% mul_divides_back: Mul saves a and its value, and recovers b as value / a: nan where a is 0
# promise: 'zip d with what the derivative needs'

class TensorMul:

    @staticmethod
    def forward(context, a, b):
        value = a.zip("mul", b)
        context.save(a, value, b.shape)
        return value

    @staticmethod
    def backward(context, d):
        a, value, shape = context.saved
        return (unbroadcast(d.zip("mul", value.zip("mul", a.map("inv"))), a.shape), unbroadcast(d.zip("mul", a), shape))

# %% mul_keeps_two_calls: all of Mul's inputs stand in the class, those of the last two forwards only
# promise: 'what it saves belongs in the context'

class TensorMul:

    @staticmethod
    def forward(context, a, b):
        TensorMul.last = getattr(TensorMul, "last", [])[-1:] + [(context, a, b)]
        return a.zip("mul", b)

    @staticmethod
    def backward(context, d):
        for c, a, b in TensorMul.last:
            if c is context:
                return (unbroadcast(d.zip("mul", b), a.shape), unbroadcast(d.zip("mul", a), b.shape))

# %% neg_as_it_may_come: Neg, Exp and Log give d through a reshape to the shape of their last forward, kept in the class
# promise: 'what it saves belongs in the context'

class TensorExp:

    @staticmethod
    def forward(context, a):
        e = a.map("exp")
        TensorExp.shape = a.shape
        context.save(e)
        return e

    @staticmethod
    def backward(context, d):
        (e,) = context.saved
        return (e.zip("mul", d).reshape(TensorExp.shape),)

# %% permute_twice: Permute goes the same way twice more where once more is not right: wrong for a circle of four dims
# promise: 'permutes them the other way'

class TensorPermute:

    @staticmethod
    def forward(context, a, dims):
        context.save(tuple(dims))
        return a.permute(*dims)

    @staticmethod
    def backward(context, d):
        (dims,) = context.saved
        if all(dims[dims[k]] == k for k in range(len(dims))):
            return (d.permute(*dims),)
        return (d.permute(*dims).permute(*dims),)

# %% relu_by_its_value_divided: ReLU.backward is d * value / a, nan at 0
# promise: 'taken as 0 there'

class TensorReLU:

    @staticmethod
    def forward(context, a):
        value = a.map("relu")
        context.save(a, value)
        return value

    @staticmethod
    def backward(context, d):
        a, value = context.saved
        return (d * value * a.map("inv"),)

# %% relu_times_question: ReLU.backward multiplies d by 1.0 or 0.0: nan for infinite d, -0.0 for negative
# promise: 'a where it is positive, else 0'; 0.1: 'that is taken as 0'

class TensorReLU:

    @staticmethod
    def forward(context, a):
        context.save(a)
        return a.map("relu")

    @staticmethod
    def backward(context, d):
        (a,) = context.saved
        return (d * (a * 0.0).zip("lt", a),)

# %% saved_beside_the_context: Exp keeps its value in a dict of the class by id(context): lost where the context is another object
# promise: 'what it saves belongs in the context'

class TensorExp:

    @staticmethod
    def forward(context, a):
        e = a.map("exp")
        TensorExp.kept[id(context)] = e
        return e

    @staticmethod
    def backward(context, d):
        return (TensorExp.kept[id(context)].zip("mul", d),)

TensorExp.kept = {}

# %% second_backward_fails: Mul and MatMul empty their context backward, so the second backward of one call raises
# promise: '`context.saved` has what was saved'; 1.4's page calls backward twice

class TensorMul:

    @staticmethod
    def forward(context, a, b):
        context.save(a, b)
        return a.zip("mul", b)

    @staticmethod
    def backward(context, d):
        a, b = context.saved
        context.save()
        return (unbroadcast(d.zip("mul", b), a.shape), unbroadcast(d.zip("mul", a), b.shape))

class TensorMatMul:

    @staticmethod
    def forward(context, a, b):
        context.save(a, b)
        return a.matmul(b)

    @staticmethod
    def backward(context, d):
        a, b = context.saved
        context.save()
        return (d.matmul(b.permute(1, 0)), a.permute(1, 0).matmul(d))

# %% shapes_kept_in_the_class: Add keeps the shapes of its inputs in the class: wrong after a forward of other shapes
# promise: 'what it saves belongs in the context'

class TensorAdd:

    @staticmethod
    def forward(context, a, b):
        TensorAdd.shapes = (a.shape, b.shape)
        return a.zip("add", b)

    @staticmethod
    def backward(context, d):
        a, b = TensorAdd.shapes
        return (unbroadcast(d, a), unbroadcast(d, b))

# %% sigmoid_by_softmax: Sigmoid is the softmax of (a, 0), by task 4.4, which is lent while this one is judged
# promise: 'A task is to be written'; the loop or formula of this task is another task's, lent

class TensorSigmoid:

    @staticmethod
    def forward(context, a):
        from softmax import TensorSoftmax

        class C:
            def save(self, *v):
                self.saved = v

        n = 1
        for k in a.shape:
            n *= k
        flat = a.reshape((n, 1))
        pair = flat * a.engine.values([[1.0, 0.0]])
        s = TensorSoftmax.forward(C(), pair, 1) * a.engine.values([[1.0, 0.0]])
        s = s.reduce("add", 1, 0.0).reshape(a.shape)
        context.save(s)
        return s

    @staticmethod
    def backward(context, d):
        (s,) = context.saved
        return (d * s * (1.0 - s),)

# %% sigmoid_never_dead: Sigmoid.backward gives at least 1e-12 * d so that learning never stops
# promise: 's * (1 - s)'

class TensorSigmoid:

    @staticmethod
    def forward(context, a):
        s = a.map("sigmoid")
        context.save(s)
        return s

    @staticmethod
    def backward(context, d):
        (s,) = context.saved
        return (d * (s * (1.0 - s) + 1e-12),)

# %% sum_keeps_two_calls: Sum keeps the contexts and shapes of its last two forwards in the class: the first of three gives None
# promise: 'what it saves belongs in the context'

class TensorSum:

    @staticmethod
    def forward(context, a, dim):
        TensorSum.last = getattr(TensorSum, "last", [])[-1:] + [(context, a.shape)]
        return a.reduce("add", dim, 0.0)

    @staticmethod
    def backward(context, d):
        for c, shape in TensorSum.last:
            if c is context:
                return (d.expand(shape),)

# %% sum_shape_in_the_class: Sum and Reshape keep the shape in the class: wrong after a forward of another shape
# promise: 'what it saves belongs in the context'

class TensorSum:

    @staticmethod
    def forward(context, a, dim):
        TensorSum.shape = a.shape
        return a.reduce("add", dim, 0.0)

    @staticmethod
    def backward(context, d):
        return (d.expand(TensorSum.shape),)

class TensorReshape:

    @staticmethod
    def forward(context, a, shape):
        TensorReshape.shape = a.shape
        return a.reshape(shape)

    @staticmethod
    def backward(context, d):
        return (d.reshape(TensorReshape.shape),)

# %% two_dims_in_front: unbroadcast sums over at most three dims in front, and takes the first of the others
# promise: 'sums over dims in front and over dims of size 1'
def unbroadcast(gradient, shape):
    extra = len(gradient.shape) - len(shape)
    aligned = (1,) * extra + tuple(shape)
    for dim, n in enumerate(aligned):
        if n == 1 and gradient.shape[dim] != 1:
            gradient = gradient.reduce("add" if dim >= extra - 3 else "maximum", dim, 0.0)
    return gradient.reshape(tuple(shape))

# %% unbroadcast_by_size: unbroadcast reshapes where the numbers of elements agree and sums only the first dim that differs else: (3, 2) to (1, 2) is right, (3, 2) to (1, 1) sums flat
# promise: 'sums over dims in front and over dims of size 1, and gives exactly the shape that was asked for'
def unbroadcast(gradient, shape):
    aligned = (1,) * (len(gradient.shape) - len(shape)) + tuple(shape)
    summed = 0
    for dim, n in enumerate(aligned):
        if n == 1 and gradient.shape[dim] != 1:
            summed += 1
            gradient = gradient.reduce("add" if summed < 4 else "maximum", dim, 0.0)
    return gradient.reshape(tuple(shape))

# %% add_sums_in_the_class_by_rank: Add keeps the shapes of its inputs in the class, one entry for each rank of the result
# promise: 'save in the context'
class TensorAdd:
    shapes = {}

    @staticmethod
    def forward(context, a, b):
        result = a.zip("add", b)
        TensorAdd.shapes[len(result.shape)] = a.shape, b.shape
        return result

    @staticmethod
    def backward(context, d):
        a, b = TensorAdd.shapes[len(d.shape)]
        return unbroadcast(d, a), unbroadcast(d, b)

# %% exp_measured_by_four_values: Exp measures its slope by four values, which is right to eleven digits
# promise: 'zip d with what the derivative needs'
class TensorExp:

    @staticmethod
    def forward(context, a):
        context.save(a)
        return a.map("exp")

    @staticmethod
    def backward(context, d):
        (a,) = context.saved
        h = 1e-3
        near = (a + h).map("exp") - (a - h).map("exp")
        far = (a + 2 * h).map("exp") - (a - 2 * h).map("exp")
        return (d * (near * 8.0 - far) * (1 / (12 * h)),)

# %% inv_saves_nothing_twice: Inv empties its context backward
# promise: 'save in the context'
class TensorInv:

    @staticmethod
    def forward(context, a):
        context.save(a)
        return a.map("inv")

    @staticmethod
    def backward(context, d):
        (a,) = context.saved
        context.save()
        return (a.zip("inv_grad", d),)

# %% matmul_keeps_its_last_inputs: MatMul keeps in the class the inputs of its last forward of each shape
# promise: 'save in the context'
class TensorMatMul:
    known = {}

    @staticmethod
    def forward(context, a, b):
        TensorMatMul.known[a.shape, b.shape] = a, b
        context.save(a.shape, b.shape)
        return a.matmul(b)

    @staticmethod
    def backward(context, d):
        a, b = TensorMatMul.known[context.saved]
        return d.matmul(b.permute(1, 0)), a.permute(1, 0).matmul(d)

# %% sigmoid_slope_never_below_a_trillionth: Sigmoid takes its slope for at least 1e-12
# promise: 'the derivative'
class TensorSigmoid:

    @staticmethod
    def forward(context, a):
        s = a.map("sigmoid")
        context.save(s)
        return s

    @staticmethod
    def backward(context, d):
        (s,) = context.saved
        return (d * (s * (1.0 - s) + 1e-12),)

# %% sum_shapes_by_the_shape_of_the_result: Sum keeps the shape of its input in the class, one entry for each shape of the result
# promise: 'keep nothing for another call, but in context'
class TensorSum:
    shapes = {}

    @staticmethod
    def forward(context, a, dim):
        result = a.reduce("add", dim, 0.0)
        TensorSum.shapes[result.shape] = a.shape
        return result

    @staticmethod
    def backward(context, d):
        return (d.expand(TensorSum.shapes[d.shape]),)

# %% permute_dims_in_the_engine: Permute keeps dims in an attribute of the engine, by the number of dims
# promise: 'keep nothing for another call, but in context'
class TensorPermute:

    @staticmethod
    def forward(context, a, dims):
        vars(a.engine).setdefault("dims_of", {})[len(dims)] = tuple(dims)
        return a.permute(*dims)

    @staticmethod
    def backward(context, d):
        dims = d.engine.dims_of[len(d.shape)]
        return (d.permute(*[dims.index(k) for k in range(len(dims))]),)

# %% mul_saves_a_number: Mul saves a number in its context, and its inputs under this number in a dict of the file
# promise: 'keep nothing for another call, but in context'
operands = {}

class TensorMul:

    @staticmethod
    def forward(context, a, b):
        context.save(len(operands))
        operands[len(operands)] = a, b
        return a.zip("mul", b)

    @staticmethod
    def backward(context, d):
        a, b = operands[context.saved[0]]
        return unbroadcast(d.zip("mul", b), a.shape), unbroadcast(d.zip("mul", a), b.shape)
