"""Judge the runs of kernels that a student's code has generated: a failure shows the text of the kernel."""

from collections.abc import Sequence

import numpy as np

from .check import current
from .emitted_kernels import KernelRun, Launch
from .strided import Array
from .verdicts import Wrong

MAX_SHOWN_LINES = 40  # of a kernel in a report


def number_lines(text: str, at: int = 0) -> list[str]:
    """Return numbered lines, with a mark at line `at`; of a long text, only the lines around it."""
    lines = text.splitlines()
    first = max(min(at - MAX_SHOWN_LINES // 2, len(lines) - MAX_SHOWN_LINES), 0)
    shown = [f"{'>' if k == at else ' '} {k:>3}  {line[:100]}" for k, line in enumerate(lines, 1)]
    return shown[first : first + MAX_SHOWN_LINES]


def wrong(
    message: str, text: object, line: int = 0, *, kind: str = "", expected: object = None, got: object = None
) -> Wrong:
    """Return a failure whose picture shows the text."""
    return Wrong(message, case_text=current[0], drawing=number_lines(str(text), line), kind=kind, expected=expected, got=got)


def completed(run: KernelRun) -> KernelRun:
    """Return a run that has outputs; raise `Wrong` for one that ended in an error."""
    if run.failure is None:
        return run
    message, kind, line = run.failure
    if not isinstance(run.text, str):
        raise Wrong(message, case_text=current[0], got=run.text)
    raise wrong(message, run.text, line, kind=kind)


def check_compiled(launches: Sequence[Launch], expected: Sequence[Sequence[Array]], runs: Sequence[KernelRun]) -> None:
    """Raise `Wrong` if Numba cannot compile a text, or the compiled kernel stores other values than these."""
    for given, outs, run in zip(launches, expected, runs, strict=True):  # the last may have failed
        for k, (right, got) in enumerate(zip(outs, completed(run).outs, strict=True)):
            if not np.allclose(right, got, equal_nan=True):
                raise wrong(
                    f"compiled by Numba, over the space {given.shape}, the kernel stores something else in outs[{k}]",
                    run.text,
                    expected=right,
                    got=got,
                    kind="compiled",
                )
