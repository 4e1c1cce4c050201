"""One call of a program, unfused, fused, or with NumPy, and all that can be seen of it: results, their strides, what shares
memory with what, what was changed in place, gradients, errors.
"""

from dataclasses import dataclass, field

import numpy as np

import minifuse as mf
from minifuse.core.pytree import tree_leaves, tree_map
from minifuse.testing import assert_close

from .judge import NEAR, Judge, Judged
from .programs import Argument, bound

MANY = 1000  # numbers that may meet in one
LARGE = 16.0  # of what is added up
WILD = 1e5  # where float32 is no measure
UNFUSED = {"mf": mf, "np": np, "fuse": lambda f: f}
FUSED = {"mf": mf, "np": np, "fuse": mf.fuse}


@dataclass
class Outcome:
    """What one call left behind."""

    tree: object = None
    error: Exception | None = None
    tensors: list = field(default_factory=list)  # arguments, then results
    bases: list = field(default_factory=list)
    gradients: list = field(default_factory=list)  # of each order, one for each argument
    before: list = field(default_factory=list)


class Subject:
    """A program on a backend, fused or not; called several times with new data."""

    def __init__(self, program, backend, is_fused):
        self.program, self.backend, self.is_fused = program, backend, is_fused
        self.scope = {}
        function = program.function(FUSED if is_fused else UNFUSED)
        self.scope = function.__globals__
        self.function = mf.fuse(function) if is_fused else function

    def call(self, seed, gradients=0):
        """Run with the data of a seed; differentiate as often as asked."""
        found = Outcome()
        program = self.program
        bases = [mf.tensor(a, backend=self.backend) for a in program.data(seed)]

        def leaf(x):
            y = x.recipe(bases[x.base])
            return y.detach().requires_grad_() if x.requires_grad else y

        arguments = [leaf(x) for x in program.arguments]
        for k, x in enumerate(program.outside):
            self.scope[f"g{k}"] = leaf(x) if isinstance(x, Argument) else x
        found.before = [x.numpy().copy() for x in bases]
        with mf.use_backend(self.backend):
            try:
                found.tree = self.function(*arguments, *program.numbers)
                results = [x for x in tree_leaves(found.tree) if isinstance(x, mf.Tensor)]
                found.tensors = [*arguments, *results]
                if gradients:
                    self.differentiate(found, arguments, results, gradients)
            except Exception as error:  # whatever it is, the others must raise it too
                found.error = error
        found.bases = [x.numpy() for x in bases]
        return found

    def differentiate(self, found, arguments, results, order):
        """Gradients of a weighted sum of the results; of a weighted sum of those too."""
        total = weighted(results)
        if total is None:
            return
        total.backward(create_graph=order > 1)
        found.gradients = [[x.grad for x in arguments]]
        if order > 1:
            again = weighted([g for g in found.gradients[0] if g is not None])
            if again is not None:
                for x in arguments:
                    x.grad = None
                again.backward()
                found.gradients.append([x.grad for x in arguments])


def weighted(results):
    """The sum of all floats that require a gradient, each times a fixed number."""
    parts = []
    for k, y in enumerate(results):
        if y.requires_grad:
            weights = np.random.default_rng(k).integers(1, 5, y.shape) / 4
            parts.append((y * mf.tensor(weights, dtype=y.dtype, backend=y.backend)).sum())
    return sum(parts[1:], parts[0]) if parts else None


def judged(program, seed, precision=np.float64):
    """The call with NumPy: results as arrays in the same nest, the bases, and the judge."""
    judge = Judge(precision)
    data = program.data(seed)
    bases = [judge.of(a.copy()) for a in data]
    function = program.function(judge.names)
    named = bound(program, judge, bases)
    function.__globals__.update({k: x for k, x in named.items() if k[0] == "g"})
    with np.errstate(all="ignore"):
        tree = function(*[x for name, x in named.items() if name[0] in "xn"])
    return tree, [x.a for x in bases], judge


# What must agree.


def shape_of_tree(tree, laid_out=True):
    """A nest with what is no tensor as it is, and tensors as what can be seen without their elements."""

    def seen(x):
        if not isinstance(x, mf.Tensor):
            return type(x), x
        strides = tuple(s for s, n in zip(x.strides, x.shape, strict=True) if n > 1) if x.size and laid_out else ()
        return x.dtype.name, x.shape, strides, x.requires_grad

    return tree_map(tree, seen)


def sharing(tensors):
    """Which tensors share memory, so that to write into one changes the other."""
    arrays = [x.numpy() for x in tensors]
    return [(j, k) for k in range(len(arrays)) for j in range(k) if np.shares_memory(arrays[j], arrays[k])]


