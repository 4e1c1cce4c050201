"""Task 2.4: differentiable functions of tensors, and the gradient of broadcasting."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import oracle
from ..cases import autodiff_link, broadcasting_link, layout_link
from ..check import agreement, in_turn, same
from ..draw import rows
from ..engine import Engine
from ..function_cases import MOVED, ONE, TWO, elementwise, extremes, moved, products, repeated
from ..keeping import keeps_nothing
from ..questions.task2_4 import (
    Call,
    Look,
    Repeated,
    another,
    as_array,
    ask,
    ask_coarsely,
    ask_sum,
    both,
    slopes,
    slopes_alone,
    value,
)
from ..strided import Array
from ..task import Check, Mistake, Task
from ..variables import Function
from ..verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

SHARE = 0.3  # of the usual number of examples, for each function
SUMMED, FORWARD, BACKWARD, SHAPED, PRODUCT = (
    "unbroadcast sums over all that was repeated",
    "forward of functions of elements gives their values",
    "backward gives each input a gradient of its own shape",
    "Sum, Permute and Reshape return gradients to where their elements came from",
    "MatMul gives both matrices their gradients",
)


def is_near(got: Any, expected: Any) -> bool:
    """Return whether gradients agree to one digit or two."""
    return (
        isinstance(got, tuple)
        and len(got) == len(expected)
        and all(np.shape(a) == np.shape(b) and np.allclose(a, b, 0.02, 1e-12) for a, b in zip(got, expected, strict=True))
    )


def function_of(case: Call) -> Function:
    """Return the oracle's function for a case."""
    found: Any = oracle.function(case.name)  # a class, by its static methods
    function: Function = found
    return function


def right_answer(how: Look) -> Callable[[Call], object]:
    """Return a function that evaluates the oracle's function."""
    return lambda case: how(Engine(), function_of(case), case)


def each(
    demand: str,
    what: str,
    names: Sequence[str],
    cases: Callable[[str], "SearchStrategy[Call]"],
    how: Look,
    link: Callable[[Call], str],
    share: float = SHARE,
) -> Check:
    """Return a check that tests `what` of several functions one after the other, with equal numbers of cases."""
    parts = [
        agreement(
            f"{name}: {what}",
            partial(cases, name),
            partial(ask, how),
            right_answer(how),
            draw=drawing,
            link=link,
            share=share,
        )
        for name in names
    ]
    return in_turn(demand, parts)


def keep_nothing(name: str, functions: Sequence[str], cases: Callable[[str], "SearchStrategy[Call]"]) -> list[Check]:
    """Return checks that a call of these functions leaves the student's file as it was."""
    return [keeps_nothing(name, partial(cases, one), one, partial(ask, slopes), another) for one in functions]


def summed(case: Repeated) -> object:
    """Return the right sum."""
    return as_array(oracle.function("unbroadcast")(Engine().values(case[0]), case[1]))


def in_front(case: Repeated) -> Array:
    """Sum over the leading dims only."""
    gradient, shape = case[0].array(), case[1]
    return np.asarray(gradient.sum(tuple(range(gradient.ndim - len(shape)))))


def first_of(case: Repeated) -> Array:
    """Take the first repetition instead of the sum."""
    gradient, shape = case[0].array(), case[1]
    lead = gradient.ndim - len(shape)
    where = (0,) * lead + tuple(slice(0, n) for n in shape)
    return np.asarray(gradient[where])


def drawing(case: Call | Repeated, got: object, expected: object) -> list[str]:
    """Picture the inputs and d, and those parts of the answer that differ: the value of forward, gradients of inputs."""
    if not isinstance(case, Call):
        return [*rows(expected, "expected"), *rows(got, "got")]
    lines = [line for name, x in zip("ab", case.inputs, strict=False) for line in rows(x.array(), name)]
    if not isinstance(expected, tuple):
        return [*lines, *[""] * (expected is not None), *rows(expected, "expected"), *rows(got, "got")]
    lines += rows(case.d.array(), "d")
    names = [f"the gradient of {name}" for name in "ab"[: len(case.inputs)]]
    names = ["the value of forward"] * (len(expected) > len(names)) + names
    if not isinstance(got, tuple) or len(got) != len(expected):  # an error, or no tuple
        return [
            *lines,
            *[line for name, x in zip(names, expected, strict=True) for line in ("", f"{name}:", *rows(x, "expected"))],
        ]
    for name, one, other in zip(names, got, expected, strict=True):
        if same(one, other):
            continue
        shapes = np.shape(one), np.shape(other)
        if shapes[0] != shapes[1]:
            lines += ["", f"{name} has the shape {shapes[0]}", f"expected  {shapes[1]}"]
        else:
            lines += ["", f"{name}:", *rows(other, "expected"), *rows(one, "got")]
    return lines


