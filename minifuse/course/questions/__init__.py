"""Questions to a student's functions: what the process with the student's code computes for a case of a check.

There is one module for each task. A question is a function of (student, case): it calls the student's functions and returns
what they answered, as plain data. It knows no expected value: those are computed and compared by the checks in `tasks`, in
another process.
"""
