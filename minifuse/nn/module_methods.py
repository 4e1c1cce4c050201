"""The methods of modules that PyTorch users expect beside those of the tree: registration, look-up, casts and hooks.

Registration is assignment: `module.register_buffer("mean", x)` is `module.mean = nn.Buffer(x)`. A call of a module without
hooks costs one look at its class more.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from ..backends.registry import backend_of_device, get_backend
from ..compiler.tensor_meta import TensorMeta
from ..core.dtypes import DType
from ..core.errors import BackendError, DTypeError, IndexingError
from ..core.keywords import has_parameter, refuse
from ..ir.array_functions import View
from ..runtime.memory_pool import write_clock
from ..tensors.creation import DTypeLike
from ..tensors.grad_methods import RemovableHandle
from ..tensors.tensor import Tensor

Hook = Callable[..., Any]
hook_number = count()


class Hooks:
    """The hooks of a module, in the order in which they are called."""

    def __init__(self) -> None:
        self.forward_pre: dict[int, tuple[Hook, bool]] = {}  # (hook, whether it gets keyword arguments)
        self.forward: dict[int, tuple[Hook, bool, bool]] = {}  # and whether it is called after an error, too
        self.backward_pre: dict[int, Hook] = {}
        self.backward: dict[int, Hook] = {}

    def call(self, module: Any, inputs: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Call the module's `forward` between the hooks."""
        for hook, has_named in [*self.forward_pre.values()]:
            changed = hook(module, inputs, named) if has_named else hook(module, inputs)
            if changed is not None and has_named:
                inputs, named = changed
            elif changed is not None:
                inputs = changed if isinstance(changed, tuple) else (changed,)
        watch = BackwardHooks(self, module) if self.backward or self.backward_pre else None
        inputs = watch.inputs(inputs) if watch else inputs
        called = set()
        try:
            y = module.forward(*inputs, **named)
            for key, (hook, has_named, _) in [*self.forward.items()]:
                called.add(key)
                changed = hook(module, inputs, named, y) if has_named else hook(module, inputs, y)
                y = y if changed is None else changed
        except Exception:
            for key, (hook, has_named, always) in [*self.forward.items()]:
                if always and key not in called:
                    hook(module, inputs, named, None) if has_named else hook(module, inputs, None)
            raise
        return watch.outputs(y) if watch else y


def view_of(x: Tensor) -> Tensor:
    """Return a view of all elements, through which gradients flow separately."""
    return x.apply_view(View("reshape", x.shape))


