"""pyproject.toml says what minifuse works with, requirements.txt what it was tested with; the two must agree."""

import tomllib
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.sources import PACKAGE, ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PYPROJECT["project"]["optional-dependencies"]

# Sources of requirements: the core, the extras and the build system, which `make` installs like all else.
RANGES = {
    "dependencies": PYPROJECT["project"]["dependencies"],
    **EXTRAS,
    "build-system": PYPROJECT["build-system"]["requires"],
}


def pinned() -> dict[str, Requirement]:
    """The lines of requirements.txt, by the normal form of their names."""
    text = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    return {canonicalize_name(pin.name): pin for pin in map(Requirement, filter(None, lines))}


@pytest.mark.parametrize("source", RANGES)
def test_the_tested_set_lies_in_the_ranges(source):
    pins, faults = pinned(), []
    for wanted in map(Requirement, RANGES[source]):
        if wanted.name == PACKAGE:  # an extra made of other extras
            assert wanted.extras <= EXTRAS.keys()
        elif canonicalize_name(wanted.name) not in pins:
            faults.append(f"{wanted} is not pinned")
        elif not wanted.specifier.contains(version(pins[canonicalize_name(wanted.name)])):
            faults.append(f"{wanted} does not allow {pins[canonicalize_name(wanted.name)]}")
    assert not faults, f"pyproject.toml [{source}] and requirements.txt: {'; '.join(faults)}"


def test_every_line_pins_one_version():
    for pin in pinned().values():
        assert [clause.operator for clause in pin.specifier] == ["=="], f"requirements.txt: {pin} should be name==version"
        assert pin.url is None
        Version(version(pin))  # no wildcard


def version(pin: Requirement) -> str:
    (clause,) = pin.specifier
    return clause.version


def test_the_tested_set_is_complete():
    pins, faults = pinned(), []
    for name in pins:
        try:
            needed = map(Requirement, metadata.requires(name) or [])
        except metadata.PackageNotFoundError:
            continue  # a part that is not installed here; CI installs all
        for wanted in needed:
            if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
                pin = pins.get(canonicalize_name(wanted.name))
                if pin is None or not wanted.specifier.contains(version(pin)):
                    faults.append(f"{name} needs {wanted}, and requirements.txt has {pin}")
    assert not faults, "\n".join(faults)


def test_the_core_needs_numba_and_numpy_alone():
    assert {Requirement(line).name for line in RANGES["dependencies"]} == {"numba", "numpy"}


def test_every_range_has_a_lower_bound():
    for line in [line for lines in RANGES.values() for line in lines]:
        wanted = Requirement(line)
        bounded = any(clause.operator in (">=", "==", "~=") for clause in wanted.specifier)
        assert bounded or wanted.name == PACKAGE, (
            f"pyproject.toml: {wanted} says nothing about the oldest version that works"
        )
