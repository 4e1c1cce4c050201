"""Random functions whose inputs alias each other, called with one coincidence after the other, fused against unfused.

A program is a function as text and a few calls of it. Before each call a world is built twice from equal numbers: arrays,
tensors that are views of them or separate tensors over the same memory, a few as integers, and globals that the function
reads. One world is for the function itself, one for its fused form. Everything that a user could see afterwards must agree:
results, their identity, what they share memory with, all arrays, gradients, and errors. A fused call may be refused where
floats and integers share bytes, if it is refused as the first call too.

    python -m tests.fuse.aliasing --backend python --programs 100000 --seed 0
"""

import argparse
import contextlib
import random
import re
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

import minifuse as mf
from minifuse.runtime.kernel_cache import cache

SIZE = 6  # elements of each input
SIDE = 8  # rows and columns of each array
ARRAYS = 2
INPUTS = 3  # parameters of a function
OUTSIDE = 2  # globals of a function
CALLS = 4  # of one function
MAX_SHOWN = 5  # failures that are printed

REFUSED = "refused, since something was changed in place"
DTYPES = "refused, since dtypes share bytes"
VALUES = [
    "{a} + {b}", "{a} * {b}", "{a} * 0.5 - {b}", "{a}[::-1] * {b}", "mf.maximum({a}, {b})", "{a} - {a}.sum() * 0.125",
    "({a} * {b}).sum() + {c}", "mf.where({a} > {b}, {a}, {c})", "{a} * {b} + {c}", "{a}.flip(0)[1:].sum() - {b}",
]  # fmt: skip
CHANGES = [
    "{a} += {b}", "{a} *= 0.5", "{a} -= {b} * {c}", "{a}[1:] = {b}[:-1]", "{a}[::2] -= 1", "{a}.copy_({b})",
    "{a}[...] = {b} * {c}", "v = {a}[1:]; v += {b}[1:]", "v = {a}[::-1]; v *= {b}", "{a}.fill_(0.25)", "{a}[:3] += {b}[3:]",
    "{a}[2:5] = {b}.sum()", "{a}[2:3] += {b}[2:3]",
]  # fmt: skip
RESULTS = ["{a}", "{a}[1:]", "{a}[::-1]", "{a}.detach()", "{a} + {b}", "({a}, {b})", "({a}[:3], {b} * 2, {a})", "None"]


@dataclass
class Source:
    """A function as text. `is_learning` if it computes gradients inside."""

    text: str
    is_writing: bool
    is_learning: bool


@dataclass
class Call:
    """The sources of the inputs and globals of one call: a view of an array, or an earlier tensor."""

    places: list = field(default_factory=list)
    requires_grad: list = field(default_factory=list)
    by_name: bool = False
    after: str = ""


def source_of(rng):
    """Draw a function."""
    names = [f"x{k}" for k in range(INPUTS)] + [f"g{k}" for k in range(OUTSIDE)]
    lines, temporaries = [], []
    kind = rng.choice(["plain", "writing", "writing", "writing", "learning"])
    pick = lambda: rng.choice([*names, *names, *temporaries])  # noqa: E731

    def line(template):
        a = pick()
        if a.startswith("g"):  # `g += ...` would make it a name of the function's own
            template = re.sub(r"^\{a\} (.=)", r"{a}[...] \1", template)
        return template.format(a=a, b=pick(), c=pick()).replace("; ", "\n    ")

    for k in range(rng.randint(1, 4)):
        what = rng.random()
        if kind == "writing" and what < 0.5:
            lines.append(line(rng.choice(CHANGES)))
        elif what > 0.9:
            a, b = rng.sample(names[:INPUTS], 2)
            lines.append(f"t{k} = {a} * 2 if {a} is {b} else {a} - {b}")
            temporaries.append(f"t{k}")
        else:
            lines.append(f"t{k} = {line(rng.choice(VALUES))}")
            temporaries.append(f"t{k}")
    if kind == "learning":
        a, b = rng.sample(names, 2)
        lines.append(f"({a} * {b} * {pick()}).sum().backward()")
        lines += [f"t9 = {a}.grad if {a}.grad is not None else {b}"] * rng.randint(0, 1)
    lines.append(f"return {line(rng.choice(RESULTS))}")
    body = "\n".join(f"    {x}" for x in lines)
    return Source(f"def program({', '.join(names[:INPUTS])}):\n{body}\n", kind == "writing", kind == "learning")


