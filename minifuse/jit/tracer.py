"""Capture: a Python function is called once, with tensors and numbers that have no values, and what it did is a graph.

While it runs, every call of this thread comes here instead of running: those on the function's arguments, and those on
tensors that it finds elsewhere, which become hidden inputs. Changes in place become new values of memory; gradients that
`backward` gives become outputs; random numbers become inputs that each call draws. In the end there is a `TracedGraph`: the
graph, what is stored in which input, and what the function gives.

Nothing is run, and nothing that the user has is changed: if the function raises, all is as before.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any

import numpy as np

from ..backends.base import Backend
from ..compiler.plan import PerCallInput, TensorMeta, TracedGraph
from ..compiler.trace_result import CallRecord, InputEffects, InputRef, OutputRef, TraceResult
from ..core.dispatch import DispatchHook, mode, use_dispatch_hook
from ..core.dtypes import DType, as_number, float64, int64, weak_type_of
from ..core.errors import BackendError, DTypeError, FuseError, GradientError, OverlapError, ShapeError, users_line
from ..core.interning import toposort
from ..core.layout import row_major
from ..core.pytree import tree_map
from ..ir.array_functions import Full, Iota, View
from ..ir.array_methods import Array
from ..ir.graph import Argument, Node, Number, literal, strip_views, use_wrapper
from ..ir.vjp import dependents_of
from ..tensors.mutation import shares_memory
from ..tensors.tensor import Tensor
from .functionalize import Functionalizer
from .guards import tensor_over
from .outputs import OutputBuilder, output_layout
from .traced_backward import TracedBackward
from .traced_scalar import DynamicAttr, DynamicGuard, TracedScalar
from .traced_tensor import TracedStorage, TracedTensor

_trace_lock = RLock()  # while a function is captured, its tensors' gradients are captured ones


class Tracer(DispatchHook):
    """The capture of one function, for inputs like these.

    Parameters
    ----------
    name
        What messages call the function.
    inputs : tensors and numbers
        Those of the call, then the tensors that the function was seen to refer to.
    backend
        The one that computes.
    originals : tensors and numbers, optional
        Where the inputs are examples of copies: the tensors that those are copies of.
    """

    is_capture = True

    def __init__(self, name: str, inputs: Sequence[Any], backend: Backend, originals: Sequence[Any] = ()) -> None:
        self.name, self.inputs, self.backend = name, list(inputs), backend
        self.arguments: list[Node] = []
        self.hidden: list[Any] = []
        self.constants: list[Tensor] = []  # of these, the tensors that were made from data of the function
        self.made: dict[str, Node] = {}  # by text
        self.known: dict[int, TracedTensor] = {}  # by the tensor's id
        self.specialized_on: set[Any] = set()  # sources of numbers whose values the graph depends on
        self.numbers: dict[str, Node] = {}  # by text
        self.settings: list[Any] = []  # dicts of live numbers
        self.kept: dict[Any, TracedTensor] = {}  # what is provided
        self.reads_grads = False
        self.calls: list[CallRecord] = []
        self.recorded = set[int]()  # calls whose results require a gradient
        self.lines: dict[Node, str] = {}
        self.gradients = TracedBackward(self)
        self.grads: list[Any] = []  # of the inputs, as they were
        self.given = [self.trace_input(k, x) for k, x in enumerate(self.inputs)]
        self.known |= {id(x): self.known[id(y)] for x, y in zip(originals, self.inputs, strict=False) if x is not y}
        self.changes = Functionalizer(self)

    def run(self, function: Callable[..., Any], rebuild: Callable[[list[Any]], Any]) -> TraceResult:
        """Call the function; `rebuild` makes its arguments of what stands for the inputs."""
        with _trace_lock:
            self.grads = [x.grad if isinstance(x, Tensor) else None for x in self.inputs]
            try:
                with use_dispatch_hook(self), use_wrapper(self.lift_constant):
                    return self.finish(function(rebuild(self.given)))
            finally:
                for x, grad in zip(self.inputs, self.grads, strict=True):
                    if isinstance(x, Tensor):
                        x.grad = grad

    # What stands for inputs.

    def trace_input(self, k: int, x: Any) -> Any:
        """What stands for input k."""
        if not isinstance(x, Array):
            self.numbers[f"x{k}"] = Node(Number(k), (), (), weak_type_of(x))
            self.arguments.append(self.numbers[f"x{k}"])
            return TracedScalar(self, x, f"x{k}", frozenset([k]))
        assert isinstance(x, Tensor)
        node = Node(Argument(k), (), x.shape, x.dtype)
        self.arguments.append(node)
        return self.wrap_input(node, x)

    def wrap_input(self, node: Node, x: Tensor) -> TracedTensor:
        """A captured tensor for an input that is a tensor."""
        if isinstance(x, TracedTensor):
            raise self.leaked_tracer_error()
        if x.spec.backend is not self.backend:
            raise BackendError(
                f"{self.name}: operands are on two backends, {self.backend.name} and {x.backend}; "
                f'move one with x.to("{self.backend.name}")'
            )
        if id(x) in self.known:
            return self.known[id(x)]
        captured = TracedTensor(self, TracedStorage(node, x.spec.layout, node, x), x.spec)
        self.known[id(x)] = captured
        if x.requires_grad:
            self.gradients.leaves.append((captured, captured.memory.leaves))
        return captured

    def lift(self, x: Any) -> TracedTensor:
        """What stands for a concrete tensor; one that was not seen before becomes a hidden input."""
        if isinstance(x, TracedTensor):
            if x.capture is not self:
                raise self.leaked_tracer_error()
            return x
        if id(x) in self.known:
            return self.known[id(x)]
        for k, y in enumerate(self.inputs):
            if isinstance(y, Tensor) and y.grad is x:
                found = self.grad_of(y, k)
                assert found is not None
                return found
        if any(shares_memory(x, memory.tensor) for memory in self.changes.written if memory.tensor is not None):
            raise OverlapError(
                f"{users_line()}: a tensor of shape {x.shape} shares memory with one that was changed in place before, and "
                "is seen here for the first time; pass both as arguments"
            )
        self.hidden.append(x)
        self.inputs.append(x)
        self.grads.append(x.grad)
        self.arguments.append(Node(Argument(len(self.arguments)), (), x.shape, x.dtype))
        return self.wrap_input(self.arguments[-1], x)

    def leaked_tracer_error(self) -> FuseError:
        """The error of a captured tensor that outlived its capture."""
        return FuseError(
            f"{users_line()}: {self.name} uses a tensor of another capture, which was kept outside when the function that "
            "made it had ended; return it from there instead"
        )

    def lift_constant(self, x: Any) -> Node:
        """The node of an array that the library itself, or the user, refers to."""
        return (self.lift(x) if isinstance(x, Tensor) else self.constant(x)).node

    def add_hidden_input(self, text: str, names: dict[str, Any], value: Any, get: Any = None) -> Node:
        """A hidden input that each call makes."""
        if text not in self.made:
            k = len(self.arguments)
            is_tensor = isinstance(value, Tensor)
            node = (
                Node(Argument(k), (), value.shape, value.dtype)
                if is_tensor
                else Node(Number(k), (), (), weak_type_of(value))
            )
            self.arguments.append(node)
            self.hidden.append(PerCallInput(text, names, value, get))
            self.inputs.append(value if is_tensor else None)
            self.grads.append(value.grad if is_tensor else None)
            self.made[text] = node
        return self.made[text]

    def node_of(self, x: Any) -> Any:
        """An input of a call as a node; numbers stay numbers."""
        if isinstance(x, Tensor):
            return self.lift(x).node
        if type(x) is TracedScalar:
            return self.numbers[x.text] if x.text in self.numbers else self.add_hidden_input(x.text, {}, x.value)
        x = as_number(x)
        if isinstance(x, np.ndarray):
            return self.constant(x).node
        if not isinstance(x, Node):
            weak_type_of(x)
        return x

    def dynamic_attr(self, settings: Any, name: str) -> TracedScalar:
        """A number of a dict that each call reads anew."""
        if not any(settings is x for x in self.settings):
            self.settings.append(settings)
        holder = f"settings{next(k for k, x in enumerate(self.settings) if x is settings)}"
        source = DynamicAttr(settings, name)
        return self.symbol(f"float({holder}[{name!r}])", {holder: settings}, source.value, frozenset([source]))

    def call_counter(self, count: Callable[[], int], value: int) -> TracedScalar:
        """A number that each call counts, `value` in this one."""
        name = f"count{len(self.arguments)}"
        return self.symbol(f"{name}()", {name: count}, value, frozenset(["a count"]))

    def add_guard(self, key: Any, ask: Callable[[], Any]) -> None:
        """The graph depends on an answer, which stands for itself by its `repr`; the key tells it from others."""
        self.specialized_on.add(DynamicGuard(ask, key))

    def external_tensor(self, key: Any, find: Callable[[], Tensor], example: Tensor) -> TracedTensor:
        """A tensor that each call finds, or makes, where something keeps it under a key: like the example."""
        if key not in self.kept:
            name = f"find{len(self.arguments)}"
            node = self.add_hidden_input(f"{name}()", {name: find}, example, lambda inputs: find())
            self.kept[key] = self.wrap_input(node, example)
        return self.kept[key]

    def symbol(self, text: str, names: dict[str, Any], value: Any, sources: frozenset[Any]) -> TracedScalar:
        """A number that each call makes."""
        node = self.add_hidden_input(text, names, value)
        name = f"x{node.function.index}"
        self.numbers[name] = node
        return TracedScalar(self, value, name, sources)

    def specialize_on(self, sources: frozenset[Any]) -> None:
        """The graph depends on the values of these numbers."""
        if "a count" in sources:
            raise self.has_no_value("the value of a count of calls", "compute with it, but do not let it steer")
        self.specialized_on |= sources

    def has_no_value(self, what: str, advice: str) -> FuseError:
        """The error of a function that asks for what is not there while it is captured."""
        return FuseError(f"{users_line()}: {what}, in {self.name}, which is being captured: there are no values; {advice}")

    # Calls.

    def inlined(self, fused: Any, inputs: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """A fused function inside: its calls are ours."""
        return fused.function(*inputs, **named)

    def call(self, function: Any, inputs: Sequence[Any]) -> Any:
        """A call that would have run: a node for it."""
        nodes = [self.node_of(x) for x in inputs]
        tensors = [self.lift(x) for x in inputs if isinstance(x, Tensor)]
        self.note(function, inputs)
        result = self.apply_function(function, nodes)
        return self.wrap_result(result, tensors, bool(mode.is_recording))

    def note(self, function: Any, inputs: Sequence[Any], targets: int = 0) -> int:
        """Remember a call, for those who ask what fusion changed; gives its number."""
        specs = tuple(getattr(x, "spec", x.value if type(x) is TracedScalar else x) for x in inputs)
        xs = [self.lift(x) if isinstance(x, Tensor) else None for x in inputs]
        reads = tuple(-1 if x is None else x.memory.made for x in xs)
        looks = [k if x is None else (id(x.memory), x.views) for k, x in enumerate(xs)]
        same = tuple(looks.index(look) for look in looks)
        self.calls.append(CallRecord(function, specs, users_line(), reads, same, targets))
        self.gradients.note_call(len(self.calls) - 1, xs)
        return len(self.calls) - 1

    def apply_function(self, function: Any, nodes: Sequence[Any]) -> Any:
        """The function on nodes; whoever is asked for a tensor's elements meanwhile is the function itself."""
        with self.add_error_context():
            return next(x for x in nodes if isinstance(x, Node)).apply(function, *nodes)

    @contextmanager
    def add_error_context(self) -> Iterator[None]:
        """Say where the user's code is, of errors that would come up without a capture too."""
        try:
            yield
        except FuseError:
            raise
        except (DTypeError, ShapeError, GradientError, OverlapError) as error:
            error.add_note(f"while {self.name} was captured, at {users_line()}")
            raise

    def wrap_result(self, result: Any, inputs: Sequence[TracedTensor], requires_grad: bool) -> Any:
        """Results as captured tensors, in memory of their own."""
        if isinstance(result, tuple):
            return tuple(self.wrap_result(x, inputs, requires_grad) for x in result)
        if not isinstance(result, Node):
            return result
        learned = [x.node for x in inputs if x.requires_grad]
        if requires_grad and inputs:
            given = {x.node for x in inputs}
            requires_grad = result in dependents_of(toposort([result], lambda x: () if x in given else x.inputs), learned)
        node = result if mode.is_recording or not getattr(result.dtype, "is_float", False) else result.detach()
        layout = output_layout(result, inputs)
        self.lines.setdefault(strip_views(node), self.calls[-1].line if self.calls else "")
        if requires_grad:
            self.recorded.add(len(self.calls) - 1)
        memory = TracedStorage(node, layout, made=len(self.calls) - 1)
        return TracedTensor(self, memory, TensorMeta(layout, node.dtype, self.backend, requires_grad))

    def view(self, view: View, x: Tensor) -> TracedTensor:
        """A view of a concrete tensor."""
        return self.lift(x).apply_view(view)

    def detach_tensor(self, x: Tensor) -> TracedTensor:
        """A concrete tensor without its history."""
        return self.lift(x).detach()

    def read(self, x: Tensor) -> None:
        """Somebody asks for the elements of a concrete tensor."""
        raise self.has_no_value("the elements of a tensor", "look at it before the call, and pass what was found")

    # Tensors that are made.

    def constant(self, array: Any) -> TracedTensor:
        """Return what stands for an array: the input, if it is one that the function refers to, else data that are known."""
        known = tensor_over(array)
        if known is not None and id(known) in self.known:
            return self.known[id(known)]
        with use_dispatch_hook(None):
            x = Tensor.from_numpy(np.ascontiguousarray(array).reshape(np.shape(array)), self.backend)
        node = Node(Argument(len(self.arguments)), (), x.shape, x.dtype)
        self.arguments.append(node)
        self.constants.append(x)
        self.hidden.append(x)
        self.inputs.append(x)
        self.grads.append(None)
        return TracedTensor(self, TracedStorage(node.clone(), x.spec.layout), x.spec)

    def full(self, shape: tuple[int, ...], value: Any, dtype: DType) -> TracedTensor:
        """One number everywhere."""
        number = self.node_of(value)
        number = Node(number.function, (), (), dtype) if isinstance(number, Node) else literal(number, dtype)
        layout = row_major(shape)
        return TracedTensor(
            self, TracedStorage(Full(shape, dtype)(number), layout), TensorMeta(layout, dtype, self.backend, False)
        )

    def arange(self, start: Any, stop: Any, step: Any, dtype: DType) -> TracedTensor:
        """start, start + step, ... below stop, which no memory is read for."""
        size = len(np.arange(start, stop, step))
        node = Node(Iota(size), (), (size,), int64)
        if not all(isinstance(x, int) for x in (start, step)):
            node = node.to(float64)
        node = node if step == 1 else node * step
        node = (node if start == 0 else node + start).to(dtype)
        layout = row_major(node.shape)
        return TracedTensor(self, TracedStorage(node, layout), TensorMeta(layout, node.dtype, self.backend, False))

    def draw(self, make: Callable[[], Any], shape: tuple[int, ...], dtype: DType) -> TracedTensor:
        """Numbers that each call draws anew, in the order of the function."""
        example = Tensor.empty(shape, dtype, self.backend)
        name = f"draw{len(self.arguments)}"

        def drawn() -> Tensor:
            return Tensor.from_numpy(make(), self.backend)

        node = self.add_hidden_input(f"{name}()", {name: drawn}, example)
        return TracedTensor(self, TracedStorage(node, example.spec.layout), example.spec)

    def check_backend(self, backend: Backend | None) -> None:
        """A tensor that is made here lives where the others do, which is the default."""
        if backend is not None and backend is not self.backend:
            raise BackendError(
                f"{users_line()}: a tensor is made on {backend.name}, and {self.name} computes on {self.backend.name}; "
                f'pass backend="{self.backend.name}"'
            )

    # Changes in place, and gradients.

    def store(self, function: Any, targets: Sequence[Any], inputs: Sequence[Any]) -> None:
        """Results of a function become the values of targets."""
        with self.add_error_context():
            self.changes.store(function, targets, inputs)

    def grad_of(self, x: Tensor | None, index: int | None = None) -> TracedTensor | None:
        """The gradient that an input brings along."""
        if x is None:
            return None
        self.reads_grads = True
        k = index if index is not None else next(k for k, y in enumerate(self.inputs) if y is x)
        grad = self.grads[k]
        if grad is None:
            return None
        if id(grad) not in self.known:
            self.wrap_input(self.add_hidden_input(f"x{k}.grad", {}, grad, lambda inputs: inputs[k].grad), grad)
        return self.known[id(grad)]

    # The end.

    def finish(self, tree: Any) -> TraceResult:
        """What the function gave, and what it did."""
        results = OutputBuilder(self)
        stores, written = self.changes.found()
        found = tree_map(tree, results.place)
        grads: list[tuple[int, OutputRef | InputRef | None]] = []
        for k, x in enumerate(self.inputs):
            if isinstance(x, Tensor) and self.has_new_grad(k, x.grad):
                self.reads_grads = True
                grads.append((k, None if x.grad is None else results.place(x.grad)))
        results.refuse_graphs_of_given_leaves()
        learned = [(x.memory.argument, nodes) for x, nodes in self.gradients.leaves if x.owner is not None]
        leaves = {leaf: argument for argument, nodes in learned if argument is not None for leaf in nodes[1:]}
        windows = self.changes.windows
        program = TracedGraph(
            self.arguments,
            self.hidden,
            results.outputs,
            stores,
            True,
            windows,
            results.cut,
            results.layouts,
            leaves,
            results.aliases,
        )
        return TraceResult(
            program, found, grads, written, self.calls, frozenset(results.gives), self.lines, self.effects(results, grads)
        )

    def effects(self, results: OutputBuilder, grads: Sequence[tuple[int, Any]]) -> InputEffects:
        """Return how the function changes and uses its inputs."""
        leaves = {self.changes.index_of(x.memory) for x, _ in self.gradients.leaves if x.owner is not None}
        given = [x.index for _, x in grads if isinstance(x, InputRef)]  # an input became the gradient of another one
        exposed = frozenset([*results.aliases.values(), *leaves, *[k for k, _ in grads], *given])
        made = {id(x) for x in self.constants}
        hidden = [x for x in self.hidden if isinstance(x, Tensor) and id(x) not in made]
        return InputEffects(frozenset(self.changes.stored), frozenset(self.changes.read_after), exposed, hidden)

    def has_new_grad(self, k: int, grad: Any) -> bool:
        """Whether the gradient of input k is another one by now."""
        before = self.grads[k]
        return grad is not before and not (isinstance(grad, TracedTensor) and grad is self.known.get(id(before)))
