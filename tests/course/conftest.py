"""What tests of the course share."""

import pytest

from minifuse.course import speed
from minifuse.course.tasks import task3_5


@pytest.fixture
def any_speed(monkeypatch):
    """Task 3.5 measures, and is content with whatever it finds: other tests may run on the same cores."""
    monkeypatch.setattr(task3_5, "NEEDED", 0.0)
    monkeypatch.setattr(speed, "MAX_ROUNDS", 1)
