"""Fixtures for the tests of pages."""

import pytest


@pytest.fixture
def wait_for_first_picture(monkeypatch):
    """Let the page Train wait for its first picture on a busy machine: AppTest runs a page once, and no fragment again."""
    pytest.importorskip("streamlit", reason='the app needs: pip install "minifuse[app]"')
    monkeypatch.setattr("project.screens.train.FIRST_S", 60)
