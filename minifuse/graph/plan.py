"""Plans: all of a call that follows from the kinds of its inputs, done once.

The key of a call is the function, whether calls are recorded, and the Spec of each input, an interned object: a lookup
hashes a few addresses. A miss captures, differentiates, schedules, binds and writes the host program, in about a
millisecond; it compiles only where the source of a kernel is new.
"""

from collections.abc import Callable, Sequence
from typing import Any

from ..array import Array
from ..autodiff import FREED, mode
from ..backends.base import Backend
from ..dag import Interned
from ..dtypes import DType, bool_, weak
from ..errors import BackendError, DTypeError, FuseError, GradientError, OverlapError, ShapeError
from ..functions import Full
from ..layout import Layout
from ..operators import add
from ..storage import writes
from .differentiate import Backward
from .host import HostProgram
from .node import Argument, Node, Number, base, captures, literal
from .schedule import Schedule, in_pieces


class Spec(metaclass=Interned):
    """All of a tensor but its data. The layout starts at the tensor's address: its offset is 0."""

    __slots__ = ("__weakref__", "backend", "dtype", "layout", "requires_grad")

    def __init__(self, layout: Layout, dtype: DType, backend: Backend, requires_grad: bool) -> None:
        self.layout, self.dtype, self.backend, self.requires_grad = layout, dtype, backend, requires_grad


MANY = 10_000  # plans that are remembered

plans: dict[Any, "Plan"] = {}  # key -> plan, oldest first
runs: dict[Any, Callable[..., Any]] = {}  # key -> its host program, which is all that a repeated call needs


