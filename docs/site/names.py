"""Extension of Griffe: the public objects that tables make when the package is imported, as `minifuse.made.NAME`.

Griffe reads sources, where these have no definition. Their signatures and docstrings are those of the running objects.
"""

import inspect
import sys
from pathlib import Path
from typing import Any

import griffe

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from docs.site.public_names import Entry, docstring, entries


class PublicNames(griffe.Extension):
    """Adds the module `minifuse.made` to the package."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Add an object for each public name without a definition."""
        if pkg.name == "minifuse":
            made = griffe.Module("made", filepath=pkg.filepath)
            pkg.set_member("made", made)
            for entry in entries():
                if entry.definition is None:
                    made.set_member(entry.identifier.rpartition(".")[2], to_object(entry))


def to_object(entry: Entry) -> griffe.Object:
    """Return what Griffe would read, had the object a definition."""
    name, text = entry.identifier.rpartition(".")[2], griffe.Docstring(docstring(entry.value))
    if inspect.isclass(entry.value):
        found: griffe.Object = griffe.Class(name, docstring=text)
        init = griffe.Function("__init__", parameters=parameters(entry.value))
        found.set_member("__init__", init)
    elif callable(entry.value):
        found = griffe.Function(name, parameters=parameters(entry.value), docstring=text)
    else:
        found = griffe.Attribute(name, docstring=text)
    text.parent = found
    return found


def parameters(value: Any) -> griffe.Parameters:
    """Return the parameters of a callable; none for one without a signature."""
    kinds = dict(zip(inspect._ParameterKind, griffe.ParameterKind, strict=True))
    try:
        found = inspect.signature(value).parameters.values()
    except ValueError:
        found = ()
    return griffe.Parameters(
        *[
            griffe.Parameter(
                one.name,
                annotation=None if one.annotation is one.empty else inspect.formatannotation(one.annotation),
                kind=kinds[one.kind],
                default=None if one.default is one.empty else repr(one.default),
            )
            for one in found
        ]
    )
