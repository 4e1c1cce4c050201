"""NumPy in float64 under the names of tensors: what a program means, by code that shares no line with minifuse.

NumPy's own views and its own care for overlaps say what a change in place does, so aliasing is judged too.
"""

from types import SimpleNamespace

import numpy as np

FLOAT = np.float64
NEAR = 1e-4  # closer than this, float32 may land on the other side of a step


class Judged:
    """An array with the methods of tensors. `precision` is the float that all floats are."""

    def __init__(self, a, judge):
        self.a, self.judge = np.asarray(a), judge

    shape = property(lambda self: self.a.shape)
    ndim = property(lambda self: self.a.ndim)
    size = property(lambda self: self.a.size)
    dtype = property(lambda self: self.a.dtype)
    T = property(lambda self: self.like(self.a.T))
    mT = property(lambda self: self.like(self.a.swapaxes(-1, -2)))  # noqa: N815  # our name

    def like(self, a):
        a = np.asarray(a)
        a = a.astype(self.judge.precision) if a.dtype.kind == "f" and a.dtype != self.judge.precision else a
        self.judge.steps_taken.append(a.copy())
        return Judged(a, self.judge)

    def __getitem__(self, index):
        entries = index if isinstance(index, tuple) else (index,)
        return self.like(self.a[index if Ellipsis in entries else (*entries, ...)])

    def __setitem__(self, index, value):
        self[index].copy_(value)

    def __len__(self):
        return len(self.a)

    def __iter__(self):
        return (self[k] for k in range(len(self.a)))

    def permute(self, *order):
        return self.like(self.a.transpose(order))

    def expand(self, *shape):
        a = np.broadcast_to(self.a, shape)
        if all(s for n, s in zip(a.shape, a.strides, strict=True) if n > 1):  # nothing is repeated, so it may be written to
            a = np.lib.stride_tricks.as_strided(self.a, a.shape, a.strides)
        return self.like(a)

    def reshape(self, *shape):
        self.judge.is_ambiguous |= self.ndim > 1
        return self.like(self.a.reshape(shape))

    def flatten(self):
        return self.reshape(-1)

    def flip(self, *dims):
        return self.like(np.flip(self.a, dims))

    def index_select(self, dim, index):
        return self.like(np.take(self.a, index.a, dim))

    def unsqueeze(self, dim):
        return self.like(np.expand_dims(self.a, dim))

    def to(self, dtype):
        dtype = np.dtype(dtype).name
        kind = np.dtype(self.judge.precision if dtype.startswith("float") else dtype)
        self.judge.is_ambiguous |= kind.kind == self.a.dtype.kind == "f"
        return self if kind == self.a.dtype else self.like(self.a.astype(kind))

    def clone(self):
        return self.like(self.a.copy())

    def contiguous(self):
        return self if self.a.flags.c_contiguous else self.clone()

    def detach(self):
        return self

    def copy_(self, value):
        np.copyto(self.a, plain(value), casting="same_kind")
        return self

    fill_ = copy_

    def zero_(self):
        return self.copy_(0)

    def sum(self, dim=None, keepdim=False):
        return self.like(self.a.sum(dim, keepdims=keepdim))

    def prod(self, dim=None, keepdim=False):
        return self.like(self.a.prod(dim, keepdims=keepdim))

    def mean(self, dim=None, keepdim=False):
        return self.like(average(self.a, dim, keepdim))

    def var(self, dim, correction, keepdim):
        d = self.a - average(self.a, dim, True)
        return self.like(average(d * d, dim, keepdim))

    def max(self, dim=None, keepdim=False):
        self.judge.ties(self.a, dim)
        return self.like(self.a.max(dim, keepdims=keepdim))

    def min(self, dim=None, keepdim=False):
        self.judge.ties(-self.a if self.a.dtype.kind == "f" else self.a, dim)
        return self.like(self.a.min(dim, keepdims=keepdim))

    def any(self, dim=None, keepdim=False):
        return self.like(self.a.any(dim, keepdims=keepdim))

    def all(self, dim=None, keepdim=False):
        return self.like(self.a.all(dim, keepdims=keepdim))

    def argmax(self, dim=None, keepdim=False):
        self.judge.steps(self.a - self.a.max(dim, keepdims=True))
        return self.like(self.a.argmax(dim, keepdims=keepdim))

    def softmax(self, dim):
        e = np.exp(FLOAT(1) * (self.a * 1 - self.a.max(dim, keepdims=True)))
        return self.like(e / e.sum(dim, keepdims=True))

    def logsumexp(self, dim=None, keepdim=False):
        return self.like(np.log(np.exp(self.a * FLOAT(1)).sum(dim, keepdims=keepdim)))

    def clip(self, low=None, high=None):
        for end in (low, high):
            if end is not None:
                self.judge.kinks(self.a * 1.0 - plain(end))
        return self.like(np.clip(self.a, plain(low), plain(high)))

    def __matmul__(self, other):
        return self.like(self.a @ plain(other))