def key_of(function: Any, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """What a plan depends on."""
    return (function, mode.is_recording, *[getattr(x, "spec", None) or type(x) for x in inputs])


def call(function: Any, *inputs: Any) -> Any:
    """Apply any function to tensors and numbers: an Operator, a fold, or a Python function that is captured."""
    # key_of, written out: a frame more would be felt in a small operation
    key = (function, mode.is_recording, *[getattr(x, "spec", None) or type(x) for x in inputs])
    run = runs.get(key)
    if run is None:
        return first_call(key, function, inputs)
    return run(*inputs)


def first_call(key: Any, function: Any, inputs: Sequence[Any]) -> Any:
    """Plan the call, remember the plan, and run it. NumPy arrays become tensors first."""
    example = next(x for x in inputs if isinstance(x, Array))
    lifted = [x if isinstance(x, Array) or not hasattr(x, "ndim") or x.ndim == 0 else example.like(x) for x in inputs]
    if any(x is not y for x, y in zip(lifted, inputs, strict=True)):
        return call(function, *lifted)
    return remember(key, Plan(function, inputs))(*inputs)


def remember(key: Any, plan: "Plan") -> Callable[..., Any]:
    """Keep a new plan, and let the oldest of too many go; gives its host program."""
    while len(plans) >= MANY:
        oldest = next(iter(plans), None)
        plans.pop(oldest, None)
        runs.pop(oldest, None)
    plans[key], runs[key] = plan, plan.run
    return plan.run


def update(function: Any, targets: tuple[int, ...], same: tuple[int, ...], *inputs: Any) -> None:
    """Apply a function, and store its results in the inputs that `targets` names: an operation in place.

    `same` names for each input the first one that is the very same elements; otherwise targets overlap nothing.
    """
    key = (targets, same, *key_of(function, inputs))
    run = runs.get(key)
    if run is None:
        refuse_changes([x.spec for x in inputs if isinstance(x, Array)], [inputs[k].spec for k in targets])
        run = remember(key, Plan(function, inputs, targets, same))
    run(*inputs)
    for k in targets:
        writes.mark(inputs[k].buffer)


def refuse_changes(specs: Sequence[Spec], targets: Sequence[Spec]) -> None:
    """Raise where a change in place would make a gradient or a value wrong."""
    for spec in specs:
        if spec.requires_grad and mode.is_recording:
            raise GradientError(
                f"a change in place is not recorded, and a tensor of shape {spec.layout.shape} requires a gradient; "
                "write x = x + y instead of x += y, or change it inside `with mf.no_grad():`"
            )
    for spec in targets:
        shape, strides = spec.layout.shape, spec.layout.strides
        if spec.layout.overlaps_itself:
            raise OverlapError(
                f"in-place write to shape {shape} with strides {strides}: several elements share one place, since "
                "the tensor is expanded; write to a clone()"
            )


def name_of(function: Any) -> str:
    """What messages call a function."""
    return getattr(function, "__name__", None) or repr(function)


class Call:
    """One recorded run of a plan, for backpropagation."""

    __slots__ = ("clock", "count", "edges", "kept", "plan")

    def __init__(self, plan: "Plan", edges: tuple[Any, ...], kept: tuple[Any, ...]) -> None:
        self.plan, self.edges, self.kept = plan, edges, kept
        self.count, self.clock = plan.count, writes.clock

    def backward(self, gradients: Sequence[Any]) -> Sequence[Any]:
        """Gradients of the inputs."""
        kept = self.kept
        if kept is None:
            raise GradientError(FREED)
        for x in kept:
            if isinstance(x, Array) and x.buffer.written > self.clock:
                raise GradientError(
                    f"backward: a tensor of shape {x.shape} that the gradient of {name_of(self.plan.function)} needs was "
                    "changed in place after it was used; change a clone(), or compute the value again"
                )
        return self.plan.gradients(self, gradients)

    def release(self) -> None:
        """Let go of what was kept."""
        self.edges, self.kept = (), None  # type: ignore[assignment]


class Plan:
    """A captured function, for inputs of given kinds: `run` is its host program, `steps` its kernels.

    `tensor` is the class of results; the module that defines it stands above this one, and puts it here.

    Parameters
    ----------
    function
        Called with nodes once; Python numbers among the inputs become numbers of the launch.
    inputs
        Tensors and numbers like those of the calls to come.
    targets
        Inputs that the results are stored in.
    same
        For each input the first one that is the very same.
    baked
        Inputs that the function gets as they are.
    """

    tensor: Any = None

    def __init__(
        self,
        function: Any,
        inputs: Sequence[Any],
        targets: tuple[int, ...] = (),
        same: Sequence[int] = (),
        baked: Sequence[int] = (),
    ) -> None:
        example = next((x for x in inputs if isinstance(x, Array)), None)
        if example is None:
            raise FuseError(f"{name_of(function)}: got no tensor; pass at least one, since it says which backend computes")
        self.function, self.backend, self.targets = function, example.spec.backend, targets
        self.arguments = [self.argument(k, x) for k, x in enumerate(inputs)]
        self.hidden: list[Any] = []  # tensors that the function refers to
        given = [self.arguments[k] for k in same] or self.arguments
        results, self.is_tuple = self.capture([inputs[k] if k in baked else node for k, node in enumerate(given)])
        overwritten = {self.arguments[k] for k in targets}
        self.outputs = (
            [self.fit(x, inputs[k], overwritten) for x, k in zip(results, targets, strict=True)] if targets else results
        )
        self.count = len(self.outputs)
        specs = [getattr(x, "spec", None) for x in (*inputs, *self.hidden)]
        self.backward = None if targets else self.backward_pass(specs)
        self.schedule([spec and spec.layout for spec in specs])

    def backward_pass(self, specs: Sequence[Any]) -> Backward | None:
        """The backward pass, where calls are recorded and a gradient flows to an input that wants one."""
        arguments = zip(self.arguments, specs, strict=True)
        wanted = [x for x, spec in arguments if spec and spec.requires_grad and mode.is_recording]
        backward = Backward(self.arguments, self.outputs, wanted) if wanted else None
        return backward if backward and backward.receivers else None

    def argument(self, k: int, x: Any) -> Node:
        """The node that stands for input k."""
        if not isinstance(x, Array):
            return Node(Number(k), (), (), weak(x))
        if x.spec.backend is not self.backend:
            raise BackendError(
                f"{name_of(self.function)}: operands are on two backends, {self.backend.name} and {x.spec.backend.name}; "
                f'move one with x.to("{self.backend.name}")'
            )
        return Node(Argument(k), (), x.shape, x.dtype)

    def capture(self, arguments: Sequence[Any]) -> tuple[list[Node], bool]:
        """Call the function with nodes (and values that are baked in); tensors that it refers to become hidden arguments."""
        known: dict[int, Node] = {}

        def lift(x: Any) -> Node:
            x = x if isinstance(x, Array) else self.tensor.from_numpy(x, self.backend)
            if id(x) not in known:
                known[id(x)] = self.argument(len(self.arguments), x)
                self.arguments.append(known[id(x)])
                self.hidden.append(x)
            return known[id(x)]

        captures.append(lift)
        try:
            result = self.function(*arguments)
        finally:
            captures.pop()
        results = result if isinstance(result, tuple) else (result,)
        for x in results:
            if not isinstance(x, Node) and not (self.targets and isinstance(x, bool | int | float)):
                raise FuseError(f"{name_of(self.function)}: the function gave {type(x).__name__}, expected a tensor")
        return list(results), isinstance(result, tuple)

    def fit(self, node: Any, target: Any, overwritten: set[Node]) -> Node:
        """A result as what its target holds."""
        if not isinstance(node, Node):
            node = literal(node)
        if node.is_number:
            dtype = target.dtype if not issubclass(node.dtype, float) else add.result_dtype(target.dtype, float)[0]
            node = Full(target.shape, dtype)(Node(node.function, (), (), dtype))
        if (node.dtype.is_float and not target.dtype.is_float) or (target.dtype is bool_ and node.dtype is not bool_):
            kinds = f"the result is {node.dtype} and cannot be stored in {target.dtype}"
            raise DTypeError(f"{name_of(self.function)}: {kinds}; convert it first")
        try:
            fitted: Node = node.to(target.dtype).expand(target.shape)
        except ShapeError:
            shapes = f"the result has shape {node.shape}, and {target.shape} is where it is stored"
            raise ShapeError(f"{name_of(self.function)}: {shapes}; it does not broadcast to that") from None
        return fitted.clone() if base(fitted) in overwritten else fitted  # read before anything is stored

    def schedule(self, layouts: list[Layout | None]) -> None:
        """Find the kernels, and write the host program that runs them."""
        saved = self.backward.saved if self.backward else []
        nodes = in_pieces([*self.outputs, *saved])
        schedule = Schedule(self.arguments, layouts)
        if self.backward:
            selected = self.backward.selected
            schedule.compute([y for x, y in zip(saved, nodes[self.count :], strict=True) if x in selected])
        schedule.compute(nodes)  # now folds that select read what is saved
        places = [schedule.locate(node) for node in nodes]
        for k, node, place in zip(self.targets, nodes, places, strict=False):
            schedule.store(place, schedule.place[self.arguments[k]], node)
        specs = []
        for k, (node, (_, layout)) in enumerate(zip(nodes, places, strict=True)):
            requires_grad = self.backward is not None and k < self.count and self.outputs[k] in self.backward.matters
            specs.append(Spec(layout.from_zero(), node.dtype, self.backend, requires_grad))
        self.specs, self.steps = specs, schedule.steps
        host = HostProgram(self, schedule, [] if self.targets else places, [] if self.targets else specs, Call)
        self.text, self.run = host.text, host.function()

    def gradients(self, call_: Call, arrived: Sequence[Any]) -> Sequence[Any]:
        """What the inputs of one run receive."""
        backward = self.backward
        assert backward is not None
        arrived = [self.zeros(y) if g is None else g for y, g in zip(self.outputs, arrived, strict=True)]
        count = len(backward.inputs)
        kept, saved = call_.kept[:count], call_.kept[count:]
        if not mode.is_recording:
            found: Sequence[Any] = call(backward.function, *kept, *arrived, *saved)
            return found
        remembering = []
        for k, n in backward.outputs_among_saved:
            y = self.tensor(saved[k].buffer, saved[k].address, self.specs[n])
            y.history = call_, n
            remembering.append(y.reshape(saved[k].shape))
        found = call(backward.differentiable, *kept, *arrived, *remembering)
        return found

    def zeros(self, node: Node) -> Any:
        """What an output that nobody used receives."""
        return self.tensor.full(node.shape, 0, node.dtype, self.backend)

    def source(self) -> str:
        """The host program and every kernel, as they run."""
        return "\n".join([self.text, *[f"# launch{k}\n{step.source(self.backend)}" for k, step in enumerate(self.steps)]])
