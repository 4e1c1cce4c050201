"""Runs the examples of a page in order, in one namespace, and compares what they print with what the page says.

    python -m tests.docs.run_page docs/guide/floors.md

An error shows the line of the page. What a page says may leave out parts with `...`, and spaces and line ends count as one.
"""

import doctest
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from tests.docs.pages import examples

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def run_page(page: Path) -> int:
    """Run all blocks of a page in one namespace; how many there were."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    blocks = examples(page)
    for block in blocks:
        code = compile("\n" * (block.line - 1) + block.source, str(page.absolute()), "exec")
        with redirect_stdout(StringIO()) as out:
            exec(code, namespace)
        if block.printed is not None:
            compare(f"{page}:{block.line}", block.source, block.printed, out.getvalue())
    return len(blocks)


def compare(where: str, source: str, expected: str, printed: str) -> None:
    """Stop where an example prints something else than the page says."""
    checker = doctest.OutputChecker()
    if not checker.check_output(expected, printed, FLAGS):
        example = doctest.Example(source, expected)
        raise SystemExit(f"{where}: the example prints something else\n{checker.output_difference(example, printed, FLAGS)}")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        run_page(Path(argument))
