"""Wrong solutions of task 5.4, one a cell: `# %% name: the mistake that the check must name`."""


# %% aliases: it is left out which arguments share memory
def call_key(function, arguments):
    """A value that can be in a dict, and is equal for two calls exactly where one kernel may serve both."""
    parts = []
    for x in arguments:
        if not isinstance(x, Strided):
            parts.append(type(x).__name__)
            continue
        classes = []
        for size, stride in zip(x.shape, x.strides):
            classes.append(0 if size == 1 else stride if stride in (0, 1) else "s")
        parts.append((x.storage.dtype.str, tuple(classes)))
    for k, x in enumerate(arguments):
        for y in arguments[k + 1 :]:
            if not (isinstance(x, Strided) and isinstance(y, Strided)) or True:
                parts.append("apart")
            else:
                is_same = (x.shape, x.strides, x.offset) == (y.shape, y.strides, y.offset)
                parts.append("same" if is_same else "overlap")
    return (described(function), *parts)


def described(value):
    if isinstance(value, tuple):
        return f"({', '.join([described(x) for x in value])})"
    return described(tuple(insides(value))) if callable(value) else repr(value)


# %% closure: what the function reads from around it is left out
def call_key(function, arguments):
    """A value that can be in a dict, and is equal for two calls exactly where one kernel may serve both."""
    parts = []
    for x in arguments:
        if not isinstance(x, Strided):
            parts.append(type(x).__name__)
            continue
        classes = []
        for size, stride in zip(x.shape, x.strides):
            classes.append(0 if size == 1 else stride if stride in (0, 1) else "s")
        parts.append((x.storage.dtype.str, tuple(classes)))
    for k, x in enumerate(arguments):
        for y in arguments[k + 1 :]:
            if not (isinstance(x, Strided) and isinstance(y, Strided)) or x.storage is not y.storage:
                parts.append("apart")
            else:
                is_same = (x.shape, x.strides, x.offset) == (y.shape, y.strides, y.offset)
                parts.append("same" if is_same else "overlap")
    code, _, _ = insides(function)
    return (code, *parts)


# %% dtype: the dtype is left out
def call_key(function, arguments):
    """A value that can be in a dict, and is equal for two calls exactly where one kernel may serve both."""
    parts = []
    for x in arguments:
        if not isinstance(x, Strided):
            parts.append(type(x).__name__)
            continue
        classes = []
        for size, stride in zip(x.shape, x.strides):
            classes.append(0 if size == 1 else stride if stride in (0, 1) else "s")
        parts.append(tuple(classes))
    for k, x in enumerate(arguments):
        for y in arguments[k + 1 :]:
            if not (isinstance(x, Strided) and isinstance(y, Strided)) or x.storage is not y.storage:
                parts.append("apart")
            else:
                is_same = (x.shape, x.strides, x.offset) == (y.shape, y.strides, y.offset)
                parts.append("same" if is_same else "overlap")
    return (described(function), *parts)


def described(value):
    if isinstance(value, tuple):
        return f"({', '.join([described(x) for x in value])})"
    return described(tuple(insides(value))) if callable(value) else repr(value)


# %% exact_strides: the strides themselves are in the key
def call_key(function, arguments):
    """A value that can be in a dict, and is equal for two calls exactly where one kernel may serve both."""
    parts = []
    for x in arguments:
        if not isinstance(x, Strided):
            parts.append(type(x).__name__)
            continue
        classes = []
        for size, stride in zip(x.shape, x.strides):
            classes.append(0 if size == 1 else stride)
        parts.append((x.storage.dtype.str, tuple(classes)))
    for k, x in enumerate(arguments):
        for y in arguments[k + 1 :]:
            if not (isinstance(x, Strided) and isinstance(y, Strided)) or x.storage is not y.storage:
                parts.append("apart")
            else:
                is_same = (x.shape, x.strides, x.offset) == (y.shape, y.strides, y.offset)
                parts.append("same" if is_same else "overlap")
    return (described(function), *parts)


def described(value):
    if isinstance(value, tuple):
        return f"({', '.join([described(x) for x in value])})"
    return described(tuple(insides(value))) if callable(value) else repr(value)


