"""The modules of the package as text and as syntax trees: for tests about the code, which do not import it."""

import ast
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "minifuse"


@dataclass(frozen=True)
class Module:
    """One source file: its dotted name, and its path below `root`."""

    name: str
    path: Path
    root: Path = ROOT

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @cached_property
    def text(self) -> str:
        return (self.root / self.path).read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, str(self.path))

    def lines_with_call(self, *names: str) -> list[int]:
        """Where a function is called by one of these bare names."""
        calls = [node for node in ast.walk(self.tree) if isinstance(node, ast.Call)]
        return [call.lineno for call in calls if isinstance(call.func, ast.Name) and call.func.id in names]


def modules(root: Path = ROOT, package: str = PACKAGE) -> dict[str, Module]:
    """Return every module of a package in the folder `root`, by its dotted name."""
    found = {}
    for path in sorted((root / package).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = Module(name, path.relative_to(root), root)
    return found
