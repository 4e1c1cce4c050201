"""Answers of the quizzes on module 7, tasks 7.4 to 7.6, computed from the drawn numbers by NumPy or by brute force."""

import math

import numpy as np


def temperature(n):
    shares = np.array([n["base"], 1.0]) / (n["base"] + 1.0)
    powers = np.exp(np.log(shares) / n["value"])
    return f"{powers[0] / powers[1]:.0f} times"


def clipped(n):
    gradients = np.array([n["a"], n["b"]], float)
    return round(gradients[0] * min(1.0, n["most"] / np.linalg.norm(gradients)), 3)


ANSWERS = {
    "7.4": {
        "encoded": lambda n: tuple(np.searchsorted(np.unique(list(n["text"])), list(n["word"])).tolist()),
        "windows": lambda n: len(np.lib.stride_tricks.sliding_window_view(np.zeros(n["count"]), n["context"] + 1)),
        "start_loss": lambda n: round(-math.log(1 / n["vocabulary"]), 2),
        "bits": lambda n: round(math.exp(n["bits"] * math.log(2))),
        "clipped": clipped,
        "temperature": temperature,
    },
}
