"""Text as numbers, character by character: a vocabulary, windows of inputs and next characters, and Shakespeare's sonnets.

A language model learns to predict the next character from the previous ones. So an example is a window of a text, and its
target is the same window shifted by one character. Windows are views of one array and need no memory; `Loader` makes
batches of windows, shuffled or in order. For words, see word_vocab.py.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..core.errors import DataError, DTypeError, ShapeError
from ..tensors.creation import from_numpy
from ..tensors.tensor import Tensor

TEXTS = Path(__file__).parent / "texts"
Windows = tuple[Tensor, Tensor]


def sonnets() -> str:
    """Load William Shakespeare, Sonnets, 1609 (public domain): all 154, in 94,614 characters.

    Returns
    -------
    str
        2,155 lines of plain ASCII, with an empty line between two sonnets and two spaces before each line of a couplet.

    Examples
    --------
    >>> import minifuse as mf
    >>> print(mf.data.sonnets().split("\\n\\n")[17][:80])
    Shall I compare thee to a summer's day?
    Thou art more lovely and more temperate:
    """
    return (TEXTS / "sonnets.txt").read_text("ascii")


class Characters:
    """A vocabulary of characters: those of a text, in Unicode order, numbered from 0.

    Parameters
    ----------
    text : str
        Contains all characters of the vocabulary.

    Attributes
    ----------
    letters : str
        All characters, each once.

    Raises
    ------
    DataError
        The text is empty.

    Examples
    --------
    >>> import minifuse as mf
    >>> letters = mf.data.Characters("hello")
    >>> letters.letters, len(letters)
    ('ehlo', 4)
    >>> letters.encode("hole"), letters.decode([1, 3, 2, 0])
    (tensor([1, 3, 2, 0]), 'hole')
    """

    def __init__(self, text: str) -> None:
        if not text:
            raise DataError("Characters: got an empty text, expected at least one character")
        self.letters = "".join(sorted(set(text)))
        self.code_points = np.array([ord(letter) for letter in self.letters], np.int64)

    def __len__(self) -> int:
        """Return the number of characters."""
        return len(self.letters)

    def encode(self, text: str, backend: str | None = None) -> Tensor:
        """Convert characters to numbers.

        Parameters
        ----------
        text : str
            Characters of the vocabulary.
        backend : str, optional
            The backend of the tensor. Default: the default backend.

        Returns
        -------
        Tensor of int64 (N,)
            From 0 to len(self) - 1.

        Raises
        ------
        DataError
            A character is not in the vocabulary.
        """
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.int64)
        codes = np.searchsorted(self.code_points, points).clip(max=len(self) - 1)
        is_unknown = self.code_points[codes] != points
        if is_unknown.any():
            index = int(is_unknown.argmax())
            raise DataError(
                f"Characters.encode: got {text[index]!r} at index {index}, expected one of the {len(self)} characters "
                f"{self.letters!r:.80}; remove it, or create the vocabulary from a text that contains it"
            )
        return from_numpy(codes, backend)

    def decode(self, codes: Tensor | Sequence[int]) -> str:
        """Convert numbers to characters.

        Parameters
        ----------
        codes : Tensor of integers (N,), or sequence of int
            From 0 to len(self) - 1.

        Returns
        -------
        str
            N characters.

        Raises
        ------
        DataError
            A number is out of range.
        """
        numbers = [int(code) for code in (codes.tolist() if isinstance(codes, Tensor) else codes)]
        invalid = next((number for number in numbers if not 0 <= number < len(self)), None)
        if invalid is not None:
            raise DataError(
                f"Characters.decode: got {invalid}, expected numbers from 0 to {len(self) - 1} for {len(self)} characters"
            )
        return "".join(self.letters[number] for number in numbers)


def windows(codes: Tensor, context: int, step: int = 1) -> Windows:
    """Cut a row of numbers into windows; the target of each is the same window shifted by one.

    Parameters
    ----------
    codes : Tensor (N,)
        An encoded text.
    context : int
        Length of a window.
    step : int
        Distance from one window to the next: 1 for all possible windows, `context` for windows that do not overlap.

    Returns
    -------
    x : Tensor (W, context)
        Inputs; W = 1 + (N - 1 - context) // step.
    y : Tensor (W, context)
        Targets: y[i, j] is the number after x[i, j].

    Raises
    ------
    ShapeError
        `codes` is not 1-D, or too short for one window; or `context` or `step` is less than 1.

    Notes
    -----
    Both are views of `codes`, but on a GPU they are copies. So keep the codes of a long text on the CPU, and pass a backend
    to the `Loader`.

    Examples
    --------
    >>> import minifuse as mf
    >>> x, y = mf.data.windows(mf.arange(6), context=3, step=2)
    >>> x.tolist(), y.tolist()
    ([[0, 1, 2], [2, 3, 4]], [[1, 2, 3], [3, 4, 5]])
    """
    if not isinstance(codes, Tensor):
        raise DTypeError(f"windows: expected a tensor, got {type(codes).__name__}; write Characters(text).encode(text)")
    if codes.ndim != 1 or context < 1 or step < 1:
        raise ShapeError(
            f"windows: got codes of shape {codes.shape}, context={context}, step={step}; expected 1-D codes, and both at "
            "least 1"
        )
    if len(codes) <= context:
        raise ShapeError(
            f"windows: got {len(codes)} codes for context={context}, expected at least {context + 1}; use a longer text"
        )
    extended_windows = np.lib.stride_tricks.sliding_window_view(codes.numpy(), context + 1)[::step]
    backend = codes.meta.backend
    return Tensor.from_numpy(extended_windows[:, :-1], backend), Tensor.from_numpy(extended_windows[:, 1:], backend)


class Text:
    """A text for training: its vocabulary, windows of its beginning to train on, and windows of its end to test with.

    Parameters
    ----------
    text : str
        The whole text.
    context : int
        Number of characters in a window.
    held_out : float
        The fraction at the end of the text that is used as test data.
    backend : str, optional
        The backend of the tensors. Default: the default backend.

    Attributes
    ----------
    characters : Characters
        The vocabulary of the whole text, with `encode` and `decode`.
    train : Tensor of int64 (W, context), Tensor of int64 (W, context)
        Inputs and targets of all windows of the training part.
    test : Tensor of int64 (V, context), Tensor of int64 (V, context)
        Inputs and targets of the windows of the test part, which do not overlap.

    Raises
    ------
    DataError
        The text is empty.
    ShapeError
        A part has fewer than `context` + 1 characters.

    Notes
    -----
    Windows are views, see `windows`: those of the sonnets with a context of 128 would take 170 MB as copies.

    Examples
    --------
    >>> import minifuse as mf
    >>> text = mf.data.Text(mf.data.sonnets(), context=64)
    >>> len(text.characters), text.train[0].shape, text.test[0].shape
    (59, (85089, 64), (147, 64))
    >>> for x, y in mf.data.Loader(*text.train, batch_size=32, seed=0):
    ...     break
    >>> text.characters.decode(x[0]), text.characters.decode(y[0][-8:])
    ('short than waste or ruining?\\nHave I not seen dwellers on form an', 'form and')
    """

    def __init__(self, text: str, context: int, held_out: float = 0.1, backend: str | None = None) -> None:
        self.characters, self.context = Characters(text), context
        codes = self.characters.encode(text, backend)
        train_length = len(codes) - round(held_out * len(codes))
        self.train, self.test = windows(codes[:train_length], context), windows(codes[train_length:], context, step=context)
