"""The app, served, and a real Chromium that looks at it: Debian's, found on the path, driven by Playwright.

Plain pytest leaves these tests out (the marker `browser`); `make test-browser` runs them, and installs
Chromium where it can.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from project import screenshots
from project.screenshots import served
from tests.browser.visit import Visit
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
    """The address of the app; at the end, what its server wrote must hold no traceback."""
    pytest.importorskip("streamlit", reason='the app needs: pip install "minifuse[app]"')
    with served(ROOT / "project" / "app.py", logs / "app.log") as address:
        yield address
    written = (logs / "app.log").read_text()
    assert "Traceback" not in written, re.sub(r"(?s).*?(Traceback.{,3000}).*", r"\1", written)


@pytest.fixture(scope="session")
def board(logs):
    """The address of a page that is nothing but a board with steps, beside a slider."""
    pytest.importorskip("streamlit", reason='the app needs: pip install "minifuse[app]"')
    with served(Path(__file__).with_name("one_board.py"), logs / "board.log") as address:
        yield address


@pytest.fixture(scope="session")
def chromium():
    playwright = pytest.importorskip("playwright.sync_api", reason='these tests need: pip install "minifuse[browser]"')
    if (found := screenshots.chromium()) is None:
        pytest.skip(
            f"no browser: none of {', '.join(screenshots.CHROMIUM)} is on the path, and MINIFUSE_CHROMIUM names none"
        )
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def visiting(chromium):
    """Makes what `visit` is, for as long as one likes."""

    @contextmanager
    def visits() -> Iterator[Callable[..., Visit]]:
        made = list[Visit]()

        def open_(address: str, *, dark: bool = False, size: tuple[int, int] = (1280, 720)) -> Visit:
            viewport = {"width": size[0], "height": size[1]}
            context = chromium.new_context(viewport=viewport, color_scheme="dark" if dark else "light")
            made.append(Visit(context.new_page()))
            made[-1].open(address)
            return made[-1]

        try:
            yield open_
        finally:
            for visit in made:
                visit.page.context.close()
        assert [error for visit in made for error in visit.errors] == []
        assert {host for visit in made for host in visit.hosts} == {"127.0.0.1"}

    return visits


@pytest.fixture
def visit(visiting):
    """Opens an address in a session of its own. At the end, none may have seen an error or asked another host."""
    with visiting() as open_:
        yield open_
