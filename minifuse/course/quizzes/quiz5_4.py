"""Questions on task 5.4: which calls share a kernel, and which kernel goes first."""

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

from .. import oracle
from ..strided import Strided
from .figures import table
from .question import Question, choose

Call = tuple[Callable[..., Any], tuple[Any, ...]]


def tensor(rows: int, columns: int, dtype: Any = np.float32, strides: tuple[int, int] | None = None) -> Strided:
    """Return a tensor, row-major unless strides are given."""
    return Strided(np.zeros(10_000, dtype), (rows, columns), strides or (columns, 1), 0)


def times(k: float) -> Callable[..., Any]:
    """Return a function that reads k from around it."""
    return lambda x, y: x * k + y


def variants() -> dict[str, tuple[Call, str]]:
    """Return calls that differ in one thing from f(x, y), and what follows for the text of the kernel."""
    f = times(2)
    x, y = tensor(4, 5), tensor(4, 5)
    return {
        "x and y have shape (40, 50)": ((f, (tensor(40, 50), tensor(40, 50))), "a size is an argument"),
        "x is float64": ((f, (tensor(4, 5, np.float64), y)), "the dtype is in the text"),
        "x has strides (9, 1)": ((f, (tensor(4, 5, strides=(9, 1)), y)), "a stride that is neither 0 nor 1 is an argument"),
        "x has strides (1, 4)": ((f, (tensor(4, 5, strides=(1, 4)), y)), "the loop steps by 1 along another dim"),
        "y is repeated along rows: strides (0, 1)": (
            (f, (x, tensor(4, 5, strides=(0, 1)))),
            "with stride 0 the loop does not move",
        ),
        "k is 3": ((times(3), (x, y)), "what a function reads from around it is in the text"),
        "k is 2.0": ((times(2.0), (x, y)), "2 and 2.0 are of two types"),
        "y is x": ((f, (x, x)), "what is stored may be what is loaded next"),
        "x and y are new arrays": ((f, (tensor(4, 5), tensor(4, 5))), "addresses are arguments"),
        "f is made anew, with k = 2": ((times(2), (x, y)), "it has the same code and closure"),
        "x has 50 rows": ((f, (tensor(50, 5), tensor(50, 5))), "a size is an argument"),
    }


def same_key(call: Call) -> bool:
    """Return whether a call has the key of f(x, y) with two row-major tensors of shape (4, 5)."""
    call_key = oracle.function("call_key")
    return bool(call_key(*call) == call_key(times(2), (tensor(4, 5), tensor(4, 5))))


INTRODUCTION = (
    "f multiplies x by k, which it reads from around it and which is 2, and adds y. x and y were row-major float32 of "
    "shape (4, 5)."
)


def another(rng: Random) -> Question:
    """Ask which call needs another kernel."""
    calls = variants()
    shared = {text for text, (call, _) in calls.items() if same_key(call)}
    right = rng.choice([text for text in calls if text not in shared])
    others = rng.sample(sorted(shared), 3)
    return choose(
        rng,
        f"{INTRODUCTION} Which change needs another kernel?",
        right,
        {text: f"{calls[text][1]}, so the text stays" for text in others},
        f"The rule is one question: would the text of the kernel be another one? Here: {calls[right][1]}.",
        numbers={"right": right, "others": others},
    )


def same(rng: Random) -> Question:
    """Ask which call finds its kernel in the cache."""
    calls = variants()
    shared = {text for text, (call, _) in calls.items() if same_key(call)}
    right = rng.choice(sorted(shared))
    others = rng.sample([text for text in calls if text not in shared], 3)
    return choose(
        rng,
        f"{INTRODUCTION} Which change finds the same kernel in the cache?",
        right,
        {text: f"{calls[text][1]}, so it needs another kernel" for text in others},
        f"The text of the kernel stays as it is: {calls[right][1]}.",
        numbers={"right": right, "others": others},
    )