def broadcast_link(case: Call) -> str:
    """Return the page of broadcasting for two inputs, or of autodiff for one."""
    if len(case.inputs) < 2:
        return autodiff_link()
    return broadcasting_link(*[x.shape for x in case.inputs])


def product_link(case: Call) -> str:
    """Return the page of matmuls, at these sizes."""
    (m, k), (_, n) = [x.shape for x in case.inputs]
    return f"matmul?matmul_M={m}&matmul_N={n}&matmul_K={k}"


def wide(case: Call) -> object:
    """Compute gradients without summing them over broadcast dims."""
    d, arrays = case.d.array(), [x.array() for x in case.inputs]
    if case.name == "TensorAdd":
        return d, d
    return (np.asarray(d * arrays[1]), np.asarray(d * arrays[0])) if case.name == "TensorMul" else right_answer(slopes)(case)


def own_value(case: Call) -> object:
    """Compute gradients of a Mul that gives each input its own value."""
    if case.name != "TensorMul":
        return None
    d, (a, b) = case.d.array(), [x.array() for x in case.inputs]
    fit = oracle.function("unbroadcast")
    return tuple(as_array(fit(Engine().values(d * x), x.shape)) for x in (a, b))


def exchanged(case: Call) -> object:
    """Compute gradients with d and the input exchanged."""
    d, x = case.d.array(), case.inputs[0].array()
    with np.errstate(all="ignore"):
        found = {"TensorLog": x / d, "TensorInv": -x / d**2, "TensorReLU": x * (d > 0)}
    return (np.asarray(found[case.name]),)


def multiplies_by_zero(wrong: Wrong) -> bool:
    """Return whether the gradient of ReLU is nan where d is infinite and the input is not positive, and right elsewhere."""
    case = wrong.case
    if case.name != "TensorReLU" or wrong.kind:
        return False
    d, x = case.d.array(), case.inputs[0].array()
    return same(wrong.got[0], np.where(np.isinf(d) & (x <= 0), np.nan, wrong.expected[0]))


def moved_again(case: Call) -> object:
    """Permute the gradient with the same permutation instead of its inverse."""
    return (right_answer(value)(case), case.d.array().transpose(case.options["dims"]))


def not_spread(case: Call) -> object:
    """Return d for Sum without expanding it."""
    return (right_answer(value)(case), case.d.array()) if case.name == "TensorSum" else None


