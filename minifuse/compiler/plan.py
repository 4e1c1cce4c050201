"""Plans: everything about a call that depends only on the dtypes, layouts and backend of its inputs, computed once.

The key of a call is the function, whether calls are recorded, and the TensorMeta of each input, an interned object, so a
lookup hashes a few addresses. A miss traces the function, differentiates the graph, forms kernels, binds them and writes the
host program. That takes about a millisecond, and longer only if the source of a kernel is new and must be compiled.
"""

from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from functools import cached_property
from operator import is_not
from typing import Any, ClassVar, Protocol, cast

import numpy as np

from ..backends.base import Backend
from ..core.autograd import FREED_GRAPH
from ..core.dispatch import active_hook, mode
from ..core.dtypes import DType, WeakType, as_number, bool_, weak_type_of
from ..core.errors import BackendError, DTypeError, FuseError, GradientError, OverlapError, ShapeError
from ..core.layout import Layout
from ..core.operators import add
from ..core.wording import format_count
from ..ir.array_functions import BoundFunction, Full
from ..ir.array_methods import Array
from ..ir.graph import Argument, Node, Number, literal, use_wrapper
from ..ir.index_checks import CheckedIndex, check_in_kernel
from ..ir.vjp import Backward
from ..runtime.kernel_cache import KernelNotCompiled, MissingKernel, cache
from ..runtime.memory_pool import MemoryBuffer, write_clock
from ..runtime.plan_cache import PlanTable
from .host_program import HostProgram
from .pipeline import compile_graph, initial_graph
from .plan_html import plan_html
from .pretty_print import kernel_comment
from .tensor_meta import TensorMeta
from .trace_result import PerCallInput, PlanInput, PlannedFunction, TracedGraph

NATIVE_TYPES = (Array, np.float64)  # operands that need no conversion: NumPy's float64 is a Python float

plans: PlanTable["Plan"] = PlanTable()  # by key
runs = plans.fast_path  # key -> host program; cleared from time to time, so that some plans are only in `plans`


def plan_key(function: PlannedFunction, inputs: Sequence[object]) -> tuple[object, ...]:
    """Return the key of a call's plan: everything that the plan depends on."""
    return (function, mode.is_recording, *[getattr(x, "meta", None) or type(x) for x in inputs])


def call(function: PlannedFunction, *inputs: object) -> Any:
    """Apply any function to tensors and numbers: an Operator, a reduction, or a Python function, which is traced."""
    key: tuple[object, ...]
    if len(inputs) == 2:  # plan_key, inlined: one more Python call would slow down small operations
        a, b = inputs
        key = function, mode.is_recording, getattr(a, "meta", None) or type(a), getattr(b, "meta", None) or type(b)
    elif len(inputs) == 1:
        key = function, mode.is_recording, getattr(inputs[0], "meta", None) or type(inputs[0])
    else:
        key = plan_key(function, inputs)
    run = runs.get(key)
    return compile_and_run(function, inputs) if run is None else run(*inputs)


def compile_and_run(function: PlannedFunction, inputs: Sequence[object]) -> Any:
    """Make the plan of a call, cache it, and run it. If a dispatch hook is active, the hook processes the call instead."""
    if any(isinstance(x, CheckedIndex) for x in inputs):
        function, checked_inputs = check_in_kernel(function, inputs)
        return call(function, *checked_inputs)
    unwrapped = [x if isinstance(x, NATIVE_TYPES) else as_number(x) for x in inputs]  # scalars of other libraries
    if any(map(is_not, unwrapped, inputs)):
        return call(function, *unwrapped)
    if (hook := active_hook()) is not None:
        return hook.call(function, inputs)
    for x in inputs:
        if isinstance(x, Node):  # a function is being traced, and combines a node with a tensor of its closure
            return x.apply(function, *inputs)
    plan, inputs = get_plan(function, inputs)
    return plan.run(*inputs)


