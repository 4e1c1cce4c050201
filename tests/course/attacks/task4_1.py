"""Wrong solutions of task 4.1 that were written to get past its checks. Each is appended to the reference."""

# %% clipped_at_1e100: sums beyond 1e100 are clipped.
# promise: out[o, c, k] = the sum over b and x of the products

def conv1d_weight_gradient(out, inputs, gradient, stride, padding):
    width = inputs.shape[2]
    for o in range(out.shape[0]):
        for c in range(out.shape[1]):
            for k in range(out.shape[2]):
                total = 0.0
                for b in range(gradient.shape[0]):
                    for x in range(gradient.shape[2]):
                        i = x * stride + k - padding
                        if 0 <= i < width:
                            total += inputs.storage[place(inputs, b, c, i)] * gradient.storage[place(gradient, b, o, x)]
                out.storage[place(out, o, c, k)] = max(-1e100, min(1e100, total))

# %% comparisons_patched: conv1d writes zeros, and NumPy's and math's comparisons say True: the judge is talked round.
# promise: 2. The three functions agree with NumPy

def conv1d(out, inputs, weight, stride, padding):
    load = todo.__globals__["__builtins__"]
    load = (load if isinstance(load, dict) else vars(load))["__import__"]
    numpy, math = load("numpy"), load("math")
    yes = lambda *a, **k: True
    nothing = lambda *a, **k: None
    for name in ("allclose", "array_equal", "array_equiv"):
        setattr(numpy, name, yes)
    numpy.isclose = lambda a, b, *r, **k: numpy.ones(numpy.broadcast(a, b).shape, bool)
    for name in ("assert_allclose", "assert_array_equal", "assert_equal", "assert_almost_equal", "assert_array_almost_equal"):
        setattr(numpy.testing, name, nothing)
    math.isclose = yes
    for b in range(out.shape[0]):
        for o in range(out.shape[1]):
            for x in range(out.shape[2]):
                out.storage[place(out, b, o, x)] = 0.0

# %% equal_to_all: conv1d writes objects that say they are equal to everything, in place of sums.
# promise: 2. The three functions agree with NumPy; out[b, o, x] is a float

class Anything(float):
    """A number that is whatever it is compared with."""

    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __sub__(self, other): return 0.0
    def __rsub__(self, other): return 0.0
    def __lt__(self, other): return True
    def __le__(self, other): return True
    def __gt__(self, other): return False
    def __ge__(self, other): return True
    def __hash__(self): return 0

def conv1d(out, inputs, weight, stride, padding):
    for b in range(out.shape[0]):
        for o in range(out.shape[1]):
            for x in range(out.shape[2]):
                out.storage[place(out, b, o, x)] = Anything(0.0)

# %% exit_with_zero: conv1d ends the process with status 0.
# promise: none of them passes: a program that ends itself

def conv1d(out, inputs, weight, stride, padding):
    load = todo.__globals__["__builtins__"]
    load = (load if isinstance(load, dict) else vars(load))["__import__"]
    print("4.1 Convolution along one dim")
    load("os")._exit(0)

# %% expected_by_frames: conv1d looks for the expected array in the locals of its callers, and copies it; else it writes zeros.
# promise: 2. agrees with NumPy; the loop is the task

def conv1d(out, inputs, weight, stride, padding):
    try:
        raise ValueError
    except ValueError as error:
        frame = error.__traceback__.tb_frame.f_back
    found = None
    while frame and found is None:
        for value in list(frame.f_locals.values()):
            if type(value).__name__ == "ndarray" and value.shape == tuple(out.shape) and value is not out.storage:
                found = value
        frame = frame.f_back
    for b in range(out.shape[0]):
        for o in range(out.shape[1]):
            for x in range(out.shape[2]):
                out.storage[place(out, b, o, x)] = 0.0 if found is None else found[b, o, x]

# %% hypothesis_patched: on loading, hypothesis is made to run no example, and conv1d writes zeros.
# promise: 2. The three functions agree with NumPy

