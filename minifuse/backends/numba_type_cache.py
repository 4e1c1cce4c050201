"""The types of operators on numbers, for Numba's compilers: found once in a process, not once for each `+` of a kernel.

To find out what `a + b` is, Numba tries all that knows a `+`, of dates, text and arrays too, and does so once more where it
prints LLVM: a fifth of the time from a CUDA kernel to PTX, a twentieth of that of a CPU kernel. For numbers the answer
depends on their types alone. What an operator does, and all other calls, stay Numba's.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

_turn = RLock()
_found: dict[tuple[Any, ...], tuple[Any, Any]] = {}  # (context, function, types of operands) -> its signature, what emits it


@contextmanager
def cached_operator_types() -> Iterator[None]:
    """In a block of code, Numba asks for each operator and each combination of numbers once.

    Notes
    -----
    Numba has no door for this, so a method of it is another one for as long: in all threads, with the same answers.
    """
    from numba.core.types import Boolean, CPointer, Literal, Number, functions

    plain = Boolean, CPointer, Literal, Number
    kind: Any = functions.BaseFunction
    with _turn:
        ask = kind.get_call_type

        def get_call_type(self: Any, context: Any, args: tuple[Any, ...], kws: Any) -> Any:
            if kws or not all(isinstance(x, plain) for x in args):
                return ask(self, context, args, kws)
            asked = context, self.typing_key, args
            if asked not in _found:
                signature = ask(self, context, args, kws)
                emitted = self._impl_keys[signature.args]
                if emitted is not self.typing_key:  # compiled anew for other flags
                    return signature
                _found[asked] = signature, emitted
            signature, self._impl_keys[signature.args] = _found[asked]
            return signature

        kind.get_call_type = get_call_type
        try:
            yield
        finally:
            kind.get_call_type = ask
