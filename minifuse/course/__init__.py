"""The course: tasks, checks of a student's files, and verdicts on them. It exports the names that a student's file imports.

    task        tasks, their checks and mistakes                    tasks                the tasks, a file each
    student     a folder of a student's files, as slots that count  oracle               the right answers, on NumPy
    check       a property, its smallest counter-example            verdicts             failures and results
    runner      one task in a process of its own, with limits       workspace            the files of a student

Above everything else in the package; nothing below knows of it.
"""

from .parameter import Parameter
from .strided import Strided
from .todo import todo

__all__ = ["Parameter", "Strided", "todo"]