def get_plan(function: PlannedFunction, inputs: Sequence[object]) -> "tuple[Plan, Sequence[PlanInput]]":
    """Return the plan of a call, cached or new, and its inputs, with NumPy arrays converted to tensors."""
    example = next(x for x in inputs if isinstance(x, Array))
    converted: list[Any] = [
        x if isinstance(x, NATIVE_TYPES) or not hasattr(x, "ndim") else example.asarray_like(x) for x in inputs
    ]
    key = plan_key(function, converted)
    return get_or_make_plan(key, lambda: Plan(function, converted, backend=example.meta.backend)), converted


def get_or_make_plan(key: Hashable, make: "Callable[[], Plan]") -> "Plan":
    """Return the plan of a key, cached or new. The next call with this key finds its host program in `runs`."""
    plan = plans.get(key)
    if plan is None:
        plan = make()
        plan.run  # noqa: B018  # binds its kernels: a plan that cannot run is not cached
        plans.put(key, plan, plan.host.plan_nbytes())
    runs[key] = plan.run
    return plan


def get_inplace_plan(
    function: PlannedFunction, targets: tuple[int, ...], alias_of: tuple[int, ...], inputs: Sequence[PlanInput]
) -> "Plan":
    """Return the plan of an in-place operation, cached or new.

    Parameters
    ----------
    function : callable
    targets : tuple of int
        The inputs that the results are stored in.
    alias_of : tuple of int
        For each input, the index of the first input that has the same elements in memory. The caller guarantees that a
        target overlaps no other input.
    inputs : sequence
    """

    def make() -> Plan:
        metas = {k: x.meta for k, x in enumerate(inputs) if isinstance(x, Array)}
        check_inplace([*metas.values()], [metas[k] for k in targets])
        return Plan(function, inputs, targets, alias_of)

    return get_or_make_plan((targets, alias_of, *plan_key(function, inputs)), make)


def check_inplace(metas: Sequence[TensorMeta], targets: Sequence[TensorMeta]) -> None:
    """Raise an error if an in-place operation would make a gradient or a value wrong."""
    for meta in metas:
        if meta.requires_grad and mode.is_recording:
            raise GradientError(
                f"an in-place operation is not recorded, and a tensor of shape {meta.layout.shape} requires a gradient; "
                "write x = x + y instead of x += y, x = x.relu() instead of x.relu_(), x = mf.where(mask, y, x) instead of "
                "x[...] = y, or change it inside `with mf.no_grad():`"
            )
    for meta in targets:
        shape, strides = meta.layout.shape, meta.layout.strides
        if meta.layout.has_internal_overlap:
            raise OverlapError(
                f"in-place write to shape {shape} with strides {strides}: several elements share one memory location, "
                "because the tensor is expanded or its windows overlap; write to x.clone() instead"
            )


def function_name(function: PlannedFunction) -> str:
    """Return the name of a function for messages."""
    return getattr(function, "__name__", None) or repr(function)


def display_name(function: PlannedFunction) -> str:
    """Return the name of a function for tables. A composite op has the name of its body."""
    return function.body.__name__.strip("_") if isinstance(function, BoundFunction) else function_name(function)


def backend_of(function: PlannedFunction, inputs: Sequence[PlanInput]) -> Backend:
    """Return the backend of the first tensor among the inputs."""
    example = next((x for x in inputs if isinstance(x, Array)), None)
    if example is None:
        raise FuseError(f"{function_name(function)}: got no tensor; pass at least one: its backend computes the result")
    backend: Backend = example.meta.backend
    return backend


