"""Elementwise functions of 2^22 elements in float32 and float64, which measure the vector math."""

import math
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..row import Array, Row, Work, formula, jax_jit, normal, uniform

GROUP = "functions"
N = (1 << 22,)


def sigmoid(x: Array) -> Any:
    """Return 1 / (1 + exp(-x))."""
    return 1 / (1 + np.exp(-x))


def erf(x: Array) -> Any:
    """Return the error function, which NumPy does not have."""
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), x.dtype)


def gelu(x: Array) -> Any:
    """Return x times the probability that a standard normal variable is less than x."""
    return x * 0.5 * (1 + erf(x * math.sqrt(0.5)))


def jax_functions() -> Any:
    """Return the functions of JAX that are not in jax.numpy."""
    nn, special = import_module("jax.nn"), import_module("jax.scipy.special")
    return SimpleNamespace(sigmoid=nn.sigmoid, erf=special.erf, gelu=partial(nn.gelu, approximate=False))


def torch_gelu(x: Any) -> Any:
    """Return gelu in torch, where it is not a method."""
    import torch

    return torch.nn.functional.gelu(x)


# name -> (function of tensors, function of arrays, whether NumPy has it, range of x; None draws normal numbers)
FUNCTIONS: dict[str, tuple[Work, Work, bool, tuple[float, float] | None]] = {
    "exp": (lambda x: x.exp(), np.exp, True, None),
    "log": (lambda x: x.log(), np.log, True, (0.01, 100)),
    "log1p": (lambda x: x.log1p(), np.log1p, True, (-0.9, 9)),
    "tanh": (lambda x: x.tanh(), np.tanh, True, None),
    "sigmoid": (lambda x: x.sigmoid(), sigmoid, True, None),
    "erf": (lambda x: x.erf(), erf, False, None),
    "gelu": (lambda x: x.gelu(), gelu, False, None),
}


def row(name: str, dtype: str) -> Row:
    """Return the row of a function with one dtype."""
    tensors, arrays, is_in_numpy, limits = FUNCTIONS[name]
    return formula(
        f"{name}, {dtype}",
        GROUP,
        uniform(N, low=limits[0], high=limits[1], dtype=dtype) if limits else normal(N, dtype=dtype),
        tensors,
        exact=arrays,
        others={
            **({"numpy": arrays} if is_in_numpy else {}),
            **({"torch": torch_gelu} if name == "gelu" else {}),
            **({"numexpr": lambda x: import_module("numexpr").evaluate(f"{name}(x)")} if hasattr(np, name) else {}),
            "jax": jax_jit(lambda jnp: getattr(jnp, name, None) or getattr(jax_functions(), name)),
        },
        without=() if is_in_numpy else ["numpy"],
    )


ROWS = [row(name, dtype) for name in FUNCTIONS for dtype in ("float32", "float64")]
