"""Task 0.4: a tree of modules that finds its parameters."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, Any

from .. import oracle
from ..check import CaseT, agreement, in_turn
from ..module_trees import large_trees, odd_trees, trees, trees_not_looked_into, trees_of_lists
from ..questions.task0_4 import (
    Tree,
    WithCalls,
    WithChanges,
    after_changes,
    ask,
    attributes,
    below,
    everything,
    modes,
    now,
    of_typo,
    parameter_names,
)
from ..task import Check, Mistake, Task
from ..verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

HELD = "held finds the attributes of a type, those in lists too"
OWN = "a module has its own parameters, under the names of their attributes"
DOTTED = "parameters of children have dotted names"
LISTS = "what lies in a list is found, under its place there"
SHARED = "what is shared counts once, under its first name"
MODULES = "named_modules and modules give itself, then all below it, each once"
MODES = "train and eval reach every module below, and give the module itself"
NOW = "the tree is what the attributes are now"
ODD = "an object is itself, and nothing else: not what is equal to it, has its class, or lies in a tuple"
TYPO = "a name that is not there raises AttributeError"
HEADER = "expected", "got"
MAX_WIDTH, MAX_ROWS = 74, 6  # of a picture, in a terminal of 80 columns
CHANGES = "delete", "replace", "remove", "insert", "set"
WORDS = ("weight", "bias", "scale", "left", "right", "inner", "layers", "parameters", "training", "_cache", "_modules")


def with_changes() -> "SearchStrategy[WithChanges]":
    """Draw (tree, [(what to do, name of an attribute of the root)])."""
    from hypothesis import strategies as st

    name = st.sampled_from(["layers", "layers", "weights", "left", "weight", "bias"])
    return st.tuples(trees(4), st.lists(st.tuples(st.sampled_from(CHANGES), name), min_size=1, max_size=3))


def with_calls() -> "SearchStrategy[WithCalls]":
    """Draw (tree, [(label of a module, "train" or "eval")])."""
    from hypothesis import strategies as st

    def calls(tree: Tree) -> "SearchStrategy[WithCalls]":
        label = st.sampled_from([f"m{k}" for k in range(len(tree.modules))])
        return st.tuples(
            st.just(tree), st.lists(st.tuples(label, st.sampled_from(["eval", "train"])), min_size=1, max_size=3)
        )

    def mixed(tree: Tree, mode: str, other: str) -> WithCalls:
        return tree, [("m0", mode), (f"m{len(tree.modules) - 1}", other), ("m0", mode)]

    modes_of_two = st.sampled_from(["eval", "train"]), st.sampled_from(["train", "eval"])
    return trees(is_shared=True).flatmap(calls) | st.builds(mixed, trees(), *modes_of_two)


def with_typo() -> "SearchStrategy[tuple[Tree, str]]":
    """Draw (tree, a word with two letters exchanged, or with one of two equal letters missing)."""
    from hypothesis import strategies as st

    def misspelt(word: str, k: int) -> str:
        k = min(k, len(word) - 2)
        return word[:k] + (word[k + 1] + word[k] if word[k] != word[k + 1] else word[k]) + word[k + 2 :]

    return st.tuples(trees(3), st.builds(misspelt, st.sampled_from(WORDS), st.integers(1, 3)))


def agrees(
    name: str,
    cases: Callable[[], "SearchStrategy[CaseT]"],
    look: Callable[[type, CaseT], object],
    describe: Callable[[CaseT], str] = str,
    share: float = 1.0,
    large: Callable[[], "SearchStrategy[CaseT]"] | None = None,
) -> Check:
    """Return a check that compares the result of `look` for the student's and the oracle's modules."""

    def right(case: CaseT) -> object:
        module: Any = oracle.function("Module")
        return look(module, case)

    return agreement(name, cases, partial(ask, look), right, describe=describe, draw=beside, share=share, large=large)


def beside(case: object, got: object, expected: object) -> list[str]:
    """Draw two lists of pairs side by side; what differs one below the other, if lines would be too long."""
    lists = [x for x in (expected, got) if isinstance(x, list) and all(isinstance(pair, tuple) for pair in x)]
    if len(lists) < 2:
        return []
    rows = list(zip_longest(*([f"{a} is {b}" for a, b in x] for x in lists), fillvalue="-"))
    width = 4 + max(len(left) for left, _ in [HEADER, *rows])
    lines = [f"{left:<{width}}{right:<{width}}{'<-' * (left != right)}".rstrip() for left, right in rows]
    if max(map(len, lines), default=0) <= MAX_WIDTH:
        return [f"{HEADER[0]:<{width}}{HEADER[1]}", *lines]
    different = [row for row in rows if row[0] != row[1]]
    shown = [f"{name:<9} {end_of(text)}" for row in different[:MAX_ROWS] for name, text in zip(HEADER, row, strict=True)]
    return [*shown, *[f"... and {len(different) - MAX_ROWS} more lines that differ"] * (len(different) > MAX_ROWS)]


def end_of(text: str) -> str:
    """Return the end of a text that is too long for a line."""
    size = MAX_WIDTH - 10
    return text if len(text) <= size else f"...{text[3 - size :]}"


# How mistakes look: what was given beside what was expected.


def finds_only(keep: Callable[[str], bool]) -> Callable[[Wrong], bool]:
    """Return a `when` for a mistake: only names of one kind are found."""
    return lambda w: not w.kind and bool(w.got == [pair for pair in w.expected if keep(pair[0])])


def lacks_paths(wrong: Wrong) -> bool:
    """Return whether each name is right or the last part of the right one."""
    pairs = list(zip(wrong.got, wrong.expected, strict=True))
    return all(b == a and f".{right}".endswith(f".{name}") for (name, a), (right, b) in pairs)


def looks_into_others(wrong: Wrong) -> bool:
    """Return whether a name leads through a tuple, a dict, or a list in a list."""
    tree = wrong.case if isinstance(wrong.case, Tree) else wrong.case[0]
    others = {name for held in tree.modules for name, value in held.items() if isinstance(value, tuple | dict)}
    paths = [name.split(": ")[-1].split(".") for name, _ in wrong.got]
    return any(
        not others.isdisjoint(path[:-1]) or any(a.isdecimal() and b.isdecimal() for a, b in pairwise(path)) for path in paths
    )


def comes_sorted(wrong: Wrong) -> bool:
    """Return whether the attributes of each type are sorted by name."""
    parts = [[pair for pair in wrong.expected if pair[1].startswith(letter)] for letter in "pm"]
    return bool(wrong.got == [pair for part in parts for pair in sorted(part, key=lambda pair: pair[0].split(".")[0])])


def is_twice(wrong: Wrong) -> bool:
    """Return whether something was found more often than expected, by names that lead through modules and lists only."""
    if looks_into_others(wrong):
        return False
    got, expected = [Counter(x[1] if isinstance(x, tuple) else x for x in found) for found in (wrong.got, wrong.expected)]
    return any(isinstance(label, str) and expected[label] for label in got - expected)


def has_children_first(wrong: Wrong) -> bool:
    """Return whether only the order is wrong, and a name is before one of a module above it."""
    paths = [name.rpartition(".")[0] for name, _ in wrong.got]
    below = any(later != path and f"{path}.".startswith(f"{later}.") for k, path in enumerate(paths) for later in paths[k:])
    root = any(path and not later for k, path in enumerate(paths) for later in paths[k:])
    return sorted(wrong.got) == sorted(wrong.expected) and (below or root)


def is_level_by_level(wrong: Wrong) -> bool:
    """Return whether all children come first, then all of theirs."""
    return bool(wrong.got == sorted(wrong.expected, key=lambda pair: pair[0].count(".")))


def counts_equals_as_one(wrong: Wrong) -> bool:
    """Return whether modules are missing, and each is equal to one listed before it; m2, m5, ... equal all others."""
    if wrong.kind or Counter(wrong.got) - Counter(wrong.expected):
        return False
    roots: dict[str, list[tuple[str, str]]] = {}
    for pair in wrong.expected:
        if ".named_modules()" in pair[0]:
            roots.setdefault(pair[0].partition(".")[0], []).append(pair)
    missing = [(pairs, k) for pairs in roots.values() for k, pair in enumerate(pairs) if pair not in wrong.got]
    return bool(missing) and all(any(int(label[1:]) % 3 == 2 for _, label in pairs[: k + 1]) for pairs, k in missing)


def returns_nothing(wrong: Wrong) -> bool:
    """Return whether train or eval returns None, and all else is right."""
    different = [(name, got) for (name, got), right in zip(wrong.got, wrong.expected, strict=True) if (name, got) != right]
    return all(got is None and name.endswith("returns") for name, got in different)


def misses_equals(wrong: Wrong) -> bool:
    """Return whether only parameters with the value of another one are missing: p1 or p3."""
    missing = [label for name, label in wrong.expected if (name, label) not in (wrong.got or [])]
    return not wrong.kind and all(f"p{int(label[1:]) ^ 1}" in str(wrong.got) for label in missing)


def stops_at_the_first(wrong: Wrong) -> bool:
    """Return whether train and eval changed only the modules on which they were called."""
    is_training = {label: mode == "train" for label, mode in wrong.case[1]}
    each = [(f"m{k}.training", is_training.get(f"m{k}", True)) for k in range(len(wrong.case[0].modules))]
    return bool(wrong.got[: len(each)] == each)


TASK = Task(
    id="0.4",
    title="The module tree",
    file="modules.py",
    slots=("Module",),
    points=4,
    text=(
        "A network is a tree of modules; whoever trains it wants all parameters, by name. Write `held` (the attributes of a "
        "type, those in lists too), `named_modules` (itself, then all below), `named_parameters` (dotted names: "
        '"layers.0.weight"; a shared one once), and `train` and `eval`, which set `training` of every module below. Nothing '
        "is registered: look at the attributes, whenever you are asked."
    ),
    hints=(
        "vars(module) is a dictionary of its attributes. A tree is walked by a function that calls itself for each child; a "
        "child's names get the path that leads to it in front.",
        "named_modules: a function visit(name, module) that notes the module, unless it was seen, and visits each child "
        "with name + '.' + the child's name. named_parameters: for each (path, module), what it holds of type Parameter. "
        "What was seen is known by id(...), since two parameters may have equal values.",
        "minifuse/nn/module.py is the library's own, without registration too.",
    ),
    reads=("docs/course/0.4-modules.md", "minifuse/nn/module.py"),
    checks=(
        agrees(HELD, lambda: trees(4), attributes, share=0.3),
        agrees(
            OWN,
            lambda: trees(1, has_lists=False),
            parameter_names,
            lambda c: f"{c}; p0 and p1 both hold 0.0, p2 holds 1.0",
            share=0.3,
        ),
        agrees(DOTTED, lambda: trees(has_lists=False), parameter_names, share=0.6, large=large_trees),
        agrees(LISTS, lambda: trees(4), parameter_names, share=0.6),
        agrees(SHARED, lambda: trees(is_shared=True), parameter_names, share=0.7),
        agrees(MODULES, lambda: trees(is_shared=True), below, share=0.4, large=large_trees),
        agrees(
            MODES,
            with_calls,
            modes,
            lambda c: f"{c[0]}; {', then '.join(f'{label}.{mode}()' for label, mode in c[1])}",
            share=0.8,
        ),
        in_turn(
            NOW,
            [
                agrees(
                    NOW,
                    lambda: trees(3),
                    now,
                    lambda c: (
                        f"{c}; then m0.more = [], a look at the names, m0.fresh = p_new, m0.scale = p_other, "
                        f"m0.more.append(a module with bias=p_last)"
                    ),
                    share=0.3,
                ),
                agrees(
                    NOW,
                    with_changes,
                    after_changes,
                    lambda c: f"{c[0]}; then, in m0, {', '.join(f'{how} {name}' for how, name in c[1])}",
                    share=0.7,
                ),
            ],
        ),
        in_turn(
            ODD,
            [
                agrees(ODD, trees_not_looked_into, everything, share=0.1),
                agrees(ODD, trees_of_lists, below, share=0.1),
                agrees(ODD, odd_trees, everything, share=0.8),
            ],
        ),
        agrees(TYPO, with_typo, of_typo, lambda c: f"{c[0]}; m0.{c[1]}", share=0.4),
    ),
    mistakes=(
        Mistake(
            "attributes come sorted by name",
            "dir(self) sorts. vars(self) has the attributes in the order in which they were set.",
            when=comes_sorted,
            check=HELD,
        ),
        Mistake(
            "a tuple, a dict, or a list in a list is looked into",
            "Only a list is looked into, and only once. A tuple is no list: isinstance(value, list) says so.",
            when=looks_into_others,
            check=ODD,
        ),
        Mistake(
            "two parameters of equal value are taken for one",
            "Two biases both begin as 0.0, and are two. What is the same object has the same id(...).",
            when=misses_equals,
            check=OWN,
        ),
        Mistake(
            "only one level of children is looked at",
            "Children have children. The function that looks at a child should be the one that looks at the root.",
            when=lambda w: finds_only(lambda n: n.count(".") <= 1)(w) or finds_only(lambda n: "." not in n)(w),
            check=DOTTED,
        ),
        Mistake(
            "names lack the path that leads to them",
            "Two children may both have a weight: left.weight and right.weight. Hand the path down when a child is visited.",
            when=lacks_paths,
        ),
        Mistake(
            "children come before the module's own parameters",
            "A module's own come first, then those of each child, in the order in which the attributes were set.",
            when=has_children_first,
            check=DOTTED,
        ),
        Mistake(
            "all children come first, then all of theirs",
            "Finish one child and all below it before the next child.",
            when=is_level_by_level,
            check=DOTTED,
        ),
        Mistake(
            "the names are those of when attributes were set",
            "A list can grow after it was set. Look at vars(self) when you are asked, and keep nothing.",
            when=lambda w: isinstance(w.got, list) and ("more.0.bias", "p_last") not in w.got,
            check=NOW,
        ),
        Mistake(
            "lists are not looked into",
            "A list of layers is an attribute that is neither Parameter nor Module: ask each of its elements.",
            when=finds_only(lambda n: not any(part.isdecimal() for part in n.split("."))),
        ),
        Mistake(
            "what is shared is counted each time",
            "An optimizer would change it twice in one step. Keep the ids of what was seen.",
            when=is_twice,
        ),
        Mistake(
            "two modules that are equal count as one",
            "`in` a list or a set compares with ==, and a class may say that its objects are equal. Keep the ids of "
            "what was seen.",
            when=counts_equals_as_one,
            check=ODD,
        ),
        Mistake(
            "train or eval returns nothing",
            "Whoever writes `model = Model().eval()` needs the module itself. The last line is `return self`.",
            when=returns_nothing,
            check=MODES,
        ),
        Mistake(
            "train and eval stop at the module itself",
            "Dropout three levels down has to know too. modules() gives all of them.",
            when=stops_at_the_first,
            check=MODES,
        ),
        Mistake(
            "a name that is not there gives None",
            "Somewhere `__getattr__` ends without a return, which is None. Then model.wieght is None, and the error comes "
            "three files later. Python raises AttributeError by itself: leave `__getattr__` out, or raise it.",
            when=lambda w: w.got is None and not w.kind,
            check=TYPO,
        ),
        Mistake(
            "a name that is not there raises another error",
            "hasattr, getattr with a default and copy all wait for an AttributeError, and nothing else.",
            when=lambda w: bool(w.kind),
            check=TYPO,
        ),
    ),
)