def cast_to_target(name: str, result: object, target: PlanInput) -> Node:
    """Convert a result to the dtype and the shape of the tensor that it is stored in."""
    assert isinstance(target, Array)
    node = result if isinstance(result, Node) else literal(result)
    if node.is_number:
        kind = cast(WeakType, node.dtype)
        dtype = target.dtype if not issubclass(kind, float) else add.result_dtype(target.dtype, float)[0]
        node = Full(target.shape, dtype)(node.to(dtype))
    if (node.dtype.is_float and not target.dtype.is_float) or (target.dtype is bool_ and node.dtype is not bool_):
        dtypes = f"a result of dtype {node.dtype} in a tensor of dtype {target.dtype}"
        raise DTypeError(f"{name}: cannot store {dtypes}; convert it first")
    try:
        converted: Node = node.to(target.dtype).expand(target.shape)
    except ShapeError:
        shapes = f"a result of shape {node.shape} in a tensor of shape {target.shape}"
        advice = "it must broadcast to that shape; if you wrote y += x, write y = y + x"
        raise ShapeError(f"{name}: cannot store {shapes}: {advice}") from None
    return converted


class PlanBackward:
    """The tape node of one recorded run of a plan.

    `count` is the number of outputs. `run_time` is the value of `write_clock` at the run: a saved tensor with a later write
    was modified.
    """

    __slots__ = ("_hooks", "count", "edges", "plan", "run_time", "saved_tensors")

    def __init__(self, plan: "Plan", edges: tuple[object, ...], saved_tensors: tuple[PlanInput, ...]) -> None:
        self.plan, self.edges = plan, edges
        self.saved_tensors: tuple[PlanInput, ...] | None = saved_tensors
        self.count, self.run_time = plan.count, write_clock.clock

    def backward(self, output_grads: Sequence[Array | None]) -> Sequence[Array | None]:
        """Return the gradients of the inputs."""
        saved_tensors = self.saved_tensors
        if saved_tensors is None:
            raise GradientError(FREED_GRAPH)
        for x in saved_tensors:
            if isinstance(x, Array) and x.buffer.version.last_write > self.run_time:
                raise modified_error(f"a tensor of shape {x.shape}", self.plan.function)
        return self.plan.gradients(self, saved_tensors, output_grads)

    def free_saved(self) -> None:
        """Free the saved tensors."""
        self.edges, self.saved_tensors = (), None


def modified_error(value: str, function: PlannedFunction) -> GradientError:
    """Return the error for a gradient that needs a value which was overwritten."""
    return GradientError(
        f"backward: {value} that the gradient of {function_name(function)} needs was modified in place after it was used; "
        "modify x.clone() instead, or compute the value again"
    )


class TensorClass(Protocol):
    """The constructors of tensors that a plan uses."""

    def __call__(self, buffer: MemoryBuffer, address: int, meta: TensorMeta) -> Any:
        """Return a tensor over memory."""

    def from_numpy(self, array: np.ndarray, backend: Backend) -> Array:
        """Return a tensor of an array."""

    def full(self, shape: tuple[int, ...], value: float, dtype: DType, backend: Backend) -> Array:
        """Return a tensor of equal elements."""


