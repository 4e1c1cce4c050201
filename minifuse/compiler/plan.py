"""Plans: all of a call that follows from the kinds of its inputs, done once.

The key of a call is the function, whether calls are recorded, and the Spec of each input, an interned object: a lookup
hashes a few addresses. A miss captures, differentiates, schedules, binds and writes the host program, in about a
millisecond; it compiles only where the source of a kernel is new.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from operator import is_not
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ..backends.base import Backend
from ..core.autograd import FREED_GRAPH
from ..core.dispatch import active_hook, mode
from ..core.dtypes import DType, as_number, bool_, weak_type_of
from ..core.errors import BackendError, DTypeError, FuseError, GradientError, OverlapError, ShapeError
from ..core.interning import Interned
from ..core.layout import Layout
from ..core.operators import add
from ..ir.array_functions import BoundFunction, Full
from ..ir.array_methods import Array
from ..ir.graph import Argument, Node, Number, literal, use_wrapper
from ..ir.vjp import Backward
from ..runtime.kernel_cache import KernelNotCompiled, MissingKernel, cache
from ..runtime.memory_pool import write_clock
from ..runtime.plan_cache import PlanTable
from .host_program import HostProgram
from .pipeline import schedule_plan
from .plan_size import plan_nbytes
from .pretty_print import kernel_comment


class TensorMeta(metaclass=Interned):
    """All of a tensor but its data. The layout starts at the tensor's address: its offset is 0."""

    __slots__ = ("__weakref__", "backend", "dtype", "layout", "requires_grad")

    def __init__(self, layout: Layout, dtype: DType, backend: Backend, requires_grad: bool) -> None:
        self.layout, self.dtype, self.backend, self.requires_grad = layout, dtype, backend, requires_grad


NATIVE_TYPES = (Array, np.float64)  # operands that need no conversion: NumPy's float64 is a Python float

plans: PlanTable["Plan"] = PlanTable()  # by key
runs = plans.fast_path  # key -> its host program, which is all that a repeated call needs; some plans are in `plans` alone