def call_of(rng, source):
    """Draw where the inputs of a call come from."""
    places = []
    for k in range(INPUTS + OUTSIDE):
        how = rng.random()
        if k and how < 0.3:
            places.append(("same", rng.randrange(k)))
        elif k and how < 0.4:
            places.append(("whole view", rng.randrange(k)))
        else:
            kind = "view" if how < 0.75 else "integers" if how < 0.85 else "separate" if how < 0.97 else "read-only"
            places.append((kind, rng.randrange(ARRAYS), view_of(rng)))
    chance = 0.8 if source.is_learning else 0.1 if source.is_writing else 0.3
    after = rng.choice(["", "", "first -= result", "result.fill_(7)", "last *= 3"])
    return Call(places, [rng.random() < chance for _ in places], rng.random() < 0.2, after)


def view_of(rng):
    """Draw a view of an array: part of a row, of a column, of a diagonal, of all elements in order, or one of them."""
    k, start = rng.randrange(SIDE), rng.randrange(SIDE - SIZE + 1)
    part = slice(start, start + SIZE)
    step = rng.choice([1, 2, -1, 3])
    first = rng.randrange(SIDE) + (5 * step if step > 0 else 20)
    if rng.random() < 0.04:
        return "expanded", first, 0
    return rng.choice([("row", k, part), ("column", k, part), ("flat", first, step), ("flat", first, step)])


def seen(array, view):
    """Return the part of an array, or of a tensor, that a view shows."""
    kind, k, part = view
    if kind == "row":
        return array[k, part]
    if kind == "column":
        return array[part, k]
    flat = array.reshape(-1)
    if kind == "expanded":
        one = flat[k : k + 1]
        return one.expand(SIZE) if isinstance(one, mf.Tensor) else np.lib.stride_tricks.as_strided(one, (SIZE,), (0,))
    return flat[k : k + SIZE * part : part] if part > 0 else flat[k : k - SIZE : part]


class World:
    """Arrays and the tensors over them, for one call."""

    def __init__(self, call, seed, backend):
        rng = np.random.default_rng(seed)
        self.arrays = [(rng.integers(-8, 9, (SIDE, SIDE)) / 4).astype("float32") for _ in range(ARRAYS)]
        wholes = [mf.from_numpy(a, backend=backend) for a in self.arrays]
        self.wholes, self.tensors = wholes, []
        for place, requires_grad in zip(call.places, call.requires_grad, strict=True):
            kind, k, *view = place
            if kind == "same":
                x = self.tensors[k]
            elif kind == "whole view":
                x = self.tensors[k][:]
            elif kind == "view" or backend == "cuda":
                with mf.no_grad():
                    x = seen(wholes[k], view[0])
            else:
                array = seen(self.arrays[k], view[0]).view("int32" if kind == "integers" else "float32")
                if kind == "read-only":
                    array.flags.writeable = False
                x = mf.from_numpy(array, backend=backend)
            if requires_grad and x.is_leaf and x.dtype.is_float:
                x.requires_grad = True
            self.tensors.append(x)

    def run(self, function, scope, call):
        """Call the function; everything that can be seen of it, as comparable values."""
        inputs, outside = self.tensors[:INPUTS], self.tensors[INPUTS:]
        scope.update({f"g{k}": x for k, x in enumerate(outside)})
        try:
            positional, named = (inputs[:-1], {f"x{INPUTS - 1}": inputs[-1]}) if call.by_name else (inputs, {})
            result = function(*positional, **named)
        except mf.MinifuseError as error:
            return [DTYPES if "share bytes, but not as the same elements" in str(error) else type(error).__name__]
        facts = self.facts(result)
        error = self.afterwards(call.after, next(iter(parts_of(result)), None))
        arrays = [x.numpy().copy() for x in self.wholes]
        learned = [self.learn(x) for x in parts_of(result)]
        grads = [None if x.grad is None else x.grad.numpy().copy() for x in self.tensors]
        return [facts, error, arrays, REFUSED if REFUSED in learned else [learned, grads]]

    def facts(self, result):
        """A result: values, flags, and which inputs it is or shares memory with."""
        found = []
        for x in parts_of(result):
            same = [k for k, y in enumerate(self.tensors) if y is x]
            shared = [k for k, y in enumerate(self.tensors) if y.buffer is x.buffer]
            found.append((x.numpy().copy(), x.shape, bool(x.requires_grad), same, shared))
        return found

    def afterwards(self, what, result):
        """Change something in place that may share memory with the result."""
        if result is None or not what:
            return None
        try:
            with mf.no_grad():
                scope = {"first": self.tensors[0], "last": self.tensors[-1], "result": result}
                if what != "first -= result" or result.shape == self.tensors[0].shape:
                    exec(what, scope)
        except mf.MinifuseError as error:
            return type(error).__name__
        return None

    def learn(self, x):
        """Differentiate a result. What was changed in place since may be refused: a fused function keeps other values."""
        if not x.requires_grad:
            return None
        try:
            x.sum().backward(retain_graph=True)
        except mf.GradientError as error:
            return REFUSED if "was modified in place after it was used" in str(error) else "GradientError"
        return None


