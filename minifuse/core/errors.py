"""The error classes of minifuse.

    MinifuseError
    ├── ShapeError        (ValueError)    shapes, sizes or dims do not fit together
    │   ├── NoDimsError                   the length of a 0-d array; also a TypeError
    │   └── ViewError                     no strides over the same memory describe this shape
    ├── DTypeError        (TypeError)     an unknown dtype, or one that the operation does not support
    ├── IndexingError     (IndexError)    an index out of range or of the wrong type
    ├── OverlapError      (ValueError)    an in-place write to memory where several elements share one address
    ├── GradientError     (RuntimeError)  a gradient that is not defined, or a graph that was freed
    ├── LinAlgError       (LinAlgError)   a matrix without such an inverse, factor or solution; NumPy's error is a ValueError
    ├── BackendError      (ValueError)    an unknown backend, or operands of two backends
    ├── DataError         (ValueError)    a data file that cannot be read or is damaged; characters not in the vocabulary
    ├── MissingPartError  (ImportError)   an optional dependency that is not installed; the message has the install command
    ├── FuseError         (TypeError)     a function that cannot be traced
    ├── CompileError      (RuntimeError)  machine code that calls functions which the process does not have
    ├── CheckpointError   (OSError)       a file of tensors that cannot be written or read, or is incomplete
    ├── TrainingError     (RuntimeError)  a training run that cannot start or continue: settings, its folder, a loss of NaN
    ├── DistributedError  (RuntimeError)  ranks that do not fit together, or an engine that cannot start
    │   └── MismatchError                 ranks ask for different collectives, or wait for one that never comes
    ├── CourseError       (ValueError)    an invalid course folder or task name
    ├── NotDoneYet        (NotImplementedError)  a part of a course task that is not written yet; has .part
    ├── CudaError         (RuntimeError)  an error reported by the GPU or its driver
    │   └── OutOfMemoryError              not enough device memory; the message has the sizes; also a MemoryError
    └── SimtError         (RuntimeError)  a faulty kernel, or a feature that the CUDA interpreter lacks; has .lines
        ├── OutOfBoundsError              an access outside an array
        ├── RaceError                     a data race: two unordered accesses to one address, one of them a write
        ├── UninitializedReadError        an element that is read before it is written
        ├── UnwrittenOutputError          an element of an output that no thread wrote
        ├── BarrierError                  a barrier or a warp operation that some threads do not reach
        ├── DivergenceError               lanes of one warp at different instructions where they must be converged
        ├── UnknownWordError              a function, an option or a dtype that the CUDA interpreter does not support
        └── LimitError                    more events than the limit
            └── LoopLimitError            a loop or a recursion of more steps than the limit

Each is also the built-in error that NumPy or Python would raise, so `except ValueError` works as expected. A message states
what was passed, what was expected, and what to write instead.
"""

import contextlib
import pathlib
import sys
import warnings
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from types import FrameType

USE_OPERATORS = "compute with Python's operators and functions of minifuse, such as mf.exp in place of math.exp"
PACKAGE = str(pathlib.Path(__file__).parents[1])


def users_line() -> str:
    """Return the line of the user's code that is running, as file:line."""
    frame = users_frame()
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def short_file(file: str) -> str:
    """Return the name of a file without its folders. The file of a cell of a notebook is named as the cell: In[3]."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    named: tuple[str, str] | None = getattr(getattr(shell, "compile", None), "format_code_name", lambda _: None)(file)
    return named[1] if named else file.replace("\\", "/").rpartition("/")[2]


def users_frame() -> "FrameType":
    """Return the frame of the user's code that is running."""
    frame = sys._getframe(1)
    while is_ours(frame.f_code.co_filename) and frame.f_back:
        frame = frame.f_back
    return frame


def warn_user(message: str) -> None:
    """Warn about the line of the user's code that is running: once a line, as Python's filters say by default."""
    frame = users_frame()
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    module = frame.f_globals.get("__name__", "<string>")
    warnings.warn_explicit(message, UserWarning, frame.f_code.co_filename, frame.f_lineno, module, registry)


@cache
def is_ours(file: str) -> bool:
    """Return whether code of a file is minifuse's, or between minifuse's frames."""
    return file.startswith((PACKAGE, contextlib.__file__, "<host program"))


