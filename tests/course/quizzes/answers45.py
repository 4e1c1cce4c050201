"""Answers of the quizzes on modules 4 and 5, computed from the drawn numbers by NumPy or by brute force."""

import ast
import math
from functools import lru_cache, reduce

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from minifuse.course.fusion import can_share

ELEMENTWISE_OPS = (ast.BinOp, ast.UnaryOp, ast.Call)
SAME_KERNEL = {
    "x and y have shape (40, 50)",
    "x has strides (9, 1)",
    "x and y are new arrays",
    "f is made anew, with k = 2",
    "x has 50 rows",
}
SAVED = {
    "x.exp() / x.exp().sum()": 1,
    "x * x.sum()": 1,
    "x - x.sum() / 8.0": 0,
    "x + x.max()": 1,
    "(x * x).sum().log() + x": 1,
    "x * 2.0 + x.exp()": 0,
    "x / x.max()": 1,
    "x * x.max() + x.sum()": 1,
}


def places(size, kernel, stride, padding):
    return len(range(0, size + 2 * padding - kernel + 1, stride))


def windows(n):
    return sliding_window_view(np.pad(n["xs"], n["padding"]), len(n["kernel"]))[:: n["stride"]]


def input_gradient(n):
    touched = np.zeros(n["width"] + 2 * n["padding"])
    for start in range(0, len(touched) - len(n["kernel"]) + 1, n["stride"]):
        touched[start : start + len(n["kernel"])] += n["kernel"]
    return touched[n["i"] + n["padding"]]


def image_output(n):
    seen = sliding_window_view(np.array(n["image"]), (2, 2))
    return (seen * n["kernel"]).sum((2, 3))[n["place"]]


def ties(n):
    received = np.zeros(4)
    for k, d in enumerate(n["gradient"]):
        seen = np.array(n["x"][k : k + 2])
        received[k : k + 2] += d * (seen == seen.max()) / (seen == seen.max()).sum()
    return tuple(received)


def softmax(scores):
    powers = np.exp(np.array(scores, float) - max(scores))
    return powers / powers.sum()


def overflow(n):
    with np.errstate(all="ignore"):
        powers = np.exp(np.array(n["scores"], float))
        first = (powers / powers.sum())[0]
    return "nan" if np.isnan(first) else f"{first:.3f}"


def loss_gradient(n):
    return n["ps"][n["k"]] - (n["k"] == n["label"])


def largest(n):
    is_largest = np.equal(n["x"], max(n["x"]))
    return tuple(n["d"] * is_largest / is_largest.sum())


def always(n):
    return 100 * max(n["counts"]) / sum(n["counts"])


def operations(text):
    """Return the distinct operations of an expression of x and y, as syntax trees by their dump."""
    tree = ast.parse(text, mode="eval")
    return {ast.dump(node): node for node in ast.walk(tree) if isinstance(node, ELEMENTWISE_OPS)}


def operands(node):
    """Return the operands of an operation that are no constants, each once."""
    if isinstance(node, ast.BinOp):
        parts = [node.left, node.right]
    elif isinstance(node, ast.UnaryOp):
        parts = [node.operand]
    else:
        parts = [node.func.value, *node.args]
    return {ast.dump(part) for part in parts if not isinstance(part, ast.Constant)}


def loads(n):
    found = operations(n["text"])
    unfused = sum(len(operands(node)) + 1 for node in found.values())
    return 3 if n["fused"] else unfused


def shape(n):
    x, y = (np.ones(s) for s in n["shapes"])
    for name in ("sum", "max"):
        n = n | {"text": n["text"].replace(f".{name}()", f".{name}(-1, keepdims=True)")}
    return eval(n["text"], {"x": x, "y": y}).shape


def literals(text):
    """Return the numbers of a text with their signs."""
    words = text.replace("(", " ").replace(")", " ").split()
    return [word for word in words if word.strip("-").replace(".", "").isdigit()]


def branch(n):
    return n["right"] if any(word in n["right"] for word in ("if x.sum", "max(x,", " and ", "not ")) else None


def level(graph, k):
    node = graph.nodes[k]
    return max((level(graph, i) for i in node.inputs), default=0) + (node.op in ("sum", "max"))


def passes(n):
    graph = n["graph"]
    last = graph.nodes[graph.outputs[0]]
    return max(level(graph, k) for k in range(len(graph.nodes))) + (last.shape[-1] > 1)


def shares_pass(text):
    """Return whether the second of two reductions does not contain the first."""
    first, second = text.split(" and ")
    return first not in second


def why(n):
    assert not any(map(shares_pass, n["others"]))
    return n["right"] if shares_pass(n["right"]) else None


