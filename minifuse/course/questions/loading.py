"""The first question of each task: can its file be loaded?"""

from ..student import Student


def load(student: Student, task: str) -> None:
    """Load the file of a task, and check that it defines what the task asks for."""
    student.begin(next(one for one in student.tasks if one.id == task))
