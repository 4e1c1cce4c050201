"""The answers of the quizzes of tasks 7.1 to 7.3, computed a second time."""

import numpy as np


def row_gradient(n):
    found = np.zeros(5)
    np.add.at(found, n["ids"], n["gradient"])
    return found[n["row"]]


def normalized(n):
    x = np.array(n["row"], float)
    return ((x - x.mean()) / x.std() * n["gain"] + n["bias"])[n["at"]]


def lost_digits(n):
    x = np.array(n["row"], np.float32)
    squares = np.multiply(x, x)
    mean = (x[0] + x[1]) / np.float32(2)
    return (squares[0] + squares[1]) / np.float32(2) - mean * mean


def seen(n):
    return np.tril(np.ones((n["columns"], n["columns"])))[n["columns"] - n["rows"] + n["i"]].sum()


def repaired(n):
    scores = [*n["first"], *n["second"]]
    return np.power(2.0, np.subtract(scores, max(scores))).sum()


ANSWERS = {
    "7.1": {
        "row_gradient": row_gradient,
        "one_hot": lambda n: np.empty((n["length"], n["count"]), np.int8).size,
        "zero_rows": lambda n: np.sum(np.bincount(n["ids"], minlength=n["count"]) == 0),
        "tied_parameters": lambda n: np.empty((n["count"], n["width"]), np.int8).size,
        "scores_shape": lambda n: (np.zeros(n["x"]) @ np.zeros(n["table"]).T).shape,
    },
    "7.2": {
        "normalized": normalized,
        "constant_row": lambda n: (n["variance"] + n["epsilon"]) ** -0.5,
        "lost_digits": lost_digits,
        "kept": lambda n: np.empty((n["rows"], n["width"] + 1), np.int8).size,
        "last_gradient": lambda n: np.subtract(0, n["gradient"]).sum(),
        "gain_gradient": lambda n: np.einsum("ij,ij->j", n["normal"], n["gradient"])[n["column"]],
    },
    "7.3": {
        "seen": seen,
        "scores_bytes": lambda n: np.empty((n["heads"], n["length"], n["length"]), "V4").nbytes,
        "scale": lambda n: np.dot(n["q"], n["k"]) / np.linalg.norm(np.ones(len(n["q"]))),
        "head_index": lambda n: np.ravel_multi_index((n["head"], n["column"]), (n["heads"], n["width"])),
        "repaired": repaired,
        "why_infinity": lambda n: "0, which adds nothing to the sum",
    },
}
