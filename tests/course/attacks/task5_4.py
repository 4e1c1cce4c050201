"""Wrong solutions of task 5.4 that were written to get past its checks. Each is appended to the reference."""

# %% alias_by_address: storages are compared by address of their first byte, so views of one memory that are two arrays count as one storage, and empty arrays too.
# promise: Test x.storage is y.storage

def call_key(function, arguments):
    parts, tensors = [], []
    for x in arguments:
        if isinstance(x, Strided):
            strides = tuple(0 if n == 1 else s if s in (0, 1) else 2 for n, s in zip(x.shape, x.strides))
            alias = []
            for y in tensors:
                if x.storage.ctypes.data != y.storage.ctypes.data:
                    alias.append(0)
                elif (tuple(x.shape), tuple(x.strides), x.offset) == (tuple(y.shape), tuple(y.strides), y.offset):
                    alias.append(1)
                else:
                    alias.append(2)
            tensors.append(x)
            parts.append(("tensor", x.storage.dtype.str, strides, tuple(alias)))
        else:
            parts.append(("number", type(x)))
    return function_key(function), tuple(parts)

def function_key(function):
    code, closure, defaults = insides(function)
    return code, value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", function_key(value)
    return type(value), repr(value)

# %% alias_of_three_before: aliases are asked against the three tensors before only: of five, the fifth may be the first.
# promise: how two tensors alias

def call_key(function, arguments):
    parts, tensors = [], []
    for x in arguments:
        if isinstance(x, Strided):
            strides = tuple(0 if n == 1 else s if s in (0, 1) else 2 for n, s in zip(x.shape, x.strides))
            alias = []
            for y in tensors[-3:]:
                if x.storage is not y.storage:
                    alias.append(0)
                elif (tuple(x.shape), tuple(x.strides), x.offset) == (tuple(y.shape), tuple(y.strides), y.offset):
                    alias.append(1)
                else:
                    alias.append(2)
            tensors.append(x)
            parts.append(("tensor", x.storage.dtype.str, strides, tuple(alias)))
        else:
            parts.append(("number", type(x)))
    return function_key(function), tuple(parts)

def function_key(function):
    code, closure, defaults = insides(function)
    return code, value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", function_key(value)
    return type(value), repr(value)

# %% alias_of_two_before: aliases are asked against the two tensors before only: (x, y, z, x) is taken for (x, y, z, w).
# promise: how two tensors alias

def call_key(function, arguments):
    parts, tensors = [], []
    for x in arguments:
        if isinstance(x, Strided):
            strides = tuple(0 if n == 1 else s if s in (0, 1) else 2 for n, s in zip(x.shape, x.strides))
            alias = []
            for y in tensors[-2:]:
                if x.storage is not y.storage:
                    alias.append(0)
                elif (tuple(x.shape), tuple(x.strides), x.offset) == (tuple(y.shape), tuple(y.strides), y.offset):
                    alias.append(1)
                else:
                    alias.append(2)
            tensors.append(x)
            parts.append(("tensor", x.storage.dtype.str, strides, tuple(alias)))
        else:
            parts.append(("number", type(x)))
    return function_key(function), tuple(parts)

def function_key(function):
    code, closure, defaults = insides(function)
    return code, value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", function_key(value)
    return type(value), repr(value)

# %% alias_with_first_only: aliases are asked against the first tensor only: (x, y, y) is taken for (x, y, z).
# promise: how two tensors alias

def call_key(function, arguments):
    parts, tensors = [], []
    for x in arguments:
        if isinstance(x, Strided):
            strides = tuple(0 if n == 1 else s if s in (0, 1) else 2 for n, s in zip(x.shape, x.strides))
            alias = []
            for y in tensors[:1]:
                if x.storage is not y.storage:
                    alias.append(0)
                elif (tuple(x.shape), tuple(x.strides), x.offset) == (tuple(y.shape), tuple(y.strides), y.offset):
                    alias.append(1)
                else:
                    alias.append(2)
            tensors.append(x)
            parts.append(("tensor", x.storage.dtype.str, strides, tuple(alias)))
        else:
            parts.append(("number", type(x)))
    return function_key(function), tuple(parts)

def function_key(function):
    code, closure, defaults = insides(function)
    return code, value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", function_key(value)
    return type(value), repr(value)

# %% alias_without_offset: two tensors of one storage with the same shape and strides count as equal, though their offsets differ.
# promise: equal (one storage, the same shape, strides and offset: loaded once)

def call_key(function, arguments):
    parts, tensors = [], []
    for x in arguments:
        if isinstance(x, Strided):
            strides = tuple(0 if n == 1 else s if s in (0, 1) else 2 for n, s in zip(x.shape, x.strides))
            alias = []
            for y in tensors:
                if x.storage is not y.storage:
                    alias.append(0)
                elif (tuple(x.shape), tuple(x.strides)) == (tuple(y.shape), tuple(y.strides)):
                    alias.append(1)
                else:
                    alias.append(2)
            tensors.append(x)
            parts.append(("tensor", x.storage.dtype.str, strides, tuple(alias)))
        else:
            parts.append(("number", type(x)))
    return function_key(function), tuple(parts)

def function_key(function):
    code, closure, defaults = insides(function)
    return code, value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", function_key(value)
    return type(value), repr(value)

# %% alias_without_shape: two tensors of one storage with the same strides and offset count as equal, though their shapes differ.
# promise: equal (one storage, the same shape, strides and offset: loaded once)

