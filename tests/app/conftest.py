"""Fixtures for the tests of pages."""

from importlib.util import find_spec

import pytest


@pytest.fixture
def wait_for_first_picture(monkeypatch):
    """Let the page Train wait for its first picture on a busy machine: AppTest runs a page once, and no fragment again."""
    pytest.importorskip("streamlit", reason='the app needs: pip install "minifuse[app]"')
    monkeypatch.setattr("project.screens.train.FIRST_S", 60)


@pytest.fixture(autouse=True)
def open_drawers(monkeypatch):
    """Open all drawers of pages, since the tests read what they contain."""
    if find_spec("streamlit"):
        monkeypatch.setattr("project.frame.is_open", lambda place: True)
