"""Every error that minifuse raises on purpose.

    MinifuseError
    ├── ShapeError        (ValueError)    shapes, sizes or dims do not fit together
    │   └── ViewError                     no strides over the same memory give this shape
    ├── DTypeError        (TypeError)     an element type that is unknown, or that the operation is not made for
    ├── IndexingError     (IndexError)    an index that is out of range or of the wrong kind
    ├── OverlapError      (ValueError)    an in-place write to memory in which several elements share one place
    ├── GradientError     (RuntimeError)  a gradient that does not exist, or a graph that is gone
    ├── BackendError      (ValueError)    an unknown backend, or operands of two backends
    ├── MissingPartError  (ImportError)   an optional part that is not installed; names the install line
    └── FuseError         (TypeError)     a function that cannot be captured

Each is also the built-in error that NumPy or Python would raise, so `except ValueError` works as expected. A message
says what was got, what was expected and what to do.
"""


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


class MissingPartError(MinifuseError, ImportError):
    """An optional part is not installed."""


class FuseError(MinifuseError, TypeError):
    """The function cannot be captured."""