class BackwardHooks:
    """The backward hooks of one call of a module: they run when the gradients of all its inputs have arrived."""

    def __init__(self, hooks: Hooks, module: Any) -> None:
        self.hooks, self.module = hooks, module
        self.grad_inputs: list[Tensor | None] = []
        self.grad_outputs: list[Tensor | None] = []
        self.missing: set[int] = set()  # positions of inputs whose gradients have not arrived

    def inputs(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return views of the inputs. The gradient of a view is that of this call only."""
        self.grad_inputs = [None] * len(inputs)
        return tuple(self._watched(k, x) for k, x in enumerate(inputs))

    def _watched(self, k: int, x: Any) -> Any:
        if not isinstance(x, Tensor) or not x.requires_grad:
            return x
        view = view_of(x)
        self.missing.add(k)
        view.register_hook(lambda g: self._receive(k, g))
        return view

    def outputs(self, y: Any) -> Any:
        """Return views of the outputs, whose gradients start the hooks. The outputs themselves may be inputs."""
        if isinstance(y, tuple | list):
            self.grad_outputs = [None] * len(y)
            return type(y)([self._starting(k, part) for k, part in enumerate(y)])
        self.grad_outputs = [None]
        return self._starting(0, y)

    def _starting(self, k: int, y: Any) -> Any:
        if not isinstance(y, Tensor) or not y.requires_grad:
            return y
        view = view_of(y)
        view.register_hook(lambda g: self._start(k, g))
        return view

    def _start(self, k: int, g: Tensor) -> Tensor:
        self.grad_outputs[k] = g
        for hook in [*self.hooks.backward_pre.values()]:
            changed = hook(self.module, tuple(self.grad_outputs))
            if changed is not None:
                self.grad_outputs = [*changed] if isinstance(changed, tuple) else [changed]
        if not self.missing:  # no input needs a gradient
            self._run()
        result = self.grad_outputs[k]
        return g if result is None else result

    def _receive(self, k: int, g: Tensor) -> Tensor | None:
        self.grad_inputs[k] = g
        self.missing.discard(k)
        if not self.missing:
            self._run()
        return self.grad_inputs[k]

    def _run(self) -> None:
        for hook in [*self.hooks.backward.values()]:
            changed = hook(self.module, tuple(self.grad_inputs), tuple(self.grad_outputs))
            if changed is not None:
                self.grad_inputs = [*changed] if isinstance(changed, tuple) else [changed]


class ModuleMethods:
    """Registration, look-up by name, casts and hooks of modules."""

    _hooks: Hooks | None = None
    computed: Mapping[str, Callable[[Any], Tensor]] = MappingProxyType({})  # attributes that are functions of the module
    kinds: dict[str, Any]  # Buffer, Parameter and Module by name, which are defined above this file

    def __new__(cls, *_: object, **named: object) -> Self:
        """Create a module. For a device, which PyTorch's layers accept, raise TypeError with what to write."""
        if "device" in named and not has_parameter(cls.__init__, "device"):
            refuse(cls.__name__, named, {"device": f"write {cls.__name__}(...).to(device)"})
        return super().__new__(cls)

    def __call__(self, *inputs: object, **named: object) -> Any:
        """Call `forward`, and the hooks if there are any."""
        if self._hooks is None:
            return self.forward(*inputs, **named)
        return self._hooks.call(self, inputs, named)

    if TYPE_CHECKING:

        def forward(self, *inputs: Any, **named: Any) -> Any: ...  # noqa: D102
        def buffers(self) -> Iterator[Any]: ...  # noqa: D102
        def parameters(self) -> Iterator[Any]: ...  # noqa: D102

    # Registration.

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Set an attribute to a buffer of these values, or to None. Unless `persistent`, `state_dict` leaves it out."""
        self._register("Buffer", name, tensor, *(() if tensor is None else (persistent,)))

    def register_parameter(self, name: str, param: Tensor | None) -> None:
        """Set an attribute to a parameter, or to None."""
        self._register("Parameter", name, param)

    def add_module(self, name: str, module: "ModuleMethods | None") -> None:
        """Set an attribute to a module, or to None."""
        self._register("Module", name, module)

    register_module = add_module

    def _register(self, kind: str, name: str, value: Any, *options: Any) -> None:
        if not isinstance(name, str) or not name or "." in name or (hasattr(self, name) and name not in vars(self)):
            raise IndexingError(
                f"register {kind.lower()}: got the name {name!r}, expected one without a dot that is no attribute yet"
            )
        expected: Any = self.kinds[kind]
        if kind == "Buffer" and value is not None:
            value = expected(value, *options)
        if value is not None and not isinstance(value, expected):
            raise DTypeError(f"register {kind.lower()} {name!r}: got {type(value).__name__}, expected an nn.{kind} or None")
        setattr(self, name, value)

    # Look-up by the names of `named_modules`, `named_parameters` and `named_buffers`.

    def get_submodule(self, target: str) -> Any:
        """Return the module of a name such as "layers.0.attention"; "" is this module."""
        value: Any = self
        for part in filter(None, target.split(".")):
            if isinstance(value, list | tuple) and part.isdecimal() and int(part) < len(value):
                value = value[int(part)]
            elif isinstance(value, dict) and part in value:
                value = value[part]
            else:
                value = getattr(value, part)  # raises AttributeError with the nearest name
        return value

    def get_parameter(self, target: str) -> Any:
        """Return the parameter of a name such as "layers.0.weight"."""
        return self._get("Parameter", target)

    def get_buffer(self, target: str) -> Any:
        """Return the buffer of a name such as "norm.running_mean"."""
        return self._get("Buffer", target)

    def set_submodule(self, target: str, module: Any, strict: bool = False) -> None:
        """Replace the module of a name. With `strict`, there must be one."""
        parent, _, name = target.rpartition(".")
        if strict:
            self.get_submodule(target)
        owner: Any = self.get_submodule(parent)
        if isinstance(owner, list):
            owner[int(name)] = module
        elif isinstance(owner, dict):
            owner[name] = module
        else:
            setattr(owner, name, module)

    def _get(self, kind: str, target: str) -> Any:
        value = self.get_submodule(target)
        if not isinstance(value, self.kinds[kind]):
            raise AttributeError(f"{target} is {type(value).__name__}, expected {kind}; write get_submodule for modules")
        return value

    # Casts. Parameters stay the same objects.

    def float(self) -> Self:
        """Convert parameters and float buffers to float32."""
        return self.to("float32")

    def double(self) -> Self:
        """Convert parameters and float buffers to float64."""
        return self.to("float64")

    def half(self) -> Self:
        """Raise DTypeError: there is no float16."""
        raise DTypeError("half: minifuse has no float16; write module.float()")

    def bfloat16(self) -> Self:
        """Raise DTypeError: there is no bfloat16."""
        raise DTypeError(
            "bfloat16: minifuse has no bfloat16; write module.float(), and mf.set_float32_matmul_precision for fast products"
        )

    def type(self, dst_type: Any) -> Self:
        """Convert parameters and float buffers to a float dtype."""
        return self.to(dst_type)

    def to(
        self,
        *target: DType | str,
        dtype: DTypeLike = None,
        backend: str | None = None,
        device: object = None,
        non_blocking: bool = False,  # of PyTorch
    ) -> Self:
        """Convert all parameters and buffers to a dtype, a backend, or both, and return this module.

        Parameters and buffers stay the same objects, so an optimizer keeps working; the optimizer's state is not moved.
        Integer buffers, such as a batch counter, keep their dtype. `non_blocking` has no effect.

        Raises
        ------
        DTypeError
            The dtype is not a float.

        Examples
        --------
        >>> import minifuse as mf
        >>> model = mf.nn.Linear(3, 2).to("float64")
        >>> model.weight.dtype
        float64
        """
        devices = [x for x in (device, *target) if isinstance(x, str) and x.startswith("cuda")]
        for name in devices:
            backend_of_device(name)  # warns if the GPU is simulated
        backend = backend if device is None else str(device)
        tensors = [*self.parameters(), *self.buffers()]
        converted = [p.detach().to(*target, dtype=dtype, backend=backend) for p in tensors]
        for p, x in zip(tensors, converted, strict=True):
            if p.dtype.is_float and not x.dtype.is_float:
                raise DTypeError(
                    f"{type(self).__name__}.to: got dtype {x.dtype}, expected a float for parameters; write to(mf.float32)"
                )
        converted = [
            x if p.dtype.is_float else p.detach().to(backend=x.backend) for p, x in zip(tensors, converted, strict=True)
        ]
        for p, x in zip(tensors, converted, strict=True):
            if x.meta.dtype is not p.meta.dtype or x.meta.backend is not p.meta.backend:
                p.buffer, p.address = x.buffer, x.address
                p.meta = TensorMeta(x.meta.layout, x.meta.dtype, x.meta.backend, p.requires_grad)
                if p.grad is not None:
                    p.grad = p.grad.detach().to(*target, dtype=dtype, backend=backend)
                # a graph recorded with the old memory must not be differentiated with the new one
                write_clock.record_write(p.buffer)
        return self

    def cpu(self) -> Self:
        """Move parameters and buffers to the memory of the CPU, to the backend `parallel`, unless they are there."""
        tensors = [*self.parameters(), *self.buffers()]
        is_there = all(x.meta.backend.is_host for x in tensors)
        return self if is_there else self.to(backend="parallel")

    def cuda(self, device: int | str | None = None) -> Self:
        """Move parameters and buffers to a GPU."""
        name = backend_of_device("cuda" if device is None else int(device) if str(device).isdecimal() else device)
        try:
            get_backend(name)
        except BackendError as error:
            raise BackendError(f"cuda: {error}") from None
        return self.to(backend=name)

    # Hooks.

    def register_forward_pre_hook(self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False) -> RemovableHandle:
        """Call hook(module, inputs) before `forward`; what it returns, unless None, replaces the inputs."""
        return self._add_hook("forward_pre", (hook, with_kwargs), prepend)

    def register_forward_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call hook(module, inputs, output) after `forward`; what it returns, unless None, replaces the output.

        With `with_kwargs`, it is called as hook(module, inputs, named, output). With `always_call`, also after an error.

        Examples
        --------
        >>> import minifuse as mf
        >>> layer = mf.nn.Linear(3, 2)
        >>> handle = layer.register_forward_hook(lambda module, inputs, y: print(y.shape))
        >>> y = layer(mf.ones(5, 3))
        (5, 2)
        >>> handle.remove()
        """
        return self._add_hook("forward", (hook, with_kwargs, always_call), prepend)

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call hook(module, grad_inputs, grad_outputs) when the gradients of the inputs are computed.

        Both are tuples. What the hook returns, unless None, replaces the gradient of an input; with several inputs, that of
        the input whose gradient was computed last.
        """
        return self._add_hook("backward", hook, prepend)

    def register_full_backward_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call hook(module, grad_outputs) before the gradients of the inputs are computed, which may replace them."""
        return self._add_hook("backward_pre", hook, prepend)

    def _add_hook(self, kind: str, entry: Any, prepend: bool) -> RemovableHandle:
        if self._hooks is None:
            self._hooks = Hooks()
        hooks, key = getattr(self._hooks, kind), next(hook_number)
        others = {**hooks} if prepend else {}
        if prepend:
            hooks.clear()
        hooks[key] = entry
        hooks.update(others)
        return RemovableHandle(hooks, key)
