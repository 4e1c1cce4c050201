"""Cache Numba's type inference of operators on numbers: once per process, not once for each `+` of a kernel.

To infer the type of `a + b`, Numba tries every implementation of `+`, even those of dates, text and arrays. It does so
again when it emits LLVM. That is a fifth of the time to compile a CUDA kernel to PTX, and a twentieth of the time to compile
a CPU kernel. For numbers the result depends on their types only, so it is cached. All other calls are inferred as before.
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
    The block holds Numba's compiler lock. A separate lock could deadlock: a thread that compiles for a CPU would acquire
    it after Numba's lock, and a thread that compiles for a GPU before it.
    """
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.types import Boolean, CPointer, Literal, Number, functions

    number_types = Boolean, CPointer, Literal, Number
    base: Any = functions.BaseFunction  # the class whose method is replaced
    with global_compiler_lock:
        infer: Callable[..., Signature] = base.get_call_type

        def get_call_type(
            self: Any, context: "BaseContext", args: "tuple[Type, ...]", kws: "Mapping[str, Type]"
        ) -> "Signature":
            if kws or not all(isinstance(x, number_types) for x in args):
                return infer(self, context, args, kws)
            key = context, self.typing_key, args
            if key not in _cache:
                signature = infer(self, context, args, kws)
                emitter = self._impl_keys[signature.args]
                if emitter is not self.typing_key:  # Numba compiled this implementation for the current flags only
                    return signature
                _cache[key] = signature, emitter
            signature, self._impl_keys[signature.args] = _cache[key]
            return signature

        base.get_call_type = get_call_type
        try:
            yield
        finally:
            base.get_call_type = infer