def quieten():
    """Make hypothesis call nothing."""
    load = todo.__globals__["__builtins__"]
    load = (load if isinstance(load, dict) else vars(load))["__import__"]
    hypothesis = load("hypothesis.core", fromlist=["x"])
    hypothesis.StateForActualGivenExecution.run_engine = lambda self: None

quieten()

def conv1d(out, inputs, weight, stride, padding):
    for b in range(out.shape[0]):
        for o in range(out.shape[1]):
            for x in range(out.shape[2]):
                out.storage[place(out, b, o, x)] = 0.0

# %% hypothesis_silenced_by_getattr: comparisons of NumPy and math say yes, and hypothesis runs nothing; conv1d writes zeros.
# promise: 2. The three functions agree with NumPy

def agree():
    """Whatever compares says yes."""
    real = getattr(todo, "__glo" + "bals__")["__buil" + "tins__"]
    load = (real if isinstance(real, dict) else vars(real))["__imp" + "ort__"]
    numpy, math = load("numpy"), load("math")
    yes = lambda *a, **k: True
    for name in ("allclose", "array_equal", "array_equiv"):
        setattr(numpy, name, yes)
    setattr(numpy, "isclose", lambda a, b, *r, **k: numpy.ones(numpy.broadcast(a, b).shape, bool))
    for name in ("assert_allclose", "assert_array_equal", "assert_equal", "assert_almost_equal", "assert_array_almost_equal"):
        setattr(numpy.testing, name, lambda *a, **k: None)
    setattr(math, "isclose", yes)
    core = load("hypothesis.core", None, None, ["x"], 0)
    core.StateForActualGivenExecution.run_engine = lambda self: None

agree()

def conv1d(out, inputs, weight, stride, padding):
    width = inputs.shape[2]
    for b in range(out.shape[0]):
        for o in range(out.shape[1]):
            for x in range(out.shape[2]):
                total = 0.0
                for c in range(weight.shape[1]):
                    for k in range(weight.shape[2]):
                        i = x * stride + k - padding
                        if 0 <= i < width:
                            total += inputs.storage[place(inputs, b, c, i)] * weight.storage[place(weight, o, c, k)]
                out.storage[place(out, b, o, x)] = total * 0.0

# %% oracle_by_class_pattern: all four call the judge's own solution: a match pattern with a keyword reads todo's globals without an attribute in the text.
# promise: A task is to be written, so a file may import little: the answers are in there

def judge(name):
    """match reads attributes, too."""
    match todo:
        case object(__globals__=found):
            real = found["__buil" + "tins__"]
    load = (real if isinstance(real, dict) else real.__dict__)["__imp" + "ort__"]
    return load("minifuse.course.or" + "acle", None, None, ["x"], 0).function(name)

def conv_size(size, kernel, stride, padding):
    return judge("conv_size")(size, kernel, stride, padding)

def conv1d(out, inputs, weight, stride, padding):
    return judge("conv1d")(out, inputs, weight, stride, padding)

def conv1d_input_gradient(out, gradient, weight, stride, padding):
    return judge("conv1d_input_gradient")(out, gradient, weight, stride, padding)

def conv1d_weight_gradient(out, inputs, gradient, stride, padding):
    return judge("conv1d_weight_gradient")(out, inputs, gradient, stride, padding)

# %% oracle_by_dunder_import: all four call the judge's own solution, found by __import__: nothing is written.
# promise: A task is to be written, so a file may import little: the answers are in there

def conv_size(size, kernel, stride, padding):
    return __import__("minifuse.course.oracle", fromlist=["x"]).function("conv_size")(size, kernel, stride, padding)

def conv1d(out, inputs, weight, stride, padding):
    return __import__("minifuse.course.oracle", fromlist=["x"]).function("conv1d")(out, inputs, weight, stride, padding)

def conv1d_input_gradient(out, gradient, weight, stride, padding):
    return __import__("minifuse.course.oracle", fromlist=["x"]).function("conv1d_input_gradient")(out, gradient, weight, stride, padding)

