"""The course: tasks, checks of a student's files, and verdicts. This package exports the names that student files import.

    task        classes of tasks, checks and mistakes               tasks                the tasks, one file each
    student     load a student's functions and count their calls    oracle               reference answers in NumPy
    check       search for the smallest counterexample              verdicts             failures and results
    questions   what the student's process is asked                 worker               answer questions in that process
    runner      judge tasks, one after the other                    workspace            create and update a student's folder

The course imports from the rest of the package, never the other way around.
"""

from .parameter import Parameter
from .strided import Strided
from .todo import todo

__all__ = ["Parameter", "Strided", "todo"]