def another(n):
    assert SAME_KERNEL.issuperset(n["others"])
    return None if n["right"] in SAME_KERNEL else n["right"]


def same(n):
    assert SAME_KERNEL.isdisjoint(n["others"])
    return n["right"] if n["right"] in SAME_KERNEL else None


def evictions(n):
    kernel = lru_cache(n["most"])(lambda name: name)
    for name in n["calls"]:
        kernel(name)
    return kernel.cache_info().misses


def goes(n):
    last = {name: at for at, name in enumerate(n["calls"][:-1])}
    return min(last, key=last.get)


def of_maximum(n):
    a, b, d = n["a"], n["b"], n["d"]
    return (d / 2, d / 2) if a == b else (d * (a > b), d * (b > a))


def computed(graph):
    return [k for k, node in enumerate(graph.nodes) if node.op not in ("input", "constant")]


def partitions(items):
    """Return all ways to split items into groups."""
    if not items:
        return [[]]
    first, rest = items[0], partitions(items[1:])
    return [[[first], *groups] for groups in rest] + [
        [*groups[:k], [first, *groups[k]], *groups[k + 1 :]] for groups in rest for k in range(len(groups))
    ]


def can_run(graph, groups):
    """Return whether groups can run one after the other."""
    done, left = {k for k, node in enumerate(graph.nodes) if node.op in ("input", "constant")}, [set(g) for g in groups]
    while left:
        ready = [g for g in left if all(i in done | g for k in g for i in graph.nodes[k].inputs)]
        if not ready:
            return False
        done |= ready[0]
        left.remove(ready[0])
    return True


def launches(n):
    graph = n["graph"]
    return min(
        len(groups)
        for groups in partitions(computed(graph))
        if all(can_share(graph, g) for g in groups) and can_run(graph, groups)
    )


def loaded(graph, nodes):
    inputs = {i for k in nodes for i in graph.nodes[k].inputs}
    return tuple(sorted(i for i in inputs if i not in nodes and graph.nodes[i].op != "constant"))


def stored(graph, nodes):
    outside = {i for k in computed(graph) if k not in nodes for i in graph.nodes[k].inputs} | set(graph.outputs)
    return tuple(sorted(k for k in nodes if k in outside))


def moved(n):
    graph, nodes = n["graph"], n["nodes"]
    return 8 * sum(math.prod(graph.nodes[k].shape) for k in (*loaded(graph, nodes), *stored(graph, nodes)))


def cycle(n):
    (right,) = [text for text, groups in n["groupings"].items() if not can_run(n["graph"], groups)]
    return right


def rate_of(n):
    step, warmup, length = n["step"], n["warmup"], n["steps"] - n["warmup"]
    if step < warmup:
        return np.linspace(0, n["peak"], warmup + 1)[step + 1]
    return n["peak"] * np.cos(np.pi / 2 * (step - warmup) / length) ** 2