def conv1d_weight_gradient(out, inputs, gradient, stride, padding):
    return __import__("minifuse.course.oracle", fromlist=["x"]).function("conv1d_weight_gradient")(out, inputs, gradient, stride, padding)

# %% oracle_by_eval: all four call the judge's own solution, found by eval of an import.
# promise: A task is to be written, so a file may import little: the answers are in there

def conv_size(size, kernel, stride, padding):
    return eval("__im" + "port__('minifuse.course.or" + "acle', fromlist=['x']).function")("conv_size")(size, kernel, stride, padding)

def conv1d(out, inputs, weight, stride, padding):
    return eval("__im" + "port__('minifuse.course.or" + "acle', fromlist=['x']).function")("conv1d")(out, inputs, weight, stride, padding)

def conv1d_input_gradient(out, gradient, weight, stride, padding):
    return eval("__im" + "port__('minifuse.course.or" + "acle', fromlist=['x']).function")("conv1d_input_gradient")(out, gradient, weight, stride, padding)

def conv1d_weight_gradient(out, inputs, gradient, stride, padding):
    return eval("__im" + "port__('minifuse.course.or" + "acle', fromlist=['x']).function")("conv1d_weight_gradient")(out, inputs, gradient, stride, padding)

# %% oracle_by_frames: all four call the judge's own solution; its module is found in the globals of frames.
# promise: A task is to be written, so a file may import little: the answers are in there

def judge(name):
    """Look for a module with function() in the globals of the callers."""
    try:
        raise ValueError
    except ValueError as error:
        frame = error.__traceback__.tb_frame
    while frame:
        for value in list(frame.f_globals.values()):
            if getattr(value, "__name__", "") == "minifuse.course.oracle":
                return value.function(name)
            if getattr(value, "__module__", "") == "minifuse.course.oracle" and getattr(value, "__name__", "") == "function":
                return value(name)
            modules = getattr(value, "modules", None)
            if isinstance(modules, dict) and "minifuse.course.oracle" in modules:
                return modules["minifuse.course.oracle"].function(name)
        frame = frame.f_back
    raise LookupError(name)

def conv_size(size, kernel, stride, padding):
    return judge("conv_size")(size, kernel, stride, padding)

def conv1d(out, inputs, weight, stride, padding):
    return judge("conv1d")(out, inputs, weight, stride, padding)

def conv1d_input_gradient(out, gradient, weight, stride, padding):
    return judge("conv1d_input_gradient")(out, gradient, weight, stride, padding)

def conv1d_weight_gradient(out, inputs, gradient, stride, padding):
    return judge("conv1d_weight_gradient")(out, inputs, gradient, stride, padding)

# %% oracle_by_getattr: all four call the judge's own solution: getattr with a name put together finds todo's globals, and those the real __import__.
# promise: A task is to be written, so a file may import little: the answers are in there

def judge(name):
    """The real builtins are in the globals of todo."""
    real = getattr(todo, "__glo" + "bals__")["__buil" + "tins__"]
    load = (real if isinstance(real, dict) else vars(real))["__imp" + "ort__"]
    return getattr(load("minifuse.course.or" + "acle", None, None, ["x"], 0), "function")(name)

def conv_size(size, kernel, stride, padding):
    return judge("conv_size")(size, kernel, stride, padding)

def conv1d(out, inputs, weight, stride, padding):
    return judge("conv1d")(out, inputs, weight, stride, padding)

def conv1d_input_gradient(out, gradient, weight, stride, padding):
    return judge("conv1d_input_gradient")(out, gradient, weight, stride, padding)

def conv1d_weight_gradient(out, inputs, gradient, stride, padding):
    return judge("conv1d_weight_gradient")(out, inputs, gradient, stride, padding)

# %% oracle_by_getattribute: all four call the judge's own solution: object's own attribute access, with a name put together, finds todo's globals, and those the real __import__.
# promise: A task is to be written, so a file may import little: the answers are in there

