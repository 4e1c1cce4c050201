"""Questions on task 3.1: what Numba compiles, and what prange asks."""

from collections import Counter
from collections.abc import Callable
from random import Random

from ...core.layout import Layout, row_major
from .. import oracle
from .figures import strip, table
from .question import Question, choose

ARGUMENTS = (
    "1, 2",
    "3, 4",
    "1.0, 2.0",
    "0.5, 4.0",
    "1, 2.0",
    "np.ones(3), 1.0",
    "np.ones(500), 2.0",
    "np.ones((2, 3)), 1.0",
)


def versions(rng: Random) -> Question:
    """Ask how many versions Numba compiles."""
    import numba
    import numpy as np

    values = {
        "1, 2": (1, 2), "3, 4": (3, 4), "1.0, 2.0": (1.0, 2.0), "0.5, 4.0": (0.5, 4.0), "1, 2.0": (1, 2.0),
        "np.ones(3), 1.0": (np.ones(3), 1.0), "np.ones(500), 2.0": (np.ones(500), 2.0),
        "np.ones((2, 3)), 1.0": (np.ones((2, 3)), 1.0),
    }  # fmt: skip
    calls = rng.sample(ARGUMENTS, 5)
    types = {text: ", ".join(str(numba.typeof(x)).split(", aligned")[0] for x in values[text]) for text in calls}
    answer = len(set(types.values()))
    return Question(
        "add is decorated with @njit. How many versions of it are compiled by these calls?",
        answer,
        "There is one version for each combination of types; values and lengths are not part of a type, the number of "
        "dims is:",
        {
            len(calls): "values and lengths are not part of a type",
            answer - 1: "an int, a float, and arrays of other dims are other types",
        },
        figure="\n".join(f"add({text})" for text in calls),
        drawing=table([(f"add({text})", kind) for text, kind in types.items()]),
        numbers={"calls": calls},
    )


LOOPS: dict[str, tuple[Callable[[int, int], list[int]], Callable[[int, int], list[int]]]] = {
    "out[i] = a[i] * 2": (lambda i, n: [i], lambda i, n: []),
    "out[n - 1 - i] = a[i]": (lambda i, n: [n - 1 - i], lambda i, n: []),
    "out[i // 2] += a[i]": (lambda i, n: [i // 2], lambda i, n: [i // 2]),
    "out[i] = out[i - 1] + a[i]": (lambda i, n: [i], lambda i, n: [(i - 1) % n]),
    "out[i] = a[i // 2] + a[i]": (lambda i, n: [i], lambda i, n: []),
    "out[0] = max(out[0], a[i])": (lambda i, n: [0], lambda i, n: [0]),
    "out[2 * i] = out[2 * i + 1] = a[i]": (lambda i, n: [2 * i, 2 * i + 1], lambda i, n: []),
    "out[i % 3] = a[i]": (lambda i, n: [i % 3], lambda i, n: []),
}
"""For each body of a loop over i: the cells of out that iteration i writes, and those that it reads."""


def meeting(text: str, n: int) -> tuple[int, int, int] | None:
    """Return two iterations and a cell that one writes and the other reads or writes; None if there are none."""
    writes, reads = LOOPS[text]
    for i in range(n):
        for j in range(n):
            common = set(writes(i, n)) & {*writes(j, n), *reads(j, n)}
            if i != j and common:
                return i, j, min(common)
    return None


def race(rng: Random) -> Question:
    """Ask which loop may be a prange."""
    safe = [text for text in LOOPS if meeting(text, 8) is None]
    right = rng.choice(safe)
    others = rng.sample([text for text in LOOPS if text not in safe], 3)
    met = {text: meeting(text, 8) for text in others}
    mistakes = {text: f"iterations {m[0]} and {m[1]} meet at out[{m[2]}]" for text, m in met.items() if m}
    return choose(
        rng,
        "Each of these is the body of a loop over i. Which loop may be a prange?",
        right,
        mistakes,
        f"An iteration may only write cells that no other one reads or writes. In `{right}` no two iterations meet; the "
        "others have a race:",
        drawing=table(list(mistakes.items())),
        numbers={"right": right, "others": others},
    )


def fast_path(rng: Random) -> Question:
    """Ask which layout has element k at offset + k."""
    n, m = rng.sample([2, 3, 4], 2)
    plain, offset = row_major((n, m)), rng.randint(1, 3)
    right = Layout(plain.shape, plain.strides, offset)
    others = {
        Layout((n, m), (1, n), 0): "it is stored column by column",
        Layout((n, m), (m + 1, 1), 0): "there is a gap after each row",
        Layout((n, m), (-m, 1), (n - 1) * m): "its rows are flipped",
    }

    def text(layout: Layout) -> str:
        return f"strides {layout.strides}, offset {layout.offset}"

    assert all(right.position(divmod(k, m)) == offset + k for k in range(n * m))
    return choose(
        rng,
        f"Four tensors have shape ({n}, {m}). In which one is element k at offset + k, so that no division is needed?",
        text(right),
        {text(layout): mistake for layout, mistake in others.items()},
        f"Row-major without gaps means strides {plain.strides}; the offset may be anything. Its elements:",
        drawing=strip(right, n * m + offset),
        numbers={"shape": (n, m), "offset": offset},
    )


def arrays_between(rng: Random) -> Question:
    """Ask how many arrays fusion removes."""
    text, function = rng.choice(list(CHAINS.items()))
    graph = oracle.function("capture")(function, (100, 10), (100, 10))
    operators = [node for node in graph.nodes if node.op not in ("input", "constant")]
    answer = len(operators) - 1
    return Question(
        f"a and b are arrays. How many arrays in between does {text} make without fusion?",
        answer,
        f"Each of the {len(operators)} operators is a loop that makes an array, and the last array is the result. Numba "
        "makes one loop of the whole, with no array in between:",
        {
            len(operators): "the last one is the result",
            answer + 2: "a and b are there before",
        },
        drawing=str(graph),
        numbers={"text": text, "operators": dict(Counter(node.op for node in operators))},
    )


CHAINS: dict[str, Callable[..., object]] = {
    "exp(a * a + b * b) * 0.5 + a": lambda a, b: (a * a + b * b).exp() * 0.5 + a,
    "(a + b) * (a - b)": lambda a, b: (a + b) * (a - b),
    "exp(-a) / (b + 1)": lambda a, b: (-a).exp() / (b + 1.0),
    "log(a) + log(b) - a * b": lambda a, b: a.log() + b.log() - a * b,
}


def parallel_steps(rng: Random) -> Question:
    """Ask how many iterations of a reduction are independent."""
    shape, dim = tuple(rng.sample([3, 4, 5, 10, 20], 3)), rng.randrange(3)
    out = row_major(shape).slice(*[(0, 1, 1 if d == dim else n) for d, n in enumerate(shape)])
    n = shape[dim]
    return Question(
        f"A tensor of shape {shape} is reduced along dim {dim}, with a function of which nothing is known. How many "
        "iterations can a prange share out?",
        out.size,
        f"Every output is a reduction of its own, and out has shape {out.shape}: {out.size} outputs. Along dim {dim} each "
        f"of the {n} steps needs the one before.",
        {
            out.size * n: "the steps along the reduced dim need each other",
            n: "these steps need each other; the outputs do not",
        },
        numbers={"shape": shape, "dim": dim},
    )


QUESTIONS = (versions, race, fast_path, arrays_between, parallel_steps)
