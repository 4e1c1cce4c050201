"""What a fused call depends on: whatever is changed, the result is that of the function unfused, and nothing is done twice.

Each world is built twice, around the function itself and around the fused one; the same changes happen to both.
"""

import contextlib
import functools
from types import SimpleNamespace

import numpy as np
import pytest

import minifuse as mf

from .agreement import shape_of_tree

LIVE = 1.5  # changed by tests


def x_of(*shape, dtype="float32", seed=0, **options):
    return mf.tensor(np.random.default_rng(seed).integers(-8, 9, shape) / 4, dtype, **options)


def plain_result(tree):
    """A result as something that compares, with dtypes and signs of zeros."""
    x = tree if isinstance(tree, tuple) else (tree,)
    return [(shape_of_tree(y), repr(y.numpy().tolist())) if isinstance(y, mf.Tensor) else (type(y), y) for y in x]


def same_after_changes(world, changes):
    """The fused world gives what the other one gives, before and after each change, and when all is as at first.

    On the plain backend, where the sign of zero counts, and nothing is compiled.
    """
    with mf.use_backend("python"):
        return changed_worlds(world, changes)


def changed_worlds(world, changes):
    """All results of a world; those of the fused one are the same."""
    (plain, change_plain), (fused, change_fused) = world(lambda f: f), world(mf.fuse)
    seen = []
    for change in (None, *changes, changes[0], changes[-1]):
        if change is not None:
            change_plain(change)
            change_fused(change)
        seen.append(plain_result(plain()))
        assert plain_result(fused()) == seen[-1], change
        assert plain_result(fused()) == seen[-1], change
    return seen


NUMBERS = [2.0, 2, True, 1, 1.0, False, 0, 0.0, -0.0, 0.5, -1, 10**6, float("inf"), float("nan")]


# Where something may lie that a function reads. Each takes the decorator, and gives a call and a way to change the thing.


def closure(fuse):
    c, x = 3.0, x_of(3)

    @fuse
    def f(x):
        return x * c

    def change(new):
        nonlocal c
        c = new

    return lambda: f(x), change


def module_global(fuse):
    x = x_of(3)

    @fuse
    def f(x):
        return x * LIVE

    def change(new):
        globals()["LIVE"] = new

    change(3.0)
    return lambda: f(x), change


def default(fuse):
    x = x_of(3)

    def f(x, c=3.0):
        return x * c

    g = fuse(f)

    def change(new):
        f.__defaults__ = (new,)

    return lambda: g(x), change


def keyword_default(fuse):
    x = x_of(3)

    def f(x, *, c=3.0):
        return x * c

    g = fuse(f)

    def change(new):
        f.__kwdefaults__["c"] = new

    return lambda: g(x), change


def attribute(fuse):
    thing, x = SimpleNamespace(), x_of(3)

    class Settings:
        c = 3.0

    thing = Settings()

    @fuse
    def f(x):
        return x * thing.c

    return lambda: f(x), lambda new: setattr(thing, "c", new)


def attribute_of_a_namespace(fuse):
    thing, x = SimpleNamespace(c=3.0), x_of(3)

    @fuse
    def f(x):
        return x * thing.c

    return lambda: f(x), lambda new: setattr(thing, "c", new)


def attribute_of_an_argument(fuse):
    class Settings:
        def __init__(self):
            self.c = 3.0

    thing, x = Settings(), x_of(3)

    @fuse
    def f(x, thing):
        return x * thing.c

    return lambda: f(x, thing), lambda new: setattr(thing, "c", new)


def slot(fuse):
    class Settings:
        __slots__ = ("c",)

    thing, x = Settings(), x_of(3)
    thing.c = 3.0

    @fuse
    def f(x):
        return x * thing.c

    return lambda: f(x), lambda new: setattr(thing, "c", new)


def deep_attribute(fuse):
    class Inner:
        c = 3.0

    class Outer:
        def __init__(self):
            self.inner = Inner()

    thing, x = Outer(), x_of(3)

    @fuse
    def f(x):
        return x * thing.inner.c

    return lambda: f(x), lambda new: setattr(thing.inner, "c", new)


def class_attribute(fuse):
    class Settings:
        c = 3.0

        def scale(self, x):
            return x * self.c

    thing, x = Settings(), x_of(3)

    @fuse
    def f(x):
        return thing.scale(x)

    return lambda: f(x), lambda new: setattr(Settings, "c", new)


def inherited_attribute(fuse):
    class Base:
        c = 3.0

    class Settings(Base):
        pass

    x = x_of(3)

    @fuse
    def f(x):
        return x * Settings.c

    return lambda: f(x), lambda new: setattr(Base, "c", new)


