"""backends.numba_type_cache: Numba infers the type of an operator on numbers once, with its own answers."""

import operator
import time
from threading import Event, Thread

import pytest
from numba import njit
from numba.core import types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import TypingError
from numba.core.registry import cpu_target
from numba.core.types.functions import BaseFunction
from numba.extending import overload

from minifuse.backends.numba_type_cache import cached_operator_types

PAIRS = (
    (types.int64, types.int64),
    (types.int64, types.float32),
    (types.int32, types.IntegerLiteral(2)),
    (types.float32, types.float64),
    (types.boolean, types.int64),
)
FUNCTIONS = (operator.add, operator.mul, operator.truediv, operator.floordiv, operator.lt, operator.ne, max)


@pytest.fixture
def asked(monkeypatch):
    """What Numba itself was asked for."""
    found, ask = [], BaseFunction.get_call_type

    def get_call_type(self, context, args, kws):
        found.append((self.typing_key, args))
        return ask(self, context, args, kws)

    monkeypatch.setattr(BaseFunction, "get_call_type", get_call_type)
    return found


def signature_of(function, *args):
    cpu_target.typing_context.refresh()
    found = cpu_target.typing_context.resolve_function_type(function, args, {})
    assert found is not None
    return found


def answer_of(function, *args):
    """The signature, or the kind of error: not every Numba knows no max of a bool and an integer."""
    try:
        return signature_of(function, *args)
    except TypingError as error:
        return type(error)


def test_answers_are_numbas():
    for function in FUNCTIONS:
        for pair in PAIRS:
            expected = answer_of(function, *pair)
            with cached_operator_types():
                assert [answer_of(function, *pair) for _ in range(2)] == [expected] * 2
    assert answer_of(max, *PAIRS[0]) is not TypingError


def test_it_is_asked_once_for_each_function_and_each_pair(asked):
    pairs = [(types.uint16, types.uint32), (types.uint32, types.uint16)]
    for _ in range(3):
        with cached_operator_types():
            for function in (operator.add, operator.sub):
                for pair in pairs:
                    signature_of(function, *pair)
    expected = [(function, pair) for function in (operator.add, operator.sub) for pair in pairs]
    assert [x for x in asked if x[1] in pairs] == expected


def test_operands_that_are_no_numbers_are_not_cached(asked):
    array = types.Array(types.float32, 1, "C")
    with cached_operator_types():
        for _ in range(3):
            signature_of(operator.add, array, array)
    assert asked.count((operator.add, (array, array))) == 3


def test_functions_that_others_wrote_are_asked_for_every_time(asked):
    """They are compiled anew for other flags."""

    def doubled(x):
        raise NotImplementedError

    overload(doubled)(lambda x: lambda x: x + x)
    with cached_operator_types():
        assert [signature_of(doubled, types.int64).return_type for _ in range(3)] == [types.int64] * 3
    assert asked.count((doubled, (types.int64,))) >= 3


def test_functions_compile_in_such_a_block_and_after_it():
    def mixed(a, b):
        return max(a * b + 2, a // b) - (a < b)

    cases = [(7, 2), (2.5, 4.0), (9, 0.5), (True, 3)]
    with cached_operator_types():
        inside = njit(mixed)
        found = [inside(*case) for case in cases]
    after = njit(mixed)
    assert found == [after(*case) for case in cases] == [mixed(*case) for case in cases]


def test_numba_is_left_as_it_was_after_an_error_too():
    before = BaseFunction.get_call_type
    with cached_operator_types(), cached_operator_types():
        assert BaseFunction.get_call_type is not before
    assert BaseFunction.get_call_type is before
    with pytest.raises(ZeroDivisionError), cached_operator_types():
        1 // 0  # noqa: B018
    assert BaseFunction.get_call_type is before


def test_a_cpu_and_a_gpu_kernel_compile_in_two_threads_at_once():
    """One has Numba's lock first and infers types then, the other the other way round. Neither waits for ever."""
    infers, finished = Event(), []

    def compile_for_gpu():
        with cached_operator_types():
            infers.set()
            with global_compiler_lock:
                finished.append("gpu")

    def compile_for_cpu():
        with global_compiler_lock:
            Thread(target=compile_for_gpu, daemon=True).start()
            infers.wait(1)  # if it infers types without Numba's lock, it has begun by now
            with cached_operator_types():
                finished.append("cpu")

    Thread(target=compile_for_cpu, daemon=True).start()
    deadline = time.monotonic() + 10
    while len(finished) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert finished == ["cpu", "gpu"]
