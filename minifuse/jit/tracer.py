"""The tracer: call a Python function once, with tensors and numbers without values, and record its calls as a graph.

While it runs, every call of this thread is passed to the tracer instead of running. Tensors that are not arguments become
hidden inputs. In-place operations become new values of a storage, gradients of `backward` become outputs, and random numbers
become inputs that each call draws. The result is a `TracedGraph`: the graph, the values to store in each input, and the
values that the function returns.

Nothing runs, and none of the user's tensors change: if the function raises an exception, all state is as before.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..backends.base import Backend
from ..compiler.plan import display_name
from ..compiler.tensor_meta import TensorMeta
from ..compiler.trace_result import CallRecord, InputEffects, InputRef, OutputRef, PerCallInput, TracedGraph, TraceResult
from ..core.dispatch import DispatchHook, mode, use_dispatch_hook
from ..core.dtypes import DType, NumpyArray, float64, int64, weak_type_of
from ..core.errors import BackendError, DTypeError, FuseError, GradientError, OverlapError, ShapeError, users_line
from ..core.indexing import Shape
from ..core.interning import toposort
from ..core.layout import row_major
from ..core.pytree import tree_map
from ..core.traceable import TraceableFunction
from ..ir.array_functions import Full, Iota, View
from ..ir.array_methods import Array
from ..ir.graph import Argument, Node, Number, literal, strip_views, use_wrapper, wrap
from ..ir.vjp import dependents_of
from ..tensors.mutation import shares_memory
from ..tensors.tensor import CallInput, Tensor
from .guards import tensor_over
from .outputs import OutputBuilder, output_layout
from .traced_backward import TracedBackward
from .traced_scalar import DynamicAttr, DynamicGuard, Source, TracedScalar
from .traced_tensor import Functionalizer, TracedStorage, TracedTensor

if TYPE_CHECKING:
    from .fuse import Fused

_trace_lock = RLock()  # while a function is traced, the gradients of its tensors are traced tensors


class Tracer(DispatchHook):
    """The tracer of one function, for one kind of inputs.

    Parameters
    ----------
    name
        The name of the function in messages.
    inputs : tensors and numbers
        Inputs of the call, followed by the tensors that guards found in closures and globals.
    backend
        The backend that computes.
    originals : tensors and numbers, optional
        The inputs of the call, if some of `inputs` are placeholders for copies of them.
    """

    is_tracer = True

    def __init__(
        self, name: str, inputs: Sequence[CallInput], backend: Backend, originals: Sequence[CallInput] = ()
    ) -> None:
        self.name, self.backend = name, backend
        self.inputs: list[CallInput | None] = list(inputs)  # None for a number that each call computes
        self.arguments: list[Node] = []
        self.hidden: list[Array | PerCallInput] = []
        self.constants: list[Tensor] = []  # hidden inputs that were created from the function's constants
        self.hidden_nodes: dict[str, Node] = {}  # expression of a hidden input -> its node
        self.traced_tensors: dict[int, TracedTensor] = {}  # by the tensor's id
        self.specialized_on: set[int | DynamicAttr] = set()  # numbers whose values the trace is specialized on
        self.numbers: dict[str, Node] = {}  # expression of a number -> its node
        self.settings: list[Mapping[str, float]] = []  # dicts whose entries each call reads
        self.external_tensors: dict[Hashable, TracedTensor] = {}  # by key: tensors that each call finds or creates
        self.reads_grads = False
        self.calls: list[CallRecord] = []
        self.calls_with_grad = set[int]()  # calls whose results require a gradient
        self.lines: dict[Node, str] = {}
        self.gradients = TracedBackward(self)
        self.initial_grads: list[Tensor | None] = []  # gradients of the inputs at the beginning
        self.traced_inputs = [self.trace_input(k, x) for k, x in enumerate(inputs)]
        self.traced_tensors |= {
            id(x): self.traced_tensors[id(y)] for x, y in zip(originals, self.inputs, strict=False) if x is not y
        }
        self.functionalizer = Functionalizer(self)

    def run(
        self, function: TraceableFunction, rebuild: Callable[[list[TracedTensor | TracedScalar]], object]
    ) -> TraceResult:
        """Trace the function; `rebuild` builds its arguments from the traced inputs."""
        with _trace_lock:
            self.initial_grads = [x.grad if isinstance(x, Tensor) else None for x in self.inputs]
            try:
                with use_dispatch_hook(self), use_wrapper(self.lift_constant):
                    return self.finish(function(rebuild(self.traced_inputs)))
            finally:
                for x, grad in zip(self.inputs, self.initial_grads, strict=True):
                    if isinstance(x, Tensor):
                        x.grad = grad

    # Traced inputs.

    def trace_input(self, k: int, x: CallInput) -> TracedTensor | TracedScalar:
        """Return the tracer for input k."""
        if not isinstance(x, Tensor):
            self.numbers[f"x{k}"] = Node(Number(k), (), (), weak_type_of(x))
            self.arguments.append(self.numbers[f"x{k}"])
            return TracedScalar(self, x, f"x{k}", frozenset([k]))
        node = Node(Argument(k), (), x.shape, x.dtype)
        self.arguments.append(node)
        return self.wrap_input(node, x)

    def wrap_input(self, node: Node, x: Tensor) -> TracedTensor:
        """Return a traced tensor for an input that is a tensor."""
        if isinstance(x, TracedTensor):
            raise self.leaked_tracer_error()
        if x.meta.backend is not self.backend:
            raise BackendError(
                f"{self.name}: operands are on two backends, {self.backend.name} and {x.backend}; "
                f'move one with x.to("{self.backend.name}")'
            )
        if id(x) in self.traced_tensors:
            return self.traced_tensors[id(x)]
        traced = TracedTensor(self, TracedStorage(node, x.meta.layout, node, x), x.meta)
        self.traced_tensors[id(x)] = traced
        if x.requires_grad:
            self.gradients.leaves.append((traced, traced.storage.leaves))
        return traced

    def lift(self, x: Tensor) -> TracedTensor:
        """Return the traced tensor for a concrete tensor; a new tensor becomes a hidden input."""
        if isinstance(x, TracedTensor):
            if x.tracer is not self:
                raise self.leaked_tracer_error()
            return x
        if id(x) in self.traced_tensors:
            return self.traced_tensors[id(x)]
        for k, y in enumerate(self.inputs):
            if isinstance(y, Tensor) and y.grad is x:
                grad = self.grad_of(y, k)
                assert grad is not None
                return grad
        modified = [storage.tensor for storage in self.functionalizer.modified_storages if storage.tensor is not None]
        if any(shares_memory(x, y) for y in modified):
            raise OverlapError(
                f"{users_line()}: the first use of a tensor of shape {x.shape} is after an in-place operation on a tensor "
                "that shares its memory; pass both as arguments"
            )
        self.hidden.append(x)
        self.inputs.append(x)
        self.initial_grads.append(x.grad)
        self.arguments.append(Node(Argument(len(self.arguments)), (), x.shape, x.dtype))
        return self.wrap_input(self.arguments[-1], x)

    def leaked_tracer_error(self) -> FuseError:
        """Return the error for a traced tensor that is used after its trace ended."""
        return FuseError(
            f"{users_line()}: {self.name} uses a traced tensor leaked from another fused function; return it from that "
            "function instead"
        )

    def lift_constant(self, x: Any) -> Node:
        """Return the node of a concrete array that occurs in the function or in the library."""
        return (self.lift(x) if isinstance(x, Tensor) else self.constant(x)).node

    def add_hidden_input(
        self, text: str, names: dict[str, Any], value: CallInput, get: Callable[[Sequence[Any]], Any] | None = None
    ) -> Node:
        """Add an input that each call computes."""
        if text not in self.hidden_nodes:
            k = len(self.arguments)
            x = value if isinstance(value, Tensor) else None
            node = Node(Number(k), (), (), weak_type_of(value)) if x is None else Node(Argument(k), (), x.shape, x.dtype)
            self.arguments.append(node)
            self.hidden.append(PerCallInput(text, names, value, get))
            self.inputs.append(x)
            self.initial_grads.append(None if x is None else x.grad)
            self.hidden_nodes[text] = node
        return self.hidden_nodes[text]

    def node_of(self, x: object, function: TraceableFunction | None = None) -> Any:
        """Convert an input of a call of a function to a node; numbers stay numbers."""
        if type(x) is TracedScalar:
            return self.numbers[x.text] if x.text in self.numbers else self.add_hidden_input(x.text, {}, x.value)
        name = "" if function is None or isinstance(x, int | float) else display_name(function).strip("_")
        return wrap(x, name)  # by `lift_constant`

    def dynamic_attr(self, settings: Mapping[str, float], name: str) -> TracedScalar:
        """Return a traced number for an entry of a dict, which each call reads again."""
        if not any(settings is x for x in self.settings):
            self.settings.append(settings)
        variable = f"settings{next(k for k, x in enumerate(self.settings) if x is settings)}"
        source = DynamicAttr(settings, name)
        return self.per_call_scalar(f"float({variable}[{name!r}])", {variable: settings}, source.value, frozenset([source]))

    def call_counter(self, count: Callable[[], int], value: int) -> TracedScalar:
        """Return a traced number that `count()` returns in each call; its value in this call is `value`."""
        name = f"count{len(self.arguments)}"
        return self.per_call_scalar(f"{name}()", {name: count}, value, frozenset(["a count"]))

    def add_guard(self, key: Hashable, ask: Callable[[], object]) -> None:
        """Make the trace valid only for the value that `ask()` returns, compared by its `repr`; `key` names the guard."""
        self.specialized_on.add(DynamicGuard(ask, key))

    def external_tensor(self, key: Hashable, find: Callable[[], Tensor], example: Tensor) -> TracedTensor:
        """Return a traced tensor with the metadata of the example, which each call gets from `find()`; `key` names it."""
        if key not in self.external_tensors:
            name = f"find{len(self.arguments)}"
            node = self.add_hidden_input(f"{name}()", {name: find}, example, lambda inputs: find())
            self.external_tensors[key] = self.wrap_input(node, example)
        return self.external_tensors[key]

    def per_call_scalar(self, text: str, names: dict[str, Any], value: float, sources: frozenset[Source]) -> TracedScalar:
        """Return a traced number that each call computes."""
        node = self.add_hidden_input(text, names, value)
        name = f"x{node.function.index}"
        self.numbers[name] = node
        return TracedScalar(self, value, name, sources)

    def specialize_on(self, sources: frozenset[Source]) -> None:
        """Make the trace depend on the values of these numbers."""
        if "a count" in sources:
            raise self.no_value_error("branch on the number of calls", "use it in arithmetic only")
        self.specialized_on |= {x for x in sources if not isinstance(x, str)}

    def no_value_error(self, operation: str, advice: str) -> FuseError:
        """Return the error for an operation that needs a value."""
        return FuseError(
            f"{users_line()}: {self.name}: cannot {operation} inside @mf.fuse (values do not exist while tracing); {advice}"
        )

    # Calls.

    def call_fused(self, fused: "Fused", inputs: tuple[object, ...], named: dict[str, object]) -> Any:
        """Inline a fused function: its calls become part of this trace."""
        return fused.function(*inputs, **named)

    def call(self, function: TraceableFunction, inputs: Sequence[object]) -> Any:
        """Record a call, and return its results as traced tensors."""
        inputs = [self.lift(x) if isinstance(x, Tensor) else x for x in inputs]
        nodes = [x.node if isinstance(x, TracedTensor) else self.node_of(x, function) for x in inputs]
        self.record_call(function, inputs)
        result = self.apply_function(function, nodes)
        tensors = [x for x in inputs if isinstance(x, TracedTensor)]
        return self.wrap_result(result, tensors, bool(mode.is_recording))

    def record_call(self, function: TraceableFunction, inputs: Sequence[Any], target_count: int = 0) -> int:
        """Record a call for the comparison with unfused execution, and return its number."""
        metas = tuple([getattr(x, "meta", x.value if type(x) is TracedScalar else x) for x in inputs])
        xs = [x if isinstance(x, TracedTensor) else None for x in inputs]
        reads = tuple([-1 if x is None else x.storage.producer for x in xs])
        identities = [k if x is None else (id(x.storage), x.views) for k, x in enumerate(xs)]
        alias_of = tuple(map(identities.index, identities))
        self.calls.append(CallRecord(function, metas, users_line(), reads, alias_of, target_count))
        self.gradients.record_sources(len(self.calls) - 1, xs)
        return len(self.calls) - 1

    def apply_function(self, function: TraceableFunction, nodes: Sequence[Node | float]) -> Any:
        """Apply a function to nodes. Add the user's line to errors."""
        with self.add_error_context():
            return next(x for x in nodes if isinstance(x, Node)).apply(function, *nodes)

    @contextmanager
    def add_error_context(self) -> Iterator[None]:
        """Add the user's line to errors that would also occur without tracing."""
        try:
            yield
        except FuseError:
            raise
        except (DTypeError, ShapeError, GradientError, OverlapError) as error:
            error.add_note(f"while tracing {self.name}, at {users_line()}")
            raise

    def wrap_result(self, result: object, inputs: Sequence[TracedTensor], requires_grad: bool) -> Any:
        """Wrap results in traced tensors, each with its own storage."""
        if isinstance(result, tuple):
            return tuple(self.wrap_result(x, inputs, requires_grad) for x in result)
        if not isinstance(result, Node):
            return result
        with_grad = [x.node for x in inputs if x.requires_grad]
        requires_grad = requires_grad and bool(with_grad or not inputs)
        if requires_grad and inputs:
            leaves = {x.node for x in inputs}
            requires_grad = result in dependents_of(toposort([result], lambda x: () if x in leaves else x.inputs), with_grad)
        node = result if mode.is_recording or not getattr(result.dtype, "is_float", False) else result.detach()
        layout = output_layout(result, inputs)
        self.lines.setdefault(strip_views(node), self.calls[-1].line if self.calls else "")
        if requires_grad:
            self.calls_with_grad.add(len(self.calls) - 1)
        storage = TracedStorage(node, layout, producer=len(self.calls) - 1)
        return TracedTensor(self, storage, TensorMeta(layout, node.dtype, self.backend, requires_grad))

    def view(self, view: View, x: Tensor) -> TracedTensor:
        """Record a view of a concrete tensor."""
        return self.lift(x).apply_view(view)

    def detach_tensor(self, x: Tensor) -> TracedTensor:
        """Return a concrete tensor as a traced tensor without a gradient."""
        return self.lift(x).detach()

    def reject_read(self) -> None:
        """Raise the error for reading the elements of a concrete tensor."""
        raise self.no_value_error("read the elements of a tensor", "read it before the call, and pass the values")

    # Tensors that the function creates.

    def constant(self, array: npt.ArrayLike) -> TracedTensor:
        """Return the traced tensor for an array: an input if a guard found it, else a constant."""
        guarded = tensor_over(array)
        if guarded is not None and id(guarded) in self.traced_tensors:
            return self.traced_tensors[id(guarded)]
        with use_dispatch_hook(None):
            x = Tensor.from_numpy(np.ascontiguousarray(array).reshape(np.shape(array)), self.backend)
        node = Node(Argument(len(self.arguments)), (), x.shape, x.dtype)
        self.arguments.append(node)
        self.constants.append(x)
        self.hidden.append(x)
        self.inputs.append(x)
        self.initial_grads.append(None)
        return TracedTensor(self, TracedStorage(node.clone(), x.meta.layout), x.meta)

    def full(self, shape: Shape, value: float | TracedScalar, dtype: DType) -> TracedTensor:
        """Record a tensor filled with one number."""
        number = self.node_of(value)
        number = Node(number.function, (), (), dtype) if isinstance(number, Node) else literal(number, dtype)
        layout = row_major(shape)
        return TracedTensor(
            self, TracedStorage(Full(shape, dtype)(number), layout), TensorMeta(layout, dtype, self.backend, False)
        )

    def arange(self, start: float, stop: float, step: float, dtype: DType) -> TracedTensor:
        """Record start, start + step, ... below stop. These numbers need no memory."""
        size = len(np.arange(start, stop, step))
        node = Node(Iota(size), (), (size,), int64)
        if not all(isinstance(x, int) for x in (start, step)):
            node = node.to(float64)
        node = node if step == 1 else node * step
        node = (node if start == 0 else node + start).to(dtype)
        layout = row_major(node.shape)
        return TracedTensor(self, TracedStorage(node, layout), TensorMeta(layout, node.dtype, self.backend, False))

    def draw(self, make: Callable[[], NumpyArray], shape: Shape, dtype: DType) -> TracedTensor:
        """Record random numbers. Each call draws new ones, in the order in which the function draws them."""
        example = Tensor.empty(shape, dtype, self.backend)
        name = f"draw{len(self.arguments)}"

        def draw_tensor() -> Tensor:
            return Tensor.from_numpy(make(), self.backend)

        node = self.add_hidden_input(f"{name}()", {name: draw_tensor}, example)
        return TracedTensor(self, TracedStorage(node, example.meta.layout), example.meta)

    def check_backend(self, backend: Backend | None) -> None:
        """Raise a BackendError if a tensor is created on another backend than the traced one."""
        if backend is not None and backend is not self.backend:
            raise BackendError(
                f"{users_line()}: a tensor is created on {backend.name}, expected {self.backend.name} as in {self.name}; "
                f'pass backend="{self.backend.name}"'
            )

    # In-place operations and gradients.

    def store(self, function: TraceableFunction, targets: Sequence[Tensor], inputs: Sequence[object]) -> None:
        """Store the results of a function in the targets."""
        with self.add_error_context():
            self.functionalizer.store(function, targets, inputs)

    def grad_of(self, x: Tensor | None, index: int | None = None) -> TracedTensor | None:
        """Return the gradient that an input has at the beginning of the call."""
        if x is None:
            return None
        self.reads_grads = True
        k = index if index is not None else next(k for k, y in enumerate(self.inputs) if y is x)
        grad = self.initial_grads[k]
        if grad is None:
            return None
        if id(grad) not in self.traced_tensors:
            self.wrap_input(self.add_hidden_input(f"x{k}.grad", {}, grad, lambda inputs: inputs[k].grad), grad)
        return self.traced_tensors[id(grad)]

    # The result of the trace.

    def finish(self, tree: object) -> TraceResult:
        """Return the result of the trace: the graph, the returned values, and the effects."""
        results = OutputBuilder(self)
        stores, modified = self.functionalizer.stores_and_modified_inputs()
        returned = tree_map(tree, results.add)
        grads: list[tuple[int, OutputRef | InputRef | None]] = []
        for k, x in enumerate(self.inputs):
            if isinstance(x, Tensor) and self.has_new_grad(k, x.grad):
                self.reads_grads = True
                grads.append((k, None if x.grad is None else results.add(x.grad)))
        results.check_returned_leaves()
        with_grad = [(x.storage.argument, nodes) for x, nodes in self.gradients.leaves if x.owner is not None]
        leaves = {leaf: argument for argument, nodes in with_grad if argument is not None for leaf in nodes[1:]}
        windows = self.functionalizer.windows
        program = TracedGraph(
            self.arguments,
            self.hidden,
            results.outputs,
            stores,
            True,
            windows,
            results.nondifferentiable,
            results.layouts,
            leaves,
            results.aliases,
        )
        return TraceResult(
            program,
            returned,
            grads,
            modified,
            self.calls,
            frozenset(results.returned_calls),
            self.lines,
            self.effects(results, grads),
        )

    def effects(self, results: OutputBuilder, grads: Sequence[tuple[int, object]]) -> InputEffects:
        """Return how the function modifies and uses its inputs."""
        leaves = {self.functionalizer.index_of(x.storage) for x, _ in self.gradients.leaves if x.owner is not None}
        used_as_grads = [x.index for _, x in grads if isinstance(x, InputRef)]  # inputs that became gradients of others
        exposed = frozenset([*results.aliases.values(), *leaves, *[k for k, _ in grads], *used_as_grads])
        constants = {id(x) for x in self.constants}
        hidden = [x for x in self.hidden if isinstance(x, Tensor) and id(x) not in constants]
        return InputEffects(
            frozenset(self.functionalizer.stored), frozenset(self.functionalizer.read_after), exposed, hidden
        )

    def has_new_grad(self, k: int, grad: Tensor | None) -> bool:
        """Return True if the function replaced the gradient of input k."""
        before = self.initial_grads[k]
        return grad is not before and not (isinstance(grad, TracedTensor) and grad is self.traced_tensors.get(id(before)))