class MinifuseError(Exception):
    """Base class of all errors of minifuse."""


class ShapeError(MinifuseError, ValueError):
    """Shapes, sizes or dims do not fit together."""


class NoDimsError(ShapeError, TypeError):
    """A 0-d array has no length, and no parts to iterate over; a TypeError, too, as for Python's numbers."""


class ViewError(ShapeError):
    """No strides over the same memory describe the new shape."""


class DTypeError(MinifuseError, TypeError):
    """The dtype is unknown, or the operation does not support it."""


class IndexingError(MinifuseError, IndexError):
    """An index is out of range or of the wrong type."""


class OverlapError(MinifuseError, ValueError):
    """Several elements of the target of an in-place write share one address."""


class GradientError(MinifuseError, RuntimeError):
    """The gradient is not defined, or the graph that it needs was freed."""


class LinAlgError(MinifuseError, np.linalg.LinAlgError):
    """A matrix has no such inverse, factor or solution. It is NumPy's LinAlgError, too."""


class BackendError(MinifuseError, ValueError):
    """The backend is unknown, or the operands are on different backends."""


class DataError(MinifuseError, ValueError):
    """A data file cannot be read or is damaged, or characters are not in the vocabulary."""


class MissingPartError(MinifuseError, ImportError):
    """An optional dependency is not installed."""


class FuseError(MinifuseError, TypeError):
    """The function cannot be traced."""


class CompileError(MinifuseError, RuntimeError):
    """Compiled machine code calls functions that the process does not have."""


class CheckpointError(MinifuseError, OSError):
    """A file of tensors cannot be written or read, or is incomplete."""


class TrainingError(MinifuseError, RuntimeError):
    """A training run cannot start, or cannot continue."""


class DistributedError(MinifuseError, RuntimeError):
    """The ranks of a program do not fit together, or the engine between them cannot start."""


class MismatchError(DistributedError):
    """Ranks ask for different collectives, or wait for one that another rank never asks for."""


class CourseError(MinifuseError, ValueError):
    """The course folder or the task name is invalid."""


class NotDoneYet(MinifuseError, NotImplementedError):  # noqa: N818  # progress of a course task rather than an error
    """A part of a course task is not written yet.

    Attributes
    ----------
    part : str
        The part, such as "2.3a".
    """

    def __init__(self, part: str, message: str) -> None:
        super().__init__(message)
        self.part = part


class CudaError(MinifuseError, RuntimeError):
    """The GPU or its driver reported an error."""


class OutOfMemoryError(CudaError, MemoryError):
    """The device has less free memory than requested."""


class SimtError(MinifuseError, RuntimeError):
    """A kernel is faulty, or uses a feature that the CUDA interpreter lacks.

    Attributes
    ----------
    lines : tuple of (str, int)
        File and line of each instruction involved.
    array, element, block, threads, epoch
        The location of the error: the name of the array, the index of the element, the block, its threads, and the number
        of barriers that were passed before. None if it does not apply.
    """

    def __init__(
        self,
        message: str,
        *,
        lines: tuple[tuple[str, int], ...] = (),
        array: str | None = None,
        element: tuple[int, ...] | None = None,
        block: tuple[int, ...] | None = None,
        threads: tuple[tuple[int, ...], ...] = (),
        epoch: int | None = None,
    ) -> None:
        super().__init__(message)
        self.lines, self.array, self.element = lines, array, element
        self.block, self.threads, self.epoch = block, threads, epoch


class OutOfBoundsError(SimtError):
    """An access outside an array."""


class RaceError(SimtError):
    """A data race: two threads access one address without synchronization, and one of them writes."""


class UninitializedReadError(SimtError):
    """An element is read before it is written."""


class UnwrittenOutputError(SimtError):
    """No thread wrote an element of an output."""


class BarrierError(SimtError):
    """Some threads do not reach a barrier or a warp operation."""


class DivergenceError(SimtError):
    """Lanes of one warp are at different instructions where they must be converged."""


class UnknownWordError(SimtError):
    """The CUDA interpreter does not support this function of CUDA, Python or NumPy, or this option or dtype."""


class LimitError(SimtError):
    """A launch has more events than the limit."""


class LoopLimitError(LimitError):
    """Threads loop or recurse more often than the limit, and none of them ends."""
