# %% unbroadcast_by_recursion: one dim at a time, from the front
def unbroadcast(gradient, shape):
    if len(gradient.shape) > len(shape):
        return unbroadcast(gradient.reduce("add", 0, 0.0).reshape(gradient.shape[1:]), shape)
    for d, (now, wanted) in enumerate(zip(gradient.shape, shape)):
        if now != wanted:
            return unbroadcast(gradient.reduce("add", d, 0.0), shape)
    return gradient


# %% unbroadcast_from_the_last_dim: dims of size 1 first, the last one first, those in front at the end
def unbroadcast(gradient, shape):
    padded = (1,) * (len(gradient.shape) - len(shape)) + tuple(shape)
    for d in reversed(range(len(padded))):
        if padded[d] == 1:
            gradient = gradient.reduce("add", d, 0.0)
    return gradient.reshape(tuple(shape))


# %% shapes_are_saved: Add saves two shapes and no tensor
class TensorAdd:
    @staticmethod
    def forward(context, a, b):
        context.save(a.shape, b.shape)
        return b.zip("add", a)

    @staticmethod
    def backward(context, d):
        return tuple(unbroadcast(d, shape) for shape in context.saved)


# %% functions_by_type: classes are made by a call, with lambdas
TensorNeg = type(
    "TensorNeg",
    (),
    {
        "forward": staticmethod(lambda context, a: a * -1.0),
        "backward": staticmethod(lambda context, d: (d * -1.0,)),
    },
)
TensorExp = type(
    "TensorExp",
    (),
    {
        "forward": staticmethod(lambda context, a: (context.save(a), a.map("exp"))[1]),
        "backward": staticmethod(lambda context, d: (context.saved[0].map("exp") * d,)),
    },
)


# %% derived_classes: a base class has forward and backward, each class its rule
class Elementwise:
    name = None

    @classmethod
    def forward(cls, context, a):
        result = a.map(cls.name)
        context.save(a, result)
        return result

    @classmethod
    def backward(cls, context, d):
        return (d * cls.slope(*context.saved),)


class TensorLog(Elementwise):
    name = "log"

    @staticmethod
    def slope(a, result):
        return a.map("inv")


class TensorExp(Elementwise):
    name = "exp"

    @staticmethod
    def slope(a, result):
        return result


class TensorSigmoid(Elementwise):
    name = "sigmoid"

    @staticmethod
    def slope(a, result):
        return result * (1.0 - result)


class TensorInv(Elementwise):
    name = "inv"

    @staticmethod
    def slope(a, result):
        return -(result * result)


# %% sigmoid_mirrored: the second factor is the sigmoid of -a, and it is computed backward
class TensorSigmoid:
    @staticmethod
    def forward(context, a):
        context.save(a)
        return a.map("sigmoid")

    @staticmethod
    def backward(context, d):
        (a,) = context.saved
        return (d.zip("mul", a.map("sigmoid").zip("mul", a.map("neg").map("sigmoid"))),)


# %% relu_by_maximum: forward is the larger of the element and 0
class TensorReLU:
    @staticmethod
    def forward(context, a):
        context.save(a)
        return a.map("relu")

    @staticmethod
    def backward(context, d):
        return tuple([context.saved[0].zip("relu_grad", d)])


# %% permute_by_sorting: the inverse permutation is the one that sorts dims; dims are saved, not their inverse
class TensorPermute:
    @staticmethod
    def forward(context, a, dims):
        context.save(dims)
        return a.permute(*dims)

    @staticmethod
    def backward(context, d):
        (dims,) = context.saved
        return (d.permute(*sorted(range(len(dims)), key=dims.__getitem__)),)


# %% sum_by_adding_to_zeros: zip broadcasts d to the shape of the input
class TensorSum:
    @staticmethod
    def forward(context, a, dim):
        context.save(a)
        return a.reduce("add", dim, 0.0)

    @staticmethod
    def backward(context, d):
        (a,) = context.saved
        ones = a.map("identity")
        return (d.expand(ones.shape),)


# %% matmul_transposed: (b d^T)^T in place of d b^T
class TensorMatMul:
    @staticmethod
    def forward(context, a, b):
        context.save({"left": a, "right": b})
        return b.permute(1, 0).matmul(a.permute(1, 0)).permute(1, 0)

    @staticmethod
    def backward(context, d):
        saved = context.saved[0]
        a, b, d = saved["left"], saved["right"], d.permute(1, 0)
        return b.matmul(d).permute(1, 0), d.matmul(a).permute(1, 0)


# %% mul_by_one_rule: the same comprehension for both operands
class TensorMul:
    @staticmethod
    def forward(context, *operands):
        context.save(*operands)
        return operands[0] * operands[1]

    @staticmethod
    def backward(context, d):
        return tuple(
            unbroadcast(d * other, mine.shape) for mine, other in (context.saved, reversed(context.saved))
        )


# %% reshape_keeps_the_tensor: the input is saved and asked for its shape backward
class TensorReshape:
    @staticmethod
    def forward(context, a, shape):
        context.save(a)
        return a.reshape(shape)

    @staticmethod
    def backward(context, d):
        for a in context.saved:
            return (d.reshape(a.shape),)