def builds(rng: Random) -> Question:
    """Ask how many kernels a sequence of calls builds."""
    calls = variants()
    chosen = rng.sample(list(calls), 4)
    cache, count, rows = oracle.function("KernelCache")(100), [0], []

    def build() -> int:
        count[0] += 1
        return count[0]

    cache.kernel(times(2), (tensor(4, 5), tensor(4, 5)), build)
    for text in chosen:
        before = count[0]
        cache.kernel(*calls[text][0], build)
        rows.append((text, "built" if count[0] > before else "found", calls[text][1]))
    return Question(
        f"{INTRODUCTION} That call builds a kernel. Then four calls follow; each has this one difference to the first. How "
        "many kernels are built in all?",
        count[0],
        "The first call builds one, and each new key another:",
        {
            count[0] - 1: "the first call builds one, too",
            5: "some calls have a key that is there",
            1: "some calls need another text",
        },
        figure="\n".join(f"{k}  {text}" for k, text in enumerate(chosen, start=1)),
        drawing=table([row[:2] for row in rows]) + "\n\n" + "\n".join(f"{row[1]}: {row[2]}" for row in rows),
        numbers={"chosen": chosen},
    )


def sequence(rng: Random, most: int) -> list[str]:
    """Draw calls of three or four functions."""
    names = "ABCD"[: most + 1]
    calls = [*rng.sample(names[:most], most)]
    while len(calls) < 6:
        calls.append(rng.choice([name for name in names if name != calls[-1]]))
    return calls


def run_cache(calls: list[str], most: int) -> list[tuple[str, str, str]]:
    """Run calls through a cache, and return the call, whether its kernel was built, and what is cached afterwards."""
    functions: dict[str, Callable[..., Any]] = {name: times(k) for k, name in enumerate("ABCD")}
    cache, rows = oracle.function("KernelCache")(most), []
    for name in calls:
        built: list[str] = []

        def build(name: str = name, built: list[str] = built) -> str:
            built.append(name)
            return name

        cache.kernel(functions[name], (tensor(2, 2), tensor(2, 2)), build)
        rows.append((name, "built" if built else "found", " ".join(cache.kernels.values())))
    return rows


def first_in(calls: list[str], most: int) -> int:
    """Return how many kernels are built if the one that was built first goes first."""
    cached, count = list[str](), 0
    for name in calls:
        if name not in cached:
            cached, count = [*cached, name][-most:], count + 1
    return count


def evictions(rng: Random) -> Question:
    """Ask how many kernels a full cache builds."""
    most = rng.randint(2, 3)
    calls = sequence(rng, most)
    rows = run_cache(calls, most)
    answer = sum(row[1] == "built" for row in rows)
    return Question(
        f"A cache has room for {most} kernels, and the one not asked for the longest goes first. The calls "
        f"{' '.join(calls)} need a kernel each of this name. How many are built?",
        answer,
        "The kernel that is asked for moves to the end; the one at the front goes:",
        {
            first_in(calls, most): "the one not asked for the longest goes, not the one that was built first",
            len(set(calls)): "what had to go is built again when it is asked for",
        },
        drawing=table(rows, ("call", "kernel", "cached afterwards")),
        numbers={"calls": calls, "most": most},
    )


def goes(rng: Random) -> Question:
    """Ask which kernel goes."""
    most = 3
    calls = [*rng.sample("ABC", 3), *(rng.choice("ABC") for _ in range(2)), "D"]
    rows = run_cache(calls, most)
    (answer,) = set(rows[-2][2].split()) - set(rows[-1][2].split())
    return Question(
        "A cache has room for 3 kernels, and the one not asked for the longest goes first. After the calls "
        f"{' '.join(calls[:-1])} a call needs D, which is new. Which kernel goes?",
        answer,
        "The last calls of A, B and C decide, not when they were built:",
        {calls[0]: "it was built first, but has been asked for since", calls[-2]: "it was asked for just before"},
        drawing=table(rows, ("call", "kernel", "cached afterwards")),
        numbers={"calls": calls},
    )


QUESTIONS = (another, same, builds, evictions, goes)
