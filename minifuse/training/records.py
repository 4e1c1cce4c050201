"""Readers of the text files of a run: its config, and the lines of its log.

They validate each field, and an error says the file, the line, the field, its value and what was expected.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from ..core.errors import MinifuseError, TrainingError
from .recipe import Recipe, Settings

FORMAT = 1
SHOWN_CHARACTERS = 60  # of a value, in an error

Line = dict[str, Any]


def is_count(x: object) -> bool:
    """Return True for an int of at least 1."""
    return type(x) is int and x >= 1


def is_number(x: object) -> bool:
    """Return True for an int or a float."""
    return type(x) in (int, float)


def is_finite(x: object) -> bool:
    """Return True for an int, or a float that is neither infinite nor NaN."""
    return type(x) is int or (type(x) is float and math.isfinite(x))


def is_measured(x: object) -> bool:
    """Return True for numbers by name."""
    return isinstance(x, dict) and all(map(is_number, x.values()))


LINE: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "step": (is_count, "a whole number from 1 on"),
    "epoch": (is_count, "a whole number from 1 on"),
    "rate": (is_finite, "a number"),
    "loss": (is_finite, "a finite number"),
    "seconds": (is_finite, "a number"),
    "held_out": (is_measured, "an object of numbers by name"),
}
NEEDED = ("step", "epoch")  # beside "loss" or "held_out"


def shown(value: object) -> str:
    """Return a value as JSON writes it, cut to a length that an error can have."""
    text = json.dumps(value, default=repr)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."


def read_line(text: bytes, path: Path, number: int) -> Line:
    """Return a line of a log.

    Raises
    ------
    TrainingError
        It is no JSON, no object, or a field is missing or of the wrong type.
    """

    def damaged(what: str) -> TrainingError:
        return TrainingError(f"{path}, line {number} is damaged: {what}; delete the line, which only the curves will miss")

    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:  # no UTF-8, no JSON, or too deep
        raise damaged(str(error)) from None
    if not isinstance(found, dict):
        raise damaged(f'got {shown(found)}, expected an object such as {{"step": 1, "epoch": 1, "loss": 0.5}}')
    for name in NEEDED if found.keys() & {"loss", "held_out"} else (*NEEDED, "loss"):
        if name not in found:
            raise damaged(f'it has no "{name}", got {shown(found)}')
    for name in found.keys() & LINE.keys():
        is_right, expected = LINE[name]
        if not is_right(found[name]):
            raise damaged(f'"{name}" is {shown(found[name])}, expected {expected}')
    return found


def read_config(path: Path) -> dict[str, Any]:
    """Return the config of a run; its settings are not validated yet.

    Raises
    ------
    FileNotFoundError
        There is none.
    TrainingError
        It cannot be read, or a field is missing or of the wrong type.
    """
    try:
        found = json.loads(path.read_bytes().decode("utf-8-sig"))  # some editors put a mark at the beginning
    except FileNotFoundError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise TrainingError(f"{path} cannot be read: {error}; restore it, since it says what the run is") from None
    expected = f'expected format {FORMAT}: an object with "format", "recipe" and "settings", as `minifuse train` writes it'
    if not isinstance(found, dict):
        raise TrainingError(f"{path} is no config of a run: got {shown(found)}, {expected}")
    if found.get("format") != FORMAT:
        raise TrainingError(
            f'{path} is no config of a run of this version: "format" is {shown(found.get("format"))}, {expected}'
        )
    for name, kind in {"recipe": str, "settings": dict}.items():
        if not isinstance(found.get(name), kind):
            raise TrainingError(f'{path}: "{name}" is {shown(found.get(name))}, {expected}')
    return found


def recorded_settings(path: Path, recorded: Mapping[str, Any], recipe: Recipe) -> Settings:
    """Return the settings that a config records, all of them and nothing else.

    Raises
    ------
    TrainingError
        A setting or an option is missing, unknown, of the wrong type or out of its range.
    """
    defaults = recipe.settings.as_dict()
    for name in (one.name for one in fields(Settings)):
        if name not in recorded:
            raise TrainingError(
                f'{path}: setting "{name}" is missing; add what the run was begun with, such as {defaults[name]}'
            )
    options = recorded["options"]
    if not isinstance(options, dict):
        raise TrainingError(
            f'{path}: "options" is {shown(options)}, expected an object of numbers, such as {defaults["options"]}'
        )
    for name, default in defaults["options"].items():
        if name not in options:
            raise TrainingError(f'{path}: option "{name}" is missing; add what the run was begun with, such as {default}')
        if not is_number(options[name]):
            raise TrainingError(f'{path}: option "{name}" is {shown(options[name])}, expected a number, such as {default}')
    if empty := [name for name, value in recorded.items() if value is None]:
        raise TrainingError(f'{path}: "{empty[0]}" is null, expected what the run was begun with')
    try:
        return recipe.settings.changed(recorded)
    except MinifuseError as error:
        raise TrainingError(f"{path}: {error}") from None
