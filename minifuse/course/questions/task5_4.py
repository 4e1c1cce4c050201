"""Questions of task 5.4: which calls have equal keys, and what does a cache build?"""

from ..call_pairs import Builds, Pair, Requests, request_kernels
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
