"""Serve the app, and open it in Chromium, which is found on the path and driven by Playwright.

Plain pytest leaves these tests out (the marker `browser`); `make test-browser` runs them, and installs
Chromium where it can.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from project import screenshots
from project.screenshots import serve_app
from tests.browser.visit import Visit, serve_page
from tests.sources import ROOT


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def logs(tmp_path_factory):
    return tmp_path_factory.mktemp("servers")


@pytest.fixture(scope="session")
def app(logs):
    """Serve the app, and yield its address. At the end, the output of the server must not contain a traceback."""
    pytest.importorskip("streamlit", reason='the app needs: pip install "minifuse[app]"')
    with serve_app(ROOT / "project" / "app.py", logs / "app.log") as address:
        yield address
    written = (logs / "app.log").read_text()
    assert "Traceback" not in written, re.sub(r"(?s).*?(Traceback.{,3000}).*", r"\1", written)


@pytest.fixture(scope="session")
def board(logs):
    """Serve a page with only a board with steps and a slider, and yield its address."""
    with serve_page("one_board", logs) as address:
        yield address


@pytest.fixture(scope="session")
def chromium():
    playwright = pytest.importorskip("playwright.sync_api", reason='these tests need: pip install "minifuse[browser]"')
    if (executable := screenshots.find_chromium()) is None:
        pytest.skip(
            f"no browser: none of {', '.join(screenshots.CHROMIUM)} is on the path, and MINIFUSE_CHROMIUM names none"
        )
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def open_visits(chromium):
    """Return a context manager that yields the function of `visit`."""

    @contextmanager
    def visiting() -> Iterator[Callable[..., Visit]]:
        visits = list[Visit]()

        def open_(address: str, *, dark: bool = False, size: tuple[int, int] = (1280, 720)) -> Visit:
            viewport = {"width": size[0], "height": size[1]}
            context = chromium.new_context(viewport=viewport, color_scheme="dark" if dark else "light")
            visits.append(Visit(context.new_page()))
            visits[-1].open(address)
            return visits[-1]

        try:
            yield open_
        finally:
            for visit in visits:
                visit.page.context.close()
        assert [error for visit in visits for error in visit.errors] == []
        assert {host for visit in visits for host in visit.hosts} == {"127.0.0.1"}

    return visiting


@pytest.fixture
def visit(open_visits):
    """Yield a function that opens an address in a new session.

    At the end, no session may have had an error or a request to another host.
    """
    with open_visits() as open_:
        yield open_
