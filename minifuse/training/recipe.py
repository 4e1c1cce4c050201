"""What is trained: data, a model, a loss, an optimizer, and how well it does. Those that come with it are in `recipes`.

Stands on nn, optim and data; knows no folder and no terminal.
"""

from collections.abc import Mapping
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
from ..optim import Optimizer
from ..tensors.tensor import Tensor

Number = int | float


@dataclass(frozen=True)
class Settings:
    """What a run is started with. The same settings give the same run, number by number, on the same machine.

    Attributes
    ----------
    epochs : int
        How often each example is seen.
    batch : int
        Examples a step.
    rate : float
        The learning rate, where it is highest.
    seed : int
        Of the first weights, of what is held out, and of the order of examples.
    backend : str
        What computes.
    fuse : bool
        Whether a step, with gradients and update, is one fused function.
    options : mapping
        What only this recipe has: sizes of the model, such as {"width": 64}.
    """

    epochs: int
    batch: int
    rate: float
    seed: int = 0
    backend: str = "parallel"
    fuse: bool = True
    options: Mapping[str, Number] = field(default_factory=lambda: MappingProxyType({}))

    def __getitem__(self, name: str) -> Any:
        """An option."""
        return self.options[name]

    def changed(self, asked: Mapping[str, Any]) -> "Settings":
        """These settings, with others where they are asked for; what is None stays.

        Raises
        ------
        TrainingError
            There is no such setting or option, or the value is of the wrong type or out of its range.
        """
        asked = {name: value for name, value in asked.items() if value is not None}
        options = asked.pop("options", {})
        if not isinstance(options, Mapping):
            raise TrainingError(f"options is {options!r:.60}; expected a mapping of numbers by name")
        kinds = {one.name: one.type for one in fields(self) if one.name != "options"}
        for name in asked.keys() - kinds.keys():
            raise TrainingError(f"there is no setting {name!r}{meant(name, kinds)}")
        for name in options:
            if name not in self.options:
                raise TrainingError(f"there is no option {name!r}{meant(name, self.options)}")
        values = {name: of_kind(name, value, kinds[name]) for name, value in asked.items()}
        chosen = {name: of_option(name, value, type(self.options[name])) for name, value in options.items()}
        found = replace(self, **values, options=MappingProxyType({**self.options, **chosen}))
        for name, least in {"epochs": 1, "batch": 1, "seed": 0}.items():
            if getattr(found, name) < least:
                raise TrainingError(f"{name} is {getattr(found, name)}; expected at least {least}")
        if not 0 < found.rate < float("inf"):
            raise TrainingError(f"rate is {found.rate}; expected a number above 0")
        get_backend(found.backend)
        return found

    def as_dict(self) -> dict[str, Any]:
        """What JSON can hold."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name != "options"} | {
            "options": dict(self.options)
        }


def meant(name: object, known: Any) -> str:
    """Return a hint: the known name that is nearest, or all of them."""
    close = get_close_matches(str(name), known, n=1)
    return f"; did you mean {close[0]}?" if close else f"; there are {', '.join(known) or 'none'}"


WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}


def of_kind(name: str, value: Any, kind: Any) -> Any:
    """Return the value of a setting as its type; a bool is no number, and text is not parsed.

    Raises
    ------
    TrainingError
        It is of another type.
    """
    is_bool, types = isinstance(value, bool | np.bool_), {int: Integral, float: Real}.get(kind, kind)
    if is_bool is (kind is bool) and isinstance(value, types):
        with suppress(OverflowError):
            return kind(value)
    raise TrainingError(f"{name} is {value!r:.60}; expected {WORDS[kind]}")


def of_option(name: str, value: Any, kind: type) -> Number:
    """Return the value of an option, which may be text, as a finite number of at least 0.

    Raises
    ------
    TrainingError
        It is no such number.
    """
    number = value
    if isinstance(value, str):
        with suppress(ValueError):
            number = kind(value)
    elif kind is int and isinstance(value, float) and value.is_integer():
        number = int(value)
    if isinstance(number, str):
        raise TrainingError(f"option {name} is {value!r:.60}; expected {WORDS[kind]}")
    found: Number = of_kind(f"option {name}", number, kind)
    if not 0 <= found < float("inf"):
        raise TrainingError(f"option {name} is {value!r}; expected at least 0 and finite")
    return found


class Data(NamedTuple):
    """What a model learns from, and what it is tested with."""

    loader: Loader
    """Batches to learn from: what the recipe's `loss` takes after the model."""
    held_out: tuple[Tensor, ...]
    """Examples that it never learns from, in the same form."""
    about: Any = None
    """What else the recipe wants of the data, such as a vocabulary."""


class Recipe:
    """One thing to train. A recipe is a subclass with these four methods, and perhaps the others.

    Attributes
    ----------
    name, about : str
        What one calls it, and what it is in a line.
    settings : Settings
        What counts where nothing else is asked for.
    max_norm : float or None
        To which norm gradients are clipped.
    target : str
        The number of `measure` that one looks at.
    """

    name: str
    about: str
    settings: Settings
    max_norm: float | None = None
    target = "accuracy"

    def data(self, settings: Settings) -> Data:
        """What it learns from, on the backend of the settings."""
        raise NotImplementedError

    def model(self, settings: Settings, data: Data) -> Module:
        """A model with its first weights."""
        raise NotImplementedError

    def optimizer(self, settings: Settings, model: Module, steps: int) -> tuple[Optimizer, Any]:
        """What changes the weights, and a schedule of its learning rate over so many steps, or None."""
        raise NotImplementedError

    def loss(self, model: Module, *batch: Tensor) -> Tensor:
        """How wrong the model is on a batch: one number, the mean over examples."""
        raise NotImplementedError

    def measure(self, model: Module, data: Data) -> dict[str, float]:
        """How well it does on what it has not seen."""
        raise NotImplementedError

    def says(self, model: Module, data: Data, seed: int) -> str:
        """What a trained model has to say, for those that write."""
        return ""
