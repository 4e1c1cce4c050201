"""Readers of the text files of a run: its config, and the lines of its log.

They validate each field. An error contains the file, the line, the field, its value and what was expected.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import NotRequired, TypedDict, cast

from ..core.errors import MinifuseError, TrainingError
from .recipe import Recipe, Settings

FORMAT = 1
MAX_SHOWN_CHARACTERS = 60  # largest number of characters of a value in an error


class LogLine(TypedDict):
    """A line of a log: a step with its loss, or an evaluation with its metrics by name."""

    step: int
    epoch: int
    rate: NotRequired[float]
    loss: NotRequired[float]
    seconds: NotRequired[float]
    held_out: NotRequired[dict[str, float]]


class Config(TypedDict):
    """The config of a run: the version of the format, a recipe, and the settings, which are not validated yet."""

    format: int
    recipe: str
    settings: dict[str, object]


def is_count(x: object) -> bool:
    """Return True for an int of at least 1."""
    return type(x) is int and x >= 1


def is_number(x: object) -> bool:
    """Return True for an int or a float."""
    return type(x) in (int, float)


def is_finite(x: object) -> bool:
    """Return True for an int, or a float that is neither infinite nor NaN."""
    return type(x) is int or (type(x) is float and math.isfinite(x))


def is_metrics(x: object) -> bool:
    """Return True for a dict of numbers."""
    return isinstance(x, dict) and all(map(is_number, x.values()))


LINE_FIELDS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "step": (is_count, "a whole number of at least 1"),
    "epoch": (is_count, "a whole number of at least 1"),
    "rate": (is_finite, "a number"),
    "loss": (is_finite, "a finite number"),
    "seconds": (is_finite, "a number"),
    "held_out": (is_metrics, "an object of numbers by name"),
}
REQUIRED_FIELDS = ("step", "epoch")  # in addition to "loss" or "held_out"


def format_value(value: object) -> str:
    """Format a value as JSON, truncated for messages."""
    text = json.dumps(value, default=repr)
    return text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[:MAX_SHOWN_CHARACTERS]}..."


def read_line(text: bytes, path: Path, number: int) -> LogLine:
    """Parse a line of a log.

    Raises
    ------
    TrainingError
        The line is not a JSON object, or a field is missing or has the wrong type.
    """

    def damage_error(details: str) -> TrainingError:
        return TrainingError(f"{path}, line {number} is damaged: {details}; delete the line; it is only used for the curves")

    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, or nested too deeply
        raise damage_error(str(error)) from None
    if not isinstance(content, dict):
        raise damage_error(f'got {format_value(content)}, expected an object such as {{"step": 1, "epoch": 1, "loss": 0.5}}')
    for name in REQUIRED_FIELDS if content.keys() & {"loss", "held_out"} else (*REQUIRED_FIELDS, "loss"):
        if name not in content:
            raise damage_error(f'"{name}" is missing, got {format_value(content)}')
    for name in content.keys() & LINE_FIELDS.keys():
        is_valid, expected = LINE_FIELDS[name]
        if not is_valid(content[name]):
            raise damage_error(f'"{name}" is {format_value(content[name])}, expected {expected}')
    return cast(LogLine, content)


def read_config(path: Path) -> Config:
    """Read the config of a run.

    Raises
    ------
    FileNotFoundError
        The file does not exist.
    TrainingError
        The file cannot be read, or a field is missing or has the wrong type.
    """
    try:
        config = json.loads(path.read_bytes().decode("utf-8-sig"))  # some editors add a byte order mark
    except FileNotFoundError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise TrainingError(f"{path} cannot be read: {error}; restore it; it contains the settings of the run") from None
    expected = f'expected format {FORMAT}: an object with "format", "recipe" and "settings", as `minifuse train` writes it'
    if not isinstance(config, dict):
        raise TrainingError(f"{path} is not the config of a run: got {format_value(config)}, {expected}")
    if (version := config.get("format")) != FORMAT:
        raise TrainingError(
            f'{path} is not the config of a run of this version: "format" is {format_value(version)}, {expected}'
        )
    for name, kind in {"recipe": str, "settings": dict}.items():
        if not isinstance(config.get(name), kind):
            raise TrainingError(f'{path}: "{name}" is {format_value(config.get(name))}, {expected}')
    return cast(Config, config)


def recorded_settings(path: Path, recorded: Mapping[str, object], recipe: Recipe) -> Settings:
    """Convert the settings of a config, which must contain all settings and no others.

    Raises
    ------
    TrainingError
        A setting or an option is missing, unknown, or has the wrong type or range.
    """
    defaults, default_options = recipe.settings.as_dict(), recipe.settings.options
    for name in (f.name for f in fields(Settings)):
        if name not in recorded:
            raise TrainingError(f'{path}: setting "{name}" is missing; add the value of the run, such as {defaults[name]}')
    options = recorded["options"]
    if not isinstance(options, dict):
        raise TrainingError(
            f'{path}: "options" is {format_value(options)}, expected an object of numbers, such as {dict(default_options)}'
        )
    for name, default in default_options.items():
        if name not in options:
            raise TrainingError(f'{path}: option "{name}" is missing; add the value of the run, such as {default}')
        if not is_number(options[name]):
            raise TrainingError(
                f'{path}: option "{name}" is {format_value(options[name])}, expected a number, such as {default}'
            )
    if null_names := [name for name, value in recorded.items() if value is None]:
        raise TrainingError(f'{path}: "{null_names[0]}" is null, expected the value of the run')
    try:
        return recipe.settings.changed(recorded)
    except MinifuseError as error:
        raise TrainingError(f"{path}: {error}") from None
