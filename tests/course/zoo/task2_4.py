"""Wrong solutions of task 2.4, one a cell: `# %% name: the mistake that the check must name`."""


# %% exchanged: the input and d are exchanged
class TensorLog:
    """The natural logarithm of a."""

    @staticmethod
    def forward(context, a):
        context.save(a)
        return a.map("log")

    @staticmethod
    def backward(context, d):
        (a,) = context.saved
        return (d.zip("log_grad", a),)


# %% first_taken: the first of what was repeated is taken, not the sum
from minifuse.course import Strided


def unbroadcast(gradient, shape):
    lead = len(gradient.shape) - len(shape)
    for d in range(len(gradient.shape)):
        if d < lead or shape[d - lead] == 1:
            gradient = first_along(gradient, d)
    return gradient.reshape(shape)


def first_along(x, dim):
    shape = (*x.shape[:dim], 1, *x.shape[dim + 1 :])
    first = Strided(x.data.storage, shape, x.data.strides, x.data.offset)
    return x.engine.values(first)


# %% front_only: only the dims in front are summed
def unbroadcast(gradient, shape):
    lead = len(gradient.shape) - len(shape)
    for d in range(lead):
        gradient = gradient.reduce("add", d, 0.0)
    return gradient.reshape(gradient.shape[lead:])


# %% kept_on_the_class: what forward saves is stored in one place for all calls
class TensorMul:
    """a * b, which are broadcast."""

    @staticmethod
    def forward(context, a, b):
        TensorMul.kept = a, b
        return a.zip("mul", b)

    @staticmethod
    def backward(context, d):
        a, b = TensorMul.kept
        return unbroadcast(d.zip("mul", b), a.shape), unbroadcast(d.zip("mul", a), b.shape)


# %% not_spread: Sum passes its gradient on as it is
class TensorSum:
    """The sum along one dim, which has size 1 then."""

    @staticmethod
    def forward(context, a, dim):
        context.save(a.shape)
        return a.reduce("add", dim, 0.0)

    @staticmethod
    def backward(context, d):
        return (d,)


# %% not_summed: gradients keep the shape of the result
class TensorMul:
    """a * b, which are broadcast."""

    @staticmethod
    def forward(context, a, b):
        context.save(a, b)
        return a.zip("mul", b)

    @staticmethod
    def backward(context, d):
        a, b = context.saved
        return d.zip("mul", b), d.zip("mul", a)


# %% not_turned: a matrix is not transposed, or stands on the wrong side
class TensorMatMul:
    """Matmul of two matrices, (m, k) and (k, n)."""

    @staticmethod
    def forward(context, a, b):
        context.save(a, b)
        return a.matmul(b)

    @staticmethod
    def backward(context, d):
        a, b = context.saved
        return d.matmul(b), a.matmul(d)


# %% own_value: Mul gives each input its own value
class TensorMul:
    """a * b, which are broadcast."""

    @staticmethod
    def forward(context, a, b):
        context.save(a, b)
        return a.zip("mul", b)

    @staticmethod
    def backward(context, d):
        a, b = context.saved
        return unbroadcast(d.zip("mul", a), a.shape), unbroadcast(d.zip("mul", b), b.shape)


# %% same_way: Permute goes the same way twice
class TensorPermute:
    """Dim d of the result is dim dims[d] of a."""

    @staticmethod
    def forward(context, a, dims):
        context.save(dims)
        return a.permute(*dims)

    @staticmethod
    def backward(context, d):
        (dims,) = context.saved
        return (d.permute(*dims),)


# %% wrong_side: a matrix is not transposed, or stands on the wrong side
class TensorMatMul:
    """Matmul of two matrices, (m, k) and (k, n)."""

    @staticmethod
    def forward(context, a, b):
        context.save(a, b)
        return a.matmul(b)

    @staticmethod
    def backward(context, d):
        a, b = context.saved
        return b.permute(1, 0).matmul(d), d.matmul(a.permute(1, 0))


# %% relu_times_zero: ReLU multiplies d by 0
class TensorReLU(TensorReLU):
    @staticmethod
    def backward(context, d):
        (a,) = context.saved
        zero = a.zip("add", a.map("neg"))
        return (d.zip("mul", zero.zip("lt", a)),)


# %% no_tuple: backward returns no tuple
class TensorNeg(TensorNeg):
    @staticmethod
    def backward(context, d):
        return d.map("neg")


# %% list_of_gradients: backward returns a list
class TensorMul:
    @staticmethod
    def forward(context, a, b):
        context.save(a, b)
        return a * b

    @staticmethod
    def backward(context, d):
        a, b = context.saved
        return [unbroadcast(d * b, a.shape), unbroadcast(d * a, b.shape)]
