"""Find pairs of students whose solutions of a task are too alike, by winnowing (Schleimer et al. 2003).

A solution is the functions of a task and those of the student's own that they call. Its tokens are normalized: comments,
docstrings, layout and annotations do not count, and neither do names that the student has chosen. Each K consecutive tokens
are hashed, and winnowing selects at least one hash of each WINDOW consecutive ones, so every common run of K + WINDOW - 1
tokens is found. What proves nothing is left out: what the stub and the reference have, and what most of a larger class has.

The result is a reason to read two files side by side, not a verdict: short tasks have few solutions.

References
----------
S. Schleimer, D. S. Wilkerson, A. Aiken: Winnowing: local algorithms for document fingerprinting. SIGMOD 2003.
"""

import ast
import builtins
import io
import keyword
import token
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from .registry import all_tasks
from .task import Task
from .workspace import reference, stub

K, WINDOW = 8, 4  # tokens of a fingerprint, and fingerprints of a window: common runs of 11 tokens are found
MIN_COMMON = 6  # fingerprints; fewer prove nothing
MIN_CLASS = 8  # students; in a smaller class, what most of them have is no sign of one solution that all find
IGNORED = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENCODING, tokenize.ENDMARKER}
ARROW = "->"  # of an annotation

Fingerprints = dict[int, int]  # hash -> the line of its first occurrence


class Token(NamedTuple):
    """A normalized token and its line."""

    text: str
    line: int


class Pair(NamedTuple):
    """Two students whose solutions of a task are alike."""

    task: str
    students: tuple[str, str]
    share: float
    """The fraction of the shorter solution's fingerprints that the other one has, too."""
    common: int
    """The number of common fingerprints."""
    lines: tuple[list[int], list[int]]
    """The lines at which the common fingerprints begin, in either file."""


def similar_pairs(texts: Mapping[str, Mapping[str, str]], tasks: Sequence[Task], share: float = 0.6) -> list[Pair]:
    """Return the pairs of students whose solutions share at least this fraction, the most alike first.

    Parameters
    ----------
    texts : mapping
        For each student, the text of each file of the course, by name.
    tasks : sequence of Task
    share : float
        From 0 to 1.
    """
    pairs: list[Pair] = []
    for task in tasks:
        found = {name: fingerprints_of_task(files.get(task.file, ""), task) for name, files in texts.items()}
        common = baseline(task) | frequent(found.values())
        own = {name: {key: line for key, line in one.items() if key not in common} for name, one in found.items()}
        for one, other in combinations([name for name in own if len(own[name]) >= MIN_COMMON], 2):
            both = own[one].keys() & own[other].keys()
            fraction = len(both) / min(len(own[one]), len(own[other]))
            if fraction >= share and len(both) >= MIN_COMMON:
                lines = (sorted({own[one][key] for key in both}), sorted({own[other][key] for key in both}))
                pairs.append(Pair(task.id, (one, other), round(fraction, 3), len(both), lines))
    return sorted(pairs, key=lambda pair: (-pair.share, -pair.common, pair.task, pair.students))


def baseline(task: Task) -> set[int]:
    """Return the fingerprints of a task's stub and, in a clone of the repository, of its reference solution."""
    texts = [stub(task.file)]
    if path := reference(task.file):
        texts.append(path.read_text(encoding="utf-8"))
    return {key for text in texts for key in all_hashes(tokens_of_task(text, task))}


def frequent(found: Iterable[Fingerprints]) -> set[int]:
    """Return the fingerprints that more than half of a class has; none in a small class."""
    written = [one for one in found if one]
    counts = Counter(key for one in written for key in one)
    return {key for key, count in counts.items() if len(written) >= MIN_CLASS and 2 * count > len(written)}


def fingerprints_of_task(text: str, task: Task) -> Fingerprints:
    """Return the fingerprints of a student's solution of a task."""
    return winnow(tokens_of_task(text, task))


def winnow(tokens: Sequence[Token]) -> Fingerprints:
    """Return the selected hashes: of each window the smallest, the rightmost of equal ones."""
    hashes = list(hashes_of(tokens))
    selected: Fingerprints = {}
    for start in range(max(len(hashes) - WINDOW + 1, min(1, len(hashes)))):
        window = range(start, min(start + WINDOW, len(hashes)))
        at = min(window, key=lambda k: (hashes[k], -k))
        selected.setdefault(hashes[at], tokens[at].line)
    return selected


def all_hashes(tokens: Sequence[Token]) -> set[int]:
    """Return the hashes of all runs of K tokens, of which winnowing may select any."""
    return set(hashes_of(tokens))


