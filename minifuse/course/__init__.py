"""The course: tasks, what a student's file is asked, and what it is told. What a student's file needs is exported.

    task        what a task is                                      tasks                the tasks, a file each
    student     a folder of a student's files, as slots that count  oracle               the same functions, on NumPy
    check       a property, its smallest counter-example            draw                 what a case looks like
    runner      one task in a process of its own, with limits       workspace            the files of a student

Above everything else in the package; nothing below knows of it.
"""

from .parameter import Parameter
from .strided import Strided
from .todo import todo

__all__ = ["Parameter", "Strided", "todo"]
