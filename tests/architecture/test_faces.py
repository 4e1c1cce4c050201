"""Tests of behavior import a package by its face, so that its inside can change without them.

The other folders test the inside of a package: `unit/` and `engines/` one module a file, `ptx/` and `cuda/` the CUDA
backend.
"""

import ast
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.sources import ROOT, modules

TESTS = ROOT / "tests"
BEHAVIOR = (
    "app",
    "benchmarks",
    "browser",
    "course",
    "docs",
    "equivalence",
    "fuse",
    "like_pytorch",
    "nn",
    "simt",
    "thorough",
    "training",
)

# What tests of behavior may import besides the public names of `minifuse`. Prefer a public name to a new line.
FACES = (
    "core.*",  # pure: no kernels, no memory
    "ir.numpy_api.*",  # the table of NumPy's functions, which is a page
    "functions",  # the table of the library of functions, which is a page
    "backends.base",  # the contract of backends
    "backends.registry",
    "backends.cuda.device.driver",  # whether there is a GPU
    "backends.cuda.compiler",  # PTX and machine code, without a GPU too
    "backends.cuda.matmul.ladder",  # the kernels that the course and the app show
    "compiler.plan",
    "runtime.kernel_cache",
    "tensors.serialization",
    "distributed",  # public, but imported when it is used
    "inspect.*",
    *("simt.*", "nn.*", "data.*", "testing.*", "training.*", "recipes.*", "course.*", "cli.*"),
)


def imported_modules(path: Path) -> Iterator[str]:
    """Yield the modules of the package that a file imports, without the package's name."""
    package = modules()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            while name not in package and "." in name:  # a name in a module stands for the module
                name = name.rpartition(".")[0]
            if name.startswith("minifuse."):
                yield name.removeprefix("minifuse.")


def is_below(module: str, face: str) -> bool:
    """Return whether a line of FACES stands for a module: `nn.*` for the package and everything in it."""
    return fnmatch(f"{module}.", f"{face.removesuffix('.*')}.*") if face.endswith(".*") else module == face


def is_face(module: str) -> bool:
    """Return whether tests of behavior may import a module."""
    return any(is_below(module, face) for face in FACES)


@pytest.mark.parametrize("folder", BEHAVIOR)
def test_tests_of_behavior_import_only_faces(folder):
    files = {path.relative_to(TESTS): set(imported_modules(path)) for path in (TESTS / folder).rglob("*.py")}
    assert files
    inside = {f"{path}: minifuse.{module}" for path, found in files.items() for module in found if not is_face(module)}
    assert not inside, f"imports from inside a package: {sorted(inside)}; use a public name, or test it in tests/unit"


def test_each_face_is_imported():
    used = {module for folder in BEHAVIOR for path in (TESTS / folder).rglob("*.py") for module in imported_modules(path)}
    unused = [face for face in FACES if not any(is_below(module, face) for module in used)]
    assert not unused, f"no test of behavior imports {unused}; delete them from FACES"


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("from minifuse.jit.tracer import Tracer", "jit.tracer"),
        ("from minifuse.jit import tracer", "jit.tracer"),
        ("import minifuse.jit.tracer as t", "jit.tracer"),
        ("def f():\n    from minifuse.backends.parallel import gemm", "backends.parallel.gemm"),
    ],
)
def test_an_import_from_inside_is_found(tmp_path, source, module):
    (tmp_path / "test_x.py").write_text(source)
    assert [*imported_modules(tmp_path / "test_x.py")] == [module]
    assert not is_face(module)