# %% first_out: the kernel that was built first goes first
class KernelCache:
    """Kernels by the keys of calls; at most so many, of which the one that was not asked for the longest goes first."""

    def __init__(self, most):
        self.most = most
        self.kernels = {}

    def kernel(self, function, arguments, build):
        """The kernel of a call: what build() gave for a call with this key, or gives now. An error in it leaves nothing."""
        key = call_key(function, arguments)
        kernel = self.kernels[key] if key in self.kernels else build()
        self.kernels[key] = kernel
        while len(self.kernels) > self.most:
            del self.kernels[next(iter(self.kernels))]
        return kernel


# %% name: the function is known by its name
def call_key(function, arguments):
    """A value that can be in a dict, and is equal for two calls exactly where one kernel may serve both."""
    parts = []
    for x in arguments:
        if not isinstance(x, Strided):
            parts.append(type(x).__name__)
            continue
        classes = []
        for size, stride in zip(x.shape, x.strides):
            classes.append(0 if size == 1 else stride if stride in (0, 1) else "s")
        parts.append((x.storage.dtype.str, tuple(classes)))
    for k, x in enumerate(arguments):
        for y in arguments[k + 1 :]:
            if not (isinstance(x, Strided) and isinstance(y, Strided)) or x.storage is not y.storage:
                parts.append("apart")
            else:
                is_same = (x.shape, x.strides, x.offset) == (y.shape, y.strides, y.offset)
                parts.append("same" if is_same else "overlap")
    _, closure, defaults = insides(function)
    return (function.__name__, [v for _, v in (*closure, *enumerate(defaults))].__repr__(), *parts)


# %% numbers: values of arguments are in the key
def call_key(function, arguments):
    """A value that can be in a dict, and is equal for two calls exactly where one kernel may serve both."""
    parts = []
    for x in arguments:
        if not isinstance(x, Strided):
            parts.append(repr(x))
            continue
        classes = []
        for size, stride in zip(x.shape, x.strides):
            classes.append(0 if size == 1 else stride if stride in (0, 1) else "s")
        parts.append((x.storage.dtype.str, tuple(classes)))
    for k, x in enumerate(arguments):
        for y in arguments[k + 1 :]:
            if not (isinstance(x, Strided) and isinstance(y, Strided)) or x.storage is not y.storage:
                parts.append("apart")
            else:
                is_same = (x.shape, x.strides, x.offset) == (y.shape, y.strides, y.offset)
                parts.append("same" if is_same else "overlap")
    return (described(function), *parts)


def described(value):
    if isinstance(value, tuple):
        return f"({', '.join([described(x) for x in value])})"
    return described(tuple(insides(value))) if callable(value) else repr(value)


# %% sizes: sizes are in the key
def call_key(function, arguments):
    """A value that can be in a dict, and is equal for two calls exactly where one kernel may serve both."""
    parts = []
    for x in arguments:
        if not isinstance(x, Strided):
            parts.append(type(x).__name__)
            continue
        classes = []
        for size, stride in zip(x.shape, x.strides):
            classes.append(0 if size == 1 else stride if stride in (0, 1) else "s")
        parts.append((x.storage.dtype.str, tuple(classes), x.shape))
    for k, x in enumerate(arguments):
        for y in arguments[k + 1 :]:
            if not (isinstance(x, Strided) and isinstance(y, Strided)) or x.storage is not y.storage:
                parts.append("apart")
            else:
                is_same = (x.shape, x.strides, x.offset) == (y.shape, y.strides, y.offset)
                parts.append("same" if is_same else "overlap")
    return (described(function), *parts)


def described(value):
    if isinstance(value, tuple):
        return f"({', '.join([described(x) for x in value])})"
    return described(tuple(insides(value))) if callable(value) else repr(value)


