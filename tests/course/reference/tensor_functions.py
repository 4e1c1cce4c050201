"""Module 2: differentiable functions of tensors.

A tensor here is a `Values`: it has a `shape`, and computes with your loops of task 2.3 and your operators of task 0.1,
which are passed by name:

    a.map("neg")                 a.zip("mul", b)            a.reduce("add", dim, 0.0)     the dim then has size 1
    a.permute(1, 0)              a.reshape(shape)           a.expand(shape)               a.matmul(b)

and a + b, a - b, a * b, -a, where an operand may be a number. `context.save` and `context.saved` are as in module 1.
`backward` returns a tuple: for each tensor argument of forward, a gradient of its shape.
"""

from minifuse.course import todo

# Task 2.4


def unbroadcast(gradient, shape):
    """Sum a gradient over all dims along which a tensor of `shape` was broadcast, so that it has this shape."""
    # begin 2.4a
    lead = len(gradient.shape) - len(shape)
    for d in range(lead):
        gradient = gradient.reduce("add", d, 0.0)
    for d, size in enumerate(shape):
        if size == 1 and gradient.shape[lead + d] != 1:
            gradient = gradient.reduce("add", lead + d, 0.0)
    return gradient.reshape(shape)
    # end


class TensorAdd:
    """a + b, with broadcasting."""

    @staticmethod
    def forward(context, a, b):
        # begin 2.4b
        context.save(a.shape, b.shape)
        return a.zip("add", b)
        # end

    @staticmethod
    def backward(context, d):
        # begin 2.4c
        a_shape, b_shape = context.saved
        return unbroadcast(d, a_shape), unbroadcast(d, b_shape)
        # end


class TensorMul:
    """a * b, with broadcasting."""

    @staticmethod
    def forward(context, a, b):
        # begin 2.4d
        context.save(a, b)
        return a.zip("mul", b)
        # end

    @staticmethod
    def backward(context, d):
        # begin 2.4e
        a, b = context.saved
        return unbroadcast(d.zip("mul", b), a.shape), unbroadcast(d.zip("mul", a), b.shape)
        # end


class TensorNeg:
    """-a."""

    @staticmethod
    def forward(context, a):
        # begin 2.4f
        return a.map("neg")
        # end

    @staticmethod
    def backward(context, d):
        # begin 2.4g
        return (d.map("neg"),)
        # end


class TensorInv:
    """1 / a."""

    @staticmethod
    def forward(context, a):
        # begin 2.4h
        context.save(a)
        return a.map("inv")
        # end

    @staticmethod
    def backward(context, d):
        # begin 2.4i
        (a,) = context.saved
        return (a.zip("inv_grad", d),)
        # end


class TensorLog:
    """The natural logarithm of a."""

    @staticmethod
    def forward(context, a):
        # begin 2.4j
        context.save(a)
        return a.map("log")
        # end

    @staticmethod
    def backward(context, d):
        # begin 2.4k
        (a,) = context.saved
        return (a.zip("log_grad", d),)
        # end


class TensorExp:
    """e to the power of a."""

    @staticmethod
    def forward(context, a):
        # begin 2.4l
        value = a.map("exp")
        context.save(value)
        return value
        # end

    @staticmethod
    def backward(context, d):
        # begin 2.4m
        (value,) = context.saved
        return (d.zip("mul", value),)
        # end


class TensorSigmoid:
    """1 / (1 + exp(-a))."""

    @staticmethod
    def forward(context, a):
        # begin 2.4n
        value = a.map("sigmoid")
        context.save(value)
        return value
        # end

    @staticmethod
    def backward(context, d):
        # begin 2.4o
        (value,) = context.saved
        return (d * value * (1.0 - value),)
        # end


class TensorReLU:
    """a where it is positive, else 0."""

    @staticmethod
    def forward(context, a):
        # begin 2.4p
        context.save(a)
        return a.map("relu")
        # end

    @staticmethod
    def backward(context, d):
        # begin 2.4q
        (a,) = context.saved
        return (a.zip("relu_grad", d),)
        # end


class TensorSum:
    """The sum along one dim, which then has size 1."""

    @staticmethod
    def forward(context, a, dim):
        # begin 2.4r
        context.save(a.shape)
        return a.reduce("add", dim, 0.0)
        # end

    @staticmethod
    def backward(context, d):
        # begin 2.4s
        (shape,) = context.saved
        return (d.expand(shape),)
        # end


class TensorPermute:
    """Dim d of the result is dim dims[d] of a."""

    @staticmethod
    def forward(context, a, dims):
        # begin 2.4t
        context.save(dims)
        return a.permute(*dims)
        # end

    @staticmethod
    def backward(context, d):
        # begin 2.4u
        (dims,) = context.saved
        return (d.permute(*[dims.index(k) for k in range(len(dims))]),)
        # end


class TensorReshape:
    """The elements, in the same order, in another shape."""

    @staticmethod
    def forward(context, a, shape):
        # begin 2.4v
        context.save(a.shape)
        return a.reshape(shape)
        # end

    @staticmethod
    def backward(context, d):
        # begin 2.4w
        (shape,) = context.saved
        return (d.reshape(shape),)
        # end


class TensorMatMul:
    """Matmul of two matrices, (m, k) and (k, n)."""

    @staticmethod
    def forward(context, a, b):
        # begin 2.4x
        context.save(a, b)
        return a.matmul(b)
        # end

    @staticmethod
    def backward(context, d):
        # begin 2.4y
        a, b = context.saved
        return d.matmul(b.permute(1, 0)), a.permute(1, 0).matmul(d)
        # end
