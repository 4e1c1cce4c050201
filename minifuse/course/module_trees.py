"""Strategies that draw trees of modules, for task 0.4."""

from typing import TYPE_CHECKING

from .questions.task0_4 import Attribute, AttributeLabels, Tree

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


EXTRAS: tuple[tuple[str, Attribute], ...] = (
    ("_hidden", "p0"),
    ("_own", "p1"),
    ("again", "p0"),
    ("again", "m1"),
    ("parent", "m0"),
    ("above", ["m0", None, "p1"]),
    ("mixed", [None, "m1", 0.5, "p2", "text", "m1", "p2"]),
    ("mixed", ["p2"] * 12),
    ("pair", ("m1", "p0")),
    ("table", {"left": "m1"}),
    ("size", 2.5),
    ("flag", True),
    ("title", "linear"),
    ("nothing", None),
    ("empty", []),
)
"""Attributes that a tree may have besides."""


def trees(most: int = 5, has_lists: bool = True, is_shared: bool = False) -> "SearchStrategy[Tree]":
    """Draw trees of at most `most` modules."""
    from hypothesis import strategies as st

    module = st.tuples(
        st.integers(0, 9),  # its parent; a large one also adds an attribute that is a plain number
        st.booleans() if has_lists else st.just(False),  # whether it is in a list of the parent
        st.lists(st.sampled_from(["weight", "bias", "scale"]), unique=True, max_size=3),
        st.booleans() if has_lists else st.just(False),  # whether it has a list of parameters
        st.sampled_from([None, None, *range(12)]) if is_shared else st.none(),  # the parameter that it shares
        st.booleans(),  # whether its attributes are set in reverse order
    )
    return st.lists(module, min_size=1, max_size=most).map(tree_of)


def tree_of(drawn: list[tuple[int, bool, list[str], bool, int | None, bool]]) -> Tree:
    """Build a tree from the choices drawn for each module."""
    made: list[AttributeLabels] = [{"size": parent} if parent > 6 else {} for parent, *_ in drawn]
    parameters: list[str] = []

    def parameter() -> str:
        parameters.append(f"p{len(parameters)}")
        return parameters[-1]

    for k, (parent, is_listed, names, has_weights, _, _) in enumerate(drawn):
        made[k] |= {name: parameter() for name in names}
        if has_weights:
            made[k]["weights"] = [parameter(), parameter()]
        above = made[parent % k] if k else {}
        if is_listed:
            layers = above.setdefault("layers", [])
            assert isinstance(layers, list)
            layers.append(f"m{k}")
        else:
            above[next(name for name in ("left", "right", "inner", "outer") if name not in above)] = f"m{k}"
    for k, (*_, shared, _) in enumerate(drawn):
        others = [*parameters, *[f"m{j}" for j in range(k + 1, len(drawn))]]
        if shared is not None and others:
            made[k]["tied"] = others[shared % len(others)]
    return Tree(tuple(dict(reversed(held.items())) if drawn[k][-1] else held for k, held in enumerate(made)))


def trees_not_looked_into() -> "SearchStrategy[Tree]":
    """Draw trees of two modules, of which one is in a tuple or a dict."""
    from hypothesis import strategies as st

    roots: list[AttributeLabels] = [{"pair": ("m1", "p0")}, {"table": {"left": "m1"}}]
    return st.sampled_from([Tree((root, {})) for root in roots])


def trees_of_lists() -> "SearchStrategy[Tree]":
    """Draw a tree with a list in a list."""
    from hypothesis import strategies as st

    return st.just(Tree(({"layers": [["m1"]]}, {})))


def odd_trees() -> "SearchStrategy[Tree]":
    """Draw trees with odd classes, in which anything may be an attribute, or may be in a list."""
    from hypothesis import strategies as st

    extra = st.sampled_from(EXTRAS)

    def decorated(tree: Tree, more: list[tuple[int, bool, tuple[str, Attribute]]]) -> Tree:
        modules = [dict(held) for held in tree.modules]
        for k, is_first, (name, value) in more:
            held = modules[k % len(modules)]
            modules[k % len(modules)] = {name: value} | held if is_first else held | {name: value}
        return Tree((*modules, {}) if len(modules) == 1 else tuple(modules), is_odd=True)

    more = st.lists(st.tuples(st.integers(0, 3), st.booleans(), extra), max_size=4)
    return st.builds(decorated, trees(4, is_shared=True), more)


def large_trees() -> "SearchStrategy[Tree]":
    """Draw trees with a long path and long lists."""
    from hypothesis import strategies as st

    def tree(depth: int, size: int) -> Tree:
        path: list[AttributeLabels] = [{"inner": f"m{k + 1}", "bias": f"p{k}"} for k in range(depth)]
        layers: AttributeLabels = {"layers": [f"m{depth + 1 + k}" for k in range(size)]}
        weights: AttributeLabels = {"weights": [f"p{depth + k}" for k in range(size)]}
        rest: list[AttributeLabels] = [{"scale": f"p{depth + size + k}"} for k in range(size)]
        return Tree((*path, layers | weights, *rest))

    return st.builds(tree, st.integers(20, 60), st.integers(11, 40))