def call_key(function, arguments):
    parts, tensors = [], []
    for x in arguments:
        if isinstance(x, Strided):
            strides = tuple(0 if n == 1 else s if s in (0, 1) else 2 for n, s in zip(x.shape, x.strides))
            alias = []
            for y in tensors:
                if x.storage is not y.storage:
                    alias.append(0)
                elif (tuple(x.strides), x.offset) == (tuple(y.strides), y.offset):
                    alias.append(1)
                else:
                    alias.append(2)
            tensors.append(x)
            parts.append(("tensor", x.storage.dtype.str, strides, tuple(alias)))
        else:
            parts.append(("number", type(x)))
    return function_key(function), tuple(parts)

def function_key(function):
    code, closure, defaults = insides(function)
    return code, value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", function_key(value)
    return type(value), repr(value)

# %% bool_is_int: bool and int arguments share a kernel.
# promise: the type of each number that is an argument (bool, int, float)

def call_key(function, arguments):
    parts, tensors = [], []
    for x in arguments:
        if isinstance(x, Strided):
            strides = tuple(0 if n == 1 else s if s in (0, 1) else 2 for n, s in zip(x.shape, x.strides))
            alias = []
            for y in tensors:
                if x.storage is not y.storage:
                    alias.append(0)
                elif (tuple(x.shape), tuple(x.strides), x.offset) == (tuple(y.shape), tuple(y.strides), y.offset):
                    alias.append(1)
                else:
                    alias.append(2)
            tensors.append(x)
            parts.append(("tensor", x.storage.dtype.str, strides, tuple(alias)))
        else:
            parts.append(("number", float if isinstance(x, float) else int))
    return function_key(function), tuple(parts)

def function_key(function):
    code, closure, defaults = insides(function)
    return code, value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", function_key(value)
    return type(value), repr(value)

# %% byte_order_left_out: the byte order of the dtype is left out: '<f4' and '>f4' share a kernel.
# promise: the dtype of each tensor (x.storage.dtype.str)

def call_key(function, arguments):
    parts, tensors = [], []
    for x in arguments:
        if isinstance(x, Strided):
            strides = tuple(0 if n == 1 else s if s in (0, 1) else 2 for n, s in zip(x.shape, x.strides))
            alias = []
            for y in tensors:
                if x.storage is not y.storage:
                    alias.append(0)
                elif (tuple(x.shape), tuple(x.strides), x.offset) == (tuple(y.shape), tuple(y.strides), y.offset):
                    alias.append(1)
                else:
                    alias.append(2)
            tensors.append(x)
            parts.append(("tensor", x.storage.dtype.str[1:], strides, tuple(alias)))
        else:
            parts.append(("number", type(x)))
    return function_key(function), tuple(parts)

def function_key(function):
    code, closure, defaults = insides(function)
    return code, value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", function_key(value)
    return type(value), repr(value)

# %% code_by_bytes_and_constants: of the code only bytes, constants (by ==) and names are compared: x * 2 and x * 2.0, or x * 0.0 and x * -0.0, share a kernel.
# promise: the function's code; 2 and 2.0 are different there, and so are 0.0 and -0.0

def call_key(function, arguments):
    parts, tensors = [], []
    for x in arguments:
        if isinstance(x, Strided):
            strides = tuple(0 if n == 1 else s if s in (0, 1) else 2 for n, s in zip(x.shape, x.strides))
            alias = []
            for y in tensors:
                if x.storage is not y.storage:
                    alias.append(0)
                elif (tuple(x.shape), tuple(x.strides), x.offset) == (tuple(y.shape), tuple(y.strides), y.offset):
                    alias.append(1)
                else:
                    alias.append(2)
            tensors.append(x)
            parts.append(("tensor", x.storage.dtype.str, strides, tuple(alias)))
        else:
            parts.append(("number", type(x)))
    return function_key(function), tuple(parts)

def function_key(function):
    code, closure, defaults = insides(function)
    return (function.__code__.co_code, function.__code__.co_consts, function.__code__.co_names), value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", function_key(value)
    return type(value), repr(value)

class KernelCache:
    def __init__(self, most):
        self.most = most
        self.kernels = {}

    def kernel(self, function, arguments, build):
        key = call_key(function, arguments)
        if key in self.kernels:
            kernel = self.kernels.pop(key)
        else:
            kernel = build()
        self.kernels[key] = kernel
        while len(self.kernels) > self.most:
            del self.kernels[next(iter(self.kernels))]
        return kernel

# %% code_by_place: the code is taken for its file and line: two lambdas of one line share a kernel.
# promise: the function's code

def call_key(function, arguments):
    parts, tensors = [], []
    for x in arguments:
        if isinstance(x, Strided):
            strides = tuple(0 if n == 1 else s if s in (0, 1) else 2 for n, s in zip(x.shape, x.strides))
            alias = []
            for y in tensors:
                if x.storage is not y.storage:
                    alias.append(0)
                elif (tuple(x.shape), tuple(x.strides), x.offset) == (tuple(y.shape), tuple(y.strides), y.offset):
                    alias.append(1)
                else:
                    alias.append(2)
            tensors.append(x)
            parts.append(("tensor", x.storage.dtype.str, strides, tuple(alias)))
        else:
            parts.append(("number", type(x)))
    return function_key(function), tuple(parts)

def function_key(function):
    code, closure, defaults = insides(function)
    return (function.__code__.co_filename, function.__code__.co_firstlineno, function.__code__.co_name), value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", function_key(value)
    return type(value), repr(value)

class KernelCache:
    def __init__(self, most):
        self.most = most
        self.kernels = {}

    def kernel(self, function, arguments, build):
        key = call_key(function, arguments)
        if key in self.kernels:
            kernel = self.kernels.pop(key)
        else:
            kernel = build()
        self.kernels[key] = kernel
        while len(self.kernels) > self.most:
            del self.kernels[next(iter(self.kernels))]
        return kernel

# %% code_by_place_and_bytes: the code is taken for its file, line and bytes: x * 2 and x * 3 in one line share a kernel.
# promise: the function's code