TASK = Task(
    id="2.4",
    title="Derivatives of tensors",
    file="tensor_functions.py",
    slots=(
        "unbroadcast",
        *("TensorAdd", "TensorMul", "TensorNeg", "TensorInv", "TensorLog", "TensorExp", "TensorSigmoid", "TensorReLU"),
        *("TensorSum", "TensorPermute", "TensorReshape", "TensorMatMul"),
    ),
    points=7,
    text=(
        "The functions of task 1.2 again, on tensors. One thing is new: where an input was repeated to a larger shape, each "
        "of its elements went to several places, and receives from all of them. Write unbroadcast, which sums a derivative "
        "back to a shape, and then forward and backward of twelve functions, in maps, zips and reductions."
    ),
    hints=(
        "backward undoes what forward did with shapes. What forward repeats, backward sums; what forward sums, backward "
        "repeats; what forward permutes, backward permutes the other way.",
        "unbroadcast: reduce the dims in front that the smaller shape lacks, then those where it has size 1 and the "
        "gradient has not; reshape at the end. MatMul: the derivative of a has a's shape (m, k), and is made of d (m, n) "
        "and b (k, n): there is one product that fits.",
        "minifuse/ir/array_functions.py has the rules of the library's functions; docs/guide/layouts.md says what "
        "broadcasting repeats.",
    ),
    reads=(
        "docs/course/2.4-tensor-functions.md",
        "docs/guide/layouts.md",
        "docs/guide/gradients.md",
        "minifuse/ir/array_functions.py",
    ),
    checks=(
        agreement(
            SUMMED,
            repeated,
            ask_sum,
            summed,
            describe=lambda c: f"a gradient of shape {c[0].shape}; shape {c[1]}",
            draw=lambda c, got, expected: [*rows(c[0].array(), "gradient"), *drawing(c, got, expected)],
            link=lambda c: broadcasting_link(c[0].shape, c[1]),
        ),
        each(FORWARD, "the value of forward", (*TWO, *ONE), elementwise, value, broadcast_link),
        in_turn(
            BACKWARD,
            [
                each(BACKWARD, "the gradients of backward", (*TWO, *ONE), elementwise, slopes, broadcast_link),
                each(
                    BACKWARD,
                    "the gradients for tiny and large numbers, and for 0",
                    (*TWO, *ONE),
                    extremes,
                    slopes,
                    broadcast_link,
                    SHARE / 3,
                ),
                *[
                    agreement(
                        f"{name}: backward computes the derivative; it does not measure differences of forward",
                        partial(elementwise, name),
                        ask_coarsely,
                        right_answer(slopes),
                        agree=is_near,
                        draw=drawing,
                        share=SHARE / 3,
                    )
                    for name in ("TensorInv", "TensorLog", "TensorExp", "TensorSigmoid")
                ],
                *keep_nothing(BACKWARD, (*TWO, *ONE), elementwise),
            ],
        ),
        in_turn(
            SHAPED,
            [
                each(SHAPED, "forward or backward", MOVED, moved, both, lambda c: layout_link(c.inputs[0])),
                *keep_nothing(SHAPED, MOVED, moved),
            ],
        ),
        in_turn(
            PRODUCT,
            [
                agreement(
                    PRODUCT, products, partial(ask, both), right_answer(both), draw=drawing, link=product_link, share=0.5
                ),
                *keep_nothing(PRODUCT, ["TensorMatMul"], lambda _: products()),
            ],
        ),
    ),
    mistakes=(
        Mistake(
            "only the dims in front are summed",
            "A dim of size 1 is repeated too, and its elements receive from the whole dim. It keeps size 1.",
            wrong_answer=in_front,
            check=SUMMED,
        ),
        Mistake(
            "the first of what was repeated is taken, not the sum",
            "An element that was used four times receives four times.",
            wrong_answer=first_of,
            check=SUMMED,
        ),
        Mistake(
            "gradients keep the shape of the result",
            "Each input receives a gradient of its own shape: unbroadcast(..., a.shape).",
            wrong_answer=wide,
            check=BACKWARD,
        ),
        Mistake(
            "Mul gives each input its own value",
            "The derivative of a * b by a is b.",
            wrong_answer=own_value,
            check=BACKWARD,
        ),
        Mistake(
            "what forward saves is stored in one place for all calls",
            "A network has many calls of one function under way. Each has a context of its own: save it there.",
            wrong_answer=lambda c: right_answer(slopes_alone)(another(c)),
            when=lambda w: w.kind == "context",
            check=BACKWARD,
        ),
        Mistake(
            "the input and d are exchanged",
            "log_grad(x, d), inv_grad(x, d) and relu_grad(x, d) take the input first.",
            wrong_answer=exchanged,
            check=BACKWARD,
        ),
        Mistake(
            "backward returns no tuple",
            "With a comma, (d,) is a tuple of one gradient: one for each input.",
            when=lambda w: (
                not w.kind and isinstance(w.expected, tuple) and w.got is not None and not isinstance(w.got, tuple | list)
            ),
        ),
        Mistake(
            "backward returns a list",
            "The gradients are a tuple: tuple(gradients), or with parentheses.",
            when=lambda w: not w.kind and isinstance(w.expected, tuple) and isinstance(w.got, list),
        ),
        Mistake(
            "ReLU multiplies d by 0",
            'd may be infinite, and inf * 0 is nan. a.zip("relu_grad", d) chooses between d and 0.',
            when=multiplies_by_zero,
            check=BACKWARD,
        ),
        Mistake(
            "Permute goes the same way twice",
            "After dims (1, 2, 0), another (1, 2, 0) does not lead back. Dim dims[k] of the input received from dim k.",
            wrong_answer=moved_again,
            check=SHAPED,
        ),
        Mistake(
            "Sum passes its gradient on as it is",
            "Each element went into the sum, so each one receives all of d: its shape is that of the input.",
            wrong_answer=not_spread,
            check=SHAPED,
        ),
        Mistake(
            "a matrix is not transposed, or stands on the wrong side",
            "The derivative of a has shape (m, k): which of d (m, n) and b (k, n) must be turned, and which comes first?",
            when=lambda w: (
                w.kind == "ShapeError"
                or (isinstance(w.got, tuple) and [np.shape(g) for g in w.got] != [np.shape(e) for e in w.expected])
            ),
            wrong_answer=lambda c: (
                right_answer(value)(c),
                c.d.array() @ c.inputs[1].array(),
                c.inputs[0].array() @ c.d.array(),
            ),
            check=PRODUCT,
        ),
    ),
)
