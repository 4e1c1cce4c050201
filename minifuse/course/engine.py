"""The engine of the course, built from slots: functions of the tasks compute every number.

    Scalar, Tensor      values with a history, for users            variables
    Values              tensors without history                     values
    Engine              looks up the slots and calls them           engine
    Overlay             a student's slots, completed by the oracle  overlay

The engine has no arithmetic, no indexing, no loops over elements and no derivatives. It allocates results and records the
history of values.
"""

from collections.abc import Callable
from typing import Any

from . import oracle
from .overlay import Overlay, Share, count_slots_once, share_of
from .strided import Strided
from .student import Student
from .values import Numbers, Operand, ValueEngine, Values
from .variables import Call, Context, Function, Scalar, Tensor, Variable, VariableT, unit_gradient


class Engine(ValueEngine):
    """Creates scalars and tensors, and computes with the slots of a student or of the oracle.

    Parameters
    ----------
    student : Student, optional
        The source of the slots. An `Overlay` lends functions that are not written yet, a `Student` does not. Default: the
        oracle lends all slots.

    Examples
    --------
    >>> engine = Engine()
    >>> x = engine.tensor([[1.0, -2.0], [3.0, 4.0]])
    >>> loss = (x * x).relu().mean()
    >>> loss.backward()
    >>> loss.item(), x.grad.tolist()
    (7.5, [[0.5, -1.0], [1.5, 2.0]])
    >>> print(engine.share())
    0 of the 17 functions of the course that this run called are yours (0% of 72 calls)
    """

    all_backwards = 0
    """Number of backward passes of all engines."""

    def __init__(self, student: Student | None = None) -> None:
        self.student = Overlay() if student is None else student
        self.backwards = 0
        """Number of backward passes."""
        self._slots: dict[str, oracle.Slot] = {}

    def slot(self, name: str) -> Any:
        """Return the function or class of a slot."""
        if name not in self._slots:
            is_known = isinstance(self.student, Overlay) or name in self.student.home
            self._slots[name] = getattr(self.student, name) if is_known else oracle.function(name)
        return self._slots[name]

    def share(self) -> Share:
        """Return how many of the calls so far ran the student's functions."""
        return share_of(self.student.calls, self.student.lent)

    # variables

    def scalar(self, value: float) -> Scalar:
        """Create a scalar with gradients."""
        return Scalar(self, float(value))

    def tensor(self, values: Numbers | Values) -> Tensor:
        """Create a tensor with gradients from nested lists or an array."""
        return Tensor(self, self.values(values))

    def constant(self, values: Numbers | Values) -> Tensor:
        """Create a tensor without gradients, for data."""
        return Tensor(self, self.values(values), None, True)

    def apply(self, function: str | Function, *inputs: VariableT, **options: object) -> VariableT:
        """Apply a function, or the function of a slot, to variables, and record the call if one of them has gradients.

        `forward` receives the values and the options; `backward` returns a gradient for each variable.
        """
        resolved: Function = self.slot(function) if isinstance(function, str) else function
        context = Context()
        value = resolved.forward(context, *[x.value for x in inputs], **options)
        is_constant = all(x.is_constant for x in inputs)
        return type(inputs[0])(self, value, None if is_constant else Call(resolved, context, inputs), is_constant)

    def backward(self, root: Variable[Any], d: Numbers | Values | None = None) -> None:
        """Accumulate gradients in the leaves from which a variable was computed."""
        self.backwards += 1
        Engine.all_backwards += 1
        self.slot("backpropagate")(root, unit_gradient(root) if d is None else root.as_value(d))

    # tensors without history

    def values(self, x: Numbers | Values) -> Values:
        """Convert numbers, nested lists, an array or a `Strided` to `Values`."""
        given: object = x  # a student may pass anything
        if isinstance(given, Variable):
            name = type(given).__name__
            raise TypeError(f"expected numbers, lists or an array, got a {name}: use it as it is, or its .value")
        return super().values(x)

    def loop(self, kind: str, name: str, out: Strided, a: Strided, *operands: Operand) -> None:
        """Run map, zip or reduce of task 2.3 with an operator. A slot that it calls for each element counts once."""
        run, operator = self.slot(f"tensor_{kind}"), self.operator(name)
        with count_slots_once(self.student.calls, self.student.lent):
            run(operator, out, a, *operands)

    def write(self, slot: str, out: Strided, *operands: Operand) -> None:
        """Let a slot of module 4 write a tensor. A slot that it calls for each element counts once."""
        with count_slots_once(self.student.calls, self.student.lent):
            self.slot(slot)(out, *operands)

    def operator(self, name: str) -> Callable[..., float]:
        """Return an operator without its counter, and count one call for the whole loop."""
        self.student.count(name)
        function: Callable[..., float] = getattr(self.slot(name), "__wrapped__", self.slot(name))
        return function

    def matmul(self, a: Values, b: Values) -> Values:
        """Multiply matrices with the matmul of task 3.2, or by zip and reduce if task 2.3 is the student's."""
        shape = (*self.slot("broadcast_shape")(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
        if self.student.is_from_student("tensor_zip") and self.student.is_from_student("tensor_reduce"):
            rows = a.reshape((*a.shape, 1))
            columns = b.reshape((*b.shape[:-2], 1, *b.shape[-2:]))
            return rows.zip("mul", columns).reduce("add", -2, 0.0).reshape(shape)
        out = self.fresh(shape)
        self.slot("parallel_matmul")(out, a.data, b.data)
        return Values(self, out)