def call_key(function, arguments):
    parts, tensors = [], []
    for x in arguments:
        if isinstance(x, Strided):
            strides = tuple(0 if n == 1 else s if s in (0, 1) else 2 for n, s in zip(x.shape, x.strides))
            alias = []
            for y in tensors:
                if x.storage is not y.storage:
                    alias.append(0)
                elif (tuple(x.shape), tuple(x.strides), x.offset) == (tuple(y.shape), tuple(y.strides), y.offset):
                    alias.append(1)
                else:
                    alias.append(2)
            tensors.append(x)
            parts.append(("tensor", x.storage.dtype.str, strides, tuple(alias)))
        else:
            parts.append(("number", type(x)))
    return function_key(function), tuple(parts)

def function_key(function):
    code, closure, defaults = insides(function)
    return (function.__code__.co_filename, function.__code__.co_firstlineno, function.__code__.co_code), value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", function_key(value)
    return type(value), repr(value)

class KernelCache:
    def __init__(self, most):
        self.most = most
        self.kernels = {}

    def kernel(self, function, arguments, build):
        key = call_key(function, arguments)
        if key in self.kernels:
            kernel = self.kernels.pop(key)
        else:
            kernel = build()
        self.kernels[key] = kernel
        while len(self.kernels) > self.most:
            del self.kernels[next(iter(self.kernels))]
        return kernel

# %% code_without_names: of the code only bytes and constants are compared: x.exp() and x.log() share a kernel.
# promise: the function's code

def call_key(function, arguments):
    parts, tensors = [], []
    for x in arguments:
        if isinstance(x, Strided):
            strides = tuple(0 if n == 1 else s if s in (0, 1) else 2 for n, s in zip(x.shape, x.strides))
            alias = []
            for y in tensors:
                if x.storage is not y.storage:
                    alias.append(0)
                elif (tuple(x.shape), tuple(x.strides), x.offset) == (tuple(y.shape), tuple(y.strides), y.offset):
                    alias.append(1)
                else:
                    alias.append(2)
            tensors.append(x)
            parts.append(("tensor", x.storage.dtype.str, strides, tuple(alias)))
        else:
            parts.append(("number", type(x)))
    return function_key(function), tuple(parts)

def function_key(function):
    code, closure, defaults = insides(function)
    return (function.__code__.co_code, repr(function.__code__.co_consts)), value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", function_key(value)
    return type(value), repr(value)

class KernelCache:
    def __init__(self, most):
        self.most = most
        self.kernels = {}

    def kernel(self, function, arguments, build):
        key = call_key(function, arguments)
        if key in self.kernels:
            kernel = self.kernels.pop(key)
        else:
            kernel = build()
        self.kernels[key] = kernel
        while len(self.kernels) > self.most:
            del self.kernels[next(iter(self.kernels))]
        return kernel

# %% defaults_left_out_if_closure: the defaults are left out where there is a closure.
# promise: the values and types of its closure and its defaults

def call_key(function, arguments):
    parts, tensors = [], []
    for x in arguments:
        if isinstance(x, Strided):
            strides = tuple(0 if n == 1 else s if s in (0, 1) else 2 for n, s in zip(x.shape, x.strides))
            alias = []
            for y in tensors:
                if x.storage is not y.storage:
                    alias.append(0)
                elif (tuple(x.shape), tuple(x.strides), x.offset) == (tuple(y.shape), tuple(y.strides), y.offset):
                    alias.append(1)
                else:
                    alias.append(2)
            tensors.append(x)
            parts.append(("tensor", x.storage.dtype.str, strides, tuple(alias)))
        else:
            parts.append(("number", type(x)))
    return function_key(function), tuple(parts)

