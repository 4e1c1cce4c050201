"""Ranges of pyproject.toml, the tested set and the lowest set must agree."""

import re
import sys
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
PYTHONS = [
    name.rpartition(" ")[2]
    for name in PYPROJECT["project"]["classifiers"]
    if name.startswith("Programming Language :: Python")
]
each_set = pytest.mark.parametrize("file", [TESTED, LOWEST])
each_python = pytest.mark.parametrize("python", PYTHONS)


def applies(wanted: Requirement, python: str) -> bool:
    """Return True if a requirement is one for this Python, such as "3.13"."""
    environment = {"python_version": python, "python_full_version": f"{python}.0", "extra": ""}
    return wanted.marker is None or wanted.marker.evaluate(environment)


def pinned(file: str, python: str) -> dict[str, Requirement]:
    """Return the pins of a file that are for this Python, by the normal form of their names."""
    text = (ROOT / file).read_text(encoding="utf-8")
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    pins: dict[str, Requirement] = {}
    for pin in map(Requirement, filter(None, lines)):
        if applies(pin, python):
            assert pins.setdefault(canonicalize_name(pin.name), pin) is pin, f"{file}: two pins of {pin.name} for {python}"
    return pins


@each_set
@each_python
@pytest.mark.parametrize("source", RANGES)
def test_each_set_is_within_the_ranges(source, python, file):
    pins, faults = pinned(file, python), []
    for wanted in map(Requirement, RANGES[source]):
        if wanted.name == PACKAGE:  # an extra made of other extras
            assert wanted.extras <= EXTRAS.keys()
        elif not applies(wanted, python):
            continue
        elif canonicalize_name(wanted.name) not in pins:
            faults.append(f"{wanted} is not pinned")
        elif not wanted.specifier.contains(version(pins[canonicalize_name(wanted.name)])):
            faults.append(f"{wanted} does not allow {pins[canonicalize_name(wanted.name)]}")
    assert not faults, f"pyproject.toml [{source}] and {file}: {'; '.join(faults)}; run: make lock"


@each_python
def test_the_lowest_set_has_each_lower_bound(python):
    pins, bounds = pinned(LOWEST, python), lower_bounds(python)
    faults = [
        f"pyproject.toml has {name}>={bound}, {LOWEST} has {pins[name]}"
        for name, bound in bounds.items()
        if Version(version(pins[name])) != bound
    ]
    assert not faults, "\n".join([*faults, "run: make lock"])


def lower_bounds(python: str) -> dict[str, Version]:
    """Return the lowest version that each package may have, by the normal form of its name."""
    bounds: dict[str, Version] = {}
    for wanted in [Requirement(line) for lines in RANGES.values() for line in lines]:
        for clause in wanted.specifier if applies(wanted, python) else ():
            if clause.operator == ">=":
                name = canonicalize_name(wanted.name)
                bounds[name] = max(Version(clause.version), bounds.get(name, Version("0")))
    return bounds


def test_wheels_are_looked_up_for_each_python_that_is_declared():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.findall(r"^PYTHONS := (.*)", makefile, re.MULTILINE) == [" ".join(PYTHONS)]
    assert PYPROJECT["project"]["requires-python"] == f">={PYTHONS[0]}"


def test_the_newest_numpy_is_bounded_for_cuda_alone():
    bounded = {source for source, lines in RANGES.items() for line in lines if "<" in str(Requirement(line).specifier)}
    assert bounded == {"cuda12", "cuda13"}
    for source in bounded:
        (numpy,) = [wanted for wanted in map(Requirement, EXTRAS[source]) if wanted.name == "numpy"]
        assert [c.version for c in numpy.specifier if c.operator == "<"] == [driver.TOO_NEW_NUMPY]


@each_set
def test_every_line_pins_one_version(file):
    for pin in [pin for python in PYTHONS for pin in pinned(file, python).values()]:
        assert [clause.operator for clause in pin.specifier] == ["=="], f"{file}: {pin} should be name==version"
        assert pin.url is None
        Version(version(pin))  # no wildcard


def version(pin: Requirement) -> str:
    (clause,) = pin.specifier
    return clause.version


def test_the_tested_set_is_complete():
    python = ".".join(map(str, sys.version_info[:2]))
    installed = metadata.version("numba")
    (file,) = [file for file in (TESTED, LOWEST) if version(pinned(file, python)["numba"]) == installed] or [TESTED]
    pins, faults = pinned(file, python), []
    versions = {canonicalize_name(one.name): one.version for one in metadata.distributions()}
    for name in pins:
        if versions.get(name) != version(pins[name]):
            continue  # not installed here, or another version; CI installs the set
        for wanted in map(Requirement, metadata.requires(name) or []):
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


def test_install_lines_name_extras_that_exist():
    files = [
        ROOT / "README.md",
        *[path for folder in ("minifuse", "project", "docs") for path in (ROOT / folder).rglob("*")],
    ]
    named = {
        (extra, path.name)
        for path in files
        if path.suffix in (".py", ".md", ".toml")
        for extras in re.findall(r"[\"'](?:minifuse|\.)\[([a-z0-9,]+)\]", path.read_text(encoding="utf-8"))
        for extra in extras.split(",")
    }
    assert len(named) > 20
    assert {(extra, name) for extra, name in named if extra not in EXTRAS} == set()


def test_the_check_of_the_wheel_needs_the_standard_library_alone():
    lines = (ROOT / "tests" / "check_wheel.py").read_text(encoding="utf-8").split('"""', 2)[2].partition("\nCORE")[0]
    imported = re.findall(r"^(?:import|from) (\w+)", lines, re.MULTILINE)
    assert len(imported) > 5
    assert set(imported) <= sys.stdlib_module_names