def method(fuse):
    class Layer:
        def __init__(self):
            self.c = 3.0

        @fuse
        def __call__(self, x):
            return x * self.c

    layer, x = Layer(), x_of(3)
    return lambda: layer(x), lambda new: setattr(layer, "c", new)


def bound_method(fuse):
    class Layer:
        def __init__(self):
            self.c = 3.0

        def run(self, x):
            return x * self.c

    layer, x = Layer(), x_of(3)
    f = fuse(layer.run)
    return lambda: f(x), lambda new: setattr(layer, "c", new)


def element_of_a_list(fuse):
    things, x = [1, 3.0], x_of(3)

    @fuse
    def f(x):
        return x * things[1]

    return lambda: f(x), lambda new: things.__setitem__(1, new)


def element_of_a_dict(fuse):
    things, x = {"c": 3.0}, x_of(3)

    @fuse
    def f(x):
        return x * things["c"]

    return lambda: f(x), lambda new: things.__setitem__("c", new)


def nested_containers(fuse):
    things, x = {"a": [(1, [3.0])]}, x_of(3)

    @fuse
    def f(x):
        return x * things["a"][0][1][0]

    return lambda: f(x), lambda new: things["a"][0][1].__setitem__(0, new)


def closure_of_a_called_function(fuse):
    c, x = 3.0, x_of(3)

    def scaled(x):
        return x * c

    @fuse
    def f(x):
        return scaled(x)

    def change(new):
        nonlocal c
        c = new

    return lambda: f(x), change


def partial_of_a_function(fuse):
    x, things = x_of(3), {"c": 3.0}
    f = functools.partial(lambda things, x: x * things["c"], things)
    g = fuse(lambda x: f(x))
    return lambda: g(x), lambda new: things.__setitem__("c", new)


def a_fused_function_inside(fuse):
    c, x = 3.0, x_of(3)

    @fuse
    def inner(x):
        return x * c

    @fuse
    def f(x):
        return inner(x) * 1

    def change(new):
        nonlocal c
        c = new

    return lambda: f(x), change


def argument(fuse):
    c, x = 3.0, x_of(3)
    f = fuse(lambda x, c: x * c)

    def change(new):
        nonlocal c
        c = new

    return lambda: f(x, c), change


def named_argument(fuse):
    c, x = 3.0, x_of(3)
    f = fuse(lambda x, c=None: x * c)

    def change(new):
        nonlocal c
        c = new

    return lambda: f(x, c=c), change


def nested_argument(fuse):
    things, x = {"c": [3.0, 1]}, x_of(3)
    f = fuse(lambda x, things: x * things["c"][0])
    return lambda: f(x, things), lambda new: things["c"].__setitem__(0, new)


def lambda_default(fuse):
    x, functions = x_of(3), {}

    def change(new):
        functions["f"] = lambda x, c=new: x * c

    change(3.0)

    @fuse
    def f(x):
        return functions["f"](x)

    return lambda: f(x), change


PLACES = [
    closure, module_global, default, keyword_default, attribute, attribute_of_a_namespace, attribute_of_an_argument, slot,
    deep_attribute, class_attribute, inherited_attribute, method, bound_method, element_of_a_list, element_of_a_dict,
    nested_containers, closure_of_a_called_function, partial_of_a_function, a_fused_function_inside, argument,
    named_argument, nested_argument, lambda_default,
]  # fmt: skip


@pytest.mark.parametrize("world", PLACES, ids=lambda f: f.__name__)
def test_a_changed_number(world):
    seen = same_after_changes(world, NUMBERS)
    assert len({str(s) for s in seen}) > 6  # the changes do change something


@pytest.mark.parametrize("world", PLACES, ids=lambda f: f.__name__)
def test_a_tensor_in_the_place_of_a_number(world):
    with mf.use_backend("python"):
        changes = [x_of(3), x_of(3, seed=1), x_of(3, dtype="int64"), x_of(3, requires_grad=True), x_of(1), 2.0, x_of(6)[::2]]
    same_after_changes(world, changes)


@pytest.mark.parametrize("world", [closure, module_global, attribute, element_of_a_list, argument], ids=lambda f: f.__name__)
def test_a_numpy_number_or_array(world):
    changes = [np.float32(2), np.float64(2), np.int64(2), np.arange(3.0), np.arange(3), np.float64(-0.0)]
    same_after_changes(world, changes)


def test_an_array_outside_is_read_anew():
    a = np.arange(3.0)

    @mf.fuse
    def f(x):
        return x + a

    x = mf.zeros(3, dtype="float64")
    assert f(x).tolist() == [0, 1, 2]
    a[1] = 7
    assert f(x).tolist() == [0, 7, 2]


# What a list, a dict or an object holds.