def hashes_of(tokens: Sequence[Token]) -> Iterator[int]:
    """Yield the hash of each run of K tokens. It is the same in each process."""
    for k in range(len(tokens) - K + 1):
        text = "\0".join(one.text for one in tokens[k : k + K])
        yield int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


def tokens_of_task(text: str, task: Task) -> list[Token]:
    """Return the normalized tokens of a solution; [] if the file is not valid Python, or has no function of the task."""
    try:
        tree = ast.parse(text)
        tokens = list(with_whole_strings(tokenize.generate_tokens(io.StringIO(text).readline)))
    except (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError):
        return []
    definitions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    nodes = list(reachable(definitions, task))
    skipped = [place for node in nodes for place in ignored_places(node)]
    own_names = {name for node in nodes for name in chosen_names(node)} - set(task.slots)
    normalized = []
    for node in nodes:
        first, last = min([node.lineno, *(d.lineno for d in node.decorator_list)]), node.end_lineno or node.lineno
        for one in tokens:
            is_code = one.type not in IGNORED and one.string != ARROW
            if is_code and first <= one.start[0] <= last and not any(a <= one.start < b for a, b in skipped):
                normalized.append(Token(normalize(one, own_names), one.start[0]))
    return normalized


def with_whole_strings(tokens: Iterable[tokenize.TokenInfo]) -> Iterator[tokenize.TokenInfo]:
    """Yield tokens with each f-string as one string, as Python 3.11 has it: later versions have its parts."""
    depth = 0
    first: tokenize.TokenInfo | None = None
    for one in tokens:
        kind = token.tok_name[one.type]
        depth += (kind in ("FSTRING_START", "TSTRING_START")) - (kind in ("FSTRING_END", "TSTRING_END"))
        if depth and first is None:
            first = one
        if first is None:
            yield one
        elif not depth:
            yield first._replace(type=tokenize.STRING)
            first = None


def reachable(
    definitions: Mapping[str, ast.FunctionDef | ast.ClassDef], task: Task
) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    """Yield the definitions of a task's slots and of the student's own functions that they use."""
    others = {slot for other in all_tasks() if other is not task for slot in other.slots}
    waiting, seen = list(task.slots), set[str]()
    while waiting:
        name = waiting.pop(0)
        if name in definitions and name not in seen and name not in others:
            seen.add(name)
            yield definitions[name]
            waiting += [node.id for node in ast.walk(definitions[name]) if isinstance(node, ast.Name)]


Place = tuple[int, int]  # line and column


def ignored_places(node: ast.AST) -> Iterator[tuple[Place, Place]]:
    """Yield where docstrings and annotations begin and end."""
    for part in ast.walk(node):
        match part:
            case ast.Expr(value=ast.Constant(value=str()) as text):
                yield (text.lineno, text.col_offset), end_of(text)
            case ast.arg(arg=name, annotation=ast.expr() as annotation):
                yield (part.lineno, part.col_offset + len(name)), end_of(annotation)
            case ast.AnnAssign(target=target, annotation=annotation):
                yield end_of(target), end_of(annotation)
            case ast.FunctionDef(returns=ast.expr() as annotation):
                yield (annotation.lineno, annotation.col_offset), end_of(annotation)


def end_of(node: ast.expr) -> Place:
    """Return where an expression ends."""
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def chosen_names(node: ast.AST) -> Iterator[str]:
    """Yield the names that are bound in a definition: parameters, variables, inner functions."""
    for part in ast.walk(node):
        match part:
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name


def normalize(one: tokenize.TokenInfo, own_names: set[str]) -> str:
    """Return the text of a token; names that the student has chosen and strings are all alike."""
    if one.type == tokenize.NAME:
        is_kept = keyword.iskeyword(one.string) or one.string in vars(builtins) or one.string not in own_names
        return one.string if is_kept else "name"
    if one.type in (tokenize.INDENT, tokenize.DEDENT):
        return token.tok_name[one.type]
    return "string" if one.type == tokenize.STRING else one.string


def read_texts(folder: Path, files: Iterable[str]) -> dict[str, str]:
    """Return the texts of a student's files that can be read."""
    found = {}
    for file in files:
        try:
            found[file] = (folder / file).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError):
            continue
    return found


def format_lines(lines: Sequence[int]) -> str:
    """Return line numbers as text: "3-5, 9"."""
    ranges: list[list[int]] = []
    for line in lines:
        if ranges and line == ranges[-1][-1] + 1:
            ranges[-1][1:] = [line]
        else:
            ranges.append([line])
    return ", ".join("-".join(map(str, one)) for one in ranges)
