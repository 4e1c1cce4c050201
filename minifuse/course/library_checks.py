"""Checks of module 7: a student's functions of tensors beside those of the oracle, with gradients and counted calls."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from . import oracle
from .check import check_each, same
from .library_facts import LibraryCall, LibraryRun, TensorCall
from .questions.library import Combination, ask_call, ask_combined, ask_error, incoming_gradient, run_call
from .task import Check
from .verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Answer = tuple[tuple[Any, ...], tuple[Any, ...]]
"""The values and the gradients of a call."""
Rule = Callable[[TensorCall, LibraryRun], None]
"""Raises `Wrong` if a call of a right result did what it must not: too many bytes, passes, or copies."""


def expected_answer(call: TensorCall, combine: Combination | None = None) -> Answer:
    """Return the right answer of a call: the oracle computes, and the library differentiates."""
    function = partial(combine, oracle.function) if combine else oracle.function(call.slot)
    return answer_of(run_call(function, call, is_strict=False))


def answer_of(run: LibraryRun) -> Answer:
    """Return what is compared of a run."""
    return run.values, run.gradients


def examine(combine: Combination | None, rules: Sequence[Rule], call: TensorCall, run: LibraryRun) -> None:
    """Raise `Wrong` if a run has wrong values or gradients, reads elements in Python, or breaks a rule."""
    expected, got = expected_answer(call, combine), answer_of(run)
    if not same(got, expected):
        is_right = same(got[0], expected[0])
        part = "the result is right, a gradient differs" if is_right else "the result differs"
        arriving = f"; backward gets {incoming_text(call, expected[0])}" if is_right else ""
        raise Wrong(f"{part}; shown are results, then gradients{arriving}", case=call, expected=expected, got=got)
    for x, y in zip(run.values, expected[0], strict=True):
        if x.dtype != y.dtype:
            raise Wrong(f"the result has dtype {x.dtype}, expected {y.dtype}, that of the arguments", kind="dtype")
    for rule in (reads_little, *rules):
        rule(call, run)


def library_check(
    name: str,
    cases: "Callable[[], SearchStrategy[TensorCall]]",
    rules: Sequence[Rule] = (),
    *,
    large: "Callable[[], SearchStrategy[TensorCall]] | None" = None,
    combine: Combination | None = None,
    names: Sequence[str] = (),
    share: float = 1.0,
) -> Check:
    """Return a check that a slot returns the values and gradients of the oracle's function, and keeps the rules.

    A shape that was not seen before costs about 20 ms in each process, since the library plans its calls: draw few shapes.

    Parameters
    ----------
    name : str
        The requirement, as a sentence.
    cases, large : function
        Returns the strategy of calls; `large` those that are tried last.
    rules : sequence of Rule
        What is asked of the calls of the library.
    combine : function of (slot, arguments)
        A function of `questions` that is called in place of one slot; `slot(name)` returns a function of the task.
    names : sequence of str
        The names of the arguments, for the report.
    share : float
        The fraction of the usual number of examples.
    """
    return check_each(
        name,
        cases,
        partial(ask_combined, combine) if combine else ask_call,
        partial(examine, combine, rules),
        large=large,
        describe=partial(describe_call, names),
        share=share,
    )


def incoming_text(call: TensorCall, values: Sequence[Any]) -> str:
    """Return the gradients of results as text."""
    seed = call.gradient_seed or 0
    return ", ".join(describe_value(incoming_gradient(seed + k, x.shape)) for k, x in enumerate(values))


def error_check(
    name: str,
    cases: "Callable[[], SearchStrategy[TensorCall]]",
    kind: str,
    names: Sequence[str] = (),
    share: float = 0.5,
) -> Check:
    """Return a check that calls raise an exception of a class, or of a subclass, with a text.

    Parameters
    ----------
    kind : str
        The name of the class: "IndexError".
    """

    def examine_error(call: TensorCall, found: list[str] | None) -> None:
        if found is None:
            raise Wrong(f"{call.slot} raises no exception; expected {kind}", kind="no error", case=call)
        if kind not in found[1:]:
            raise Wrong(f"{call.slot} raises {found[1]}: {found[0]}; expected {kind}", kind="another error", case=call)
        if not found[0].strip():
            raise Wrong(f"{call.slot} raises {kind} without a text; say what was got and what was expected", kind="no text")

    return check_each(name, cases, ask_error, examine_error, describe=partial(describe_call, names), share=share)


def describe_call(names: Sequence[str], call: TensorCall) -> str:
    """Return a call as text."""
    parts = [describe_value(x) for x in call.arguments]
    if names:
        parts = [f"{name}={part}" for name, part in zip(names, parts, strict=False)]
    backward = "" if call.gradient_seed is None else ", then backward"
    return f"{call.slot}({', '.join(parts)}){backward}"


def describe_value(x: object) -> str:
    """Return an argument as text: a large array by its shape."""
    if not isinstance(x, np.ndarray):
        return repr(x)
    if x.size > 24:
        return f"tensor of shape {x.shape}"
    return f"tensor({np.round(x, 6).tolist()})" if x.dtype.kind == "f" else f"tensor({x.tolist()})"


# Rules.


def reads_little(call: TensorCall, run: LibraryRun, most: int = 8) -> None:
    """Ask that a function computes with tensors, not with numbers that it reads."""
    if run.reads > most:
        raise Wrong(
            f"{call.slot} reads {run.reads:,} elements in Python (tolist, item, print(x) and `if x` do); compute with "
            "tensors",
            kind="reads",
        )


def only_own_derivatives(call: TensorCall, run: LibraryRun) -> None:
    """Ask that the backward pass is the student's own: the library derives nothing."""
    derived = [c.name for c in run.backward if c.name.startswith("gradient of")]
    if derived:
        raise Wrong(
            f"the backward pass runs the library's {derived[0]}; write the derivative as `backward` of a Function",
            kind="derived",
        )


def saves_at_most(nbytes: Callable[[TensorCall], int], what: str) -> Rule:
    """Return the rule that at most some bytes are kept for the backward pass."""

    def rule(call: TensorCall, run: LibraryRun) -> None:
        if run.saved_bytes > (most := nbytes(call)):
            raise Wrong(
                f"{run.saved_bytes:,} bytes are kept for the backward pass, expected at most {most:,}: {what}", kind="saved"
            )

    return rule


def peaks_at_most(nbytes: Callable[[TensorCall], int], what: str) -> Rule:
    """Return the rule that at most some bytes are alive at a time, besides the arguments."""

    def rule(call: TensorCall, run: LibraryRun) -> None:
        if run.peak_bytes > (most := nbytes(call)):
            raise Wrong(
                f"{run.peak_bytes:,} bytes of tensors are alive at a time, expected at most {most:,}: {what}", kind="peak"
            )

    return rule


def count_of(calls: Iterable[LibraryCall], *names: str) -> int:
    """Return how many calls have one of these names."""
    return sum(call.name in names for call in calls)


def elements_of(calls: Iterable[LibraryCall]) -> int:
    """Return how many elements all calls compute together."""
    return sum(prod(shape) for call in calls for shape in call.outputs)
