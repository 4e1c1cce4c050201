"""Answers of the quizzes on modules 0 and 1, computed from the drawn numbers by NumPy, by the math module or by brute force.

Each function takes the drawn numbers and returns the answer; of a choice, the text of the right option.
"""

import math
import re
from functools import reduce
from itertools import product

import numpy as np

from minifuse.course.mutants import BUGS

GRID = (0.0, 1.0, 2.5, -2.5, 0.1, 0.3, -0.7, 7.0)
ENDS = {"log": np.log, "exp": np.exp, "inv": lambda x: 1 / np.float64(x), "sigmoid": lambda x: 1 / (1 + np.exp(-x))}


def ends(n):
    with np.errstate(all="ignore"):
        return repr(float(ENDS[n["name"]](n["x"])))


def bug_of(slot, description):
    return next(bug for bug in BUGS[slot] if bug.description == description)


def finder(n):
    bug = bug_of(n["slot"], n["bug"])
    laws = {
        "add": ["add(x, y) == add(y, x)", "add(x, 0) == x", "add(add(x, y), -y) == x"],
        "mul": ["mul(x, y) == mul(y, x)", "mul(x, 1) == x", "mul(-x, y) == -mul(x, y)"],
    }[bug.operator]

    def holds(law):
        left, right = (compile(side, "law", "eval") for side in law.split(" == "))
        cases = [{bug.operator: bug.function, "x": x, "y": y} for x, y in product(GRID, GRID)]
        return all(math.isclose(eval(left, case), eval(right, case), abs_tol=1e-9) for case in cases)

    (found,) = [law for law in laws if not holds(law)]
    return found


def broken_pairs(n):
    slot = "about_mul" if "squares" in n["bug"] else "about_add"
    f = bug_of(slot, n["bug"]).function
    return sum(f(x, y) != f(y, x) for x, y in n["pairs"])


def asleep(n):
    def is_kept(text):
        f = lambda x: eval(text.partition(" (")[0] if text.startswith("x (") else text, {"x": x, "abs": abs})  # noqa: E731
        return all(math.isclose(f(f(x)), x) for x in (-3.0, -0.5, 2.0, 5.0))

    assert not any(map(is_kept, n["others"]))
    return n["right"] if is_kept(n["right"]) else None


def truth(n):
    words = {
        "eq": lambda x, y: x == y,
        "is_close": lambda x, y: math.isclose(x, y, rel_tol=1e-5, abs_tol=1e-8),
        "add": lambda x, y: x + y,
        "mul": lambda x, y: x * y,
        "neg": lambda x: -x,
        "inv": lambda x: 1 / x if x else math.inf,
    }
    false = [xs for xs in product(GRID, repeat=3) if not eval(n["name"], words | dict(zip("xyz", xs, strict=True)))]
    if not false:
        return "Yes, at all numbers"
    return "No: 0 and numbers next to it are exceptions" if all(xs[0] == 0 for xs in false) else "No: floats are rounded"


def paths(picture):
    """Return the dotted names of the parameters in the picture of a tree."""
    names, stack = [], []
    for line in picture.splitlines()[1:]:
        depth, name = line.index("-- ") // 4, line.partition("-- ")[2].partition(",")[0]
        stack[depth:] = [name]
        if name in ("scale", "weight", "bias"):
            names.append(".".join(stack))
    return names


def wrong_points(n):
    a, b, bias = n["line"]
    values = [a * x + b * y + bias for x, y, _ in n["points"]]
    return sum(not (value > 0 if kind else value < 0) for value, (_, _, kind) in zip(values, n["points"], strict=True))


def network_value(n):
    (x, y), last = n["point"], n["last"]
    hidden = np.array(n["hidden"], float) @ [x, y, 1]
    return np.maximum(hidden, 0) @ last[:2] + last[2]


def inverse(n):
    x, d = n["x"], n["d"]
    return {"Inv": -d / x**2, "ReLU": d * (x > 0), "Neg": -d}[n["name"]]


def needs(n):
    table = {"Mul": "both inputs", "Add": "nothing", "Neg": "nothing", "LT": "nothing"}
    return (table | {"Log": "its input", "ReLU": "its input", "Exp": "its own value", "Sigmoid": "its own value"})[n["name"]]


def diamond(n):
    a, b, c, e, f = n["weights"]
    return n["d"] * a * (b * e + c * f)


