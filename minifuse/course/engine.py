"""The engine of the course, assembled from slots: every number that it computes, a function of a task has computed.

    Scalar, Tensor      variables: what a user writes with          variables
    Values              tensors without history                     values
    Engine              finds the slots, and runs them              here
    Overlay             whose function stands in a slot             overlay

The engine itself has no arithmetic, no index rule, no loop over elements and no derivative. It has only the parts between
them: memory for results, and a history for what was computed.
"""

from collections import Counter
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.indexing import Shape
from . import oracle
from .overlay import Overlay, Share, once_each, share_of
from .strided import Strided
from .student import Student
from .values import Numbers, Operand, Values, values_of
from .variables import Call, Context, Function, Scalar, Tensor, Variable, VariableT, one

if TYPE_CHECKING:
    from .engine_parallel import Parallel
    from .engine_serial import Serial


class Engine:
    """Scalars and tensors over the slots of a student's, or of the oracle.

    Parameters
    ----------
    student : Student, optional
        Where slots come from. An `Overlay` takes from the oracle what is still to be written, a `Student` does not; without
        one, all is the oracle's.
    is_parallel : bool
        Whether map, zip, reduce and matmul are those of tasks 3.1 and 3.2, compiled, instead of those of 2.3.
    is_compiled : bool
        Whether a student's convolutions and pooling run as compiled code too, where Numba takes them as they stand.

    Examples
    --------
    >>> engine = Engine()
    >>> x = engine.tensor([[1.0, -2.0], [3.0, 4.0]])
    >>> loss = (x * x).relu().mean()
    >>> loss.backward()
    >>> loss.item(), x.grad.tolist()
    (7.5, [[0.5, -1.0], [1.5, 2.0]])
    >>> print(engine.share())
    0 of 17 slots are yours, and 0% of 72 calls
    """

    def __init__(self, student: Student | None = None, *, is_parallel: bool = False, is_compiled: bool = False) -> None:
        self.student = Overlay() if student is None else student
        self.is_parallel, self.is_compiled = is_parallel, is_compiled
        self.backwards = 0
        """How often derivatives were gathered."""
        self._slots: dict[str, oracle.Slot] = {}
        self._theirs: dict[str, bool] = {}
        self._parallel: Parallel | None = None
        self._serial: Serial | None = None

    def slot(self, name: str) -> Any:
        """The function, or class, in a slot."""
        if name not in self._slots:
            is_known = isinstance(self.student, Overlay) or name in self.student.home
            self._slots[name] = getattr(self.student, name) if is_known else oracle.function(name)
        return self._slots[name]

    def share(self) -> Share:
        """How much of what ran so far was the student's."""
        return share_of(self.student.calls, self.lent)

    @property
    def lent(self) -> Counter[str]:
        """How often each function of the oracle's was called, where that is counted."""
        return self.student.lent if isinstance(self.student, Overlay) else Counter()

    # variables

    def scalar(self, value: float) -> Scalar:
        """A number that derivatives are gathered for."""
        return Scalar(self, float(value))

    def tensor(self, values: Numbers | Values) -> Tensor:
        """A tensor of nested lists or of an array, that derivatives are gathered for."""
        return Tensor(self, self.values(values))

    def constant(self, values: Numbers | Values) -> Tensor:
        """A tensor that no derivatives are gathered for: data."""
        return Tensor(self, self.values(values), None, True)

    def apply(self, function: str | Function, *inputs: VariableT, **options: object) -> VariableT:
        """A function, or the one in a slot, on variables of one kind; the result remembers it, unless all are constants.

        `forward` gets the values and the options; `backward` gives a derivative for each of the variables.
        """
        found: Function = self.slot(function) if isinstance(function, str) else function
        context = Context()
        value = found.forward(context, *[x.value for x in inputs], **options)
        is_constant = all(x.is_constant for x in inputs)
        return type(inputs[0])(self, value, None if is_constant else Call(found, context, inputs), is_constant)

    def backward(self, root: Variable[Any], d: Numbers | Values | None = None) -> None:
        """Gather derivatives in the leaves that a variable was computed from."""
        self.backwards += 1
        self.slot("backpropagate")(root, one(root) if d is None else root.plain(d))

    # tensors without history

    def values(self, x: Numbers | Values) -> Values:
        """Numbers, nested lists, an array or a `Strided` as values."""
        return values_of(self, x)

    def fresh(self, shape: Shape) -> Strided:
        """Memory for a result, in row-major order."""
        shape = tuple(shape)
        return Strided(np.empty(max(prod(shape), 1)), shape, self.slot("row_major_strides")(shape), 0)

    def loop(self, kind: str, name: str, out: Strided, a: Strided, *operands: Operand) -> None:
        """Run map, zip or reduce with an operator: the compiled loop if that is asked for and takes it, else task 2.3's.

        What a loop calls for each element counts once.
        """
        if self.is_parallel and self.parallel.takes(name):
            self.parallel.run(kind, name, out, a, *operands)
            return
        run, operator = self.slot(f"tensor_{kind}"), self.operator(name)
        with once_each(self.student.calls, self.lent):
            run(operator, out, a, *operands)

    def write(self, slot: str, out: Strided, *operands: Operand) -> None:
        """Let a slot of module 4 write a tensor. What it calls for each element counts once."""
        if self.is_compiled and self.is_theirs(slot):
            self.serial.run(slot, out, *operands)
            return
        with once_each(self.student.calls, self.lent):
            self.slot(slot)(out, *operands)

    def operator(self, name: str) -> Callable[..., float]:
        """An operator for the elements of a loop: counted once for all of them."""
        self.student.count(name)
        function: Callable[..., float] = getattr(self.slot(name), "__wrapped__", self.slot(name))
        return function

    def matmul(self, a: Values, b: Values) -> Values:
        """Multiply matrices by task 3.2's matmul; by the loops of 2.3, over a tensor (..., m, k, n), if those are theirs."""
        shape = (*self.slot("broadcast_shape")(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
        if not self.is_parallel and self.is_theirs("tensor_zip") and self.is_theirs("tensor_reduce"):
            rows = a.reshape((*a.shape, 1))
            columns = b.reshape((*b.shape[:-2], 1, *b.shape[-2:]))
            return rows.zip("mul", columns).reduce("add", -2, 0.0).reshape(shape)
        out = self.fresh(shape)
        (self.parallel.matmul if self.is_parallel else self.slot("parallel_matmul"))(out, a.data, b.data)
        return Values(self, out)

    @property
    def parallel(self) -> "Parallel":
        """The loops of module 3."""
        if self._parallel is None:
            from .engine_parallel import Parallel

            self._parallel = Parallel(self.student, self.is_theirs)
        return self._parallel

    @property
    def serial(self) -> "Serial":
        """The loops of module 4, compiled."""
        if self._serial is None:
            from .engine_serial import Serial

            self._serial = Serial(self.student, self.lent)
        return self._serial

    def is_theirs(self, slot: str) -> bool:
        """Return whether a slot is the student's own function."""
        if slot not in self._theirs:
            if isinstance(self.student, Overlay):
                self._theirs[slot] = self.student.is_theirs(slot)
            else:
                task = self.student.home.get(slot)
                self._theirs[slot] = task is not None and self.student.task in (None, task)
        return self._theirs[slot]
