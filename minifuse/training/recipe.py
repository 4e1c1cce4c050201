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
    """The settings of a run. Runs with equal settings have equal results, bit by bit, on the same machine.

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

    def changed(self, changes: Mapping[str, object]) -> "Settings":
        """Return a copy with other values; None keeps a value.

        Raises
        ------
        TrainingError
            A setting or option is unknown, or its value has the wrong type or is out of range.
        """
        changes = {name: value for name, value in changes.items() if value is not None}
        options = changes.pop("options", {})
        if not isinstance(options, Mapping):
            raise TrainingError(f"got options={options!r:.60}, expected a mapping of numbers by name")
        types = {f.name: f.type for f in fields(self) if f.name != "options"}
        for name in changes.keys() - types.keys():
            raise TrainingError(f"unknown setting {name!r}{suggest_names(name, types)}")
        for name in options:
            if name not in self.options:
                raise TrainingError(f"unknown option {name!r}{suggest_names(name, self.options)}")
        values = {name: convert_setting(name, value, types[name]) for name, value in changes.items()}
        new_options = {name: convert_option(name, value, type(self.options[name])) for name, value in options.items()}
        settings = replace(self, **values, options=MappingProxyType({**self.options, **new_options}))
        for name, minimum in {"epochs": 1, "batch": 1, "seed": 0}.items():
            if getattr(settings, name) < minimum:
                raise TrainingError(f"{name} is {getattr(settings, name)}; expected at least {minimum}")
        if not 0 < settings.rate < float("inf"):
            raise TrainingError(f"rate is {settings.rate}; expected a number above 0")
        get_backend(settings.backend)
        return settings

    def as_dict(self) -> dict[str, object]:
        """Return the settings as plain data for JSON."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "options"} | {"options": dict(self.options)}


def suggest_names(name: object, known_names: Iterable[str]) -> str:
    """Return a hint for an unknown name: the most similar known name, or all of them."""
    similar_names = get_close_matches(str(name), known_names, n=1)
    return (
        f"; did you mean {similar_names[0]}?"
        if similar_names
        else f"; the known names are {', '.join(known_names) or 'none'}"
    )


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
        The value is not a number of this type, is negative, or is not finite.
    """
    number = value
    if isinstance(value, str):
        with suppress(ValueError):
            number = kind(value)
    elif kind is int and isinstance(value, float) and value.is_integer():
        number = int(value)
    if isinstance(number, str):
        raise TrainingError(f"option {name} is {value!r:.60}; expected {TYPE_NAMES[kind]}")
    option: Number = convert_setting(f"option {name}", number, kind)
    if not 0 <= option < float("inf"):
        raise TrainingError(f"option {name} is {value!r}; expected a finite number of at least 0")
    return option


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
        If not None, gradients are clipped to this norm.
    target : str
        The name of the most important metric of `measure`.
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
        """Return a text that shows what the trained model does, or "" if there is none."""
        return ""
