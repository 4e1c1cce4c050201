"""Questions of task 5.4: which calls have equal keys, and what does a cache build?"""

import builtins
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..call_lists import FreeCall
from ..call_pairs import Builds, Pair, Requests, request_kernels
from ..call_sessions import Session, SessionFacts, run_session
from ..student import Student


def compare_keys(student: Student, pair: Pair) -> tuple[bool, object, str | None]:
    """Return whether the keys of two calls are equal, and a key that is not hashable with the error."""
    keys = [student.call_key(*call.build()) for call in pair]
    for key in keys:
        try:
            hash(key)
        except TypeError as error:
            return False, key, str(error)
    return bool(keys[0] == keys[1]), None, None


def use_cache(student: Student, requests: Requests) -> Builds:
    """Return which build each request gets from a new cache."""
    return request_kernels(student.KernelCache(requests.room), requests)


@contextmanager
def few_hashes(student: Student) -> Iterator[None]:
    """Let `hash` of a student's file return one of a few numbers: different values may have one hash."""
    words = vars(student.module("kernel_cache.py"))["__builtins__"]
    words["hash"] = lambda value: builtins.hash(value) % 5
    try:
        yield
    finally:
        words["hash"] = builtins.hash


def group_calls(student: Student, case: tuple[Sequence[FreeCall], bool]) -> tuple[list[int], object, str | None]:
    """Return, for each call, the first one with an equal key; and a key that is not hashable with the error.

    The case says whether functions and arguments of earlier calls are kept, or freed before the next call. Kept ones are
    asked for a second time.
    """
    calls, is_keeping = case
    kept, groups, first = [], list[int](), dict[object, int]()
    with few_hashes(student):
        for at, call in enumerate(calls):
            built = call.build()
            key = student.call_key(*built)
            try:
                groups.append(first.setdefault(key, at))
            except TypeError as error:
                return [], key, str(error)
            kept += [built] * is_keeping
        groups += [first.get(student.call_key(*built), -1) for built in kept]
    return groups, None, None


def use_caches(student: Student, session: Session) -> SessionFacts:
    """Return what happens in a session with the student's caches."""
    return run_session(student.KernelCache, session)
