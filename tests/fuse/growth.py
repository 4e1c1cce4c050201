"""Random programs. A program grows line by line; each line is tried at once with NumPy.

The trial says what shapes come out, how large numbers get, and which values share memory. About half of the programs compute
with numbers of few digits only, so that every order of operations gives the same bits, and results can be held against each
other exactly.
"""

from dataclasses import dataclass, field, replace
from random import Random

import numpy as np

from minifuse.testing import Recipe

from .judge import Judge, Judged
from .programs import Argument, Program, bound

SIDES = (3, 2, 5, 1, 4, 7, 6)
LARGE = 8.0
KINDS = ("float32", "float32", "float32", "float64", "int32", "int64", "bool")

INNER = (
    "@fuse\ndef inner{k}(a, b):\n    t = a * 0.5 + b\n    return t, t.sum()",
    "@fuse\ndef inner{k}(a, b):\n    a += b\n    return a[..., None], b",
    "@fuse\ndef inner{k}(a, b):\n    t = a.clone()\n    t *= 2\n    t[...] = mf.where(t > b, t, 1)\n    return t, a",
    "@fuse\ndef inner{k}(a, b):\n    return [a.flatten()[::-1], b], a - b",
)


@dataclass
class Growth:
    """A program while it grows.

    Parameters
    ----------
    seed : int
        Of all choices.
    is_smooth : bool
        Whether there are functions such as exp, whose results have all digits.
    changes : bool
        Whether there are changes in place.
    wants_grad : bool
        Whether arguments require gradients.
    """

    seed: int
    is_smooth: bool = False
    changes: bool = True
    wants_grad: bool = False
    kinds: tuple = KINDS
    max_dims: int = 3
    lines: list = field(default_factory=list)

    def __post_init__(self):
        self.random = Random(self.seed)
        self.judge = Judge()
        self.scope = dict(self.judge.names)
        self.count = 0
        self.inner = []
        self.forms = [
            *[self.unary] * 3, *[self.binary] * 6, *[self.weak] * 3, *[self.fold] * 4, *[self.view] * 4, self.product,
            self.product, self.choice, self.choice, self.cast, self.made, self.nested, self.bounds, self.numpy_word,
            self.branch, self.loop, self.picked, self.picked,
        ]  # fmt: skip
        if self.changes:
            self.forms += [self.write] * 6 + [self.alias] * 2

    # What there is.

    def chance(self, p):
        return self.random.random() < p

    def names(self, fits=lambda x: True):
        return [name for name, x in self.scope.items() if isinstance(x, Judged) and fits(x)]

    def pick(self, fits=lambda x: True):
        """A value that fits, as often as not among the newest."""
        found = self.names(fits)
        if not found:
            return None
        return self.random.choice(found[-3:] if self.chance(0.6) else found)

    def number(self):
        """A Python number: written out, or one of the arguments, or from outside."""
        found = [name for name, x in self.scope.items() if isinstance(x, int | float) and not isinstance(x, bool)]
        if found and self.chance(0.6):
            name = self.random.choice(found)
            return self.random.choice([name, name, f"({name} * 2 + 1)", f"(-{name})"])
        return self.random.choice(["2", "0.5", "-1", "3", "-1.5", "0", "1", "0.25"])

    def value(self, name):
        return self.scope[name]

    # The frame.

    def shape(self):
        dims = self.random.randint(0 if self.chance(0.2) else 1, self.max_dims)
        shape = tuple(self.random.sample(SIDES, dims))
        if shape and self.chance(0.15):  # where dims can be mixed up unseen by shapes
            shape = shape[:1] * len(shape)
        if shape and self.chance(0.06):
            k = self.random.randrange(len(shape))
            shape = (*shape[:k], 0, *shape[k + 1 :])
        return shape

    def start(self):
        """Choose arguments and what lies outside."""
        whole, bases, arguments = self.shape(), [], []
        for k in range(self.random.randint(1, 4)):
            shape = (
                whole
                if self.chance(0.5)
                else tuple(n if self.chance(0.6) else 1 for n in whole)[self.random.randint(0, 1) :]
            )
            dtype = self.random.choice(self.kinds) if k else self.random.choice(["float32", "float32", "float64", "int64"])
            if arguments and self.chance(0.35):  # another look at the same memory
                base = self.random.choice(arguments).base
                recipe = self.another_look(bases[base][0])
            else:
                recipe = self.recipe(shape)
                base = len(bases)
                bases.append((recipe.base, dtype))
            arguments.append(Argument(base, recipe))
        numbers = [self.random.choice([0.5, 2.0, -1.5, 3, -2, 2, 1]) for _ in range(self.random.choice([0, 0, 1, 1, 2]))]
        outside = []
        for _ in range(self.random.choice([0, 0, 0, 1, 2])):
            if self.chance(0.5):
                outside.append(self.random.choice([0.5, 2, -1.5, True]))
            elif self.chance(0.25):  # memory that an argument looks at too
                base = self.random.choice(arguments).base
                outside.append(Argument(base, self.another_look(bases[base][0])))
            else:
                recipe = self.recipe(whole)
                outside.append(Argument(len(bases), recipe))
                bases.append((recipe.base, self.random.choice(self.kinds)))
        if self.wants_grad:
            arguments = [
                replace(x, requires_grad=bases[x.base][1].startswith("float") and (k == 0 or self.chance(0.6)))
                for k, x in enumerate(arguments)
            ]
        self.program = Program(tuple(bases), tuple(arguments), tuple(numbers), tuple(outside))
        self.scope |= bound(self.program, self.judge, [self.judge.of(a) for a in self.program.data(self.seed)])

    def recipe(self, shape):
        """A way to lie in memory."""
        steps, kind = [], self.random.choice(["plain", "plain", "permuted", "sliced", "flipped", "expanded", "chosen"])
        before = shape
        if kind == "permuted" and len(shape) > 1:
            order = self.random.sample(range(len(shape)), len(shape))
            before = tuple(shape[order.index(d)] for d in range(len(shape)))
            steps = [("permute", tuple(order))]
        elif kind == "sliced":
            steps = [("index", tuple(slice(1, 1 + 2 * n, 2) for n in shape))]
            before = tuple(2 * n + 2 for n in shape)
        elif kind == "flipped" and shape:
            steps = [("index", tuple(self.random.choice([slice(None, None, -1), slice(None)]) for _ in shape))]
        elif kind == "expanded" and shape:
            before = tuple(1 if self.chance(0.5) else n for n in shape)
            steps = [("expand", shape)]
        elif kind == "chosen":
            before = (3, *shape)
            steps = [("index", (self.random.choice([0, 1, -1]),))]
        return Recipe(before, steps)

    def another_look(self, base):
        """Some other view of a base: overlapping, or the same, or apart."""
        if not base or self.chance(0.3):
            return Recipe(base)
        entries = [
            self.random.choice([slice(None), slice(1, None), slice(None, -1), slice(None, None, 2), slice(None, None, -1)])
            for _ in base
        ]
        return Recipe(base, [("index", tuple(entries))])

    # Lines. Each form gives a line of text, or None.

    def unary(self):
        x = self.pick()
        exact = [
            "-{0}",
            "mf.abs({0})",
            "mf.relu({0})",
            "{0} * {0}",
            "{0}.clone()",
            "{0} ** 2",
            "{0}.detach()",
            "{0}.contiguous()",
        ]
        smooth = [
            "mf.exp({0} * 0.3)", "mf.log({0} * {0} + 0.5)", "mf.sqrt({0} * {0} + 0.1)", "mf.tanh({0})", "mf.sin({0})",
            "mf.sigmoid({0})", "1 / ({0} * {0} + 1)", "mf.log1p({0} * {0})", "mf.cos({0})", "({0} * {0} + 1) ** 0.5",
        ]  # fmt: skip
        return self.random.choice(smooth if self.is_smooth and self.chance(0.7) else exact).format(x)

    def matching(self, x):
        """A value that broadcasts with another."""
        shape = self.value(x).shape
        return self.pick(lambda y: broadcasts(y.shape, shape)) or x

    def binary(self):
        x = self.pick()
        pair = [x, self.matching(x)]
        self.random.shuffle(pair)
        forms = [
            "{0} + {1}",
            "{0} - {1}",
            "{0} * {1}",
            "{0} + {1}",
            "{0} * {1}",
            "mf.maximum({0}, {1})",
            "mf.minimum({0}, {1})",
        ]
        forms += ["{0} / ({1} * {1} + 0.7)"] * self.is_smooth
        return self.random.choice(forms).format(*pair)

    def weak(self):
        x, n = self.pick(), self.number()
        forms = [
            "{0} * {1}",
            "{0} + {1}",
            "{1} - {0}",
            "{0} - {1}",
            "mf.maximum({0}, {1})",
            "{0} / 2",
            "{0} // 0.5",
            "{0} % 3",
            "{1} * {0}",
        ]
        return self.random.choice(forms).format(x, n)

    def choice(self):
        x = self.pick()
        y = self.matching(x)
        if x.startswith("g"):  # Python turns `outside < inside` around, so a result would lie in memory like the other one
            x, y = y, x
        forms = [
            "mf.where({0} > {1}, {0}, 1)", "mf.where({0} != 0, {0} * 2, {1})", "{0} > {1}", "({0} <= 0.5) | ({1} > 0)",
            "mf.where({0} < {1}, {1}, {2})", "({0} == {1}).to('float32')", "~({0} > 0.25)", "mf.where({0} > 0, {2}, {1})",
        ]  # fmt: skip
        return self.random.choice(forms).format(x, y, self.number())

    def bounds(self):
        forms = ["{0}.clip(-1, 1)", "mf.clip({0}, {1})", "{0}.clip(None, 0.5)"]
        return self.random.choice(forms).format(self.pick(), self.number())

    def cast(self):
        return f"{self.pick()}.to('{self.random.choice(['float32', 'float64', 'int32', 'int64', 'bool', 'float32'])}')"

    def fold(self):
        x = self.pick(lambda x: x.ndim) or self.pick()
        ndim = self.value(x).ndim
        dims = [*range(-ndim, ndim)]
        few = self.random.sample(range(ndim), self.random.randint(0, ndim))
        dim = self.random.choice([None, *dims, *dims, tuple(d - ndim * self.chance(0.3) for d in few)])
        keepdim = self.chance(0.5)
        names = ["sum", "sum", "sum", "max", "min", "any", "all", "prod"] + [
            "mean",
            "var",
            "softmax",
            "logsumexp",
        ] * self.is_smooth
        name = self.random.choice(names)
        if name == "softmax":
            return f"{x}.softmax({dim if isinstance(dim, int) else -1})"
        if name == "var":
            return f"{x}.var({dim}, 0, {keepdim})"
        if name == "max" and self.chance(0.2):
            return f"{x}.argmax({dim if isinstance(dim, int) else None}, {keepdim})"
        return f"{x}.{name}({dim}, {keepdim})"

    def view(self):
        x = self.pick(lambda x: x.ndim) or self.pick()
        shape = self.value(x).shape
        kind = self.random.choice(["index", "index", "index", "permute", "T", "reshape", "expand", "flip", "unsqueeze"])
        if kind == "T":
            return f"{x}.T"
        if kind == "permute" and len(shape) > 1:
            return f"{x}.permute({', '.join(map(str, self.random.sample(range(len(shape)), len(shape))))})"
        if kind == "reshape":
            n = int(np.prod(shape))
            options = [(-1,) if n else (n,), shape[::-1], (1, *shape), (*shape, 1)]
            options += [(n // 2, 2)] if n and n % 2 == 0 else []
            options += [(shape[0] * shape[1], *shape[2:])] if len(shape) > 1 else []
            return f"{x}.reshape({', '.join(map(str, self.random.choice(options)))})"
        if kind == "expand":
            return f"{x}.expand({', '.join(map(str, (2, *[3 if n == 1 else n for n in shape])))})"
        if kind == "flip" and shape:
            return f"{x}.flip({self.random.randrange(len(shape))})"
        if kind == "unsqueeze":
            return f"{x}.unsqueeze({self.random.randint(0, len(shape))})"
        return f"{x}[{self.index(shape)}]"

    def index(self, shape):
        """An index, as text."""
        entries = []
        for n in shape:
            options = [":", ":", "::-1", "::2", "1:", ":-1", "-2:", "1::2"] + (
                [str(self.random.randrange(-n, n))] if n else []
            )
            entries.append(self.random.choice(options))
        if self.chance(0.2):
            entries = entries[: self.random.randint(0, len(entries))]
        if not entries or self.chance(0.15):
            entries.insert(self.random.randint(0, len(entries)), self.random.choice(["None", "..."]))
        return ", ".join(entries)

    def picked(self):
        """Parts along a dim by an index that is made on the way: repeated, out of order, or the same."""
        x = self.pick(lambda x: x.ndim and any(x.shape))
        if x is None:
            return self.unary()
        dim, n = self.random.choice([(d, n) for d, n in enumerate(self.value(x).shape) if n])
        y = self.pick(lambda y: 0 < y.size <= 40)
        forms = [f"mf.arange({self.random.randint(0, 7)}) * 3 % {n}", f"mf.tensor([{n - 1}, 0, {n - 1}])"]
        forms += [f"({y} > 0).to('int64').flatten() % {n}", f"{y}.argmax().reshape(1) % {n}"] * (y is not None)
        return f"{x}.index_select({dim - self.value(x).ndim * self.chance(0.3)}, {self.random.choice(forms)})"

    def product(self):
        a = self.pick(lambda x: x.ndim)
        if a is None:
            return self.binary()
        shape = self.value(a).shape

        def fits(b):
            inner = b.shape[-2:][0] if b.ndim else None
            return inner == shape[-1] and broadcasts(b.shape[:-2], shape[:-2])

        b = self.pick(fits)
        if b is None:
            return f"{a} @ {a}.mT" if len(shape) > 1 else f"{a} @ {a}"
        forms = ["{0} @ {1}", "{0} @ {1}", "({0} * 2) @ {1}", "{0} @ {1} + 1", "mf.relu({0} @ ({1} + 1))"]
        return self.random.choice(forms).format(a, b)

    def made(self):
        x = self.pick()
        shape = self.value(x).shape
        forms = [
            "mf.zeros_like({0})", "mf.ones_like({0})", "mf.arange({2})", "mf.full({1}, {3})", "mf.zeros(*{0}.shape)",
            "mf.tensor([0.5, -1.0, 2.0])", "mf.arange({0}.shape[0])" if shape else "mf.ones(2)",
        ]  # fmt: skip
        return self.random.choice(forms).format(x, shape, self.random.randint(0, 5), self.number())

    def numpy_word(self):
        x = self.pick()
        y = self.matching(x)
        forms = ["np.maximum({0}, {1})", "np.add({0}, {1})", "np.sum({0}, axis=0)", "np.transpose({0})", "np.negative({0})"]
        forms += ["np.exp({0} * 0.25)", "np.tanh({0})"] * self.is_smooth
        return self.random.choice(forms).format(x, y)

    def nested(self):
        k = len(self.inner)
        x = self.pick()
        y = self.matching(x)
        text = self.random.choice(INNER if self.changes else (INNER[0], INNER[3])).format(k=k)
        exec(text, self.scope)
        self.inner.append(text)
        self.keep = f"inner{k}"
        return f"inner{k}({x}, {y})"

    def branch(self):
        found = [name for name, x in self.scope.items() if isinstance(x, int | float) and name[0] in "ng"]
        if not found:
            return None
        x = self.pick()
        return f"{x} * 2 if {self.random.choice(found)} > 0 else {x} + 1"

    def loop(self):
        x = self.pick()
        return f"sum([{x} * k for k in range(3)])"

    def alias(self):
        """A name for a view, which a later line may change."""
        return self.view()

    def write(self):
        """A change in place, of a value or of a part of it."""
        x = self.pick()
        shape = self.value(x).shape
        y = self.number() if self.chance(0.4) else self.matching(x)
        if shape and self.chance(0.6):
            index = self.index(shape)
            part = f"{x}[{index}]"
            try:
                seen = eval(part, self.scope).shape
            except IndexError:
                return None
            if not y.startswith(("x", "t", "g")) or self.chance(0.7):
                others = self.names(lambda v: broadcasts(v.shape, seen) and len(v.shape) <= len(seen))
                y = self.random.choice(others) if others and self.chance(0.6) else self.number()
            return "!" + self.random.choice([f"{part} += {y}", f"{part} = {y}", f"{part} *= {y}", f"{part} = {y}"])
        forms = [
            "{0} += {1}",
            "{0} -= {1}",
            "{0} *= {1}",
            "{0}[...] = {1}",
            "{0}.copy_({1})",
            "{0}.fill_({2})",
            "{0}.zero_()",
        ]
        return "!" + self.random.choice(forms).format(x, y, self.number())

    # Growing.

    def grown(self, count):
        """A program of some lines."""
        self.start()
        while self.count < count:
            self.count += 1
            form = self.random.choice(self.forms)
            line = form()
            if line is not None:
                self.add(line)
        self.lines.append(f"return {self.results()}")
        return replace(self.program, lines=tuple(self.lines), inner=tuple(self.inner))

    def add(self, line):
        """Try a line; keep it where NumPy can do it, and bring large numbers back."""
        name = f"t{self.count}"
        text = line[1:] if line.startswith("!") else f"{name} = {line}"
        saved = [(x.a, x.a.copy()) for x in self.scope.values() if isinstance(x, Judged)] if line.startswith("!") else []
        try:
            with np.errstate(all="ignore"):
                exec(text, self.scope)
        except (ValueError, TypeError, IndexError):
            for a, copy in saved:
                if a.flags.writeable:
                    a[...] = copy
            self.scope.pop(name, None)
            if self.chance(0.01):  # an error is a result too
                self.lines.append(text)
            return
        self.lines.append(text)
        new = self.scope.get(name)
        if isinstance(new, tuple):  # what a nested function gave
            extra = f"({name}, {name}b)" if isinstance(new[0], Judged) else f"(({name}, {name}c), {name}b)"
            self.lines[-1] = f"{extra[1:-1]} = {line}"
            self.scope.pop(name)
            exec(self.lines[-1], self.scope)
        for each in [n for n in (name, f"{name}b", f"{name}c") if isinstance(self.scope.get(n), Judged)]:
            self.tame(each)
        if line.startswith("!"):
            target = text.split("[")[0].split(".")[0].split(" ")[0]
            seen = self.scope.get(target)
            if isinstance(seen, Judged) and is_wild(seen.a) and seen.a.flags.writeable:
                line = f"{target}[...] = ({target}.clip(-4, 4) * 4 // 1 / 4).to({target}.dtype)"
                self.lines.append(line)
                exec(line, self.scope)

    def tame(self, name):
        """Few digits again, or moderate again."""
        x = self.scope[name]
        if isinstance(x, Judged) and x.a.dtype.kind in "fi" and is_wild(x.a, self.is_smooth):
            if x.a.dtype.kind == "i":
                line = f"{name} = {name} % 5"
            elif self.is_smooth:
                line = f"{name} = mf.tanh({name} * 0.1)"
            else:
                line = f"{name} = {name}.clip(-4, 4) * 4 // 1 / 4"
            self.lines.append(line)
            with np.errstate(all="ignore"):
                exec(line, self.scope)

    def results(self):
        """What is returned: mostly what is newest, sometimes a nest."""
        names = self.names()
        chosen = [self.random.choice(names[-4:]) for _ in range(self.random.choice([1, 1, 2, 3]))]
        if self.chance(0.3):
            chosen.append(self.random.choice(names))  # an input, perhaps, or the same again
        if self.chance(0.15):
            chosen.append(f"{chosen[0]}[...]")
        if self.chance(0.1):
            chosen.append(self.random.choice(["None", "2.5", "'text'", "7"]))
        if len(chosen) == 1:
            return chosen[0]
        if self.chance(0.2):
            return f"[{chosen[0]}, {{'rest': ({', '.join(chosen[1:])},)}}]"
        return ", ".join(chosen)


def is_wild(a, is_smooth=False):
    """Whether numbers have many digits, or are large."""
    if not a.size:
        return False
    with np.errstate(all="ignore"):
        if a.dtype.kind == "i":
            return bool(np.abs(a).max() > 100)
        if a.dtype.kind == "f":
            return bool(
                not np.isfinite(a).all() or np.abs(a).max() > LARGE or (not is_smooth and (a * 64 != np.floor(a * 64)).any())
            )
    return False


def broadcasts(a, b):
    return all(m == n or 1 in (m, n) for m, n in zip(reversed(a), reversed(b), strict=False))


def grow(seed, count, **options):
    """A random program of about `count` lines."""
    random = Random(seed)
    options.setdefault("is_smooth", random.random() < 0.5)
    return Growth(seed, **options).grown(count)