def test_containers_that_grow():
    parts, named = [1.0], {"a": 1.0}

    def f(x):
        return sum([x * p for p in parts]) + sum([x * named[k] for k in sorted(named)])

    g, x = mf.fuse(f), x_of(3)
    for change in (
        lambda: parts.append(2.0),
        lambda: parts.insert(0, 5),
        lambda: parts.pop(),
        lambda: named.update(b=3.0),
        lambda: named.pop("a"),
        lambda: parts.clear() or parts.append(x_of(3, seed=2)),
    ):
        assert plain_result(g(x)) == plain_result(f(x))
        change()
        assert plain_result(g(x)) == plain_result(f(x))


def test_attributes_that_are_added_and_removed():
    class Thing:
        pass

    thing = Thing()

    def f(x):
        return x * getattr(thing, "c", 2.0) if hasattr(thing, "c") else x + 1

    g, x = mf.fuse(f), x_of(3)
    assert plain_result(g(x)) == plain_result(f(x))
    thing.c = 3.0
    assert plain_result(g(x)) == plain_result(f(x))
    del thing.c
    assert plain_result(g(x)) == plain_result(f(x))


class Link:
    def __init__(self, c, rest):
        self.c, self.rest = c, rest


def test_a_long_linked_list_outside():
    chain = last = Link(1.0, None)
    for _ in range(3000):
        chain = Link(1.0, chain)
    f, x = mf.fuse(lambda x: x * chain.c), x_of(3)
    assert f(x).tolist() == x.tolist()
    last.c = 2.0
    chain.c = 3.0
    assert f(x).tolist() == (x * 3).tolist()


def test_functions_that_are_replaced():
    table = {"f": mf.exp}
    x = x_of(3)

    def f(x):
        return table["f"](x)

    g = mf.fuse(f)
    for new in (mf.exp, mf.sin, np.exp, lambda x: x * 2, lambda x: x * 3, functools.partial(mf.maximum, 0.5), abs):
        table["f"] = new
        assert plain_result(g(x)) == plain_result(f(x))


@contextlib.contextmanager
def nothing():
    yield


@pytest.mark.parametrize(
    "through", [mf.grad, functools.partial, lambda f: nothing()(f)], ids=["grad", "partial", "decorator"]
)
def test_globals_of_a_callback_are_guarded(through):
    """What a decorator of ours, or of the standard library, was given is looked into."""
    world = SimpleNamespace(scale=2.0)
    f = mf.fuse(lambda x: through(lambda x: (x * world.scale).sum())(x) * 1)
    held = mf.fuse(through(lambda x: (x * world.scale).sum()))
    for world.scale in (2.0, 3.0):
        expected = world.scale if through is mf.grad else world.scale * 2
        assert [g(mf.ones(2)).numpy().max() for g in (f, held)] == [expected] * 2


def test_a_method_that_is_replaced_in_its_class():
    class Layer:
        def run(self, x):
            return x * 2

    layer, x = Layer(), x_of(3)
    f = mf.fuse(lambda x: layer.run(x))
    assert f(x).tolist() == (x * 2).tolist()
    Layer.run = lambda self, x: x * 3
    assert f(x).tolist() == (x * 3).tolist()


def test_values_read_by_a_property_are_guarded():
    class Layer:
        def __init__(self):
            self.hidden = 2.0

        @property
        def c(self):
            return self.hidden + 1

    layer, x = Layer(), x_of(3)
    f = mf.fuse(lambda x: x * layer.c)
    assert f(x).tolist() == (x * 3).tolist()
    layer.hidden = 5.0
    assert f(x).tolist() == (x * 6).tolist()


def test_objects_that_are_equal_are_not_the_same():
    class Equal:
        def __init__(self, c):
            self.c = c

        def __eq__(self, other):
            return True

        def __hash__(self):
            return 1

    f, x = mf.fuse(lambda x, thing: x * thing.c), x_of(3)
    for c in (1.0, 2.0, 3, True, 1.0):
        assert plain_result(f(x, Equal(c))) == plain_result(x * c)


def test_modules_of_one_class_share_nothing():
    layers = [mf.nn.Linear(3, 2), mf.nn.Linear(3, 2), mf.nn.Linear(3, 4)]
    f, x = mf.fuse(lambda layer, x: layer(x)), x_of(5, 3)
    for layer in (*layers, *layers):
        np.testing.assert_allclose(f(layer, x).numpy(), layer(x).numpy(), rtol=1e-5, atol=1e-6)


def test_training_mode_of_a_module():
    class Noisy(mf.nn.Module):
        def forward(self, x):
            return x * 2 if self.training else x * 3

    model = mf.nn.Sequential(Noisy(), Noisy())
    f, x = mf.fuse(lambda x: model(x)), mf.ones(4)
    for switch in (model.eval, model.train, model.eval, model[0].train):
        switch()
        assert f(x).tolist() == model(x).tolist()