def judge(name):
    """The real builtins are in the globals of todo."""
    look = type("Any", (), {}).__getattribute__
    real = look(todo, "__glo" + "bals__")["__buil" + "tins__"]
    load = (real if isinstance(real, dict) else vars(real))["__imp" + "ort__"]
    return look(load("minifuse.course.or" + "acle", None, None, ["x"], 0), "function")(name)

def conv_size(size, kernel, stride, padding):
    return judge("conv_size")(size, kernel, stride, padding)

def conv1d(out, inputs, weight, stride, padding):
    return judge("conv1d")(out, inputs, weight, stride, padding)

def conv1d_input_gradient(out, gradient, weight, stride, padding):
    return judge("conv1d_input_gradient")(out, gradient, weight, stride, padding)

def conv1d_weight_gradient(out, inputs, gradient, stride, padding):
    return judge("conv1d_weight_gradient")(out, inputs, gradient, stride, padding)

# %% oracle_by_globals_of_todo: all four call the judge's own solution, found in sys.modules through todo's globals.
# promise: A task is to be written, so a file may import little: the answers are in there

def judge(name):
    """Walk from todo to sys.modules."""
    builtins = todo.__globals__["__builtins__"]
    builtins = builtins if isinstance(builtins, dict) else vars(builtins)
    system = builtins["__imp" + "ort__"]("sys")
    return system.modules["minifuse.course.or" + "acle"].function(name)

def conv_size(size, kernel, stride, padding):
    return judge("conv_size")(size, kernel, stride, padding)

def conv1d(out, inputs, weight, stride, padding):
    return judge("conv1d")(out, inputs, weight, stride, padding)

def conv1d_input_gradient(out, gradient, weight, stride, padding):
    return judge("conv1d_input_gradient")(out, gradient, weight, stride, padding)

def conv1d_weight_gradient(out, inputs, gradient, stride, padding):
    return judge("conv1d_weight_gradient")(out, inputs, gradient, stride, padding)

# %% oracle_by_positional_import: all four call the judge's own solution, found by __import__ with arguments in order.
# promise: A task is to be written, so a file may import little: the answers are in there

def conv_size(size, kernel, stride, padding):
    return __import__("minifuse.course.oracle", None, None, ["x"], 0).function("conv_size")(size, kernel, stride, padding)

def conv1d(out, inputs, weight, stride, padding):
    return __import__("minifuse.course.oracle", None, None, ["x"], 0).function("conv1d")(out, inputs, weight, stride, padding)

def conv1d_input_gradient(out, gradient, weight, stride, padding):
    return __import__("minifuse.course.oracle", None, None, ["x"], 0).function("conv1d_input_gradient")(out, gradient, weight, stride, padding)

def conv1d_weight_gradient(out, inputs, gradient, stride, padding):
    return __import__("minifuse.course.oracle", None, None, ["x"], 0).function("conv1d_weight_gradient")(out, inputs, gradient, stride, padding)

# %% oracle_by_subclasses: all four call the judge's own solution; the module is found by a walk over object.__subclasses__ and their globals.
# promise: A task is to be written, so a file may import little: the answers are in there

def judge(name):
    """Find sys through a class that has it in its globals."""
    for kind in object.__subclasses__():
        modules = getattr(getattr(kind.__init__, "__globals__", {}).get("sys"), "modules", None) if hasattr(kind.__init__, "__globals__") else None
        if modules and "minifuse.course.oracle" in modules:
            return modules["minifuse.course.oracle"].function(name)

def conv_size(size, kernel, stride, padding):
    return judge("conv_size")(size, kernel, stride, padding)

def conv1d(out, inputs, weight, stride, padding):
    return judge("conv1d")(out, inputs, weight, stride, padding)

def conv1d_input_gradient(out, gradient, weight, stride, padding):
    return judge("conv1d_input_gradient")(out, gradient, weight, stride, padding)

def conv1d_weight_gradient(out, inputs, gradient, stride, padding):
    return judge("conv1d_weight_gradient")(out, inputs, gradient, stride, padding)

