"""Places in the engine's sources where one small change makes a mutant, and how a mutant is written into a file.

A mutant has no line number: it is found by its function, its kind, the code that it replaces, and which of several equal
places it is. So a list that was drawn once stays right while lines move.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENGINE = ("core", "ir", "runtime", "backends", "compiler", "tensors", "inspect", "jit", "custom_kernels")

COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr, ast.LShift: ast.RShift,
    ast.RShift: ast.LShift, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
DELETED = (ast.Expr, ast.Assign, ast.AugAssign, ast.Raise, ast.Return, ast.Continue, ast.Break, ast.Delete)
KINDS = ("comparison", "constant", "operator", "deleted statement")


@dataclass(frozen=True)
class Mutant:
    """One small change of a source file."""

    path: str  # from the root of the repository
    function: str  # "Class.method", or "" at the top of a module
    kind: str  # of KINDS
    before: str  # the code that is replaced, as `ast.unparse` writes it
    after: str
    nth: int  # of the equal places in the function, from 0


@dataclass(frozen=True)
class Site:
    """A mutant, and where it is in today's file: lines from 1, columns in UTF-8 bytes from 0."""

    mutant: Mutant
    line: int
    column: int
    end_line: int
    end_column: int


def engine_files() -> list[Path]:
    """List the source files that mutants are drawn from, in order."""
    return sorted(path for folder in ENGINE for path in (ROOT / "minifuse" / folder).rglob("*.py"))


def sites(path: Path) -> list[Site]:
    """List all places of a file where a mutant can be made, in the order of the syntax tree."""
    found, seen = [], Counter[tuple[str, str, str]]()
    for function, node, kind, after in changes(ast.parse(path.read_text()), ""):
        before = ast.unparse(node)
        key = function, kind, before
        mutant = Mutant(str(path.relative_to(ROOT)), function, kind, before, after, seen[key])
        seen[key] += 1
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        found.append(Site(mutant, node.lineno, node.col_offset, node.end_lineno, node.end_col_offset))
    return found


def changes(node: ast.AST, function: str) -> Iterator[tuple[str, ast.expr | ast.stmt, str, str]]:
    """Yield each change below a node: the function around it, the node that is replaced, the kind, the new code."""
    for child in children(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            yield from changes(child, f"{function}.{child.name}".lstrip("."))
            continue
        match child:
            case ast.Compare(left, [op, *ops], operands):
                new: ast.expr = ast.Compare(left, [COMPARISONS[type(op)](), *ops], operands)
                yield function, child, "comparison", ast.unparse(new)
            case ast.Constant(bool() as value):
                yield function, child, "constant", repr(not value)
            case ast.Constant(int() | float() as value):
                yield function, child, "constant", repr(value + 1)
            case ast.BinOp(left, op, right) if type(op) in OPERATORS and not is_text(left):
                yield function, child, "operator", f"({ast.unparse(ast.BinOp(left, OPERATORS[type(op)](), right))})"
            case ast.BoolOp(op, values):
                yield function, child, "operator", f"({ast.unparse(ast.BoolOp(OPERATORS[type(op)](), values))})"
            case ast.UnaryOp(ast.Not(), operand):
                yield function, child, "operator", f"({ast.unparse(operand)})"
        if isinstance(child, DELETED) and function and not is_docstring(child):
            yield function, child, "deleted statement", "pass"
        yield from changes(child, function)


def children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what is executed below a node: no annotations, and no block that only type checkers read."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_params") or isinstance(node, ast.JoinedStr):
            continue
        yield from (x for x in (value if isinstance(value, list) else [value]) if isinstance(x, ast.AST))


def is_text(node: ast.expr) -> bool:
    """Return whether `+` or `%` joins or formats text here."""
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def is_docstring(node: ast.AST) -> bool:
    """Return whether a statement is text or `...`."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def find(mutant: Mutant, root: Path = ROOT) -> Site | None:
    """Find a mutant in today's sources; None if its code is no longer there."""
    path = ROOT / mutant.path
    return next((site for site in sites(path) if site.mutant == mutant), None) if path.exists() else None


def mutated(site: Site) -> str:
    """Return the text of the file with the mutant in it."""
    lines = (ROOT / site.mutant.path).read_bytes().splitlines(keepends=True)
    head, tail = lines[site.line - 1][: site.column], lines[site.end_line - 1][site.end_column :]
    lines[site.line - 1 : site.end_line] = [head + site.mutant.after.encode() + tail]
    return b"".join(lines).decode()
