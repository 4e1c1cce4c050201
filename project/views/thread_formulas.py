"""Lines of a kernel with the numbers of one thread put in: "i = 1 * 32 + 3 = 35". Text is replaced; nothing is evaluated."""

import re
from collections.abc import Mapping, Sequence

from minifuse.simt import Trace

from .coordinates import unravel_index
from .thread_timelines import Step

MAX_CHARS = 32
NAMED = re.compile(
    r"(?:cuda\.)?(?P<index>blockIdx|threadIdx|blockDim|gridDim)\.(?P<axis>[xyz])\b"
    r"|\b(?P<sized>\w+)\.(?:size\b|shape\[(?P<dim>\d)\])"
    r"|(?<![\w.])(?P<name>[A-Za-z_]\w*)(?![\w(.\[])"
)
ASSIGNED = re.compile(r"(?P<name>\w+) (?P<operator>\+|-|\*|/|//|%|>>|<<)?= (?P<value>.*)")
GUARD = re.compile(r"(?:if|elif|while) (?P<condition>.*):")


def put_numbers(text: str, names: Mapping[str, str], trace: Trace, block: int, thread: int) -> str:
    """Replace the indices of CUDA, sizes of arrays and known names in an expression by their numbers."""
    indices = {
        "blockIdx": unravel_index(block, trace.grid),
        "threadIdx": unravel_index(thread, trace.block),
        "blockDim": trace.block,
        "gridDim": trace.grid,
    }
    shapes = {info.name: info.shape for info in trace.arrays}

    def number(match: re.Match[str]) -> str:
        if match["index"]:
            return str(indices[match["index"]]["xyz".index(match["axis"])])
        if match["sized"]:
            shape, dim = shapes.get(match["sized"]), match["dim"]
            if shape is None or (dim and int(dim) >= len(shape)) or (not dim and len(shape) != 1):
                return match[0]
            return str(shape[int(dim or 0)])
        return names.get(match["name"], match[0])

    return NAMED.sub(number, text)


def formula(text: str, before: Mapping[str, str], step: Step, is_taken: bool, trace: Trace, thread: tuple[int, int]) -> str:
    """Return a line with the numbers of a thread: an assignment with its result, a condition with its outcome."""
    code, after = text.split("  #")[0].strip(), dict(step.values)
    if match := GUARD.fullmatch(code):
        found = f"{put_numbers(match['condition'], before, trace, *thread)}? {'yes' if is_taken else 'no'}"
    elif match := ASSIGNED.fullmatch(code):
        name, value = match["name"], put_numbers(match["value"], before, trace, *thread)
        if match["operator"]:
            value = f"{before.get(name, name)} {match['operator']} {value}"
        result = after.get(name, before.get(name, value))
        found = f"{name} = {value}" + f" = {result}" * (value != result)
    else:
        changed = ", ".join(f"{name} = {value}" for name, value in step.values[:2])
        found = changed or put_numbers(code, before, trace, *thread)
    return found if len(found) <= MAX_CHARS else f"{found[: MAX_CHARS - 1]}…"


def is_taken(lines: Mapping[int, str], step: Step, following: Step | None) -> bool:
    """Return whether the condition of a line was true: the next line that ran is in its body."""
    if following is None or following.line < step.line:
        return False
    indent, *inner = (
        len(text) - len(text.lstrip()) for n in range(step.line, following.line + 1) if (text := lines.get(n, "")).strip()
    )
    return bool(inner) and min(inner) > indent


def formulas(steps: Sequence[Step], lines: Mapping[int, str], trace: Trace, thread: tuple[int, int]) -> list[str]:
    """Return for each step of a thread its line with the numbers put in."""
    names = {name: str(value) for name, value in trace.arguments if isinstance(value, int | float)}
    found = list[str]()
    for k, step in enumerate(steps):
        following = steps[k + 1] if k + 1 < len(steps) else None
        found.append(formula(lines.get(step.line, ""), names, step, is_taken(lines, step, following), trace, thread))
        names |= dict(step.values)
    return found