# %% strides: strides are left out
def call_key(function, arguments):
    """A value that can be in a dict, and is equal for two calls exactly where one kernel may serve both."""
    parts = []
    for x in arguments:
        if not isinstance(x, Strided):
            parts.append(type(x).__name__)
            continue
        classes = []
        for size, stride in zip(x.shape, x.strides):
            classes.append(0 if size == 1 else stride if stride in (0, 1) else "s")
        parts.append((x.storage.dtype.str, len(classes)))
    for k, x in enumerate(arguments):
        for y in arguments[k + 1 :]:
            if not (isinstance(x, Strided) and isinstance(y, Strided)) or x.storage is not y.storage:
                parts.append("apart")
            else:
                is_same = (x.shape, x.strides, x.offset) == (y.shape, y.strides, y.offset)
                parts.append("same" if is_same else "overlap")
    return (described(function), *parts)


def described(value):
    if isinstance(value, tuple):
        return f"({', '.join([described(x) for x in value])})"
    return described(tuple(insides(value))) if callable(value) else repr(value)


# %% types: values from outside are compared by ==, without their types
def call_key(function, arguments):
    """A value that can be in a dict, and is equal for two calls exactly where one kernel may serve both."""
    parts = []
    for x in arguments:
        if not isinstance(x, Strided):
            parts.append(type(x).__name__)
            continue
        classes = []
        for size, stride in zip(x.shape, x.strides):
            classes.append(0 if size == 1 else stride if stride in (0, 1) else "s")
        parts.append((x.storage.dtype.str, tuple(classes)))
    for k, x in enumerate(arguments):
        for y in arguments[k + 1 :]:
            if not (isinstance(x, Strided) and isinstance(y, Strided)) or x.storage is not y.storage:
                parts.append("apart")
            else:
                is_same = (x.shape, x.strides, x.offset) == (y.shape, y.strides, y.offset)
                parts.append("same" if is_same else "overlap")
    code, closure, defaults = insides(function)
    return (code, closure, defaults, *parts)


# %% ones_as_they_are: a dim of size 1 does not count as stride 0
def call_key(function, arguments):
    parts = []
    for x in arguments:
        if not isinstance(x, Strided):
            parts.append(type(x).__name__)
            continue
        parts.append((x.storage.dtype.str, tuple(stride if stride in (0, 1) else "s" for stride in x.strides)))
    for k, x in enumerate(arguments):
        for y in arguments[k + 1 :]:
            if not (isinstance(x, Strided) and isinstance(y, Strided)) or x.storage is not y.storage:
                parts.append("apart")
            else:
                is_same = (x.shape, x.strides, x.offset) == (y.shape, y.strides, y.offset)
                parts.append("same" if is_same else "overlap")
    return (described(function), *parts)


def described(value):
    if isinstance(value, tuple):
        return f"({', '.join([described(x) for x in value])})"
    return described(tuple(insides(value))) if callable(value) else repr(value)


# %% function_itself: the key has objects in it that are made anew
_key = call_key


def call_key(function, arguments):
    return (function, _key(function, arguments))


# %% repr_of_a_closure: a function that is read from around another one counts by its address
def call_key(function, arguments):
    parts = []
    for x in arguments:
        if not isinstance(x, Strided):
            parts.append(type(x).__name__)
            continue
        classes = []
        for size, stride in zip(x.shape, x.strides):
            classes.append(0 if size == 1 else stride if stride in (0, 1) else "s")
        parts.append((x.storage.dtype.str, tuple(classes)))
    for k, x in enumerate(arguments):
        for y in arguments[k + 1 :]:
            if not (isinstance(x, Strided) and isinstance(y, Strided)) or x.storage is not y.storage:
                parts.append("apart")
            else:
                is_same = (x.shape, x.strides, x.offset) == (y.shape, y.strides, y.offset)
                parts.append("same" if is_same else "overlap")
    return (repr(insides(function)), *parts)


# %% none_is_no_kernel: a kernel that is None or false counts as none
class KernelCache:
    def __init__(self, most):
        self.most = most
        self.kernels = {}

    def kernel(self, function, arguments, build):
        key = call_key(function, arguments)
        kernel = self.kernels.pop(key, None)
        if kernel is None:
            kernel = build()
        self.kernels[key] = kernel
        while len(self.kernels) > self.most:
            del self.kernels[next(iter(self.kernels))]
        return kernel