ANSWERS = {
    "4.1": {
        "size": lambda n: places(n["width"], n["kernel"], n["stride"], n["padding"]),
        "begin": lambda n: range(-n["padding"], 100, n["stride"])[n["x"]],
        "output": lambda n: np.dot(windows(n)[n["place"]], n["kernel"]),
        "weight_gradient": lambda n: windows(n)[:, n["k"]].sum(),
        "input_gradient": input_gradient,
    },
    "4.2": {
        "shape": lambda n: tuple(map(places, n["image"], n["kernel"], n["stride"], n["padding"])),
        "corner": lambda n: tuple(
            range(-p, 100, s)[at] for p, s, at in zip(n["padding"], n["stride"], n["place"], strict=True)
        ),
        "output": image_output,
        "work": lambda n: math.prod([n["batch"], n["out"], *n["places"], n["channels"], *n["kernel"]]),
        "weights": lambda n: n["out"] * n["channels"] * n["kernel"] ** 2,
    },
    "4.3": {
        "maximum": lambda n: tuple(np.reshape(n["x"], (2, 2, 2, 2)).max((1, 3)).reshape(-1)),
        "mean": lambda n: np.mean(n["x"][n["place"] * n["stride"] :][:2]),
        "ties": ties,
        "mean_gradient": lambda n: np.convolve(n["gradient"], [0.5, 0.5])[n["i"]],
        "left_out": lambda n: (
            n["rows"] * n["columns"] - math.prod(size - size % n["window"] for size in (n["rows"], n["columns"]))
        ),
    },
    "4.4": {
        "shifted": lambda n: round(softmax(n["scores"])[n["k"]], 3),
        "difference": lambda n: n["scores"][n["i"]] - n["scores"][n["j"]],
        "overflow": overflow,
        "loss_gradient": loss_gradient,
        "largest": largest,
        "dropped": lambda n: n["x"] / (1 - n["rate"]) if n["training"] else n["x"],
    },
    "4.5": {
        "shape": lambda n: (n["n"], n["kernels"], *[(n["size"] - n["kernel"] + 1) // 2] * 2),
        "first_loss": lambda n: n["kinds"],
        "counted": lambda n: np.sum(np.argmax(n["likely"], 1) == n["labels"]),
        "parameters": lambda n: n["kernels"] * n["kernel"] ** 2 + 10 * n["kernels"] * n["rest"] ** 2 + 10,
        "relu": lambda n: n["n"] * n["kernels"] * ((n["size"] - 2) // 2) ** 2,
        "always": always,
    },
    "4.6": {
        "velocity": lambda n: reduce(lambda v, g: n["momentum"] * v + g, (n["first"], n["second"]), 0.0),
        "constant": lambda n: reduce(lambda v, g: n["momentum"] * v + g, [n["gradient"]] * 2000, 0.0),
        "decay": lambda n: n["value"] * (1 - n["rate"] * n["decay"]) - n["rate"] * n["gradient"],
        "first_step": lambda n: n["rate"] * np.sign(n["gradient"]),
        "left_out": lambda n: len(set(range(n["steps"])) - set(n["without"])),
        "schedule": rate_of,
    },
    "4.7": {
        "batches": lambda n: len(range(0, n["count"] - (n["size"] - 1) * n["drops"], n["size"])),
        "last": lambda n: len(range(n["count"])[range(0, n["count"], n["size"])[-1] :]),
        "reads": lambda n: sum(n["size"] for _ in range(n["done"])),
        "resumed": lambda n: len(range(n["done"], n["total"])),
        "scaled": lambda n: (n["test"][0] - np.mean(n["train"])) / np.std(n["train"]),
        "leak": lambda n: "split, then scale both parts by the training rows",
    },
    "5.1": {
        "nodes": lambda n: len(operations(n["text"])),
        "operands": lambda n: f"{ {'-': 'sub', '/': 'div', '<': 'lt'}[n['kind']] } {n['c']} x",
        "shape": shape,
        "constants": lambda n: len({repr(float(number)) for number in literals(n["text"])}),
        "branch": branch,
    },
    "5.2": {
        "loads": loads,
        "bytes_moved": lambda n: 3 * np.empty(n["n"]).nbytes,
        "strides": lambda n: np.broadcast_to(np.empty(n["small"], np.int8), n["shape"]).strides,
        "position": lambda n: np.dot(n["index"], n["strides"]),
        "once": lambda n: 2 ** (n["rounds"] + 1) - 1,
        "digits": lambda n: "repr(value)" if float(repr(n["value"])) == n["value"] else None,
    },
    "5.3": {
        "passes": passes,
        "level": lambda n: level(n["graph"], n["k"]),
        "begin": lambda n: max(float(n["start"]), *n["row"]),
        "exponents": lambda n: tuple(np.array(n["row"]) - max(n["row"])),
        "saved_bytes": lambda n: 2 * np.empty((n["rows"], n["n"])).nbytes,
        "why": why,
    },
    "5.4": {
        "another": another,
        "same": same,
        "builds": lambda n: 1 + len(set(n["chosen"]) - SAME_KERNEL),
        "evictions": evictions,
        "goes": goes,
    },
    "5.5": {
        "saved": lambda n: SAVED[n["text"]],
        "again": lambda n: "exp, an element for each element of x",
        "saved_bytes": lambda n: SAVED[n["text"]] * np.empty(n["rows"]).nbytes,
        "ties": of_maximum,
        "used_twice": lambda n: n["d"] * (2 * n["x"] + n["c"]),
        "repeated": lambda n: np.dot(n["row"], n["d"]),
    },
    "5.6": {
        "launches": launches,
        "moved": moved,
        "loads": lambda n: loaded(n["graph"], n["group"]),
        "stores": lambda n: stored(n["graph"], n["group"]),
        "cycle": cycle,
    },
    "5.7": {
        "sectors": lambda n: len({(i * n["columns"] + j) // 8 for i in range(n["rows"]) for j in range(n["width"])}),
        "waves": lambda n: len(range(0, len(range(0, n["size"], n["whole"])), n["multiprocessors"])),
        "idle": lambda n: -n["size"] % n["threads"],
        "loads": lambda n: n["m"] + n["n"],
        "split": lambda n: len(range(0, len(range(0, n["size"], n["chunks"])), n["threads"])),
    },
}
