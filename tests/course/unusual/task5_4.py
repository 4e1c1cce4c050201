"""Unusual right solutions of task 5.4. Each is appended to the reference."""

# %% text_as_key: the key is a text of all facts.


def call_key(function, arguments):
    facts = [facts_of(function)]
    tensors = [x for x in arguments if isinstance(x, Strided)]
    for x in arguments:
        if isinstance(x, Strided):
            steps = [0 if n == 1 else s if s in (0, 1) else "other" for n, s in zip(x.shape, x.strides, strict=True)]
            facts.append((x.storage.dtype.str, steps))
        else:
            facts.append(type(x).__name__)
    for x in tensors:
        for y in tensors:
            facts.append(alias(x, y))
    return repr(facts)


def facts_of(value):
    if isinstance(value, tuple):
        return [type(value).__name__, *map(facts_of, value)]
    return facts_of(insides(value)) if hasattr(value, "__defaults__") else [type(value).__name__, repr(value)]


def alias(x, y):
    if x.storage is not y.storage:
        return "apart"
    same = (tuple(x.shape), tuple(x.strides), x.offset) == (tuple(y.shape), tuple(y.strides), y.offset)
    return "equal" if same else "together"


# %% key_of_a_class: the key is a dataclass, and aliases are labels: the first tensor with the same storage, and the first equal one.
from dataclasses import dataclass


@dataclass(frozen=True)
class Key:
    code: str
    numbers: tuple
    arguments: tuple


def call_key(function, arguments):
    found, storages, wholes = [], [], []
    for x in arguments:
        if not isinstance(x, Strided):
            found.append(type(x))
            continue
        whole = (id(x.storage), tuple(x.shape), tuple(x.strides), x.offset)
        if whole[0] not in storages:
            storages.append(whole[0])
        if whole not in wholes:
            wholes.append(whole)
        steps = "".join("0" if n == 1 or s == 0 else "1" if s == 1 else "s" for n, s in zip(x.shape, x.strides, strict=True))
        found.append((x.storage.dtype.str, steps, storages.index(whole[0]), wholes.index(whole)))
    return Key(*inside_of(function), tuple(found))


def inside_of(function):
    inside, numbers = insides(function), []
    waiting = [inside.closure, None, inside.defaults]
    while waiting:
        value = waiting.pop(0)
        if isinstance(value, tuple):
            waiting = ["(", *value, ")", *waiting]
        elif callable(value):
            waiting = [*insides(value), *waiting]
        else:
            numbers.append((type(value), repr(value)))
    return inside.code, tuple(numbers)


# %% cache_by_clock: the time of the last use is noted beside each kernel, and the smallest time is removed.


class KernelCache:
    def __init__(self, most):
        self.most, self.entries, self.clock = most, [], 0

    def kernel(self, function, arguments, build):
        self.clock += 1
        key = call_key(function, arguments)
        for entry in self.entries:
            if entry["key"] == key:
                entry["time"] = self.clock
                return entry["kernel"]
        made = build()
        self.entries.append({"key": key, "time": self.clock, "kernel": made})
        if len(self.entries) > self.most:
            self.entries.remove(min(self.entries, key=lambda entry: entry["time"]))
        return made


# %% cache_of_two_lists: keys and kernels are two lists, in the order of their last use; kernels may be anything, None too.


class KernelCache:
    def __init__(self, most):
        self.most, self.keys, self.values = most, [], []

    def kernel(self, function, arguments, build):
        key = call_key(function, arguments)
        if key in self.keys:
            at = self.keys.index(key)
            self.keys.append(self.keys.pop(at))
            self.values.append(self.values.pop(at))
        else:
            made = build()
            if self.most == 0:
                return made
            self.keys, self.values = [*self.keys, key][-self.most :], [*self.values, made][-self.most :]
        return self.values[-1]
