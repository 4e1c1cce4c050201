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
    todo("2.4a")


class TensorAdd:
    """a + b, with broadcasting."""

    @staticmethod
    def forward(context, a, b):
        todo("2.4b")

    @staticmethod
    def backward(context, d):
        todo("2.4c")


class TensorMul:
    """a * b, with broadcasting."""

    @staticmethod
    def forward(context, a, b):
        todo("2.4d")

    @staticmethod
    def backward(context, d):
        todo("2.4e")


class TensorNeg:
    """-a."""

    @staticmethod
    def forward(context, a):
        todo("2.4f")

    @staticmethod
    def backward(context, d):
        todo("2.4g")


class TensorInv:
    """1 / a."""

    @staticmethod
    def forward(context, a):
        todo("2.4h")

    @staticmethod
    def backward(context, d):
        todo("2.4i")


class TensorLog:
    """The natural logarithm of a."""

    @staticmethod
    def forward(context, a):
        todo("2.4j")

    @staticmethod
    def backward(context, d):
        todo("2.4k")


class TensorExp:
    """e to the power of a."""

    @staticmethod
    def forward(context, a):
        todo("2.4l")

    @staticmethod
    def backward(context, d):
        todo("2.4m")


class TensorSigmoid:
    """1 / (1 + exp(-a))."""

    @staticmethod
    def forward(context, a):
        todo("2.4n")

    @staticmethod
    def backward(context, d):
        todo("2.4o")


class TensorReLU:
    """a where it is positive, else 0."""

    @staticmethod
    def forward(context, a):
        todo("2.4p")

    @staticmethod
    def backward(context, d):
        todo("2.4q")


class TensorSum:
    """The sum along one dim, which then has size 1."""

    @staticmethod
    def forward(context, a, dim):
        todo("2.4r")

    @staticmethod
    def backward(context, d):
        todo("2.4s")


class TensorPermute:
    """Dim d of the result is dim dims[d] of a."""

    @staticmethod
    def forward(context, a, dims):
        todo("2.4t")

    @staticmethod
    def backward(context, d):
        todo("2.4u")


class TensorReshape:
    """The elements, in the same order, in another shape."""

    @staticmethod
    def forward(context, a, shape):
        todo("2.4v")

    @staticmethod
    def backward(context, d):
        todo("2.4w")


class TensorMatMul:
    """Matmul of two matrices, (m, k) and (k, n)."""

    @staticmethod
    def forward(context, a, b):
        todo("2.4x")

    @staticmethod
    def backward(context, d):
        todo("2.4y")