class Plan:
    """A compiled function for inputs with given metadata.

    Parameters
    ----------
    function : callable
        Called once, with nodes. Python numbers among the inputs become parameters of launches.
    inputs : sequence
        Tensors and numbers with the metadata of later calls.
    targets : tuple of int
        Inputs that the results are stored in.
    alias_of : sequence of int
        For each input, the index of the first input that has the same elements in memory. Default: all inputs differ.
    graph : TracedGraph, optional
        The graph of the function if it is traced already.
    recompute : {"auto", "none"}
        Whether the backward pass may recompute values instead of saving them.
    backend : Backend, optional
        Default: the backend of the inputs.
    names : sequence of str
        The user's names of the arguments, for readers of the host program.
    tune : bool
        Whether the first run searches the schedules of kernels by timing them, if the backend has schedules.

    Attributes
    ----------
    run : callable
        The host program as a function. On first access, kernels are bound, and compiled if they are new.
    layouts : list of Layout or None
        The layout of each argument; None for a number.
    steps : list of Step
        The launches of a call.
    backward : Backward or None
        The backward pass, if calls are recorded.
    """

    tensor: ClassVar[TensorClass]  # the class of results: `tensors.tensor`, which imports this module, sets it

    def __init__(
        self,
        function: PlannedFunction,
        inputs: Sequence[PlanInput],
        targets: tuple[int, ...] = (),
        alias_of: Sequence[int] = (),
        graph: TracedGraph | None = None,
        recompute: str = "auto",
        backend: Backend | None = None,
        names: Sequence[str] = (),
        tune: bool = False,
    ) -> None:
        self.function, self.recompute, self.names = function, recompute, names
        self.tune = tune or getattr(function, "tune", False)  # a backward pass is tuned if its forward pass is
        self.backend = backend or backend_of(function, inputs)
        self.graph = graph or self.trace(inputs, targets, alias_of)
        self.arguments, self.hidden, self.outputs = self.graph.arguments, self.graph.hidden, self.graph.outputs
        self.is_tuple, self.count = self.graph.is_tuple, len(self.graph.outputs)
        values = [*inputs, *[x.value if isinstance(x, PerCallInput) else x for x in self.hidden]]
        metas = [getattr(x, "meta", None) for x in values]
        self.backward = self.backward_pass(metas) if self.outputs else None
        self.layouts: list[Layout | None] = [meta and meta.layout for meta in metas]
        self.schedule()

    def trace(self, inputs: Sequence[PlanInput], targets: tuple[int, ...], alias_of: Sequence[int]) -> TracedGraph:
        """Call the function with nodes. Tensors of its closure become hidden inputs."""
        arguments = [self.make_argument(k, x) for k, x in enumerate(inputs)]
        hidden, node_by_id = list[Array | PerCallInput](), dict[int, Node]()

        def wrap(x: Any) -> Node:
            x = x if isinstance(x, Array) else self.tensor.from_numpy(x, self.backend)
            if id(x) not in node_by_id:
                node_by_id[id(x)] = self.make_argument(len(arguments), x)
                arguments.append(node_by_id[id(x)])
                hidden.append(x)
            return node_by_id[id(x)]

        with use_wrapper(wrap):
            result = self.function(*([arguments[k] for k in alias_of] or arguments))
        results = result if isinstance(result, tuple) else (result,)
        for x in results:
            if not isinstance(x, Node) and not (targets and isinstance(x, bool | int | float)):
                raise FuseError(
                    f"{function_name(self.function)}: the function returned {type(x).__name__}, expected a tensor"
                )
        if not targets:
            return TracedGraph(arguments, hidden, list(results), [], isinstance(result, tuple))
        name = function_name(self.function)
        stores = [(arguments[k], cast_to_target(name, x, inputs[k])) for x, k in zip(results, targets, strict=True)]
        return TracedGraph(arguments, hidden, [], stores)

    def backward_pass(self, metas: Sequence[TensorMeta | None]) -> Backward | None:
        """Return the backward pass, or None if the call is not recorded or no input gets a gradient."""
        arguments = zip(self.arguments, metas, strict=True)
        requiring_grad = [x for x, meta in arguments if meta and meta.requires_grad and mode.is_recording]
        if not requiring_grad:
            return None
        graph = self.graph
        options = graph.nondifferentiable, self.recompute, graph.leaves, graph.changed_arguments()
        backward = Backward(self.arguments, self.outputs, requiring_grad, *options)
        if not backward.arguments_with_grad:
            return None
        for function in (backward.function, backward.differentiable):
            function.forward_name, function.tune = display_name(self.function), self.tune
        return backward

    def make_argument(self, k: int, x: PlanInput) -> Node:
        """Return the node of input k."""
        name = display_name(self.function).strip("_")
        if not isinstance(x, Array):
            return Node(Number(k), (), (), weak_type_of(x, name))
        meta: TensorMeta = x.meta
        if meta.backend is not self.backend:
            raise BackendError(
                f"{name}: operands are on two backends, "
                f'{self.backend.name} and {meta.backend.name}; move one with x.to("{self.backend.name}")'
            )
        return Node(Argument(k), (), meta.layout.shape, meta.dtype)

    def schedule(self) -> None:
        """Form the kernels, and write the host program that launches them."""
        compiled = compile_graph(initial_graph(self.graph, self.backward, self.layouts), self.backend)
        result_buffers = [compiled.locate(node) for node in compiled.results]
        outputs_with_grad = set[int]()
        if self.backward is not None:
            differentiable_outputs = {k for k, x in enumerate(self.outputs) if x in self.backward.differentiable_nodes}
            outputs_with_grad = differentiable_outputs - {*self.graph.nondifferentiable}
        self.output_metas = []
        for k, (node, (_, layout)) in enumerate(zip(compiled.results, result_buffers, strict=True)):
            requires_grad = k in outputs_with_grad
            self.output_metas.append(TensorMeta(layout.without_offset(), node.dtype, self.backend, requires_grad))
        # In the text of the host program, Call is the class of the tape node of a recorded call.
        constants = {"Tensor": self.tensor, "Call": PlanBackward, "plan": self}
        self.steps, self.refusals = list(compiled.steps), list(compiled.refusals)
        self.host = HostProgram(
            self.graph,
            self.backward,
            compiled,
            self.backend,
            result_buffers,
            self.output_metas,
            constants,
            getattr(self.function, "__name__", str(self.function)),
            self.names,
        )
        self.text = self.host.text

    @cached_property
    def run(self) -> Callable[..., Any]:
        """The host program as a function."""
        return self.host.compile_tuning_function() if self.tune else self.host.compile_function()

    def kernels_to_compile(self) -> dict[str, MissingKernel]:
        """Return the kernels that would have to be compiled, by name. If a launch needs several, only the first one."""
        with cache.collect_missing() as missing:
            for step in self.steps:
                with suppress(KernelNotCompiled):
                    self.backend.compile(step).load()
        return missing

    def gradients(
        self, tape_node: PlanBackward, saved_tensors: tuple[PlanInput, ...], output_grads: Sequence[Array | None]
    ) -> Sequence[Array | None]:
        """Return the gradients of the inputs of one run. The gradient of an output that was not used is None."""
        backward = self.backward
        assert backward is not None
        output_grads = [
            self.tensor.full(y.shape, 0, y.dtype, self.backend) if g is None else g
            for y, g in zip(self.outputs, output_grads, strict=True)
        ]
        if backward.needs_overwritten_value:
            raise modified_error("an argument", self.function)
        count = len(backward.inputs)
        inputs, saved = saved_tensors[:count], saved_tensors[count:]
        if not mode.is_recording:
            input_grads: Sequence[Array | None] = call(backward.function, *inputs, *output_grads, *saved)
            return input_grads
        if backward.double_needs_overwritten_value:
            raise GradientError(
                f"backward: create_graph=True through {function_name(self.function)}, which modifies a tensor in place that "
                "its gradient needs; modify the tensor outside of the function, or modify x.clone() instead"
            )
        recorded = []
        for k, n in backward.saved_outputs:
            value = saved[k]
            assert isinstance(value, Array)
            y = self.tensor(value.buffer, value.address, self.output_metas[n])
            y.grad_fn = tape_node, n
            recorded.append(y.reshape(value.shape))
        input_grads = call(backward.differentiable, *inputs, *output_grads, *recorded)
        return input_grads

    def __repr__(self) -> str:
        kernels = format_count(len(self.steps), "kernel")
        return f"<Plan of {display_name(self.function)} on {self.backend}: {kernels}>"

    def _repr_html_(self) -> str:
        return plan_html(self)

    def source(self) -> str:
        """Return the host program and every kernel. If the user's names are known, comments describe the kernels."""
        parts = [self.text]
        for k, step in enumerate(self.steps):
            executable, title = self.backend.compile(step), f"launch{k}"
            if self.names:
                head = kernel_comment(title, step, self.host.slot_names)
                head += "".join(f"# {line}\n" for line in executable.launches.splitlines())
            else:
                head = f"# {title}\n"
            parts.append(head + executable.source)
        return "\n".join(parts)