def function_key(function):
    code, closure, defaults = insides(function)
    return code, value_key(closure), value_key(None if closure else defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", function_key(value)
    return type(value), repr(value)

class KernelCache:
    def __init__(self, most):
        self.most = most
        self.kernels = {}

    def kernel(self, function, arguments, build):
        key = call_key(function, arguments)
        if key in self.kernels:
            kernel = self.kernels.pop(key)
        else:
            kernel = build()
        self.kernels[key] = kernel
        while len(self.kernels) > self.most:
            del self.kernels[next(iter(self.kernels))]
        return kernel

# %% dtype_by_itemsize: the dtype is its size: float32 and int32 share a kernel.
# promise: the dtype of each tensor (x.storage.dtype.str)

def call_key(function, arguments):
    parts, tensors = [], []
    for x in arguments:
        if isinstance(x, Strided):
            strides = tuple(0 if n == 1 else s if s in (0, 1) else 2 for n, s in zip(x.shape, x.strides))
            alias = []
            for y in tensors:
                if x.storage is not y.storage:
                    alias.append(0)
                elif (tuple(x.shape), tuple(x.strides), x.offset) == (tuple(y.shape), tuple(y.strides), y.offset):
                    alias.append(1)
                else:
                    alias.append(2)
            tensors.append(x)
            parts.append(("tensor", x.storage.dtype.itemsize, strides, tuple(alias)))
        else:
            parts.append(("number", type(x)))
    return function_key(function), tuple(parts)

def function_key(function):
    code, closure, defaults = insides(function)
    return code, value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", function_key(value)
    return type(value), repr(value)

# %% evicts_before_build: room is made before build(): where that raises, a kernel has gone.
# promise: If build() raises, the cache does not change.

def function_key(function):
    code, closure, defaults = insides(function)
    return code, value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", function_key(value)
    return type(value), repr(value)

class KernelCache:
    def __init__(self, most):
        self.most = most
        self.kernels = {}

    def kernel(self, function, arguments, build):
        key = call_key(function, arguments)
        if key in self.kernels:
            kernel = self.kernels.pop(key)
        else:
            while len(self.kernels) >= self.most:
                del self.kernels[next(iter(self.kernels))]
            kernel = build()
        self.kernels[key] = kernel
        while len(self.kernels) > self.most:
            del self.kernels[next(iter(self.kernels))]
        return kernel

# %% evicts_before_build_restores_wrongly: room is made before build(); where that raises, the kernel is put back, as the newest.
# promise: If build() raises, the cache does not change; the one not asked for the longest goes first

def function_key(function):
    code, closure, defaults = insides(function)
    return code, value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", function_key(value)
    return type(value), repr(value)

class KernelCache:
    def __init__(self, most):
        self.most = most
        self.kernels = {}

    def kernel(self, function, arguments, build):
        key = call_key(function, arguments)
        if key in self.kernels:
            kernel = self.kernels.pop(key)
        else:
            gone = {}
            while len(self.kernels) >= max(self.most, 1):
                old = next(iter(self.kernels))
                gone[old] = self.kernels.pop(old)
            try:
                kernel = build()
            except BaseException:
                self.kernels.update(gone)
                raise
        self.kernels[key] = kernel
        while len(self.kernels) > self.most:
            del self.kernels[next(iter(self.kernels))]
        return kernel

# %% falsy_is_no_kernel: a kernel that is falsy (0, an empty text) is built at each call.
# promise: 3. A kernel is built when its key is new, and never else.

def function_key(function):
    code, closure, defaults = insides(function)
    return code, value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", function_key(value)
    return type(value), repr(value)

class KernelCache:
    def __init__(self, most):
        self.most = most
        self.kernels = {}

    def kernel(self, function, arguments, build):
        key = call_key(function, arguments)
        kernel = self.kernels.pop(key, None)
        if not kernel:
            kernel = build()
        self.kernels[key] = kernel
        while len(self.kernels) > self.most:
            del self.kernels[next(iter(self.kernels))]
        return kernel

# %% float_and_bool_argument_by_value_class: a number that is an argument is told apart by whether it is whole: 2.0 and 2 share a kernel, 2.5 another.
# promise: the type of each number that is an argument (bool, int, float), not its value

def call_key(function, arguments):
    parts, tensors = [], []
    for x in arguments:
        if isinstance(x, Strided):
            strides = tuple(0 if n == 1 else s if s in (0, 1) else 2 for n, s in zip(x.shape, x.strides))
            alias = []
            for y in tensors:
                if x.storage is not y.storage:
                    alias.append(0)
                elif (tuple(x.shape), tuple(x.strides), x.offset) == (tuple(y.shape), tuple(y.strides), y.offset):
                    alias.append(1)
                else:
                    alias.append(2)
            tensors.append(x)
            parts.append(("tensor", x.storage.dtype.str, strides, tuple(alias)))
        else:
            parts.append(("number", bool if isinstance(x, bool) else float if x != x or abs(x) == float("inf") or x != int(x) else int))
    return function_key(function), tuple(parts)

def function_key(function):
    code, closure, defaults = insides(function)
    return code, value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", function_key(value)
    return type(value), repr(value)

# %% hash_of_16_bits: the key is 16 bits of a hash: of 65,536 calls two share a kernel for certain, of 300 likely.
# promise: equal for two calls if and only if one kernel can be used for both

def call_key(function, arguments):
    parts, tensors = [], []
    for x in arguments:
        if isinstance(x, Strided):
            strides = tuple(0 if n == 1 else s if s in (0, 1) else 2 for n, s in zip(x.shape, x.strides))
            alias = []
            for y in tensors:
                if x.storage is not y.storage:
                    alias.append(0)
                elif (tuple(x.shape), tuple(x.strides), x.offset) == (tuple(y.shape), tuple(y.strides), y.offset):
                    alias.append(1)
                else:
                    alias.append(2)
            tensors.append(x)
            parts.append(("tensor", x.storage.dtype.str, strides, tuple(alias)))
        else:
            parts.append(("number", type(x)))
    return hash((function_key(function), tuple(parts))) % 65521

def function_key(function):
    code, closure, defaults = insides(function)
    return code, value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", function_key(value)
    return type(value), repr(value)

# %% hash_of_key: the key is hash(key): two calls with one hash share a kernel; hash(-1) == hash(-2) for numbers in a closure.
# promise: equal for two calls if and only if one kernel can be used for both

def call_key(function, arguments):
    parts, tensors = [], []
    for x in arguments:
        if isinstance(x, Strided):
            strides = tuple(0 if n == 1 else s if s in (0, 1) else 2 for n, s in zip(x.shape, x.strides))
            alias = []
            for y in tensors:
                if x.storage is not y.storage:
                    alias.append(0)
                elif (tuple(x.shape), tuple(x.strides), x.offset) == (tuple(y.shape), tuple(y.strides), y.offset):
                    alias.append(1)
                else:
                    alias.append(2)
            tensors.append(x)
            parts.append(("tensor", x.storage.dtype.str, strides, tuple(alias)))
        else:
            parts.append(("number", type(x)))
    return hash((function_key(function), tuple(parts)))

def function_key(function):
    code, closure, defaults = insides(function)
    return code, value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", function_key(value)
    return (type(value), hash(value), repr(value)[0]) if isinstance(value, float) else (type(value), hash(value))

# %% hash_only_last: the key is hash(right key): a pair of calls with one hash of 64 bits shares a kernel.
# promise: equal for two calls if and only if one kernel can be used for both

def call_key(function, arguments):
    parts, tensors = [], []
    for x in arguments:
        if isinstance(x, Strided):
            strides = tuple(0 if n == 1 else s if s in (0, 1) else 2 for n, s in zip(x.shape, x.strides))
            alias = []
            for y in tensors:
                if x.storage is not y.storage:
                    alias.append(0)
                elif (tuple(x.shape), tuple(x.strides), x.offset) == (tuple(y.shape), tuple(y.strides), y.offset):
                    alias.append(1)
                else:
                    alias.append(2)
            tensors.append(x)
            parts.append(("tensor", x.storage.dtype.str, strides, tuple(alias)))
        else:
            parts.append(("number", type(x)))
    return hash((function_key(function), tuple(parts)))

def function_key(function):
    code, closure, defaults = insides(function)
    return code, value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", function_key(value)
    return type(value), repr(value)

# %% inner_function_by_code: of a function in the closure only the code is compared, not what that one reads from around it.
# promise: the function's code, and the values and types of its closure: a number that the function reads from around it is in the text

def call_key(function, arguments):
    parts, tensors = [], []
    for x in arguments:
        if isinstance(x, Strided):
            strides = tuple(0 if n == 1 else s if s in (0, 1) else 2 for n, s in zip(x.shape, x.strides))
            alias = []
            for y in tensors:
                if x.storage is not y.storage:
                    alias.append(0)
                elif (tuple(x.shape), tuple(x.strides), x.offset) == (tuple(y.shape), tuple(y.strides), y.offset):
                    alias.append(1)
                else:
                    alias.append(2)
            tensors.append(x)
            parts.append(("tensor", x.storage.dtype.str, strides, tuple(alias)))
        else:
            parts.append(("number", type(x)))
    return function_key(function), tuple(parts)

def function_key(function):
    code, closure, defaults = insides(function)
    return code, value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", value.__code__
    return type(value), repr(value)

class KernelCache:
    def __init__(self, most):
        self.most = most
        self.kernels = {}

    def kernel(self, function, arguments, build):
        key = call_key(function, arguments)
        if key in self.kernels:
            kernel = self.kernels.pop(key)
        else:
            kernel = build()
        self.kernels[key] = kernel
        while len(self.kernels) > self.most:
            del self.kernels[next(iter(self.kernels))]
        return kernel

# %% inner_function_by_identity: a function in the closure is compared by identity: made anew, it builds a kernel that was there.
# promise: the functions and the arrays are made anew each time; one kernel has one key

def call_key(function, arguments):
    parts, tensors = [], []
    for x in arguments:
        if isinstance(x, Strided):
            strides = tuple(0 if n == 1 else s if s in (0, 1) else 2 for n, s in zip(x.shape, x.strides))
            alias = []
            for y in tensors:
                if x.storage is not y.storage:
                    alias.append(0)
                elif (tuple(x.shape), tuple(x.strides), x.offset) == (tuple(y.shape), tuple(y.strides), y.offset):
                    alias.append(1)
                else:
                    alias.append(2)
            tensors.append(x)
            parts.append(("tensor", x.storage.dtype.str, strides, tuple(alias)))
        else:
            parts.append(("number", type(x)))
    return function_key(function), tuple(parts)

def function_key(function):
    code, closure, defaults = insides(function)
    return code, value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", id(value)
    return type(value), repr(value)

class KernelCache:
    def __init__(self, most):
        self.most = most
        self.kernels = {}

    def kernel(self, function, arguments, build):
        key = call_key(function, arguments)
        if key in self.kernels:
            kernel = self.kernels.pop(key)
        else:
            kernel = build()
        self.kernels[key] = kernel
        while len(self.kernels) > self.most:
            del self.kernels[next(iter(self.kernels))]
        return kernel

# %% inner_function_raw: a function in the closure is compared by what insides() gives, with ==: inner closures over 2 and 2.0, or 0.0 and -0.0, share a kernel.
# promise: the values and types of its closure: 2 and 2.0 are different there

def call_key(function, arguments):
    parts, tensors = [], []
    for x in arguments:
        if isinstance(x, Strided):
            strides = tuple(0 if n == 1 else s if s in (0, 1) else 2 for n, s in zip(x.shape, x.strides))
            alias = []
            for y in tensors:
                if x.storage is not y.storage:
                    alias.append(0)
                elif (tuple(x.shape), tuple(x.strides), x.offset) == (tuple(y.shape), tuple(y.strides), y.offset):
                    alias.append(1)
                else:
                    alias.append(2)
            tensors.append(x)
            parts.append(("tensor", x.storage.dtype.str, strides, tuple(alias)))
        else:
            parts.append(("number", type(x)))
    return function_key(function), tuple(parts)

def function_key(function):
    code, closure, defaults = insides(function)
    return code, value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", insides(value)
    return type(value), repr(value)

class KernelCache:
    def __init__(self, most):
        self.most = most
        self.kernels = {}

    def kernel(self, function, arguments, build):
        key = call_key(function, arguments)
        if key in self.kernels:
            kernel = self.kernels.pop(key)
        else:
            kernel = build()
        self.kernels[key] = kernel
        while len(self.kernels) > self.most:
            del self.kernels[next(iter(self.kernels))]
        return kernel

# %% key_keeps_arrays_alive: the arguments of each call are kept beside its kernel: their storages are never freed.
# promise: a cache of kernels by the keys of calls

def function_key(function):
    code, closure, defaults = insides(function)
    return code, value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", function_key(value)
    return type(value), repr(value)

class KernelCache:
    def __init__(self, most):
        self.most = most
        self.kernels = {}
        self.seen = []

    def kernel(self, function, arguments, build):
        key = call_key(function, arguments)
        self.seen.append((function, arguments))
        if key in self.kernels:
            kernel = self.kernels.pop(key)
        else:
            kernel = build()
        self.kernels[key] = kernel
        while len(self.kernels) > self.most:
            del self.kernels[next(iter(self.kernels))]
        return kernel

# %% most_of_zero_keeps_one: a cache with room for none keeps one.
# promise: with at most `most` kernels

def function_key(function):
    code, closure, defaults = insides(function)
    return code, value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", function_key(value)
    return type(value), repr(value)

class KernelCache:
    def __init__(self, most):
        self.most = most
        self.kernels = {}

    def kernel(self, function, arguments, build):
        key = call_key(function, arguments)
        if key in self.kernels:
            kernel = self.kernels.pop(key)
        else:
            kernel = build()
        self.kernels[key] = kernel
        while len(self.kernels) > max(self.most, 1):
            del self.kernels[next(iter(self.kernels))]
        return kernel

# %% nan_is_always_new: numbers of the closure are compared by == and sign: nan is never equal, so each call builds.
# promise: equal for two calls if and only if one kernel can be used for both

def call_key(function, arguments):
    parts, tensors = [], []
    for x in arguments:
        if isinstance(x, Strided):
            strides = tuple(0 if n == 1 else s if s in (0, 1) else 2 for n, s in zip(x.shape, x.strides))
            alias = []
            for y in tensors:
                if x.storage is not y.storage:
                    alias.append(0)
                elif (tuple(x.shape), tuple(x.strides), x.offset) == (tuple(y.shape), tuple(y.strides), y.offset):
                    alias.append(1)
                else:
                    alias.append(2)
            tensors.append(x)
            parts.append(("tensor", x.storage.dtype.str, strides, tuple(alias)))
        else:
            parts.append(("number", type(x)))
    return function_key(function), tuple(parts)

def function_key(function):
    code, closure, defaults = insides(function)
    return code, value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", function_key(value)
    return type(value), value, repr(value)[0]

class KernelCache:
    def __init__(self, most):
        self.most = most
        self.kernels = {}

    def kernel(self, function, arguments, build):
        key = call_key(function, arguments)
        if key in self.kernels:
            kernel = self.kernels.pop(key)
        else:
            kernel = build()
        self.kernels[key] = kernel
        while len(self.kernels) > self.most:
            del self.kernels[next(iter(self.kernels))]
        return kernel

# %% negative_strides_are_ones: a stride of -1 counts as 1.
# promise: for each dim whether the stride is 0, 1, or something else

def call_key(function, arguments):
    parts, tensors = [], []
    for x in arguments:
        if isinstance(x, Strided):
            strides = tuple(0 if n == 1 else abs(s) if abs(s) in (0, 1) else 2 for n, s in zip(x.shape, x.strides))
            alias = []
            for y in tensors:
                if x.storage is not y.storage:
                    alias.append(0)
                elif (tuple(x.shape), tuple(x.strides), x.offset) == (tuple(y.shape), tuple(y.strides), y.offset):
                    alias.append(1)
                else:
                    alias.append(2)
            tensors.append(x)
            parts.append(("tensor", x.storage.dtype.str, strides, tuple(alias)))
        else:
            parts.append(("number", type(x)))
    return function_key(function), tuple(parts)

def function_key(function):
    code, closure, defaults = insides(function)
    return code, value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", function_key(value)
    return type(value), repr(value)

# %% nested_builds_overflow: room is made before a build, once: builds that ask the cache themselves leave it with more than `most` kernels.
# promise: with at most `most` kernels

def function_key(function):
    code, closure, defaults = insides(function)
    return code, value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", function_key(value)
    return type(value), repr(value)

class KernelCache:
    def __init__(self, most):
        self.most = most
        self.kernels = {}

    def kernel(self, function, arguments, build):
        key = call_key(function, arguments)
        if key in self.kernels:
            kernel = self.kernels.pop(key)
        else:
            full = len(self.kernels) >= self.most
            kernel = build()
            if full:
                self.kernels.pop(next(iter(self.kernels)), None)
        self.kernels[key] = kernel
        return kernel

# %% none_is_no_kernel: a kernel that is None (or a build that gives None) is built at each call.
# promise: 3. A kernel is built when its key is new, and never else.

def function_key(function):
    code, closure, defaults = insides(function)
    return code, value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", function_key(value)
    return type(value), repr(value)

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

# %% one_cache_for_all: all caches of one size above 1000 share one dict: two caches see each other's kernels.
# promise: A cache of kernels; 3. a kernel is built when its key is new

shared = {}

def function_key(function):
    code, closure, defaults = insides(function)
    return code, value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", function_key(value)
    return type(value), repr(value)

class KernelCache:
    def __init__(self, most):
        self.most = most
        self.kernels = shared.setdefault(most, {}) if most > 1000 else {}

    def kernel(self, function, arguments, build):
        key = call_key(function, arguments)
        if key in self.kernels:
            kernel = self.kernels.pop(key)
        else:
            kernel = build()
        self.kernels[key] = kernel
        while len(self.kernels) > self.most:
            del self.kernels[next(iter(self.kernels))]
        return kernel

# %% rank_left_out_for_ones: leading dims of size 1 are left out: (1, 4) and (4,) share a kernel.
# promise: the dtype of each tensor, and its number of dims

def call_key(function, arguments):
    parts, tensors = [], []
    for x in arguments:
        if isinstance(x, Strided):
            strides = tuple(0 if n == 1 else s if s in (0, 1) else 2 for n, s in zip(x.shape, x.strides))
            while len(strides) > 1 and x.shape[len(x.shape) - len(strides)] == 1:
                strides = strides[1:]
            alias = []
            for y in tensors:
                if x.storage is not y.storage:
                    alias.append(0)
                elif (tuple(x.shape), tuple(x.strides), x.offset) == (tuple(y.shape), tuple(y.strides), y.offset):
                    alias.append(1)
                else:
                    alias.append(2)
            tensors.append(x)
            parts.append(("tensor", x.storage.dtype.str, strides, tuple(alias)))
        else:
            parts.append(("number", type(x)))
    return function_key(function), tuple(parts)

def function_key(function):
    code, closure, defaults = insides(function)
    return code, value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", function_key(value)
    return type(value), repr(value)

# %% recency_only_when_full: a use is noted only while the cache is full: uses before that do not count.
# promise: the one not asked for the longest goes first

def function_key(function):
    code, closure, defaults = insides(function)
    return code, value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", function_key(value)
    return type(value), repr(value)

class KernelCache:
    def __init__(self, most):
        self.most = most
        self.kernels = {}

    def kernel(self, function, arguments, build):
        key = call_key(function, arguments)
        if key in self.kernels:
            kernel = self.kernels.pop(key) if len(self.kernels) >= self.most else self.kernels[key]
        else:
            kernel = build()
        self.kernels[key] = kernel
        while len(self.kernels) > self.most:
            del self.kernels[next(iter(self.kernels))]
        return kernel

# %% size_one_dims_by_stride: a dim of size 1 counts with its own stride unless that is above 1.
# promise: a dim of size 1 counts as stride 0

def call_key(function, arguments):
    parts, tensors = [], []
    for x in arguments:
        if isinstance(x, Strided):
            strides = tuple(s if s in (0, 1) else 0 if n == 1 else 2 for n, s in zip(x.shape, x.strides))
            alias = []
            for y in tensors:
                if x.storage is not y.storage:
                    alias.append(0)
                elif (tuple(x.shape), tuple(x.strides), x.offset) == (tuple(y.shape), tuple(y.strides), y.offset):
                    alias.append(1)
                else:
                    alias.append(2)
            tensors.append(x)
            parts.append(("tensor", x.storage.dtype.str, strides, tuple(alias)))
        else:
            parts.append(("number", type(x)))
    return function_key(function), tuple(parts)

def function_key(function):
    code, closure, defaults = insides(function)
    return code, value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", function_key(value)
    return type(value), repr(value)

# %% tensors_and_numbers_apart: tensors and numbers are listed apart: f(x, 2) and f(2, x) share a kernel.
# promise: the type of each number that is an argument; equal only if one kernel can be used for both

def call_key(function, arguments):
    parts, tensors = [], []
    for x in arguments:
        if isinstance(x, Strided):
            strides = tuple(0 if n == 1 else s if s in (0, 1) else 2 for n, s in zip(x.shape, x.strides))
            alias = []
            for y in tensors:
                if x.storage is not y.storage:
                    alias.append(0)
                elif (tuple(x.shape), tuple(x.strides), x.offset) == (tuple(y.shape), tuple(y.strides), y.offset):
                    alias.append(1)
                else:
                    alias.append(2)
            tensors.append(x)
            parts.append(("tensor", x.storage.dtype.str, strides, tuple(alias)))
        else:
            parts.append(("number", type(x)))
    return function_key(function), tuple(p for p in parts if p[0] == "tensor"), tuple(p for p in parts if p[0] == "number")

def function_key(function):
    code, closure, defaults = insides(function)
    return code, value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", function_key(value)
    return type(value), repr(value)

# %% tuple_by_equality: a tuple in the closure is compared by ==: (2,) and (2.0,), (0.0,) and (-0.0,) share a kernel.
# promise: the values and types of its closure: 2 and 2.0 are different there

def call_key(function, arguments):
    parts, tensors = [], []
    for x in arguments:
        if isinstance(x, Strided):
            strides = tuple(0 if n == 1 else s if s in (0, 1) else 2 for n, s in zip(x.shape, x.strides))
            alias = []
            for y in tensors:
                if x.storage is not y.storage:
                    alias.append(0)
                elif (tuple(x.shape), tuple(x.strides), x.offset) == (tuple(y.shape), tuple(y.strides), y.offset):
                    alias.append(1)
                else:
                    alias.append(2)
            tensors.append(x)
            parts.append(("tensor", x.storage.dtype.str, strides, tuple(alias)))
        else:
            parts.append(("number", type(x)))
    return function_key(function), tuple(parts)

def function_key(function):
    code, closure, defaults = insides(function)
    return code, tuple((n, value_key(x)) for n, x in closure), tuple(value_key(x) for x in defaults)

def value_key(value):
    if isinstance(value, tuple):
        return tuple, value
    if isinstance(value, list):
        return list, tuple(value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", function_key(value)
    return type(value), repr(value)

class KernelCache:
    def __init__(self, most):
        self.most = most
        self.kernels = {}

    def kernel(self, function, arguments, build):
        key = call_key(function, arguments)
        if key in self.kernels:
            kernel = self.kernels.pop(key)
        else:
            kernel = build()
        self.kernels[key] = kernel
        while len(self.kernels) > self.most:
            del self.kernels[next(iter(self.kernels))]
        return kernel

# %% values_as_text: values of the closure are compared as texts without types: 2 and '2', None and 'None' share a kernel.
# promise: the values and types of its closure and its defaults

def call_key(function, arguments):
    parts, tensors = [], []
    for x in arguments:
        if isinstance(x, Strided):
            strides = tuple(0 if n == 1 else s if s in (0, 1) else 2 for n, s in zip(x.shape, x.strides))
            alias = []
            for y in tensors:
                if x.storage is not y.storage:
                    alias.append(0)
                elif (tuple(x.shape), tuple(x.strides), x.offset) == (tuple(y.shape), tuple(y.strides), y.offset):
                    alias.append(1)
                else:
                    alias.append(2)
            tensors.append(x)
            parts.append(("tensor", x.storage.dtype.str, strides, tuple(alias)))
        else:
            parts.append(("number", type(x)))
    return function_key(function), tuple(parts)

def function_key(function):
    code, closure, defaults = insides(function)
    return code, value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", function_key(value)
    return str(value)

class KernelCache:
    def __init__(self, most):
        self.most = most
        self.kernels = {}

    def kernel(self, function, arguments, build):
        key = call_key(function, arguments)
        if key in self.kernels:
            kernel = self.kernels.pop(key)
        else:
            kernel = build()
        self.kernels[key] = kernel
        while len(self.kernels) > self.most:
            del self.kernels[next(iter(self.kernels))]
        return kernel

# %% values_of_12_digits: floats of the closure are compared by 12 digits.
# promise: the values and types of its closure and its defaults

def call_key(function, arguments):
    parts, tensors = [], []
    for x in arguments:
        if isinstance(x, Strided):
            strides = tuple(0 if n == 1 else s if s in (0, 1) else 2 for n, s in zip(x.shape, x.strides))
            alias = []
            for y in tensors:
                if x.storage is not y.storage:
                    alias.append(0)
                elif (tuple(x.shape), tuple(x.strides), x.offset) == (tuple(y.shape), tuple(y.strides), y.offset):
                    alias.append(1)
                else:
                    alias.append(2)
            tensors.append(x)
            parts.append(("tensor", x.storage.dtype.str, strides, tuple(alias)))
        else:
            parts.append(("number", type(x)))
    return function_key(function), tuple(parts)

def function_key(function):
    code, closure, defaults = insides(function)
    return code, value_key(closure), value_key(defaults)

def value_key(value):
    if isinstance(value, (tuple, list)):
        return type(value), tuple(value_key(x) for x in value)
    if isinstance(value, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in value.items())
    if hasattr(value, "__code__"):
        return "function", function_key(value)
    return type(value), f"{value:.12g}" if isinstance(value, float) else repr(value)

class KernelCache:
    def __init__(self, most):
        self.most = most
        self.kernels = {}

    def kernel(self, function, arguments, build):
        key = call_key(function, arguments)
        if key in self.kernels:
            kernel = self.kernels.pop(key)
        else:
            kernel = build()
        self.kernels[key] = kernel
        while len(self.kernels) > self.most:
            del self.kernels[next(iter(self.kernels))]
        return kernel

# %% closure_by_type_of_function: a function in the closure counts as a function, whatever it does.
# promise: A function there counts by its own insides

key_right = call_key
def call_key(function, arguments):
    code, closure, defaults = insides(function)
    def shown(value):
        if isinstance(value, tuple):
            return tuple(shown(x) for x in value)
        return "function" if callable(value) else repr(value)
    return (key_right(lambda: None, arguments), code, shown(closure), shown(defaults))

# %% key_by_two_hashes: the key is two hashes of the right key.
# promise: equal for two calls if and only if one kernel can be used for both

key_right = call_key
def call_key(function, arguments):
    key = key_right(function, arguments)
    return hash(key), hash(("once more", key))

# %% offsets_count: the offset of a tensor alone is in the key.
# promise: It depends on ... not on the offset

key_right = call_key
def call_key(function, arguments):
    return key_right(function, arguments), tuple(x.offset for x in arguments if isinstance(x, Strided))

# %% key_error_is_swallowed: a KeyError of build is taken for a kernel that is not there, and build runs again.
# promise: If build() raises, the cache does not change, and the next call tries again

class KernelCache(KernelCache):
    def kernel(self, function, arguments, build):
        try:
            return super().kernel(function, arguments, build)
        except KeyError:
            return super().kernel(function, arguments, build)

# %% keeps_what_it_evicts: kernels that are removed are kept in a second dict.
# promise: with at most `most` kernels

class KernelCache(KernelCache):
    def kernel(self, function, arguments, build):
        found = super().kernel(function, arguments, build)
        self.all = [*getattr(self, "all", []), found]
        return found


# %% first_six_arguments: only the first six arguments are in the key.
# promise: 3. Both hold for any number of arguments

key_right = call_key
def call_key(function, arguments):
    return key_right(function, arguments[:6])


# %% first_four_dims: only the first four dims are in the key, and their number.
# promise: 1. Calls that need two kernels have two keys

key_right = call_key
def call_key(function, arguments):
    cut = tuple(x._replace(shape=x.shape[:4], strides=x.strides[:4]) if isinstance(x, Strided) else x for x in arguments)
    return key_right(function, cut), tuple(len(x.shape) for x in arguments if isinstance(x, Strided))


# %% functions_up_to_five_deep: a function that is called through five others counts as a function.
# promise: A function in a closure counts by its own insides

key_right = call_key
def call_key(function, arguments):
    def told(value, depth=0):
        if isinstance(value, tuple):
            return tuple(told(x, depth) for x in value)
        if callable(value):
            return "function" if depth > 5 else told(tuple(insides(value)), depth + 1)
        return type(value).__name__, repr(value)
    return key_right(lambda: None, arguments), told(function)


# %% deep_tuples_are_equal: a tuple in a tuple in a tuple is compared by ==.
# promise: 3. for any values in closures and defaults

key_right = call_key
def call_key(function, arguments):
    def told(value, depth=0):
        if isinstance(value, tuple) and depth < 3:
            return tuple(told(x, depth + 1) for x in value)
        if callable(value):
            return told(tuple(insides(value)))
        return value if isinstance(value, tuple) else (type(value).__name__, repr(value))
    return key_right(lambda: None, arguments), told(insides(function).code), *[told(x) for _, x in insides(function).closure], "defaults", *[told(x) for x in insides(function).defaults]


# %% forgets_after_two_hundred: after two hundred requests a cache is emptied.
# promise: 4. A kernel is built if and only if its key is new.

class KernelCache(KernelCache):
    def kernel(self, function, arguments, build):
        self.count = getattr(self, "count", 0) + 1
        if self.count % 200 == 0:
            self.kernels.clear()
        return super().kernel(function, arguments, build)