def parts_of(result):
    """The tensors of a result."""
    return [x for x in (result if isinstance(result, tuple) else (result,)) if isinstance(x, mf.Tensor)]


def is_mixed(call):
    """Return whether some tensors of a call have another dtype than others."""
    return any(kind == "integers" for kind, *_ in call.places)


def are_equal(a, b):
    """Return whether two nests of values agree."""
    if isinstance(a, list | tuple):
        return isinstance(b, list | tuple) and len(a) == len(b) and all(map(are_equal, a, b))
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return type(a) is type(b) and a.shape == b.shape and bool(np.allclose(a, b, 1e-4, 1e-4, equal_nan=True))
    return a == b


def check(seed, backend="python", functions=None):
    """Run one program; returns the number of calls that agreed. An AssertionError shows what is needed to run it again.

    `functions` bounds how many different functions there are, and so how many kernels.
    """
    rng = random.Random(f"calls {seed}")
    source = source_of(random.Random(f"function {seed if functions is None else seed % functions}"))
    plain, fused = {"mf": mf}, {"mf": mf}
    exec(compile(source.text, "<program>", "exec"), plain)
    exec(compile(source.text, "<program>", "exec"), fused)
    function = mf.fuse(fused["program"])
    refused = 0
    for k in range(CALLS):
        call = call_of(rng, source)
        with mf.use_backend(backend), np.errstate(all="ignore"):
            expected = World(call, (seed, k), backend).run(plain["program"], plain, call)
            got = World(call, (seed, k), backend).run(function, fused, call)
            first = World(call, (seed, k), backend).run(mf.fuse(fused["program"]), fused, call) if is_mixed(call) else got
        assert (got == [DTYPES]) == (first == [DTYPES]), f"seed {seed}, call {k}\n{source.text}{call}\n{got}\nfirst {first}"
        if got == [DTYPES]:
            refused += 1
            continue
        if REFUSED in (
            str(got[-1]),
            str(expected[-1]),
        ):  # unfused, a change beside a value counts too; fused, other values are kept
            got, expected, refused = got[:-1], expected[:-1], refused + 1
        assert are_equal(got, expected), f"seed {seed}, call {k}\n{source.text}{call}\nunfused {expected}\nfused {got}"
    return CALLS - refused


def main():
    """Run many programs, and print how many agreed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="python")
    parser.add_argument("--programs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--functions", type=int, help="different functions at most")
    options = parser.parse_args()
    found, failures = Counter(), []
    for seed in range(options.seed, options.seed + options.programs):
        try:
            found["calls"] += check(seed, options.backend, options.functions)
        except Exception as error:
            failures.append(seed)
            if len(failures) <= MAX_SHOWN:
                print(f"{type(error).__name__} in program {seed}: {error}\n")
    with contextlib.suppress(AttributeError):
        print(f"{cache.stats().compiled} kernels compiled")
    counts = f"{options.programs} programs, {found['calls']} calls agreed, {len(failures)} programs failed"
    print(f"{options.backend}: {counts} {failures[:20]}")
    raise SystemExit(bool(failures))


if __name__ == "__main__":
    main()
