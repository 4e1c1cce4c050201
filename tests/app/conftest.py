"""What the tests of pages share."""

import pytest


@pytest.fixture
def patient(monkeypatch):
    """Train waits for its first picture, however busy the machine is: AppTest asks a page once, and no fragment again."""
    pytest.importorskip("streamlit", reason='the app needs: pip install "minifuse[app]"')
    monkeypatch.setattr("project.screens.train.FIRST_S", 60)
