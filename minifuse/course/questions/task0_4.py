"""Questions of task 0.4: build a tree of modules from a description, and look at it."""

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ..parameter import Parameter
from ..student import Student

Attribute = str | int | float | None | list[Any] | tuple[Any, ...] | dict[str, Any]
AttributeLabels = dict[str, Attribute]
"""attribute -> label of a parameter or a module, a list, tuple or dict of labels and other values, or another value."""
Seen = list[object]
"""Pairs of a name and a label, a mode, or a replacement."""


MAX_ROOTS = 6  # modules of a tree that are asked


class Tree(NamedTuple):
    """Modules m0, m1, ... that contain each other; parameters are p0, p1, ..."""

    modules: tuple[AttributeLabels, ...]
    is_odd: bool = False
    """True if some modules and parameters have classes of their own, whose objects are empty, or equal to all others."""

    def __str__(self) -> str:
        text = ", ".join(f"m{k}({', '.join(map(format_attribute, held.items()))})" for k, held in enumerate(self.modules))
        if not self.is_odd:
            return text
        modules, parameters = range(len(self.modules)), sorted(set(map(int, re.findall(r"\bp(\d+)\b", text))))
        groups = {
            "with len 0": [f"m{k}" for k in modules if k % 3 == 1],
            "equal to everything": [f"m{k}" for k in modules if k % 3 == 2],
            "of a subclass of Parameter": [f"p{k}" for k in parameters if k % 3 == 1],
        }
        return "; ".join([text, *[f"{what}: {', '.join(labels)}" for what, labels in groups.items() if labels]])


def format_attribute(attribute: tuple[str, Attribute]) -> str:
    """Return an attribute as source text: "layers=[m1, m2]"."""
    name, value = attribute
    return f"{name}={format_value(value)}"


def format_value(value: Attribute) -> str:
    """Return a value as source text, and a label as it is."""
    if isinstance(value, list | tuple):
        inner = ", ".join(map(format_value, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner},)"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {format_value(x)}' for key, x in value.items())}}}"
    return str(value)


WithCalls = tuple[Tree, list[tuple[str, str]]]
"""A tree, and the calls of train and eval: (label of a module, name of the method)."""
WithChanges = tuple[Tree, list[tuple[str, str]]]
"""A tree, and changes: (what to do, the name of an attribute of the root)."""


class Built(NamedTuple):
    """A tree built from a Module class."""

    root: Any
    piece: type
    """The Module class."""
    things: dict[str, Any]
    """Modules and parameters by label."""

    def label(self, thing: object) -> object:
        """Return the label of a module or parameter, and anything else as text: a list, tuple or dict with labels."""
        label = next((label for label, known in self.things.items() if known is thing), None)
        if isinstance(thing, list | tuple):
            return f"{type(thing).__name__} of {', '.join(str(self.label(x)) for x in thing)}"
        if isinstance(thing, dict):
            return f"dict of {', '.join(f'{key} {self.label(x)}' for key, x in thing.items())}"
        return label if label is not None or thing is None else f"{type(thing).__name__} {thing!s:.60}"

    def labelled(self, pairs: Iterable[object]) -> list[Any]:
        """Replace the things in pairs (name, thing) by their labels."""
        return [(x[0], self.label(x[1])) if isinstance(x, tuple) and len(x) == 2 else x for x in pairs]

    def named(self) -> list[Any]:
        """Return (name, label) of all parameters."""
        return self.labelled(self.root.named_parameters())

    def modules(self) -> list[tuple[str, Any]]:
        """Return (label, module) of all modules."""
        return [(label, thing) for label, thing in self.things.items() if label.startswith("m")]


class Tied(Parameter):
    """A parameter of another class, which is equal to everything."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1


def build_tree(module: type, tree: Tree) -> Built:
    """Build a tree from a Module class. Some parameters have equal values: p0 and p1, p2 and p3."""
    piece = type("Piece", (module,), {})
    empty = type("Empty", (piece,), {"__len__": lambda self: 0})
    equal = type("Equal", (piece,), {"__eq__": lambda self, other: True, "__hash__": lambda self: 1})
    classes = [piece, empty, equal] if tree.is_odd else [piece]
    things: dict[str, Any] = {f"m{k}": classes[k % len(classes)]() for k in range(len(tree.modules))}

    def thing(value: Attribute) -> object:
        if isinstance(value, list | tuple):
            return type(value)(thing(x) for x in value)
        if isinstance(value, dict):
            return {key: thing(x) for key, x in value.items()}
        if not isinstance(value, str) or value[:1] not in ("m", "p") or not value[1:].isdecimal():
            return value
        if value in things:
            return things[value]
        number = int(value[1:])
        things[value] = (Tied if tree.is_odd and number % 3 == 1 else Parameter)(float(number // 2))
        return things[value]

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


def everything(module: type, tree: Tree) -> Seen:
    """Return what each module holds of several kinds, and which modules and parameters it lists."""
    made, seen = build_tree(module, tree), Seen()
    kinds = {"Module": module, "Parameter": Parameter} | {
        kind.__name__: kind for kind in (float, int, str, list, tuple, dict)
    }
    for label, one in made.modules()[:MAX_ROOTS]:
        seen += [
            (f"{label}.held({kind}): {name}", thing)
            for kind in kinds
            for name, thing in made.labelled(one.held(kinds[kind]))
        ]
        seen += [(f"{label}.named_modules(): {name}", thing) for name, thing in made.labelled(one.named_modules())]
        seen += [(f"{label}.named_parameters(): {name}", thing) for name, thing in made.labelled(one.named_parameters())]
    return seen


def modes(module: type, case: WithCalls) -> Seen:
    """Return the modes of all modules after some calls of train and eval, and those of modules that were not called."""
    made, other = build_tree(module, case[0]), module()
    returned = [
        (f"what {label}.{mode}() returns", made.label(getattr(made.things[label], mode)())) for label, mode in case[1]
    ]
    found = [(f"{label}.training", thing.training) for label, thing in made.modules()]
    return [
        *found,
        ("training of a module outside of the tree", other.training),
        ("training of a new one", made.piece().training),
        *returned,
    ]


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


def after_changes(module: type, case: WithChanges) -> Seen:
    """Return names and labels of modules and parameters before changes, and after each of them."""
    tree, changes = case
    made, seen = build_tree(module, tree), Seen()

    def look(when: str) -> None:
        seen.extend((f"{when}: {name}", thing) for name, thing in made.labelled(made.root.named_modules()))
        seen.extend((f"{when}: {name}", thing) for name, thing in made.named())

    look("at first")
    for k, (how, name) in enumerate(changes):
        label, old = f"m_new{k}", vars(made.root).get(name)
        made.things[label] = made.piece()
        made.things[label].bias = made.things[f"p_new{k}"] = Parameter(1.0)
        if how == "delete" and old is not None:
            delattr(made.root, name)
        elif how == "replace" and isinstance(old, list) and old:
            old[-1] = made.things[label]
        elif how == "remove" and isinstance(old, list) and old:
            del old[0]
        elif how == "insert" and isinstance(old, list):
            old.insert(0, made.things[label])
        else:
            setattr(made.root, name, made.things[label])
        look(f"after {how} {name}")
    return seen


def of_typo(module: type, case: tuple[Tree, str]) -> object:
    """Look up a name that does not exist."""
    made = build_tree(module, case[0])
    try:
        return made.label(getattr(made.root, case[1]))
    except AttributeError:
        return "AttributeError"
