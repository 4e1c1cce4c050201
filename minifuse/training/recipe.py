"""A recipe: data, a model, a loss, an optimizer and metrics. Built-in recipes are in `recipes`.

Depends on nn, optim and data; independent of folders and terminals.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ..backends.registry import get_backend
from ..core.errors import TrainingError
from ..data import Loader
from ..nn import Module
from ..optim import Optimizer, Schedule
from ..tensors.tensor import Tensor

Number = int | float


@dataclass(frozen=True)
class Settings:
    """The settings of a run. Equal settings give equal results, bit by bit, on the same machine.

    Attributes
    ----------
    epochs : int
        Number of passes over the data.
    batch : int
        Number of examples in a batch.
    rate : float
        The highest learning rate.
    seed : int
        Seed of the initial weights, the split and the order of examples.
    backend : str
        The backend.
    fuse : bool
        If True, fuse a step, with gradients and update, into one function.
    options : mapping
        Options of this recipe only, such as {"width": 64}.
    """

    epochs: int
    batch: int
    rate: float
    seed: int = 0
    backend: str = "parallel"
    fuse: bool = True
    options: Mapping[str, Number] = field(default_factory=lambda: MappingProxyType({}))

    def __getitem__(self, name: str) -> Any:
        """Return an option."""
        return self.options[name]

    def changed(self, asked: Mapping[str, object]) -> "Settings":
        """Return a copy with other values; None keeps a value.

        Raises
        ------
        TrainingError
            A setting or option is unknown, or its value has the wrong type or is out of range.
        """
        asked = {name: value for name, value in asked.items() if value is not None}
        options = asked.pop("options", {})
        if not isinstance(options, Mapping):
            raise TrainingError(f"got options={options!r:.60}, expected a mapping of numbers by name")
        kinds = {one.name: one.type for one in fields(self) if one.name != "options"}
        for name in asked.keys() - kinds.keys():
            raise TrainingError(f"unknown setting {name!r}{suggest_names(name, kinds)}")
        for name in options:
            if name not in self.options:
                raise TrainingError(f"unknown option {name!r}{suggest_names(name, self.options)}")
        values = {name: convert_setting(name, value, kinds[name]) for name, value in asked.items()}
        chosen = {name: convert_option(name, value, type(self.options[name])) for name, value in options.items()}
        found = replace(self, **values, options=MappingProxyType({**self.options, **chosen}))
        for name, least in {"epochs": 1, "batch": 1, "seed": 0}.items():
            if getattr(found, name) < least:
                raise TrainingError(f"{name} is {getattr(found, name)}; expected at least {least}")
        if not 0 < found.rate < float("inf"):
            raise TrainingError(f"rate is {found.rate}; expected a number above 0")
        get_backend(found.backend)
        return found

    def as_dict(self) -> dict[str, object]:
        """Return the settings as plain data for JSON."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name != "options"} | {
            "options": dict(self.options)
        }


def suggest_names(name: object, known: Iterable[str]) -> str:
    """Return a hint: the nearest known name, or all of them."""
    close = get_close_matches(str(name), known, n=1)
    return f"; did you mean {close[0]}?" if close else f"; there are {', '.join(known) or 'none'}"


TYPE_NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}


def convert_setting(name: str, value: Any, kind: Any) -> Any:
    """Convert the value of a setting to its type. A bool is not a number, and text is not parsed.

    Raises
    ------
    TrainingError
        The value has another type.
    """
    is_bool, types = isinstance(value, bool | np.bool_), {int: Integral, float: Real}.get(kind, kind)
    if is_bool is (kind is bool) and isinstance(value, types):
        with suppress(OverflowError):
            return kind(value)
    raise TrainingError(f"{name} is {value!r:.60}; expected {TYPE_NAMES[kind]}")


def convert_option(name: str, value: object, kind: type) -> Number:
    """Convert the value of an option, which may be text, to a finite number of at least 0.

    Raises
    ------
    TrainingError
        The value is not such a number.
    """
    number = value
    if isinstance(value, str):
        with suppress(ValueError):
            number = kind(value)
    elif kind is int and isinstance(value, float) and value.is_integer():
        number = int(value)
    if isinstance(number, str):
        raise TrainingError(f"option {name} is {value!r:.60}; expected {TYPE_NAMES[kind]}")
    found: Number = convert_setting(f"option {name}", number, kind)
    if not 0 <= found < float("inf"):
        raise TrainingError(f"option {name} is {value!r}; expected at least 0 and finite")
    return found


class Data(NamedTuple):
    """Training data, and held-out data for evaluation."""

    loader: Loader
    """Training batches, in the form that the recipe's `loss` takes after the model."""
    held_out: tuple[Tensor, ...]
    """Held-out examples in the same form."""
    about: Any = None
    """Other information on the data, such as a vocabulary."""


class Recipe:
    """Base class of recipes. A subclass implements the first five methods, and optionally `says`.

    Attributes
    ----------
    name, about : str
        A name, and a description in one line.
    settings : Settings
        The default settings.
    max_norm : float or None
        The norm to which gradients are clipped, if any.
    target : str
        The most important metric of `measure`.
    """

    name: str
    about: str
    settings: Settings
    max_norm: float | None = None
    target = "accuracy"

    def data(self, settings: Settings) -> Data:
        """Load the data, on the backend of the settings."""
        raise NotImplementedError

    def model(self, settings: Settings, data: Data) -> Module:
        """Create a model with its initial weights."""
        raise NotImplementedError

    def optimizer(self, settings: Settings, model: Module, steps: int) -> tuple[Optimizer, Schedule | None]:
        """Create an optimizer, and a schedule of its learning rate over a number of steps, or None."""
        raise NotImplementedError

    def loss(self, model: Module, *batch: Tensor) -> Tensor:
        """Compute the loss of a batch: one number, the mean over examples."""
        raise NotImplementedError

    def measure(self, model: Module, data: Data) -> dict[str, float]:
        """Compute metrics on held-out data."""
        raise NotImplementedError

    def says(self, model: Module, data: Data, seed: int) -> str:
        """Return a text produced by the trained model, if it produces texts."""
        return ""
