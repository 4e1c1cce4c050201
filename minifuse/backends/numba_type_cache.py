"""Cache Numba's type inference of operators on numbers: once per process, not once for each `+` of a kernel.

To infer the type of `a + b`, Numba tries every implementation of `+`, those of dates, text and arrays too, and again when it
emits LLVM. That takes a fifth of the time from a CUDA kernel to PTX, and a twentieth of that of a CPU kernel. For numbers
the result depends on their types only, so it is cached. Nothing else about operators or other calls changes.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numba.core.types import Type
    from numba.core.typing.context import BaseContext
    from numba.core.typing.templates import Signature

# (context, function, operand types) -> signature, key of the emitter
_cache: "dict[tuple[BaseContext, object, tuple[Type, ...]], tuple[Signature, object]]" = {}


@contextmanager
def cached_operator_types() -> Iterator[None]:
    """Cache type inference inside a block of code: once for each operator and each combination of number types.

    Notes
    -----
    Numba has no hook for this, so one of its methods is replaced during the block, in all threads, with equal results.
    The block holds Numba's own compiler lock. A lock of ours would be taken after it by one thread, which compiles for a
    CPU, and before it by another, which compiles for a GPU: each would wait for the other.
    """
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.types import Boolean, CPointer, Literal, Number, functions

    number_types = Boolean, CPointer, Literal, Number
    kind: Any = functions.BaseFunction  # whose method is replaced
    with global_compiler_lock:
        infer: Callable[..., Signature] = kind.get_call_type

        def get_call_type(
            self: Any, context: "BaseContext", args: "tuple[Type, ...]", kws: "Mapping[str, Type]"
        ) -> "Signature":
            if kws or not all(isinstance(x, number_types) for x in args):
                return infer(self, context, args, kws)
            key = context, self.typing_key, args
            if key not in _cache:
                signature = infer(self, context, args, kws)
                emitter = self._impl_keys[signature.args]
                if emitter is not self.typing_key:  # Numba compiled it for these flags only
                    return signature
                _cache[key] = signature, emitter
            signature, self._impl_keys[signature.args] = _cache[key]
            return signature

        kind.get_call_type = get_call_type
        try:
            yield
        finally:
            kind.get_call_type = infer
