"""For those who know pytest: `pytest -m task2_3`, `pytest -k "strides"`. `minifuse course check` says more."""

from pathlib import Path

from minifuse.course.pytest_tasks import parameters, run


def pytest_generate_tests(metafunc):
    metafunc.parametrize("task", parameters())


def test_task(task):
    run(Path(__file__).parent, task)
