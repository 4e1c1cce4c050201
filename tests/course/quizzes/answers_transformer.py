"""The answers of the quizzes of tasks 7.1 to 7.3, computed a second time."""

import numpy as np


def row_gradient(n):
    found = np.zeros(5)
    np.add.at(found, n["ids"], n["gradient"])
    return found[n["row"]]


ANSWERS = {
    "7.1": {
        "row_gradient": row_gradient,
        "one_hot": lambda n: np.empty((n["length"], n["count"]), np.int8).size,
        "zero_rows": lambda n: np.sum(np.bincount(n["ids"], minlength=n["count"]) == 0),
        "tied_parameters": lambda n: np.empty((n["count"], n["width"]), np.int8).size,
        "scores_shape": lambda n: (np.empty(n["x"]) @ np.empty(n["table"]).T).shape,
    },
}
