"""Imports only point down. The floors are listed here and explained in docs/guide/floors.md; the two must agree."""

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.util import resolve_name
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.sources import PACKAGE, ROOT, Module, modules

PAGE = ROOT / "docs" / "guide" / "floors.md"

# Lowest first. A module may import from lower floors and, without a circle, from its own floor.
# `nn.*` stands for a package and everything in it; `minifuse` is the package's own __init__.py.
FLOORS = (
    ("core.*",),
    ("ir.*",),
    ("runtime.*",),
    ("engines.*",),
    ("simt.*",),
    ("backends.*",),
    ("compiler.*",),
    ("tensors.*",),
    ("inspect.*",),
    ("jit.*",),
    ("custom_kernels.*",),
    ("functions.*",),
    ("nn.*", "optim.*", "data.*", "testing.*", "autograd.*", "func.*", "utils.*", "distributed.*"),
    ("training.*", "recipes.*", "course.*", "cli.*", "minifuse", "__main__"),
)

# Modules with a class that the functions below it name in their annotations: imports of them for types may close a circle.
# Do not add one if what both modules need can move down, or if a protocol can stand for it.
CIRCULAR_TYPES = {
    "minifuse.backends.base",
    "minifuse.backends.cuda.device.gpu",
    "minifuse.custom_kernels.elementwise",
    "minifuse.ir.array_methods",
    "minifuse.jit.fuse",
    "minifuse.jit.tracer",
    "minifuse.tensors.tensor",
}
FOR_TYPES = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .errors import ShapeError"


class Arrow(NamedTuple):
    """One import: `importer` says, in this line, that it needs `imported`."""

    importer: Module
    line: int
    imported: str
    for_types_only: bool


def arrows(package: Mapping[str, Module]) -> Iterator[Arrow]:
    """Every import of one of the package's modules by another, those inside functions included."""
    for module in package.values():
        for node, for_types_only in statements(module.tree, False):
            for target in targets(node, module):
                while target not in package and "." in target:  # a name in a module stands for the module
                    target = target.rpartition(".")[0]
                if target in package and target != module.name:
                    yield Arrow(module, node.lineno, target, for_types_only)


def statements(node: ast.AST, for_types_only: bool) -> Iterator[tuple[ast.stmt | ast.expr, bool]]:
    """All that stands below a node, each with whether it is read by type checkers only."""
    for name, children in ast.iter_fields(node):
        below = for_types_only or (name == "body" and isinstance(node, ast.If) and is_type_checking(node.test))
        for child in children if isinstance(children, list) else [children]:
            if isinstance(child, ast.stmt | ast.expr):
                yield child, below
            if isinstance(child, ast.AST):
                yield from statements(child, below)


def is_type_checking(test: ast.expr) -> bool:
    return ast.unparse(test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def targets(node: ast.stmt | ast.expr, module: Module) -> list[str]:
    """The dotted names that a statement imports, or that a call of `import_module` names in plain text."""
    here = module.name if module.is_package else module.name.rpartition(".")[0]
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=name, names=names, level=level):
            origin = resolve_name("." * level + (name or ""), here)
            return [f"{origin}.{alias.name}" for alias in names]
        case ast.Call(
            args=[ast.Constant(str(name)), *_], func=ast.Name("import_module") | ast.Attribute(attr="import_module")
        ):
            return [resolve_name(name, here)]
    return []


def short(name: str) -> str:
    """The name as the table says it."""
    return name.removeprefix(PACKAGE + ".")


def stands_for(entry: str, name: str) -> bool:
    """Whether an entry of the table means this module."""
    return entry == name or (entry.endswith(".*") and f"{name}.".startswith(entry[:-1]))


def floor_of(name: str) -> int | None:
    """The floor that a module stands on; None where it stands on none."""
    floors = (floor for floor, entries in enumerate(FLOORS) if any(stands_for(entry, short(name)) for entry in entries))
    return next(floors, None)


def faults(package: Mapping[str, Module]) -> list[str]:
    """What is wrong with the imports of a package, a line each."""
    found = []
    for importer, line, imported, for_types_only in arrows(package):
        here, there = floor_of(importer.name), floor_of(imported)
        if not for_types_only and here is not None and there is not None and there > here:
            found.append(
                f"{importer.path}:{line}: {label(importer.name, here)} imports {label(imported, there)}, "
                "which stands above it; move what is needed down, or hand it in from above"
            )
    return found


@cache
def all_arrows() -> list[Arrow]:
    """Every import in minifuse and project."""
    return list(arrows(modules() | modules(ROOT, "project")))


def circle(imports: Iterable[Arrow], excepted: Collection[str] = ()) -> list[str]:
    """A circle of imports, or an empty list. Those for types count, unless they are of a module that is excepted."""
    sorter = TopologicalSorter[str]()
    for importer, _, imported, for_types_only in imports:
        if not (for_types_only and imported in excepted):
            sorter.add(importer.name, imported)
    try:
        sorter.prepare()
    except CycleError as error:
        return error.args[1][::-1]
    return []


def label(name: str, floor: int) -> str:
    return f"{short(name)} (floor {floor}: {', '.join(FLOORS[floor])})"