def average(a, dim, keepdim):
    """The mean; NaN of nothing."""
    total = np.asarray(a.sum(dim, keepdims=keepdim))
    return total / (a.size // total.size if total.size else 1)


def plain(x):
    """What a Judged holds."""
    return x.a if isinstance(x, Judged) else x


def operation(function, jumps=None):
    """A method of Judged for an operation of NumPy; where it jumps, the distance from the step is noted."""

    def method(self, *others):
        if isinstance(others[:1] and others[0], Judged) and self.a.dtype.kind == "f":
            assert others[0].judge is self.judge
        values = [plain(x) for x in others]
        if jumps is not None:
            self.judge.steps(jumps(self.a, *values))
        return self.like(function(self.a, *values))

    return method


def swapped(function):
    return lambda self, other: self.like(function(plain(other), self.a))


def in_place(function):
    def method(self, other):
        function(self.a, plain(other), out=self.a, casting="same_kind")
        return self

    return method


def fraction(a, b):
    """How far a quotient is from a whole number."""
    q = np.asarray(a) / b
    return q - np.round(q)


ARITHMETIC = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "floordiv": np.floor_divide,
    "mod": np.remainder, "pow": np.power, "and": np.bitwise_and, "or": np.bitwise_or,
}  # fmt: skip
for _name, _function in ARITHMETIC.items():
    setattr(Judged, f"__{_name}__", operation(_function, fraction if _name in ("floordiv", "mod") else None))
    setattr(Judged, f"__r{_name}__", swapped(_function))
    setattr(Judged, f"__i{_name}__", in_place(_function))
for _name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
    _short = {"equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge"}[
        _name
    ]
    setattr(Judged, f"__{_short}__", operation(getattr(np, _name), lambda a, b: a * 1.0 - b))
Judged.__neg__ = operation(np.negative)
Judged.__invert__ = operation(np.invert)
Judged.__abs__ = operation(np.abs)
Judged.__hash__ = object.__hash__


class Judge:
    """The names `mf` and `fuse` of a program, as NumPy has them, in one precision.

    Attributes
    ----------
    margin : float
        How near a floating value came to a step of the program: a comparison, a floor.
    bend : float
        How near one came to where its gradient jumps: a maximum, the ends of clip.
    steps_taken : list of arrays
        Each value on the way.
    is_ambiguous : bool
        Whether NumPy cannot say what shares memory: one float type was cast to another, which here are the same; a value
        was reshaped, which is a view or a copy by its strides, and those of computed values are ours to choose.
    """

    def __init__(self, precision=FLOAT):
        self.precision, self.margin, self.bend, self.is_ambiguous = precision, np.inf, np.inf, False
        self.steps_taken = []
        one = lambda f: lambda x: x.like(f(x.a))  # noqa: E731
        smooth = lambda f: one(lambda a: f(a if a.dtype.kind == "f" else a.astype(FLOAT)))  # noqa: E731  # not in float16
        two = lambda f: lambda x, y: (x if isinstance(x, Judged) else y).like(f(plain(x), plain(y)))  # noqa: E731
        self.mf = SimpleNamespace(
            exp=smooth(np.exp),
            log=smooth(np.log),
            log1p=smooth(np.log1p),
            sqrt=smooth(np.sqrt),
            tanh=smooth(np.tanh),
            sin=smooth(np.sin),
            cos=smooth(np.cos),
            sigmoid=smooth(lambda a: 1 / (1 + np.exp(-a))),
            relu=one(lambda a: self.bent(np.maximum, a, a.dtype.type(0))),
            abs=one(lambda a: self.bent(lambda a, _: np.abs(a), a, 0)),
            maximum=two(lambda a, b: self.bent(np.maximum, a, b)),
            minimum=two(lambda a, b: self.bent(np.minimum, a, b)),
            where=lambda c, x, y: c.like(np.where(c.a != 0, plain(x), plain(y))),
            clip=lambda x, low=None, high=None: x.clip(low, high),
            zeros_like=lambda x: self.of(np.zeros_like(x.a)),
            ones_like=lambda x: self.of(np.ones_like(x.a)),
            zeros=lambda *shape, dtype="float32": self.of(np.zeros(shape, dtype)),
            ones=lambda *shape, dtype="float32": self.of(np.ones(shape, dtype)),
            full=lambda shape, value: self.of(np.full(shape, value)),
            arange=lambda n: self.of(np.arange(n)),
            tensor=lambda data: self.of(np.array(data)),
        )
        self.numpy = SimpleNamespace(
            **{n: two(getattr(np, n)) for n in ("add", "multiply", "maximum", "subtract")},
            **{n: smooth(getattr(np, n)) for n in ("exp", "tanh", "sqrt", "sin")},
            **{n: one(getattr(np, n)) for n in ("abs", "negative", "square")},
            sum=lambda x, axis=None, keepdims=False: x.sum(axis, keepdims),
            where=self.mf.where,
            transpose=lambda x: x.T,
        )
        self.names = {"mf": self.mf, "np": self.numpy, "fuse": lambda f: f}

    def of(self, a):
        """An array as the judge sees it."""
        a = np.asarray(a)
        return Judged(a.astype(self.precision) if a.dtype.kind == "f" else a, self)

    def steps(self, distance):
        """Note how far floats are from a step."""
        distance = np.asarray(distance)
        if distance.dtype.kind == "f" and distance.size:
            with np.errstate(all="ignore"):
                self.margin = min(self.margin, float(np.abs(distance).min()))

    def kinks(self, distance):
        """Note how far floats are from where a gradient jumps."""
        distance = np.asarray(distance)
        if distance.dtype.kind == "f" and distance.size:
            with np.errstate(all="ignore"):
                self.bend = min(self.bend, float(np.abs(distance).min()))

    def bent(self, function, a, b):
        """A function of two arrays with a kink where they are equal."""
        self.kinks(np.asarray(a) * 1.0 - b)
        return function(a, b)

    def ties(self, a, dim):
        """Note how far the largest elements are from the second largest."""
        if a.dtype.kind != "f" or not a.ndim:
            return
        flat = a.reshape(1, -1) if dim is None else np.moveaxis(a, dim, range(-np.size(dim), 0)) if np.size(dim) > 0 else a
        flat = flat.reshape(*flat.shape[: flat.ndim - (1 if dim is None else np.size(dim))], -1)
        if flat.shape[-1] > 1:
            top = np.sort(flat, -1)
            self.kinks(top[..., -1] - top[..., -2])
