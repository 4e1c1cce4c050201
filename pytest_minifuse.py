"""The pytest plugin of minifuse: tests that run on several backends.

    def test_sum(backend):                       # once on each backend, by name; new tensors are made there
        assert mf.ones(3).sum().item() == 3

    @pytest.mark.backends("python", "parallel")  # on these alone
    def test_loops(backend): ...

    $ pytest --backends python,parallel          # all tests, as they are, once on each

A fixture of a wider scope than one test keeps the tensors that it has made on the backend of the first test. Doctests and
methods of `unittest.TestCase` have no parameters, and run once, on the default backend.

This module stands beside the package: pytest imports it in every run of every project of the environment, and would
import `minifuse` and NumPy for each if it stood inside. It imports minifuse when a test asks for a backend.
"""

from collections.abc import Generator
from typing import Any

import pytest

CHOSEN = "_minifuse_backend"  # the parameter; not `backend`, since a project may have a fixture or parameter of that name


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--backends`."""
    parser.getgroup("minifuse").addoption(
        "--backends",
        dest="minifuse_backends",
        metavar="NAMES",
        help="run all tests once on each of these backends of minifuse, separated by commas: python,parallel",
    )


@pytest.hookimpl(trylast=True)  # a conftest.py may register backends of its own first
def pytest_configure(config: pytest.Config) -> None:
    """Explain the marker, and refuse backends that do not exist."""
    config.addinivalue_line("markers", "backends(*names): run the test on these backends of minifuse alone")
    refuse_unknown(asked_for(config), "--backends")


def asked_for(config: pytest.Config) -> list[str]:
    """The backends that the command line names."""
    text: str | None = config.getoption("minifuse_backends")
    return [] if text is None else [name.strip() for name in text.split(",")]


def refuse_unknown(names: list[str], source: str) -> None:
    """Raise a UsageError, which shows the backends that there are, for a name that is none of them."""
    if names:
        from minifuse import backends

        for name in names:
            if name not in backends():
                raise pytest.UsageError(f"{source}: backend {name!r} does not exist; choose one of {', '.join(backends())}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Multiply the tests that use the fixture, or all of them where the command line names backends."""
    names = asked_for(metafunc.config)
    if CHOSEN not in metafunc.fixturenames:
        if not names:
            return
        metafunc.fixturenames.append(CHOSEN)
    from minifuse import backends

    names = names or list(backends())
    marker = metafunc.definition.get_closest_marker("backends")
    if marker:
        refuse_unknown(list(marker.args), f"{metafunc.definition.nodeid}: pytest.mark.backends")
    chosen: list[Any] = [name for name in names if marker is None or name in marker.args]
    if marker and not chosen:
        reason = f"runs on {', '.join(marker.args)} alone, and --backends names {', '.join(names)}"
        chosen = [pytest.param(None, marks=pytest.mark.skip(reason=reason), id="none")]
    metafunc.parametrize(CHOSEN, chosen, indirect=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, bool | None, bool | None]:
    """Make the chosen backend the default while a test runs, its fixtures included."""
    name = item.callspec.params.get(CHOSEN) if hasattr(item, "callspec") else None
    if name is None:
        return (yield)
    from minifuse import use_backend

    with use_backend(name):
        return (yield)


@pytest.fixture
def _minifuse_backend(request: pytest.FixtureRequest) -> str:
    """The parameter."""
    name: str = request.param
    return name


@pytest.fixture
def backend(_minifuse_backend: str) -> str:
    """The name of a backend of minifuse, where new tensors are made; the test runs once on each."""
    return _minifuse_backend