def order(n):
    nodes = n["graph"].nodes
    users = {(k, i) for k, entry in enumerate(nodes) if not isinstance(entry, str) for i, _ in entry}

    def is_topological(names):
        place = {int(name[1:]): at for at, name in enumerate(names)}
        return all(place[user] < place[source] for user, source in users)

    (right,) = [names for names in n["orders"] if is_topological(names)]
    return " ".join(right)


def unit(n):
    hidden = np.maximum(np.array(n["x"]) @ np.array(n["first"]) + n["biases"], 0)
    return hidden @ n["last"] + n["bias"]


def loss(n):
    return np.mean([-np.log2(p if label else 1 - p) for p, label in zip(n["ps"], n["labels"], strict=True)])


def kept(n):
    t, rate = n["target"], n["rate"]
    first = -2 * t
    w = -rate * first
    return w - rate * (first + 2 * (w - t))


ANSWERS = {
    "0.1": {
        "ends": ends,
        "opposite_sigmoid": lambda n: round(1 / (1 + math.exp(n["x"])), 3),
        "closeness": lambda n: int(math.isclose(n["x"], n["y"], rel_tol=1e-5, abs_tol=1e-8)),
        "derivative": lambda n: {
            "inv_grad": -n["d"] / n["x"] ** 2,
            "log_grad": n["d"] / n["x"],
            "relu_grad": n["d"] * (n["x"] > 0),
        }[n["name"]],
        "sum_of_comparisons": lambda n: int(np.less(n["xs"], n["limit"]).sum()),
    },
    "0.2": {
        "finder": finder,
        "broken_pairs": broken_pairs,
        "asleep": asleep,
        "truth": truth,
        "calls": lambda n: len(re.findall(r"\bops\.", n["text"])),
    },
    "0.3": {
        "digits": lambda n: int("".join(map(str, [n["start"], *n["xs"]]))),
        "differences": lambda n: n["start"] - sum(n["xs"]),
        "empty": lambda n: reduce(lambda x, y: x + y, [], n["start"]),
        "counted_calls": lambda n: 3 * n["n"],
        "lengths": lambda n: f"A list of {n['n']}" if n["n"] == n["m"] else "ValueError",
    },
    "0.4": {
        "name": lambda n: [name for name in paths(n["figure"]) if name.startswith("layers")][n["at"]],
        "count": lambda n: len(paths(n["figure"])),
        "third": lambda n: paths(n["figure"])[n["at"] - 1],
        "modules": lambda n: 2 + n["layers"],
        "elements": lambda n: n["outputs"] * (n["inputs"] + n["bias"]),
    },
    "0.5": {
        "line_value": lambda n: np.dot(n["line"], [*n["point"], 1]),
        "bias": lambda n: -n["weight"] * n["at"],
        "network_value": network_value,
        "wrong_points": wrong_points,
    },
    "1.1": {
        "central": lambda n: 2 * n["a"] * n["x"] + n["b"],
        "one_side": lambda n: 2 * n["x"] + n["e"],
        "cubic": lambda n: n["e"] ** 2,
        "argument": lambda n: n["x"] - n["a"] if n["k"] else n["y"],
        "calls": lambda n: 2 * n["n"],
    },
    "1.2": {
        "product": lambda n: (n["d"] * n["y"], n["d"] * n["x"]),
        "inverse": inverse,
        "from_value": lambda n: n["d"] * n["s"] * (1 - n["s"] if n["name"] == "Sigmoid" else 1),
        "needs": needs,
        "comparison": lambda n: (0, 0),
    },
    "1.3": {
        "speeds": lambda n: n["a"] * n["b"] * n["c"],
        "square": lambda n: (n["d"] * n["x"],) * 2,
        "constants": lambda n: (n["d"] * n["c"],),
        "total": lambda n: n["d"] * (2 * n["x"] + n["c"]),
        "unit": lambda n: n["d"] * n["x"] * (n["w"] * n["x"] + n["b"] > 0),
    },
    "1.4": {
        "gradient": diamond,
        "order": order,
        "paths": lambda n: 2 ** n["rungs"],
        "calls": lambda n: 3 * n["rungs"],
        "gathered": lambda n: n["before"] + n["d"] * (n["a"] + n["b"]),
    },
    "1.5": {
        "parameters": lambda n: (n["inputs"] + 1) * n["hidden"] + n["hidden"] + 1,
        "unit": unit,
        "loss": loss,
        "step": lambda n: n["start"] - n["rate"] * 2 * (n["start"] - n["target"]),
        "kept": kept,
    },
}
