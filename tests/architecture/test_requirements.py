"""Ranges of pyproject.toml, the tested set and the lowest set must agree."""

import tomllib
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from minifuse.backends.cuda.device import driver
from tests.sources import PACKAGE, ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PYPROJECT["project"]["optional-dependencies"]

# Sources of requirements: the core, the extras and the build system, which `make` installs like all else.
RANGES = {
    "dependencies": PYPROJECT["project"]["dependencies"],
    **EXTRAS,
    "build-system": PYPROJECT["build-system"]["requires"],
}


TESTED, LOWEST = "requirements.txt", "requirements-lowest.txt"
each_set = pytest.mark.parametrize("file", [TESTED, LOWEST])


def pinned(file: str = TESTED) -> dict[str, Requirement]:
    """Return the lines of a file of requirements, by the normal form of their names."""
    text = (ROOT / file).read_text(encoding="utf-8")
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    return {canonicalize_name(pin.name): pin for pin in map(Requirement, filter(None, lines))}


@each_set
@pytest.mark.parametrize("source", RANGES)
def test_each_set_is_within_the_ranges(source, file):
    pins, faults = pinned(file), []
    for wanted in map(Requirement, RANGES[source]):
        if wanted.name == PACKAGE:  # an extra made of other extras
            assert wanted.extras <= EXTRAS.keys()
        elif canonicalize_name(wanted.name) not in pins:
            faults.append(f"{wanted} is not pinned")
        elif not wanted.specifier.contains(version(pins[canonicalize_name(wanted.name)])):
            faults.append(f"{wanted} does not allow {pins[canonicalize_name(wanted.name)]}")
    assert not faults, f"pyproject.toml [{source}] and {file}: {'; '.join(faults)}"


def test_the_lowest_set_has_each_lower_bound():
    pins, bounds = pinned(LOWEST), lower_bounds()
    faults = [
        f"pyproject.toml has {name}>={bound}, {LOWEST} has {pins[name]}"
        for name, bound in bounds.items()
        if Version(version(pins[name])) != bound
    ]
    assert not faults, "\n".join(faults)


def lower_bounds() -> dict[str, Version]:
    """Return the lowest version that each package may have, by the normal form of its name."""
    bounds: dict[str, Version] = {}
    for wanted in [Requirement(line) for lines in RANGES.values() for line in lines]:
        for clause in wanted.specifier:
            if clause.operator == ">=":
                name = canonicalize_name(wanted.name)
                bounds[name] = max(Version(clause.version), bounds.get(name, Version("0")))
    return bounds


def test_the_newest_numpy_is_bounded_for_cuda_alone():
    bounded = {source for source, lines in RANGES.items() for line in lines if "<" in str(Requirement(line).specifier)}
    assert bounded == {"cuda12", "cuda13"}
    for source in bounded:
        (numpy,) = [wanted for wanted in map(Requirement, EXTRAS[source]) if wanted.name == "numpy"]
        assert [c.version for c in numpy.specifier if c.operator == "<"] == [driver.TOO_NEW_NUMPY]


@each_set
def test_every_line_pins_one_version(file):
    for pin in pinned(file).values():
        assert [clause.operator for clause in pin.specifier] == ["=="], f"{file}: {pin} should be name==version"
        assert pin.url is None
        Version(version(pin))  # no wildcard


def version(pin: Requirement) -> str:
    (clause,) = pin.specifier
    return clause.version


def test_the_tested_set_is_complete():
    installed = metadata.version("numba")
    (file,) = [file for file in (TESTED, LOWEST) if version(pinned(file)["numba"]) == installed] or [TESTED]
    pins, faults = pinned(file), []
    for name in pins:
        try:
            needed = map(Requirement, metadata.requires(name) or [])
        except metadata.PackageNotFoundError:
            continue  # a part that is not installed here; CI installs all
        for wanted in needed:
            if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
                pin = pins.get(canonicalize_name(wanted.name))
                if pin is None or not wanted.specifier.contains(version(pin)):
                    faults.append(f"{name} needs {wanted}, and {file} has {pin}")
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