def identities(tensors):
    """For each tensor the first that is the same object."""
    return [next(j for j, y in enumerate(tensors) if y is x) for x in tensors]


def compare(unfused, fused, is_exact, host=True, laid_out=True):
    """A fused call against the same call unfused; with `laid_out`, results lie in memory alike."""
    if unfused.error is not None or fused.error is not None:
        if fused.error is None and isinstance(unfused.error, mf.GradientError) and "in place after" in str(unfused.error):
            return  # a fused function keeps what its gradients need, and tells apart what lies side by side in a buffer
        if type(unfused.error) is not type(fused.error):
            raise AssertionError(f"unfused: {unfused.error!r}\nfused: {fused.error!r}") from fused.error
        for a, b in zip(fused.before, fused.bases, strict=True):
            if fused.tree is None:
                np.testing.assert_array_equal(a, b, err_msg="an argument was changed by a call that failed")
        return
    kinds, expected = shape_of_tree(fused.tree, laid_out), shape_of_tree(unfused.tree, laid_out)
    assert kinds == expected, f"fused {kinds}, unfused {expected}"
    if host:
        assert sharing(fused.tensors) == sharing(unfused.tensors), "results share other memory"
    assert identities(fused.tensors) == identities(unfused.tensors), "results are other objects"
    for k, (x, y) in enumerate(zip(fused.tensors, unfused.tensors, strict=True)):
        same(x.numpy(), y.numpy(), is_exact, f"tensor {k}")
    for k, (x, y) in enumerate(zip(fused.bases, unfused.bases, strict=True)):
        same(x, y, is_exact, f"base {k}")
    for order, (got, expected) in enumerate(zip(fused.gradients, unfused.gradients, strict=True), 1):
        for k, (x, y) in enumerate(zip(got, expected, strict=True)):
            assert (x is None) is (y is None) or order > 1, f"derivative {order} of x{k}"
            if x is not None or y is not None:  # of a gradient that depends on nothing, the gradient is 0, or there is none
                a, b = [np.zeros_like((y if x is None else x).numpy()) if g is None else g.numpy() for g in (x, y)]
                same(a, b, False, f"derivative {order} of x{k}")


def same(got, expected, is_exact, what):
    """Equal to the last bit, or within the tolerance of programs."""
    if is_exact:
        np.testing.assert_array_equal(got, expected, err_msg=what)
    else:
        close(got, expected, what)


def close(got, expected, what):
    """Within the tolerance of programs, of the precision of what was computed."""
    scale = (
        max([LARGE, *np.abs(expected[np.isfinite(expected)]).reshape(-1)[:1000].tolist()])
        if expected.dtype.kind == "f"
        else LARGE
    )
    y = mf.tensor(got if got.dtype.kind != "f" else got.astype(np.float32))
    assert_close(y, expected, "program", n=MANY, scale=scale, what=what)


@dataclass(frozen=True)
class Nature:
    """What NumPy says of a program with the data of a seed."""

    is_exact: bool = False  # the same bits in any order, and in float32
    is_on_edge: bool = False  # float32 may take another branch than float64
    is_on_kink: bool = False  # or another slope
    is_known: bool = False  # it says anything at all
    results: tuple = ()
    bases: tuple = ()


def nature(program, seed):
    """Whether results are exact in any order, whether some value is near a step, and what comes out."""
    try:
        (tree, bases, judge), (_, bases32, judge32) = judged(program, seed), judged(program, seed, np.float32)
    except (ValueError, TypeError, IndexError):  # NumPy refuses what tensors allow, such as to write to expanded size 1
        return Nature()
    results = [x.a for x in tree_leaves(tree) if isinstance(x, Judged)]
    pairs = [*zip(judge.steps_taken, judge32.steps_taken, strict=True), *zip(bases, bases32, strict=True)]
    is_exact = all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)
    seen = [a for a in (*results, *bases) if a.dtype.kind == "f"]
    is_wild = any(not np.isfinite(a).all() or np.abs(a).max(initial=0) > WILD for a in seen)
    is_on_edge, is_on_kink = (not is_exact and near < NEAR for near in (judge.margin, judge.bend))
    is_known = not (judge.is_ambiguous and program.writes)
    return Nature(is_exact, is_on_edge or is_wild, is_on_kink, is_known, tuple(results), tuple(bases))


def against_numpy(outcome, about):
    """The values of a call against NumPy's."""
    if about.is_known:
        got = [x.numpy() for x in tree_leaves(outcome.tree) if isinstance(x, mf.Tensor)]
        for kind, found, right in (("result", got, about.results), ("base", outcome.bases, about.bases)):
            for k, (x, y) in enumerate(zip(found, right, strict=True)):
                close(x, y, f"{kind} {k} against NumPy")
