"""Questions of task 2.4: differentiable functions of tensors, and the gradient of broadcasting."""

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...core.indexing import Shape
from ..engine import Engine
from ..strided import Strided
from ..student import Student
from ..values import Values
from ..variables import Context, Function
from ..verdicts import Wrong


class Call(NamedTuple):
    """A function, its inputs and options, and the gradient of its result."""

    name: str
    inputs: tuple[Strided, ...]
    options: dict[str, Any]
    d: Strided

    def __str__(self) -> str:
        shapes = " and ".join(str(x.shape) for x in self.inputs)
        options = "".join(f", {key} {value}" for key, value in self.options.items())
        return f"{self.name} of shape{'s' * (len(self.inputs) > 1)} {shapes}{options}; d of shape {self.d.shape}"


Look = Callable[[Engine, Function, Call], object]
"""A function of (engine, function, case)."""
Repeated = tuple[Strided, Shape]
"""(a gradient, the shape that was broadcast to its shape)."""


def run(engine: Engine, function: Function, case: Call) -> tuple[Context, object]:
    """Run forward on the inputs of a case."""
    context = Context()
    return context, function.forward(context, *[engine.values(x) for x in case.inputs], **case.options)


def another(case: Call) -> Call:
    """Return the call with other numbers."""
    return case._replace(inputs=tuple(x._replace(storage=x.storage * 0.5) for x in case.inputs))


def value(engine: Engine, function: Function, case: Call) -> object:
    """Return the value of forward."""
    return as_array(run(engine, function, case)[1])


def elsewhere(case: Call) -> list[Call]:
    """Return calls of the same function with inputs of other shapes, and other options.

    One has a dim more, and one a longer dim; of one, the result has the shape that it has in the call itself.
    """
    if case.name == "TensorMatMul":
        turned = [x._replace(shape=x.shape[::-1], strides=x.strides[::-1]) for x in reversed(case.inputs)]
        a, b = case.inputs
        one_more = a.shape[1] + 1
        longer = a._replace(shape=(a.shape[0], one_more), strides=(a.strides[0], 0))
        higher = b._replace(shape=(one_more, b.shape[1]), strides=(0, b.strides[1]))
        return [case._replace(inputs=tuple(turned)), case._replace(inputs=(longer, higher))]
    rank = max(len(x.shape) for x in case.inputs)
    twice = tuple(
        x._replace(shape=(2, *x.shape), strides=(0, *x.strides)) if len(x.shape) == rank else x for x in case.inputs
    )
    size = 2 * prod(case.inputs[0].shape)
    others: dict[str, dict[str, Any]] = {
        "TensorPermute": {"dims": tuple(range(rank, -1, -1))},
        "TensorReshape": {"shape": (size,)},
    }
    return [case._replace(inputs=twice, options=others.get(case.name, case.options)), *with_equal_ranks(case, rank)]


def with_equal_ranks(case: Call, rank: int) -> list[Call]:
    """Return calls whose results have the rank of this one's: with a longer dim, or of the very same shape if possible."""
    x = case.inputs[0]
    if case.name == "TensorPermute":
        dims = case.options["dims"]
        back = tuple(sorted(range(rank), key=dims[::-1].index))
        result = x._replace(shape=tuple(x.shape[k] for k in dims), strides=tuple(x.strides[k] for k in dims))
        moved = [tuple(values[k] for k in back) for values in (result.shape, result.strides)]
        return [case._replace(inputs=(x._replace(shape=moved[0], strides=moved[1]),), options={"dims": dims[::-1]})]
    if case.name == "TensorReshape":
        return [case._replace(inputs=(x._replace(shape=x.shape[::-1], strides=x.strides[::-1]),))]
    found = [case._replace(inputs=case.inputs[::-1])] if len(case.inputs) == 2 else []
    if not rank:
        return found
    dim = case.options.get("dim", 0)
    size = max(x.shape[dim] for x in case.inputs if len(x.shape) == rank)
    is_whole = [len(x.shape) == rank and x.shape[dim] == size for x in case.inputs]
    inputs = tuple(longer(x, dim) if whole else x for x, whole in zip(case.inputs, is_whole, strict=True))
    return [*found, case._replace(inputs=inputs)]


def longer(x: Strided, dim: int) -> Strided:
    """Return a tensor whose dim repeats the first element, once more than it had elements."""
    shape, strides = list(x.shape), list(x.strides)
    shape[dim], strides[dim] = shape[dim] + 1, 0
    return x._replace(shape=tuple(shape), strides=tuple(strides))


def slopes(engine: Engine, function: Function, case: Call) -> object:
    """Run backward after other forwards, and once more after a forward with other shapes.

    The context is another object with the same `saved`: nothing else may be kept from forward to backward.
    """
    context, _ = run(engine, function, case)
    others = elsewhere(case)
    contexts = [run(engine, function, other)[0] for other in (*others, another(case))]
    kept = Context()
    kept.save(*context.saved)
    found = function.backward(kept, engine.values(case.d))
    contexts.append(run(engine, function, others[-1])[0])
    again = function.backward(kept, engine.values(case.d))
    if not isinstance(found, tuple) or not isinstance(again, tuple):
        return found
    one, two = [tuple(as_array(x) for x in answer) for answer in (found, again)]
    if not all(map(are_equal, one, two)) and str(one) != str(two):
        raise Wrong(
            "backward with the same context returns something else after another forward; save all in the context, and "
            "change nothing there",
            case_text=str(case),
            kind="context",
        )
    return one


def are_equal(x: object, y: object) -> bool:
    """Return whether two values are arrays with the same bytes. Their texts, which take longer, are the same then."""
    return isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and x.shape == y.shape and x.tobytes() == y.tobytes()


class CoarseEngine(Engine):
    """An engine whose exp, log, inv and sigmoid have three digits. A derivative that is measured by differences fails."""

    def operator(self, name: str) -> Callable[..., float]:
        """Return an operator, rounded if it is one of these."""
        exact = super().operator(name)
        return exact if name not in ("exp", "log", "inv", "sigmoid") else lambda x: float(f"{float(exact(x)):.3g}")


def ask_coarsely(student: Student, case: Call) -> object:
    """Return gradients from operators with three digits."""
    return slopes(CoarseEngine(student), getattr(student, case.name), case)


def slopes_alone(engine: Engine, function: Function, case: Call) -> object:
    """Run backward directly after forward."""
    found = function.backward(run(engine, function, case)[0], engine.values(case.d))
    return tuple(map(as_array, found))


def both(engine: Engine, function: Function, case: Call) -> object:
    """Return the value of forward and the gradients of backward."""
    found = slopes(engine, function, case)
    return (value(engine, function, case), *found) if isinstance(found, tuple) else found


def as_array(x: object) -> object:
    """Return the elements of `Values`; anything else unchanged."""
    return np.array(x.array()) if isinstance(x, Values) else x


def ask(look: Look, student: Student, case: Call) -> object:
    """Look at a function of the student's."""
    return look(Engine(student), getattr(student, case.name), case)


def ask_sum(student: Student, case: Repeated) -> object:
    """Return the student's sum."""
    return as_array(student.unbroadcast(Engine(student).values(case[0]), case[1]))