def plan_key(function: Any, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """What a plan depends on."""
    return (function, mode.is_recording, *[getattr(x, "spec", None) or type(x) for x in inputs])


def call(function: Any, *inputs: Any) -> Any:
    """Apply any function to tensors and numbers: an Operator, a fold, or a Python function that is captured."""
    key: Any
    if len(inputs) == 2:  # key_of, written out: a frame more would be felt in a small operation
        a, b = inputs
        key = function, mode.is_recording, getattr(a, "spec", None) or type(a), getattr(b, "spec", None) or type(b)
    elif len(inputs) == 1:
        key = function, mode.is_recording, getattr(inputs[0], "spec", None) or type(inputs[0])
    else:
        key = plan_key(function, inputs)
    run = runs.get(key)
    return compile_and_run(function, inputs) if run is None else run(*inputs)


def unwrap_scalars(inputs: Sequence[Any]) -> list[Any]:
    """Return the inputs of a call with Python numbers in the place of other libraries' scalars."""
    return [x if isinstance(x, NATIVE_TYPES) else as_number(x) for x in inputs]


def compile_and_run(function: Any, inputs: Sequence[Any]) -> Any:
    """Plan the call, remember the plan, and run it; or hand it to whoever takes calls."""
    known = unwrap_scalars(inputs)
    if any(map(is_not, known, inputs)):
        return call(function, *known)
    if (by := active_hook()) is not None:
        return by.call(function, inputs)
    for x in inputs:
        if isinstance(x, Node):  # a function that is captured by itself refers to a tensor
            return x.apply(function, *inputs)
    plan, inputs = get_plan(function, inputs)
    return plan.run(*inputs)


def get_plan(function: Any, inputs: Sequence[Any]) -> "tuple[Plan, Sequence[Any]]":
    """The plan of a call, found or made, and its inputs, in which NumPy's arrays are tensors."""
    example = next(x for x in inputs if isinstance(x, Array))
    lifted = [
        x if isinstance(x, NATIVE_TYPES) or not hasattr(x, "ndim") else example.asarray_like(x)
        for x in unwrap_scalars(inputs)
    ]
    key = plan_key(function, lifted)
    return get_or_make_plan(key, lambda: Plan(function, lifted)), lifted


def get_or_make_plan(key: Any, make: "Callable[[], Plan]") -> "Plan":
    """Return the plan of a key, found or made; the next call with this key finds its host program at once."""
    plan = plans.get(key)
    if plan is None:
        plan = make()
        plan.run  # noqa: B018  # binds what it launches: a plan that cannot run is not remembered
        plans.put(key, plan, plan_nbytes(plan))
    runs[key] = plan.run
    return plan


def get_inplace_plan(function: Any, targets: tuple[int, ...], same: tuple[int, ...], inputs: Sequence[Any]) -> "Plan":
    """The plan of an operation in place, found or made: its results are stored in the inputs that `targets` names.

    `same` names for each input the first one that is the very same elements; otherwise targets overlap nothing.
    """

    def make() -> Plan:
        check_inplace([x.spec for x in inputs if isinstance(x, Array)], [inputs[k].spec for k in targets])
        return Plan(function, inputs, targets, same)

    return get_or_make_plan((targets, same, *plan_key(function, inputs)), make)


def check_inplace(specs: Sequence[TensorMeta], targets: Sequence[TensorMeta]) -> None:
    """Raise where a change in place would make a gradient or a value wrong."""
    for spec in specs:
        if spec.requires_grad and mode.is_recording:
            raise GradientError(
                f"a change in place is not recorded, and a tensor of shape {spec.layout.shape} requires a gradient; "
                "write x = x + y instead of x += y, or change it inside `with mf.no_grad():`"
            )
    for spec in targets:
        shape, strides = spec.layout.shape, spec.layout.strides
        if spec.layout.has_internal_overlap:
            raise OverlapError(
                f"in-place write to shape {shape} with strides {strides}: several elements share one place, since "
                "the tensor is expanded, or shows windows that overlap; write to a clone()"
            )


def function_name(function: Any) -> str:
    """What messages call a function."""
    return getattr(function, "__name__", None) or repr(function)


def display_name(function: Any) -> str:
    """What tables call a function: of one that is made of others, the name of its body."""
    return function.body.__name__.strip("_") if isinstance(function, BoundFunction) else function_name(function)


def backend_of(function: Any, inputs: Sequence[Any]) -> Backend:
    """The backend of the tensors among the inputs."""
    example = next((x for x in inputs if isinstance(x, Array)), None)
    if example is None:
        raise FuseError(f"{function_name(function)}: got no tensor; pass at least one, since it says which backend computes")
    found: Backend = example.spec.backend
    return found


def cast_to_target(name: str, node: Any, target: Any) -> Node:
    """A result as what its target holds."""
    if not isinstance(node, Node):
        node = literal(node)
    if node.is_number:
        dtype = target.dtype if not issubclass(node.dtype, float) else add.result_dtype(target.dtype, float)[0]
        node = Full(target.shape, dtype)(node.to(dtype))
    if (node.dtype.is_float and not target.dtype.is_float) or (target.dtype is bool_ and node.dtype is not bool_):
        kinds = f"the result is {node.dtype} and cannot be stored in {target.dtype}"
        raise DTypeError(f"{name}: {kinds}; convert it first")
    try:
        fitted: Node = node.to(target.dtype).expand(target.shape)
    except ShapeError:
        shapes = f"the result has shape {node.shape}, and {target.shape} is where it is stored"
        raise ShapeError(f"{name}: {shapes}; it does not broadcast to that") from None
    return fitted


class PlanBackward:
    """One recorded run of a plan, for backpropagation."""

    __slots__ = ("clock", "count", "edges", "kept", "plan")

    def __init__(self, plan: "Plan", edges: tuple[Any, ...], kept: tuple[Any, ...]) -> None:
        self.plan, self.edges, self.kept = plan, edges, kept
        self.count, self.clock = plan.count, write_clock.clock

    def backward(self, gradients: Sequence[Any]) -> Sequence[Any]:
        """Gradients of the inputs."""
        kept = self.kept
        if kept is None:
            raise GradientError(FREED_GRAPH)
        for x in kept:
            if isinstance(x, Array) and x.buffer.version.last_write > self.clock:
                raise modified_error(f"a tensor of shape {x.shape}", self.plan.function)
        return self.plan.gradients(self, gradients)

    def free_saved(self) -> None:
        """Let go of what was kept."""
        self.edges, self.kept = (), None  # type: ignore[assignment]


def modified_error(what: str, function: Any) -> GradientError:
    """The error of a gradient that needs what is no longer there."""
    return GradientError(
        f"backward: {what} that the gradient of {function_name(function)} needs was changed in place after it was "
        f"used; change a "
        "clone(), or compute the value again"
    )


class TracedGraph(NamedTuple):
    """What a capture found: the graph of a call."""

    arguments: list[Node]
    """Tensors and numbers: those that are given, then those that the function refers to."""
    hidden: list[Any]
    """What stands behind the last of them: tensors, or how each call makes them (`PerCallInput`)."""
    outputs: list[Node]
    """What the call gives."""
    stores: list[tuple[Node, Node]]
    """(argument, what is stored in its memory): changes in place."""
    is_tuple: bool = True
    aliases: Mapping[Node, tuple[int, Layout]] = MappingProxyType({})
    """Nodes that stand for memory around an argument, or in it: the argument, and their layout from its address."""
    nondifferentiable: Collection[int] = ()
    """Outputs that carry no gradient, though they are computed from what has one."""
    layouts: Mapping[Node, Layout] = MappingProxyType({})
    """How outputs are to lie."""
    leaves: Mapping[Node, Node] = MappingProxyType({})
    """Nodes that stand for an argument too, where its gradient is asked for: what it was changed to in place."""
    owners: Mapping[int, int] = MappingProxyType({})
    """Outputs that are views of an argument: {output: argument}. The result shares the buffer of that argument."""
    copies: Collection[int] = ()
    """Arguments that are copies of memory which the call changes after it read them."""

    def changed_arguments(self) -> list[Node]:
        """The arguments that are changed in place, or copied since they will be, and all that stand for memory of those."""
        found = [*[argument for argument, _ in self.stores], *[self.arguments[k] for k in self.copies]]
        shared = {self.aliases[node][0] for node in found if node in self.aliases}
        return found + [node for node, (index, _) in self.aliases.items() if index in shared]


class PerCallInput(NamedTuple):
    """A hidden input that each call makes anew: an expression of the inputs x0, x1, ..., and the names in it."""

    text: str
    names: dict[str, Any]
    value: Any  # an example
    get: Callable[[Sequence[Any]], Any] | None = None  # the same for those who have the inputs and not the names


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
    program
        What a capture found, where that is done already.
    recompute
        "auto", or "none": the backward pass computes nothing again.
    backend
        That of the inputs, if left out.
    names
        What the user calls the arguments, for those who read the host program.

    Attributes
    ----------
    run
        The host program as a function. Kernels are bound, and compiled where they are new, when it is first asked for.
    """

    tensor: Any = None

    def __init__(
        self,
        function: Any,
        inputs: Sequence[Any],
        targets: tuple[int, ...] = (),
        same: Sequence[int] = (),
        program: TracedGraph | None = None,
        recompute: str = "auto",
        backend: Backend | None = None,
        names: Sequence[str] = (),
    ) -> None:
        self.function, self.recompute, self.names = function, recompute, names
        self.backend = backend or backend_of(function, inputs)
        self.graph = program or self.trace(inputs, targets, same)
        self.arguments, self.hidden, self.outputs = self.graph.arguments, self.graph.hidden, self.graph.outputs
        self.is_tuple, self.count = self.graph.is_tuple, len(self.graph.outputs)
        given = [*inputs, *[x.value if isinstance(x, PerCallInput) else x for x in self.hidden]]
        specs = [getattr(x, "spec", None) for x in given]
        self.backward = self.backward_pass(specs) if self.outputs else None
        self.schedule([spec and spec.layout for spec in specs])

    def trace(self, inputs: Sequence[Any], targets: tuple[int, ...], same: Sequence[int]) -> TracedGraph:
        """Call the function with nodes; tensors that it refers to become hidden arguments."""
        arguments = [self.argument(k, x) for k, x in enumerate(inputs)]
        hidden, known = list[Any](), dict[int, Node]()

        def lift(x: Any) -> Node:
            x = x if isinstance(x, Array) else self.tensor.from_numpy(x, self.backend)
            if id(x) not in known:
                known[id(x)] = self.argument(len(arguments), x)
                arguments.append(known[id(x)])
                hidden.append(x)
            return known[id(x)]

        with use_wrapper(lift):
            result = self.function(*([arguments[k] for k in same] or arguments))
        results = result if isinstance(result, tuple) else (result,)
        for x in results:
            if not isinstance(x, Node) and not (targets and isinstance(x, bool | int | float)):
                raise FuseError(f"{function_name(self.function)}: the function gave {type(x).__name__}, expected a tensor")
        if not targets:
            return TracedGraph(arguments, hidden, list(results), [], isinstance(result, tuple))
        fitted = [cast_to_target(function_name(self.function), x, inputs[k]) for x, k in zip(results, targets, strict=True)]
        return TracedGraph(arguments, hidden, [], [(arguments[k], x) for x, k in zip(fitted, targets, strict=True)])

    def backward_pass(self, specs: Sequence[Any]) -> Backward | None:
        """The backward pass, where calls are recorded and a gradient flows to an input that wants one."""
        arguments = zip(self.arguments, specs, strict=True)
        wanted = [x for x, spec in arguments if spec and spec.requires_grad and mode.is_recording]
        program = self.graph
        backward = None
        if wanted:
            how = program.nondifferentiable, self.recompute, program.leaves, program.changed_arguments()
            backward = Backward(self.arguments, self.outputs, wanted, *how)
        if backward is None or not backward.arguments_with_grad:
            return None
        backward.function.of = backward.differentiable.of = display_name(self.function)
        return backward

    def argument(self, k: int, x: Any) -> Node:
        """The node that stands for input k."""
        if not isinstance(x, Array):
            return Node(Number(k), (), (), weak_type_of(x))
        if x.spec.backend is not self.backend:
            raise BackendError(
                f"{function_name(self.function)}: operands are on two backends, {self.backend.name} and "
                f"{x.spec.backend.name}; "
                f'move one with x.to("{self.backend.name}")'
            )
        return Node(Argument(k), (), x.shape, x.dtype)

    def schedule(self, layouts: list[Layout | None]) -> None:
        """Find the kernels, and write the host program that runs them."""
        found = schedule_plan(self, layouts)
        specs = []
        for k, (node, (_, layout)) in enumerate(zip(found.outputs_and_saved, found.places, strict=True)):
            requires_grad = (
                self.backward is not None and k < self.count and self.outputs[k] in self.backward.differentiable_nodes
            )
            requires_grad = requires_grad and k not in self.graph.nondifferentiable
            specs.append(TensorMeta(layout.without_offset(), node.dtype, self.backend, requires_grad))
        self.specs, self.steps, self.refusals = specs, found.schedule.steps, list(found.schedule.refusals)
        self.host = HostProgram(self, found.schedule, found.places, specs, PlanBackward, self.names)
        self.text = self.host.text

    @cached_property
    def run(self) -> Callable[..., Any]:
        """The host program."""
        return self.host.function()

    def kernels_to_compile(self) -> dict[str, MissingKernel]:
        """The kernels that would have to be compiled, by name; of a launch that needs several, the first one."""
        with cache.collect_missing() as found:
            for step in self.steps:
                with suppress(KernelNotCompiled):
                    step.bind(self.backend)
        return found

    def gradients(self, call_: PlanBackward, arrived: Sequence[Any]) -> Sequence[Any]:
        """What the inputs of one run receive."""
        backward = self.backward
        assert backward is not None
        arrived = [self.zeros(y) if g is None else g for y, g in zip(self.outputs, arrived, strict=True)]
        if backward.needs_overwritten_value:
            raise modified_error("an argument", self.function)
        count = len(backward.inputs)
        kept, saved = call_.kept[:count], call_.kept[count:]
        if not mode.is_recording:
            found: Sequence[Any] = call(backward.function, *kept, *arrived, *saved)
            return found
        if backward.double_needs_overwritten_value:
            raise GradientError(
                f"backward: create_graph through {function_name(self.function)}, which changes in place what its "
                f"gradient needs; "
                "make the change outside, or in a clone()"
            )
        remembering = []
        for k, n in backward.saved_outputs:
            y = self.tensor(saved[k].buffer, saved[k].address, self.specs[n])
            y.grad_fn = call_, n
            remembering.append(y.reshape(saved[k].shape))
        found = call(backward.differentiable, *kept, *arrived, *remembering)
        return found

    def zeros(self, node: Node) -> Any:
        """What an output that nobody used receives."""
        return self.tensor.full(node.shape, 0, node.dtype, self.backend)

    def source(self) -> str:
        """The host program and every kernel, as they run; where the user's names are known, with what each computes."""
        parts = [self.text]
        for k, step in enumerate(self.steps):
            head = kernel_comment(f"launch{k}", step, self.host.memory) if self.names else f"# launch{k}\n"
            parts.append(head + step.source(self.backend))
        return "\n".join(parts)
