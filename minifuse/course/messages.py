"""Answers of a student's functions as JSON, so that another process can read them: data alone, nothing that runs.

Plain values, arrays of numbers and the records of the course keep their types exactly. Anything else, such as an object of
a class of the student's, arrives as `Opaque`, which is equal to nothing else.
"""

import base64
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

RECORDS = {
    "AccessFacts": "access_facts",
    "ArrayFacts": "launch_facts",
    "Clipped": "questions.task7_4",
    "CompiledRun": "questions.parallel",
    "ErrorName": "questions.calling",
    "Evaluation": "questions.task7_4",
    "Graph": "fusion",
    "Kernel": "fusion",
    "KernelRun": "emitted_kernels",
    "LaunchFacts": "launch_facts",
    "LibraryCall": "library_facts",
    "LibraryRun": "library_facts",
    "LoopSource": "questions.parallel",
    "Loss": "questions.task7_4",
    "Node": "fusion",
    "PrangeRun": "compiled_launches",
    "Raised": "questions.calling",
    "RankEvent": "ranks",
    "RankRun": "ranks",
    "Sample": "questions.task7_4",
    "Schedule": "nests",
    "SessionFacts": "call_sessions",
    "SharedFacts": "launch_facts",
    "Steps": "questions.task7_4",
    "Strided": "strided",
    "Tokens": "questions.task7_4",
    "Touch": "access_facts",
    "Traffic": "launch_facts",
    "Trained": "questions.task4_5",
}
"""Classes of named tuples that a message keeps, and their modules."""
NUMERIC = "biufc"  # kinds of NumPy's dtypes
MAX_TEXT = 300  # characters of an opaque value


@dataclass(frozen=True, eq=False)
class Opaque:
    """A value that a message cannot contain."""

    kind: str
    """The name of its class."""
    text: str
    is_iterable: bool = False

    def __repr__(self) -> str:  # also of a list that contains it
        return self.text


def encode(value: object) -> Any:
    """Convert a value to lists, dicts, strings and numbers, as JSON has them."""
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is list:
        return [encode(x) for x in value]  # type: ignore[attr-defined]  # a list
    if kind is tuple:
        return {"tuple": [encode(x) for x in value]}  # type: ignore[attr-defined]  # a tuple
    if kind in (set, frozenset):
        return {kind.__name__: [encode(x) for x in value]}  # type: ignore[attr-defined]  # a set
    if kind is dict:
        return {"dict": [[encode(key), encode(x)] for key, x in value.items()]}  # type: ignore[attr-defined]  # a dict
    if kind is np.ndarray or isinstance(value, np.generic):
        array = np.asarray(value)
        if array.dtype.kind in NUMERIC and (kind is np.ndarray or kind is array.dtype.type):
            data = base64.b64encode(array.tobytes()).decode()
            return {"array" if kind is np.ndarray else "scalar": [array.dtype.str, list(array.shape), data]}
    name = kind.__name__
    if name in RECORDS and kind is record_class(name):
        return {"record": [name, *[encode(x) for x in value]]}  # type: ignore[attr-defined]  # a named tuple
    if isinstance(value, Opaque):
        return {"opaque": [value.kind, value.text, value.is_iterable]}
    return {"opaque": [name, text_of(value), callable(getattr(value, "__iter__", None))]}


def decode(message: Any) -> Any:
    """Convert what `encode` returned back to the value.

    Raises
    ------
    ValueError, TypeError, KeyError
        It is not the encoding of a value.
    """
    if isinstance(message, list):
        return [decode(x) for x in message]
    if not isinstance(message, dict):
        return message
    ((kind, content),) = message.items()
    if kind == "tuple":
        return tuple(decode(x) for x in content)
    if kind in ("set", "frozenset"):
        return {"set": set, "frozenset": frozenset}[kind](decode(x) for x in content)
    if kind == "dict":
        return {decode(key): decode(x) for key, x in content}
    if kind in ("array", "scalar"):
        dtype, shape, data = content
        if np.dtype(dtype).kind not in NUMERIC:
            raise ValueError(f"an array of {dtype}")
        array = np.frombuffer(base64.b64decode(data), dtype).reshape(shape).copy()
        return array if kind == "array" else array[()]
    if kind == "record":
        return record_class(content[0])(*[decode(x) for x in content[1:]])
    if kind == "opaque":
        return Opaque(*content)
    raise ValueError(f"a value of kind {kind!r}")


@cache
def record_class(name: str) -> Any:
    """Return the class of a record."""
    return getattr(import_module(f".{RECORDS[name]}", __package__), name)


def type_name(value: object) -> str:
    """Return the name of a value's class, also of a value that a message did not contain."""
    return value.kind if isinstance(value, Opaque) else type(value).__name__


def text_of(value: object) -> str:
    """Return a value as text, also if its class fails to convert it."""
    try:
        text = str(value)
    except Exception as error:  # a class of the student's
        text = f"a {type(value).__name__} that cannot be shown: {type(error).__name__}: {error}"
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 4] + " ..."
