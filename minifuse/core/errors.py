"""Every error that minifuse raises on purpose.

    MinifuseError
    ├── ShapeError        (ValueError)    shapes, sizes or dims do not fit together
    │   └── ViewError                     no strides over the same memory give this shape
    ├── DTypeError        (TypeError)     an element type that is unknown, or that the operation is not made for
    ├── IndexingError     (IndexError)    an index that is out of range or of the wrong kind
    ├── OverlapError      (ValueError)    an in-place write to memory in which several elements share one place
    ├── GradientError     (RuntimeError)  a gradient that does not exist, or a graph that is gone
    ├── BackendError      (ValueError)    an unknown backend, or operands of two backends
    ├── DataError         (ValueError)    a file of examples that cannot be read or is damaged; letters that are not known
    ├── MissingPartError  (ImportError)   an optional part that is not installed; names the install line
    ├── FuseError         (TypeError)     a function that cannot be captured
    ├── CompileError      (RuntimeError)  machine code that calls functions which the process does not have
    ├── CheckpointError   (OSError)       a file of tensors that cannot be written or read, or is not whole
    ├── TrainingError     (RuntimeError)  a run that cannot begin, or go on: settings, its folder, a loss that is no number
    ├── CourseError       (ValueError)    a folder of the course, or a task, that is not what it should be
    ├── NotDoneYet        (NotImplementedError)  a part of a task of the course that is still to be written; has .part
    ├── CudaError         (RuntimeError)  what the GPU or its driver reports
    │   └── OutOfMemoryError              device memory that is not there, with the sizes; also a MemoryError
    └── SimtError         (RuntimeError)  a kernel that does wrong, or what the interpreter does not know; has .lines
        ├── OutOfBoundsError              an access outside an array
        ├── RaceError                     two threads at one address with nothing that orders them
        ├── UninitializedReadError        an element that is read before it is written
        ├── UnwrittenOutputError          an element of an output that no thread wrote
        ├── BarrierError                  a barrier or a warp operation that not all threads reach
        ├── DivergenceError               lanes of one warp at different instructions where they must be together
        ├── UnknownWordError              a word of CUDA, Python or NumPy that kernels here do not have
        └── LimitError                    more events than the limit
            └── LoopLimitError            a loop or a recursion that does not end within the limit

Each is also the built-in error that NumPy or Python would raise, so `except ValueError` works as expected. A message
says what was got, what was expected and what to do.
"""

import contextlib
import pathlib
import sys

PACKAGE = str(pathlib.Path(__file__).parents[1])


def users_line() -> str:
    """The line of the user's code that is running, as file:line."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_code.co_filename.startswith((PACKAGE, contextlib.__file__)):  # ours: on to the user's
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


class MinifuseError(Exception):
    """The base of all errors of minifuse."""


class ShapeError(MinifuseError, ValueError):
    """Shapes, sizes or dims do not fit together."""


class ViewError(ShapeError):
    """The new shape cannot be expressed with strides over the same memory."""


class DTypeError(MinifuseError, TypeError):
    """An element type that is unknown, or that the operation is not made for."""


class IndexingError(MinifuseError, IndexError):
    """An index is out of range or of the wrong kind."""


class OverlapError(MinifuseError, ValueError):
    """Several elements of the target of an in-place write share one place in memory."""


class GradientError(MinifuseError, RuntimeError):
    """The gradient does not exist, or the graph that it needs is gone."""


class BackendError(MinifuseError, ValueError):
    """The backend is unknown, or the operands live on different backends."""


class DataError(MinifuseError, ValueError):
    """A file of examples cannot be read or is not what it should be, or letters are not known."""


class MissingPartError(MinifuseError, ImportError):
    """An optional part is not installed."""


class FuseError(MinifuseError, TypeError):
    """The function cannot be captured."""


class CompileError(MinifuseError, RuntimeError):
    """Compiled machine code calls functions that the process does not have."""


class CheckpointError(MinifuseError, OSError):
    """A file of tensors cannot be written or read, or is not whole."""


class TrainingError(MinifuseError, RuntimeError):
    """A run of training cannot begin, or cannot go on."""


class CourseError(MinifuseError, ValueError):
    """A folder of the course, or the name of a task, is not what it should be."""


class NotDoneYet(MinifuseError, NotImplementedError):  # noqa: N818  # no error: it says how far somebody has come
    """A part of a task of the course is still to be written.

    Attributes
    ----------
    part : str
        Which: "2.3a".
    """

    def __init__(self, part: str, message: str) -> None:
        super().__init__(message)
        self.part = part


class CudaError(MinifuseError, RuntimeError):
    """The GPU or its driver reports an error."""


class OutOfMemoryError(CudaError, MemoryError):
    """The device has less memory than is asked for."""


class SimtError(MinifuseError, RuntimeError):
    """A kernel does wrong, or does what the interpreter does not know.

    Attributes
    ----------
    lines : tuple of (str, int)
        File and line of each instruction that takes part.
    array, element, block, threads, epoch
        Where it happened: the name of the array, the index of the element, the block, the threads in it, and the barriers
        passed before; None where that means nothing.
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
    """Two threads access one address, one of them writes, and nothing orders them."""


class UninitializedReadError(SimtError):
    """An element is read before it is written."""


class UnwrittenOutputError(SimtError):
    """No thread wrote an element of an output."""


class BarrierError(SimtError):
    """Not all threads reach a barrier or a warp operation."""


class DivergenceError(SimtError):
    """Lanes of one warp are at different instructions where they must be together."""


class UnknownWordError(SimtError):
    """A word of CUDA, Python or NumPy that kernels here do not have."""


class LimitError(SimtError):
    """More events than the limit."""


class LoopLimitError(LimitError):
    """Threads loop or call functions more often than the limit, and none of them ends."""