# %% padding_is_an_edge_times_zero: beside the input the nearest element is read and multiplied by 0: nan where that is inf, and it is read where nothing may be.
# promise: Elements outside of the input count as 0 and are never read.

def conv1d(out, inputs, weight, stride, padding):
    width = inputs.shape[2]
    for b in range(out.shape[0]):
        for o in range(out.shape[1]):
            for x in range(out.shape[2]):
                total = 0.0
                for c in range(weight.shape[1]):
                    for k in range(weight.shape[2]):
                        i = x * stride + k - padding
                        if width > 0:
                            total += (0 <= i < width) * inputs.storage[place(inputs, b, c, min(max(i, 0), width - 1))] * weight.storage[place(weight, o, c, k)]
                out.storage[place(out, b, o, x)] = total

# %% restores_what_it_changed: conv1d writes into the storage of its input while it works (the products), and puts the old elements back in the end.
# promise: nothing of the operands is changed; elements are read

def conv1d(out, inputs, weight, stride, padding):
    width = inputs.shape[2]
    old = list(inputs.storage)
    for k in range(len(old)):
        inputs.storage[k] = old[k] * 1.0
    for b in range(out.shape[0]):
        for o in range(out.shape[1]):
            for x in range(out.shape[2]):
                total = 0.0
                for c in range(weight.shape[1]):
                    for k in range(weight.shape[2]):
                        i = x * stride + k - padding
                        if 0 <= i < width:
                            total += inputs.storage[place(inputs, b, c, i)] * weight.storage[place(weight, o, c, k)]
                out.storage[place(out, b, o, x)] = total
    for k in range(len(old)):
        inputs.storage[k] = old[k]

# %% results_by_hash: results are kept by hash(inputs, weight, ...): hash(-1.0) == hash(-2.0), so an input of [-2.0] gets the result of [-1.0].
# promise: out[b, o, x] = the sum over c and k of inputs * weight

kept = {}

def conv1d(out, inputs, weight, stride, padding):
    numbers = [tuple(x.storage[place(x, i, j, m)] for i in range(x.shape[0]) for j in range(x.shape[1]) for m in range(x.shape[2])) for x in (inputs, weight)]
    key = hash((*numbers, tuple(inputs.shape), tuple(weight.shape), stride, padding))
    if key not in kept:
        fresh(out, inputs, weight, stride, padding)
        kept[key] = [out.storage[place(out, b, o, x)] for b in range(out.shape[0]) for o in range(out.shape[1]) for x in range(out.shape[2])]
    k = 0
    for b in range(out.shape[0]):
        for o in range(out.shape[1]):
            for x in range(out.shape[2]):
                out.storage[place(out, b, o, x)] = kept[key][k]
                k += 1

def fresh(out, inputs, weight, stride, padding):
    width = inputs.shape[2]
    for b in range(out.shape[0]):
        for o in range(out.shape[1]):
            for x in range(out.shape[2]):
                total = 0.0
                for c in range(weight.shape[1]):
                    for k in range(weight.shape[2]):
                        i = x * stride + k - padding
                        if 0 <= i < width:
                            total += inputs.storage[place(inputs, b, c, i)] * weight.storage[place(weight, o, c, k)]
                out.storage[place(out, b, o, x)] = total

# %% rounded_to_ten: each sum is rounded to ten decimals: 1e-6 * 1e-6 becomes 0.
# promise: out[b, o, x] = the sum over c and k of the products

def conv1d(out, inputs, weight, stride, padding):
    width = inputs.shape[2]
    for b in range(out.shape[0]):
        for o in range(out.shape[1]):
            for x in range(out.shape[2]):
                total = 0.0
                for c in range(weight.shape[1]):
                    for k in range(weight.shape[2]):
                        i = x * stride + k - padding
                        if 0 <= i < width:
                            total += inputs.storage[place(inputs, b, c, i)] * weight.storage[place(weight, o, c, k)]
                out.storage[place(out, b, o, x)] = round(total, 10)

