"""Compare the texts of two graphs line by line."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher


def changed_lines(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    """Yield "- line" for a line that went and "+ line" for one that came. Keys say which lines are about one thing.

    The order of lines is that of both texts as far as they agree; a line that only moved has not changed.

    Examples
    --------
    >>> before = {"b": "b = a * 1", "c": "c = a + b", "d": "d = -c"}
    >>> list(changed_lines(before, {"c": "c = a + a", "d": "d = -c"}))
    ['- b = a * 1', '- c = a + b', '+ c = a + a']
    """
    order = [*before]
    position = {key: k for k, key in enumerate(order)}
    compared, new = 0, list[str]()
    for key, line in after.items():
        if key not in before:
            new.append(f"+ {line}")
            continue
        yield from (f"- {before[x]}" for x in order[compared : position[key]] if x not in after)
        compared = max(compared, position[key])
        yield from new
        new.clear()
        if line != before[key]:
            yield from (f"- {before[key]}", f"+ {line}")
    yield from (f"- {before[x]}" for x in order[compared:] if x not in after)
    yield from new


def changed_order(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """Yield the lines that went, came or moved.

    Examples
    --------
    >>> list(changed_order(["f()", "g()", "h()"], ["h()", "f()", "g()"]))
    ['+ h()', '- h()']
    """
    for tag, i, j, m, n in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            yield from (f"- {line}" for line in before[i:j])
            yield from (f"+ {line}" for line in after[m:n])