def plant(root: Path, **sources: str) -> dict[str, Module]:
    """A small package to try the rules on, given as module names, with `_` for a dot, and their sources."""
    for name, source in sources.items():
        path = root.joinpath(PACKAGE, *name.split("_")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
        for folder in {root / PACKAGE, path.parent}:
            (folder / "__init__.py").touch()
    return modules(root)


def test_imports_only_point_down():
    found = faults(modules())
    assert not found, "imports that point up:\n" + "\n".join(found)


def test_every_module_belongs_to_a_floor():
    lost = [str(module.path) for name, module in modules().items() if floor_of(name) is None]
    assert not lost, f"on no floor: {', '.join(lost)}; give them one in FLOORS of this test and in {PAGE.relative_to(ROOT)}"


def test_every_floor_is_in_use():
    empty = [entry for entry in chain(*FLOORS) if not any(stands_for(entry, short(name)) for name in modules())]
    assert not empty, f"floors with no module: {', '.join(empty)}"


def test_imports_form_no_circle_even_with_those_for_types():
    found = circle(all_arrows(), CIRCULAR_TYPES)
    assert not found, f"a circle of imports: {' -> '.join(found)}; move what both need down, or define a protocol"


@pytest.mark.parametrize("imported", sorted(CIRCULAR_TYPES))
def test_each_excepted_module_would_be_in_a_circle(imported):
    message = f"imports of {imported} for types close no circle: delete it from CIRCULAR_TYPES"
    assert circle(all_arrows(), CIRCULAR_TYPES - {imported}), message


@pytest.mark.parametrize("back", ["from . import errors", "def f():\n    from .errors import ShapeError", FOR_TYPES])
def test_a_circle_is_found_whatever_its_imports_are_for(tmp_path, back):
    package = plant(tmp_path, core_errors="from .layout import Layout", core_layout=back)
    assert set(circle(arrows(package))) == {"minifuse.core.errors", "minifuse.core.layout"}


def test_only_an_import_for_types_can_be_excepted_from_circles(tmp_path):
    excepted = {"minifuse.core.errors"}
    package = plant(tmp_path, core_errors="from .layout import Layout", core_layout=FOR_TYPES)
    assert circle(arrows(package), excepted) == []
    package = plant(tmp_path, core_errors="from .layout import Layout", core_layout="from . import errors")
    assert circle(arrows(package), excepted)


def test_the_page_shows_the_same_floors():
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    shown = [tuple(re.findall(r"`([^`]+)`", row.split("|")[1])) for row in rows]
    assert shown == list(FLOORS), f"{PAGE.relative_to(ROOT)} and FLOORS differ"
    empty = [row for row in rows if not row.split("|")[2].strip()]
    assert not empty, "a floor without a word on what it is for"


@pytest.mark.parametrize(
    "source",
    [
        "from ..runtime.pool import allocate",
        "from ..runtime import pool",
        "from minifuse.runtime import pool",
        "import minifuse.runtime.pool",
        "import minifuse.runtime.pool as memory",
        "def f():\n    if True:\n        from ..runtime.pool import allocate",
        "try:\n    pass\nexcept ImportError:\n    from ..runtime import pool",
        "from importlib import import_module\npool = import_module('minifuse.runtime.pool')",
        "import importlib\ndef f(): return [importlib.import_module('..runtime.pool', __package__)]",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    pass\nelse:\n    from ..runtime import pool",
    ],
)
def test_an_arrow_that_points_up_is_found(tmp_path, source):
    (fault,) = faults(plant(tmp_path, core_layout=source, runtime_pool=""))
    line = source[: source.rindex("pool" if source.count("pool") == 1 else "runtime")].count("\n") + 1
    assert re.match(rf"minifuse/core/layout\.py:{line}: core\.layout \(floor .*\) imports runtime\.pool \(floor ", fault)


@pytest.mark.parametrize(
    "source",
    [
        "from ..core.layout import Layout",
        "from ..core import errors, layout",
        "import pool",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..tensors.tensor import Tensor",
        "import typing\nif typing.TYPE_CHECKING:\n    from ..tensors.tensor import Tensor",
    ],
)
def test_arrows_that_point_down_or_serve_types_are_fine(tmp_path, source):
    assert faults(plant(tmp_path, runtime_pool=source, core_layout="", core_errors="", tensors_tensor="")) == []


def test_relative_imports_are_resolved_from_packages_and_modules(tmp_path):
    package = plant(tmp_path, nn_module="from ..cli import main\nfrom . import linear", nn_linear="", cli="")
    (tmp_path / "minifuse/nn/__init__.py").write_text("from .module import Module")
    found = {(short(arrow.importer.name), short(arrow.imported)) for arrow in arrows(package)}
    assert found == {("nn.module", "cli"), ("nn.module", "nn.linear"), ("nn", "nn.module")}
    (fault,) = faults(package)
    assert fault.startswith("minifuse/nn/module.py:1: nn.module")


def test_the_floors_name_each_module_once():
    entries = list(chain(*FLOORS))
    assert len(entries) == len(set(entries))
    assert floor_of("minifuse.backends.parallel.driver") == floor_of("minifuse.backends.parallel")
    assert floor_of("minifuse.core.layout") != floor_of("minifuse.runtime.memory_pool")
    assert floor_of("minifuse.nnn") is None
