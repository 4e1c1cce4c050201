"""Questions of task 0.4: build a tree of modules from a description, and look at it."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ..parameter import Parameter
from ..student import Student

Attribute = str | int | list[str]
AttributeLabels = dict[str, Attribute]  # attribute -> label of a parameter or a module, labels in a list, or a plain number
Seen = list[object]
"""Pairs of a name and a label, a mode, or a replacement."""


class Tree(NamedTuple):
    """Modules m0, m1, ... that contain only later ones; parameters are p0, p1, ..."""

    modules: tuple[AttributeLabels, ...]

    def __str__(self) -> str:
        return ", ".join(f"m{k}({', '.join(map(format_attribute, held.items()))})" for k, held in enumerate(self.modules))


def format_attribute(attribute: tuple[str, Attribute]) -> str:
    """Return an attribute as source text: "layers=[m1, m2]"."""
    name, value = attribute
    return f"{name}=[{', '.join(value)}]" if isinstance(value, list) else f"{name}={value}"


WithCalls = tuple[Tree, list[tuple[str, str]]]
"""A tree, and the calls of train and eval: (label of a module, name of the method)."""


class Built(NamedTuple):
    """A tree built from a Module class."""

    root: Any
    piece: type
    """The Module class."""
    things: dict[str, Any]
    """Modules and parameters by label."""

    def label(self, thing: object) -> object:
        """Return the label of a module or parameter; anything else unchanged."""
        return next((label for label, known in self.things.items() if known is thing), thing)

    def labelled(self, pairs: Iterable[object]) -> list[Any]:
        """Replace the things in pairs (name, thing) by their labels."""
        return [(x[0], self.label(x[1])) if isinstance(x, tuple) and len(x) == 2 else x for x in pairs]

    def named(self) -> list[Any]:
        """Return (name, label) of all parameters."""
        return self.labelled(self.root.named_parameters())


def build_tree(module: type, tree: Tree) -> Built:
    """Build a tree from a Module class. Some parameters have equal values: p0 and p1, p2 and p3."""
    piece = type("Piece", (module,), {})
    things: dict[str, Any] = {f"m{k}": piece() for k in range(len(tree.modules))}

    def thing(value: Attribute) -> object:
        if isinstance(value, list):
            return [thing(x) for x in value]
        if isinstance(value, int):
            return value
        return things.setdefault(value, Parameter(float(int(value[1:]) // 2)))

    for k, held in enumerate(tree.modules):
        for name, value in held.items():
            setattr(things[f"m{k}"], name, thing(value))
    return Built(things["m0"], piece, things)


def ask(look: Callable[[type, Any], object], student: Student, case: Any) -> object:
    """Look at a tree of the student's modules with one of the functions below."""
    return look(student.Module, case)


# Looks are functions of (Module, case), so that the judge can take the oracle's class.


def attributes(module: type, tree: Tree) -> Seen:
    """Return names and labels of the direct parameters and modules of the root."""
    made = build_tree(module, tree)
    return [(name, made.label(thing)) for kind in (Parameter, module) for name, thing in made.root.held(kind)]


def parameter_names(module: type, tree: Tree) -> Seen:
    """Return names and labels of all parameters; `parameters` must return the same ones."""
    made = build_tree(module, tree)
    found = made.named()
    same = [made.label(p) for p in made.root.parameters()]
    return found if same == [x[-1] for x in found] else [("parameters", label) for label in same]


def below(module: type, tree: Tree) -> Seen:
    """Return names and labels of all modules; `modules` must return the same ones."""
    made = build_tree(module, tree)
    found, labels = made.labelled(made.root.named_modules()), [made.label(m) for m in made.root.modules()]
    return found if labels == [x[-1] for x in found] else [("modules", label) for label in labels]


def modes(module: type, case: WithCalls) -> Seen:
    """Return the modes of all modules after some calls of train and eval."""
    made = build_tree(module, case[0])
    for label, mode in case[1]:
        gave = getattr(made.things[label], mode)()
        if gave is not made.things[label]:
            return [(f"what {label}.{mode}() gives", made.label(gave))]
    return [(f"{label}.training", thing.training) for label, thing in made.things.items() if label.startswith("m")]


def now(module: type, tree: Tree) -> Seen:
    """Return names and labels after an attribute was added, one was replaced, and a list has grown."""
    made = build_tree(module, tree)
    made.root.more = []
    made.named()
    added = {"p_new": Parameter(7.0), "p_other": Parameter(8.0), "p_last": Parameter(9.0)}
    made.things.update(added)
    made.root.fresh, made.root.scale = added["p_new"], added["p_other"]
    made.root.more.append(made.piece())
    made.root.more[0].bias = added["p_last"]
    return made.named()


def of_typo(module: type, case: tuple[Tree, str]) -> object:
    """Look up a name that does not exist."""
    made = build_tree(module, case[0])
    try:
        return made.label(getattr(made.root, case[1]))
    except AttributeError:
        return "AttributeError"