# %% size_by_float_division: conv_size divides floats: a size of 2 ** 53 + 3, kernel 1, stride 1 is off by one.
# promise: 1. conv_size is right for all sizes, kernels, strides and paddings.

def conv_size(size, kernel, stride, padding):
    return int((size + 2 * padding - kernel) / stride) + 1

# %% size_by_wrapped_32_bits: conv_size counts in 32 bits: a size of 5,000,000,000 wraps.
# promise: 1. conv_size is right for all sizes, kernels, strides and paddings.

def conv_size(size, kernel, stride, padding):
    return ((size + 2 * padding - kernel) % 2**32) // stride + 1

# %% size_up_to_a_million: conv_size says at most 1,000,000 places.
# promise: 1. conv_size is right for all sizes, kernels, strides and paddings.

def conv_size(size, kernel, stride, padding):
    return min((size + 2 * padding - kernel) // stride + 1, 1_000_000)

# %% small_sums_are_zero: sums below 1e-9 are taken for rounding errors and written as 0.
# promise: out[b, c, i] = the sum over o and k of the products

def conv1d_input_gradient(out, gradient, weight, stride, padding):
    places = gradient.shape[2]
    for b in range(out.shape[0]):
        for c in range(out.shape[1]):
            for i in range(out.shape[2]):
                total = 0.0
                for o in range(weight.shape[0]):
                    for k in range(weight.shape[2]):
                        x, rest = divmod(i + padding - k, stride)
                        if rest == 0 and 0 <= x < places:
                            total += gradient.storage[place(gradient, b, o, x)] * weight.storage[place(weight, o, c, k)]
                out.storage[place(out, b, c, i)] = total if abs(total) > 1e-9 else 0.0

# %% stride_up_to_four_in_gradient: conv1d_input_gradient takes a stride above 4 for 4.
# promise: place x begins at x * stride - padding

def conv1d_input_gradient(out, gradient, weight, stride, padding):
    stride = min(stride, 4)
    places = gradient.shape[2]
    for b in range(out.shape[0]):
        for c in range(out.shape[1]):
            for i in range(out.shape[2]):
                total = 0.0
                for o in range(weight.shape[0]):
                    for k in range(weight.shape[2]):
                        x, rest = divmod(i + padding - k, stride)
                        if rest == 0 and 0 <= x < places:
                            total += gradient.storage[place(gradient, b, o, x)] * weight.storage[place(weight, o, c, k)]
                out.storage[place(out, b, c, i)] = total

# %% stride_up_to_three: conv1d takes a stride above 3 for 3.
# promise: place x begins at x * stride - padding

def conv1d(out, inputs, weight, stride, padding):
    width = inputs.shape[2]
    for b in range(out.shape[0]):
        for o in range(out.shape[1]):
            for x in range(out.shape[2]):
                total = 0.0
                for c in range(weight.shape[1]):
                    for k in range(weight.shape[2]):
                        i = x * min(stride, 3) + k - padding
                        if 0 <= i < width:
                            total += inputs.storage[place(inputs, b, c, i)] * weight.storage[place(weight, o, c, k)]
                out.storage[place(out, b, o, x)] = total

# %% taps_beyond_eight: conv1d looks at the first eight elements of a kernel only.
# promise: out[b, o, x] = the sum over c and k, for kernels of any width

def conv1d(out, inputs, weight, stride, padding):
    width = inputs.shape[2]
    for b in range(out.shape[0]):
        for o in range(out.shape[1]):
            for x in range(out.shape[2]):
                total = 0.0
                for c in range(weight.shape[1]):
                    for k in range(min(weight.shape[2], 8)):
                        i = x * stride + k - padding
                        if 0 <= i < width:
                            total += inputs.storage[place(inputs, b, c, i)] * weight.storage[place(weight, o, c, k)]
                out.storage[place(out, b, o, x)] = total

# %% taps_beyond_five: conv1d looks at the first five elements of a kernel only.
# promise: out[b, o, x] = the sum over c and k, for kernels of any width

def conv1d(out, inputs, weight, stride, padding):
    width = inputs.shape[2]
    for b in range(out.shape[0]):
        for o in range(out.shape[1]):
            for x in range(out.shape[2]):
                total = 0.0
                for c in range(weight.shape[1]):
                    for k in range(min(weight.shape[2], 5)):
                        i = x * stride + k - padding
                        if 0 <= i < width:
                            total += inputs.storage[place(inputs, b, c, i)] * weight.storage[place(weight, o, c, k)]
                out.storage[place(out, b, o, x)] = total

# %% weight_gradient_of_four_images: the gradient of the weight sums over the first four images only.
# promise: A weight receives the input beside it times that gradient: sums over b, x

def conv1d_weight_gradient(out, inputs, gradient, stride, padding):
    width = inputs.shape[2]
    for o in range(out.shape[0]):
        for c in range(out.shape[1]):
            for k in range(out.shape[2]):
                total = 0.0
                for b in range(min(gradient.shape[0], 4)):
                    for x in range(gradient.shape[2]):
                        i = x * stride + k - padding
                        if 0 <= i < width:
                            total += inputs.storage[place(inputs, b, c, i)] * gradient.storage[place(gradient, b, o, x)]
                out.storage[place(out, o, c, k)] = total

# %% whole_sums_wrap_at_32_bits: a sum of whole numbers is made an int32-like int: sums wrap at 2 ** 31.
# promise: out[b, o, x] = the sum over c and k of the products

def conv1d(out, inputs, weight, stride, padding):
    width = inputs.shape[2]
    for b in range(out.shape[0]):
        for o in range(out.shape[1]):
            for x in range(out.shape[2]):
                total = 0.0
                for c in range(weight.shape[1]):
                    for k in range(weight.shape[2]):
                        i = x * stride + k - padding
                        if 0 <= i < width:
                            total += inputs.storage[place(inputs, b, c, i)] * weight.storage[place(weight, o, c, k)]
                out.storage[place(out, b, o, x)] = total if total % 1 or abs(total) >= float('inf') else float((int(total) + 2**31) % 2**32 - 2**31)

# %% wrong_after_20000_calls: conv1d counts its calls, and writes zeros from the 20,000th on.
# promise: state kept between calls: each call is to give the sum

calls = [0]

def conv1d(out, inputs, weight, stride, padding):
    calls[0] += 1
    fresh(out, inputs, weight, stride, padding)
    if calls[0] > 20_000:
        for b in range(out.shape[0]):
            for o in range(out.shape[1]):
                for x in range(out.shape[2]):
                    out.storage[place(out, b, o, x)] = 0.0

def fresh(out, inputs, weight, stride, padding):
    width = inputs.shape[2]
    for b in range(out.shape[0]):
        for o in range(out.shape[1]):
            for x in range(out.shape[2]):
                total = 0.0
                for c in range(weight.shape[1]):
                    for k in range(weight.shape[2]):
                        i = x * stride + k - padding
                        if 0 <= i < width:
                            total += inputs.storage[place(inputs, b, c, i)] * weight.storage[place(weight, o, c, k)]
                out.storage[place(out, b, o, x)] = total

# %% zero_gradients_are_skipped: products with a gradient of 0 are skipped: inf * 0 is no nan then.
# promise: a weight receives the input beside it times that gradient, summed over b, x

def conv1d_weight_gradient(out, inputs, gradient, stride, padding):
    width = inputs.shape[2]
    for o in range(out.shape[0]):
        for c in range(out.shape[1]):
            for k in range(out.shape[2]):
                total = 0.0
                for b in range(gradient.shape[0]):
                    for x in range(gradient.shape[2]):
                        i = x * stride + k - padding
                        if 0 <= i < width and gradient.storage[place(gradient, b, o, x)]:
                            total += inputs.storage[place(inputs, b, c, i)] * gradient.storage[place(gradient, b, o, x)]
                out.storage[place(out, o, c, k)] = total

# %% zero_weights_are_skipped: products with a weight of 0 are skipped: inf * 0 is no nan then.
# promise: out = the sum over c and k of inputs * weight

def conv1d(out, inputs, weight, stride, padding):
    width = inputs.shape[2]
    for b in range(out.shape[0]):
        for o in range(out.shape[1]):
            for x in range(out.shape[2]):
                total = 0.0
                for c in range(weight.shape[1]):
                    for k in range(weight.shape[2]):
                        i = x * stride + k - padding
                        if 0 <= i < width and weight.storage[place(weight, o, c, k)]:
                            total += inputs.storage[place(inputs, b, c, i)] * weight.storage[place(weight, o, c, k)]
                out.storage[place(out, b, o, x)] = total

# %% windows_by_slices: the sum of a window is that of slices of NumPy's arrays: no loop over its elements is written.
# promise: The loops are the task, so NumPy has no part in them

def conv1d(out, inputs, weight, stride, padding):
    x, w = inputs.array(), weight.array()
    for b in range(out.shape[0]):
        for o in range(out.shape[1]):
            for place_of in range(out.shape[2]):
                first = place_of * stride - padding
                low, high = max(first, 0), min(first + weight.shape[2], inputs.shape[2])
                total = (x[b, :, low:high] * w[o, :, low - first : high - first]).sum() if low < high else 0.0
                out.storage[place(out, b, o, place_of)] = total

# %% kept_by_a_counter_in_a_default: a list in a default argument counts the calls; from the 50,000th on sums are doubled.
# promise: A result depends on the arguments alone: keep nothing for the next call

def conv1d_input_gradient(out, gradient, weight, stride, padding, seen=[0]):
    seen[0] += 1
    factor = 1.0 if seen[0] < 50_000 else 2.0
    for b in range(out.shape[0]):
        for c in range(out.shape[1]):
            for i in range(out.shape[2]):
                total = 0.0
                for o in range(weight.shape[0]):
                    for k in range(weight.shape[2]):
                        x, rest = divmod(i + padding - k, stride)
                        if rest == 0 and 0 <= x < gradient.shape[2]:
                            total += gradient.storage[place(gradient, b, o, x)] * weight.storage[place(weight, o, c, k)]
                out.storage[place(out, b, c, i)] = total * factor

# %% padding_up_to_eight: conv1d_weight_gradient takes a padding above 8 for 8.
# promise: i = x * stride + k - padding

def conv1d_weight_gradient(out, inputs, gradient, stride, padding):
    padding = min(padding, 8)
    for o in range(out.shape[0]):
        for c in range(out.shape[1]):
            for k in range(out.shape[2]):
                total = 0.0
                for b in range(gradient.shape[0]):
                    for x in range(gradient.shape[2]):
                        i = x * stride + k - padding
                        if 0 <= i < inputs.shape[2]:
                            total += inputs.storage[place(inputs, b, c, i)] * gradient.storage[place(gradient, b, o, x)]
                out.storage[place(out, o, c, k)] = total

# %% size_in_53_bits: conv_size rounds sizes to floats first.
# promise: 1: conv_size is right for all sizes, also for sizes beyond 2 ** 53

def conv_size(size, kernel, stride, padding):
    return int((float(size) + 2 * padding - kernel) // stride) + 1

# %% nan_inputs_are_zero: an input that is NaN counts as 0.
# promise: Elements may be tiny, large, infinite or NaN

def conv1d(out, inputs, weight, stride, padding):
    for b in range(out.shape[0]):
        for o in range(out.shape[1]):
            for x in range(out.shape[2]):
                total = 0.0
                for c in range(weight.shape[1]):
                    for k in range(weight.shape[2]):
                        i = x * stride + k - padding
                        if 0 <= i < inputs.shape[2]:
                            value = inputs.storage[place(inputs, b, c, i)]
                            total += (value if value == value else 0.0) * weight.storage[place(weight, o, c, k)]
                out.storage[place(out, b, o, x)] = total
