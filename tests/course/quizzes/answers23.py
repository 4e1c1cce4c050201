"""Answers of the quizzes on modules 2 and 3, computed from the drawn numbers by NumPy or by brute force."""

import ast
import math
from itertools import product

import numpy as np
from numpy.lib.stride_tricks import as_strided

from minifuse.simt.metrics import requests
from minifuse.simt.record import ArrayInfo, Events


def array_of(storage, shape, strides, offset=0):
    """Return a view of a storage with strides in elements."""
    storage = np.asarray(storage)
    return as_strided(storage[offset:], shape, [s * storage.itemsize for s in strides])


def strides_of(array):
    """Return the strides of an array in elements."""
    return tuple(s // array.itemsize for s in array.strides)


def flipped(n):
    v = np.arange(n["n"], dtype=np.int8)[n["start"] :: n["step"]]
    return v.strides[0], int(v[0])


def element(n):
    small = n["small"]
    at = np.broadcast_to(np.arange(math.prod(small)).reshape(small), n["full"])[n["index"]]
    return np.unravel_index(int(at), small)


def fits(n):
    for a, b in n["others"]:
        np.broadcast_shapes(a, b)
    a, b = n["right"]
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        return f"{a} and {b}"


def slice_facts(n):
    """Return the shape, the strides and the offset of x[a:, b::step]."""
    view = np.arange(n["rows"] * n["columns"], dtype=np.int8).reshape(n["rows"], -1)[n["row"] :, n["column"] :: n["step"]]
    return view.shape, strides_of(view), int(view.flat[0])


def written(n):
    x = np.arange(n["n"])
    x[n["start"] :: n["step"]][n["at"]] = 0
    return int(np.flatnonzero(x != np.arange(n["n"]))[0])


def needs_copy(n):
    views = {"x[:2]": np.s_[:2], "x[:, :2]": np.s_[:, :2], "x[:, 0]": np.s_[:, 0]}
    x = np.zeros(n["shape"])
    found = [text for text, index in views.items() if not np.shares_memory(x, x[index].reshape(-1))]
    return found[0] if len(found) == 1 else None


def kth(n):
    return array_of(np.arange(20), n["shape"], n["strides"], n["offset"]).reshape(-1)[n["k"]]


def reduced(n):
    elements = np.take(np.array(n["a"], int), n["at"], 1 - n["dim"])
    return int("".join(map(str, [n["start"], *elements])))


def unbroadcast(n):
    d, shape = np.array(n["d"]), n["shape"]
    return tuple(d.sum(1) if shape == (2, 1) else d.sum(0))


def permutation(n):
    return next(back for back in product(range(3), repeat=3) if tuple(n["dims"][d] for d in back) == (0, 1, 2))


def versions(n):
    def kind(x):
        return type(x).__name__, getattr(x, "ndim", 0), getattr(x, "dtype", None)

    return len({tuple(map(kind, eval(f"({call})", {"np": np}))) for call in n["calls"]})


def is_race_free(body):
    """Return whether iterations can run in any order, or all at once from the same memory."""
    n = 8
    a = np.random.default_rng(0).permutation(50)[:n].astype(float)

    def run(order, is_at_once):
        out, new = np.linspace(-2.0, -1.0, 2 * n), {}
        for i in order:
            mine = out.copy()
            exec(body, {"out": mine, "a": a, "i": i, "n": n})
            changed = np.flatnonzero(mine != out)
            if is_at_once:
                new |= {k: mine[k] for k in changed}
            else:
                out = mine
        for k, value in new.items():
            out[k] = value
        return out.tolist()

    results = [run(order, at_once) for order in (range(n), range(n - 1, -1, -1)) for at_once in (False, True)]
    return all(result == results[0] for result in results)


def race(n):
    assert not any(map(is_race_free, n["others"]))
    return n["right"] if is_race_free(n["right"]) else None


def arrays_between(n):
    operators = (ast.BinOp, ast.UnaryOp, ast.Call)
    return sum(isinstance(node, operators) for node in ast.walk(ast.parse(n["text"], mode="eval"))) - 1


def barrier(n):
    return {
        "with_barrier": "nothing, it is right",
        "without_barrier": "threads read cells that may not be written yet",
        "barrier_in_guard": "not all threads reach the barrier",
        "without_guard": "threads read past the end of a",
    }[n["kernel"]]


def steps(n):
    return n["size"] / n["threads"] + math.log2(n["threads"])


def sectors(n):
    return len({t * n["step"] * np.dtype(n["dtype"]).itemsize // 32 for t in range(32)})


def tiled_loads(n):
    """Count the cells of a and b that each block of 2 x 2 threads needs."""
    total = 0
    for row, col in product(range(0, n["m"], 2), range(0, n["n"], 2)):
        rows, cols = range(row, min(row + 2, n["m"])), range(col, min(col + 2, n["n"]))
        total += len(rows) * n["k"] + n["k"] * len(cols)
    return total


def up(size, tile):
    return math.ceil(size / tile)


def conflicting_rows(n):
    zero, lane = np.zeros(n["count"], int), np.arange(n["count"])
    events = Events(zero, lane, *[zero] * 6, 8 * n["length"] * lane, zero + 8, zero / 1)
    tile = ArrayInfo("tile", "shared", 0, (4, n["length"]), (8 * n["length"], 8), 8, "float64")
    return int(requests(events, [tile]).wavefronts[0])


ANSWERS = {
    "2.1": {
        "position": lambda n: np.ravel_multi_index(n["index"], n["shape"]),
        "index": lambda n: np.unravel_index(n["at"], n["shape"]),
        "strides": lambda n: np.empty(n["shape"], np.int8).transpose(n["dims"]).strides,
        "flipped": flipped,
        "cell": lambda n: array_of(np.arange(30), n["shape"], n["strides"], n["offset"])[n["index"]],
        "repeated": lambda n: len(np.unique(array_of(np.arange(9), (n["rows"], n["columns"]), (0, 1)))),
    },
    "2.2": {
        "shape": lambda n: np.broadcast_shapes(n["a"], n["b"]),
        "fits": fits,
        "element": element,
        "strides": lambda n: np.broadcast_to(np.empty(n["small"], np.int8), n["full"]).strides,
        "reads": lambda n: math.prod(np.broadcast_shapes(n["a"], n["b"])) // math.prod(n["b"]),
    },
    "2.3": {
        "kth": kth,
        "zipped": lambda n: (array_of(n["a"], n["shape"], n["strides"]) + n["b"])[n["index"]],
        "reduced": reduced,
        "shape": lambda n: np.zeros(n["sizes"]).sum(n["dim"], keepdims=True).shape,
        "calls": lambda n: n["rows"] * n["columns"],
    },
    "2.4": {
        "unbroadcast": unbroadcast,
        "bias": lambda n: tuple(np.sum(n["x"], 0)),
        "permutation": permutation,
        "matmul": lambda n: (np.array(n["d"]) @ np.array(n["b"]).T)[0, n["k"]],
        "total": lambda n: tuple(np.broadcast_to(np.expand_dims(n["d"], n["dim"]), (2, 2)).reshape(-1)),
    },
    "2.5": {
        "parameters": lambda n: (n["inputs"] + 1) * n["hidden"] + n["hidden"] + 1,
        "hidden_shape": lambda n: (np.zeros((n["n"], n["inputs"])) @ np.zeros((n["inputs"], n["hidden"]))).shape,
        "labels": lambda n: (np.zeros((n["n"], 1)) - np.zeros(n["n"])).shape,
        "bias_gradient": lambda n: n["n"] * n["d"],
        "calls": lambda n: n["counts"],
    },
    "2.6": {
        "layout": lambda n: slice_facts(n)[1],
        "first": lambda n: slice_facts(n)[2],
        "size": lambda n: len(np.arange(n["n"])[n["start"] : n["stop"] : n["step"]]),
        "written": lambda n: written(n),
        "needs_copy": needs_copy,
        "gradient": lambda n: tuple(np.bincount([*range(n["n"])[n["low"] :], *range(n["n"])[: n["high"]]])),
    },
    "3.1": {
        "versions": versions,
        "race": race,
        "fast_path": lambda n: f"strides {np.empty(n['shape'], np.int8).strides}, offset {n['offset']}",
        "arrays_between": arrays_between,
        "parallel_steps": lambda n: np.zeros(n["shape"]).sum(n["dim"]).size,
    },
    "3.2": {
        "removed": lambda n: (np.ones((n["m"], n["k"], 1), "f4") * np.ones((1, n["k"], n["n"]), "f4")).nbytes,
        "saved_work": lambda n: "None",
        "places": lambda n: (
            2
            * n["m"]
            * {
                "in the innermost loop": n["n"] * n["k"],
                "before the innermost loop": n["n"],
                "before the loop of columns": 1,
            }[n["at"]]
        ),
        "shared_loop": lambda n: "the loop over k",
        "batch": lambda n: (
            np.broadcast_to(np.empty((1, n["rows"], n["columns"]), np.int8), (n["count"], n["rows"], n["columns"])).strides
        ),
    },
    "3.3": {
        "element": lambda n: n["block"] * n["threads"] + n["thread"],
        "idle": lambda n: -n["size"] % n["threads"],
        "barrier": barrier,
        "pairs": lambda n: tuple(np.reshape(n["cells"], (2, 4)).sum(0)),
        "steps": steps,
        "sectors": sectors,
    },
    "3.4": {
        "grid": lambda n: (up(n["n"], n["tile"]), up(n["m"], n["tile"])),
        "cell": lambda n: (n["block"][1] * n["tile"] + n["thread"][1], n["block"][0] * n["tile"] + n["thread"][0]),
        "reads": lambda n: up(n["n"] if n["name"] == "a" else n["m"], 2),
        "total": tiled_loads,
        "barriers": lambda n: 2 * up(n["k"], n["tile"]),
        "edges": lambda n: up(n["m"], 8) * up(n["n"], 8) * 64 - n["m"] * n["n"],
    },
    "3.5": {
        "steps": lambda n: n["columns"],
        "lines": lambda n: len(
            {(k if n["row"] else k * n["columns"]) * 8 // 64 for k in range(n["columns" if n["row"] else "rows"])}
        ),
        "sets": lambda n: 64 // math.gcd(64, n["columns"] * 8 // 64),
        "passes": lambda n: 3 * np.empty(n["n"]).nbytes,
        "innermost": lambda n: strides_of(np.empty((4, n["n"])))["kj".index(n["name"])],
        "negative": lambda n: n["numbers"][n["i"]],
    },
    "3.6": {
        "loads": lambda n: n["k"] * (n["m"] + n["n"]),
        "intensity": lambda n: n["side"] // n["itemsize"],
        "columns": lambda n: [(n["bx"] * n["count"] + j) * n["width"] + n["tx"] for j in range(n["count"])],
        "cell": lambda n: np.unravel_index(n["thread"] + n["turn"] * n["threads"], (99, n["size"])),
        "passes": conflicting_rows,
    },
}
