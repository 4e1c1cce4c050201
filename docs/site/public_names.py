"""The public names of the package: each with its object, and where Griffe finds its source.

A name is public if `__all__` of a namespace has it, if the table of functions has it, or if it is an attribute of `Tensor`;
so are the classes of some results. An object that a table makes when the package is imported has no definition of its own in
a source file: then `definition` is None, and the reference shows the running object.
"""

import ast
import inspect
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import minifuse as mf
from minifuse.core.operators import TABLE, Operator
from minifuse.functions import load
from minifuse.nn import lazy

NAMESPACES = {  # prefix of public names -> module
    "mf": "minifuse",
    "mf.Tensor": "minifuse.tensors.tensor",
    "mf.autograd": "minifuse.autograd",
    "mf.func": "minifuse.func",
    "mf.fft": "minifuse.functions.fft",
    "mf.linalg": "minifuse.functions.linalg",
    "mf.nn": "minifuse.nn",
    "mf.nn.init": "minifuse.nn.init",
    "mf.nn.utils": "minifuse.nn.utils",
    "mf.nn.functional": "minifuse.nn.functional",
    "mf.optim": "minifuse.optim",
    "mf.optim.lr_scheduler": "minifuse.optim.lr_scheduler",
    "mf.optim.swa_utils": "minifuse.optim.swa_utils",
    "mf.data": "minifuse.data",
    "mf.testing": "minifuse.testing",
    "mf.simt": "minifuse.simt",
    "mf.utils.checkpoint": "minifuse.utils.checkpoint",
    "minifuse.distributed": "minifuse.distributed",
    "minifuse.training": "minifuse.training",
    "minifuse.recipes": "minifuse.recipes",
    "minifuse.course": "minifuse.course",
}
RESULTS = {  # module -> the class of what a public function returns
    "minifuse.jit.fuse": "Fused",
    "minifuse.inspect.explanation": "Explanation",
    "minifuse.inspect.profile": "Profile",
}
PLAIN = (tuple, dict, list, str, int)  # types of public values that are no objects of minifuse


class Entry(NamedTuple):
    """A public object: its names, the first of which is its title, the object, and `module:qualname` of its source."""

    names: tuple[str, ...]
    value: Any
    module: str
    definition: str | None

    @property
    def title(self) -> str:
        """The first of the names."""
        return self.names[0]

    @property
    def identifier(self) -> str:
        """The path that mkdocstrings renders."""
        return self.definition or f"minifuse.made.{self.title.removeprefix('mf.').replace('.', '_')}"

    @property
    def summary(self) -> str:
        """The first paragraph of the docstring, in one line."""
        return " ".join(docstring(self.value).partition("\n\n")[0].split())


def docstring(value: Any) -> str:
    """Return the docstring of an object; of an instance, that of its class."""
    return "" if isinstance(value, PLAIN) else inspect.getdoc(value) or ""


def names_in(prefix: str) -> dict[str, Any]:
    """Return the public names of a namespace, and their objects."""
    module = import_module(NAMESPACES[prefix])
    if prefix == "mf.Tensor":
        methods = {name: method(name) for name in dir(mf.Tensor) if not name.startswith("_")}
        return {name: value for name, value in methods.items() if not is_made_by(value, "in_place_function.<locals>.twin")}
    names = {*getattr(module, "__all__", ())}
    if prefix == "mf":
        names |= load().keys()
    elif prefix in ("mf.nn", "mf.nn.functional"):
        names |= {name for name in lazy.exported() if prefix == "mf.nn" or name.islower()}
    found = {name: getattr(module, name) for name in sorted(names) if not name.startswith("_")}
    return {name: method(name) if is_made_by(value, "call_method.<locals>.call") else value for name, value in found.items()}


def method(name: str) -> Any:
    """Return a method or property of tensors; the operator, if it is one of the table."""
    value = inspect.getattr_static(mf.Tensor, name)
    return TABLE[name] if name in TABLE and not inspect.getdoc(value) else value


def is_made_by(value: Any, name: str) -> bool:
    """Return whether an object is the inner function of this name.

    Two kinds have no section of their own: methods under the name of a function, and twins in place, which tensors get when
    one is first called.
    """
    return getattr(value, "__qualname__", "") == name


def body(value: Any) -> Any:
    """Return the function or class that has the source of an object."""
    if isinstance(value, Operator):
        return value.body
    if isinstance(value, property):
        return value.fget
    if not inspect.isroutine(value) and not inspect.isclass(value) and not inspect.isdatadescriptor(value):
        return type(value)
    value = value.__func__ if isinstance(value, classmethod | staticmethod) else value
    inner = inspect.unwrap(value)
    return inner if str(getattr(inner, "__module__", "")).startswith("minifuse") else value


@cache
def definitions(module: str) -> frozenset[str]:
    """Return the qualified names of the functions and classes that the source of a module defines."""
    path = getattr(import_module(module), "__file__", None) if module.startswith("minifuse") else None
    found = set[str]()

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                found.add(prefix + child.name)
                if isinstance(child, ast.ClassDef):
                    visit(child, f"{prefix}{child.name}.")
            elif isinstance(child, ast.If | ast.Try):
                visit(child, prefix)

    if path:
        visit(ast.parse(Path(path).read_text(encoding="utf-8")), "")
    return frozenset(found)


def definition(name: str, value: Any) -> tuple[str, str | None]:
    """Return the module of an object, and the path of its definition in the source, or None."""
    if isinstance(value, PLAIN) or (inspect.isdatadescriptor(value) and not isinstance(value, property)):
        module = NAMESPACES[name.rpartition(".")[0]]
        return module, f"{module}.{name.rpartition('.')[2]}" if isinstance(value, PLAIN) else None
    function = body(value)
    module = function.__module__ or "minifuse"
    path = f"{module}.{function.__qualname__}"
    return module, path if function.__qualname__ in definitions(module) else None


@cache
def entries() -> tuple[Entry, ...]:
    """Return all public objects but modules. One that has several names is one entry."""
    found: dict[object, list[tuple[str, Any]]] = {}
    public = {prefix: names_in(prefix) for prefix in NAMESPACES}
    public |= {module: {name: getattr(import_module(module), name)} for module, name in RESULTS.items()}
    for prefix, names in public.items():
        for name, value in names.items():
            if not isinstance(value, ModuleType):
                key = (prefix, name) if isinstance(value, PLAIN) else id(body(value))
                found.setdefault(key, []).append((f"{prefix}.{name}", value))
    for group in found.values():  # the object's own name first: mf.fuse before mf.compile
        group.sort(key=lambda item: item[0].rpartition(".")[2] != getattr(item[1], "__name__", ""))
    return tuple(Entry(tuple(name for name, _ in group), group[0][1], *definition(*group[0])) for group in found.values())


def public_module(name: str) -> ModuleType:
    """Return a public module, as `mf.optim.lr_scheduler`."""
    found = mf
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found


def modules() -> set[str]:
    """Return the names of the public modules."""
    found = {
        f"{prefix}.{name}"
        for prefix in NAMESPACES
        for name, value in names_in(prefix).items()
        if isinstance(value, ModuleType)
    }
    return found | {prefix for prefix in NAMESPACES if prefix.startswith("mf.") and prefix != "mf.Tensor"}
