"""Text as numbers, letter by letter: a vocabulary, windows of inputs and of what follows each, and Shakespeare's sonnets.

A model of language learns to tell the next letter from those before. So an example is a window of a text, and its target
is the same window one letter on. Windows are views of one row of numbers and take no memory; `Loader` gives them in batches,
shuffled or in order. Words are in words.py.
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
    """William Shakespeare, Sonnets, 1609, public domain: all 154, in 94,614 characters.

    Returns
    -------
    str
        2,155 lines of plain ASCII, with an empty line between two sonnets and two spaces before the lines of a couplet.

    Examples
    --------
    >>> import minifuse as mf
    >>> print(mf.data.sonnets().split("\\n\\n")[17][:80])
    Shall I compare thee to a summer's day?
    Thou art more lovely and more temperate:
    """
    return (TEXTS / "sonnets.txt").read_text("ascii")


class Characters:
    """The letters of a text, in the order of Unicode, each with its number from 0.

    Parameters
    ----------
    text : str
        All letters that there are to be.

    Attributes
    ----------
    letters : str
        Each once.

    Raises
    ------
    DataError
        There are none.

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
            raise DataError("Characters: got an empty text, expected one letter at least")
        self.letters = "".join(sorted(set(text)))
        self.known = np.array([ord(letter) for letter in self.letters], np.int64)

    def __len__(self) -> int:
        """How many letters there are."""
        return len(self.letters)

    def encode(self, text: str, backend: str | None = None) -> Tensor:
        """The numbers of letters.

        Parameters
        ----------
        text : str
            Of letters that are known.
        backend : str, optional
            Where the tensor lives; the default backend if left out.

        Returns
        -------
        Tensor of int64 (N,)
            From 0 to len(self) - 1.

        Raises
        ------
        DataError
            A letter that is not in the vocabulary.
        """
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.int64)
        codes = np.searchsorted(self.known, points).clip(max=len(self) - 1)
        is_unknown = self.known[codes] != points
        if is_unknown.any():
            place = int(is_unknown.argmax())
            raise DataError(
                f"Characters: {text[place]!r} at {place} of the text is none of the {len(self)} letters known, "
                f"{self.letters!r:.80}; leave it out, or make the vocabulary of a text that has it"
            )
        return from_numpy(codes, backend)

    def decode(self, codes: Tensor | Sequence[int]) -> str:
        """The letters of numbers.

        Parameters
        ----------
        codes : Tensor of integers (N,), or sequence of int
            From 0 to len(self) - 1.

        Returns
        -------
        str
            N letters.

        Raises
        ------
        DataError
            A number that no letter has.
        """
        found = [int(code) for code in (codes.tolist() if isinstance(codes, Tensor) else codes)]
        wrong = next((code for code in found if not 0 <= code < len(self)), None)
        if wrong is not None:
            raise DataError(
                f"Characters: got the code {wrong}, expected 0 to {len(self) - 1}, there are {len(self)} letters"
            )
        return "".join(self.letters[code] for code in found)


def windows(codes: Tensor, context: int, step: int = 1) -> Windows:
    """Every stretch of a row of numbers, and the same one place on.

    Parameters
    ----------
    codes : Tensor (N,)
        A text in numbers.
    context : int
        How many are in a window.
    step : int
        From the start of one window to the next: 1 for all that there are, `context` for windows that do not overlap.

    Returns
    -------
    x : Tensor (W, context)
        Inputs; W = 1 + (N - 1 - context) // step.
    y : Tensor (W, context)
        Targets: y[i, j] is the number after x[i, j].

    Raises
    ------
    ShapeError
        `codes` is no row, or too short for one window; `context` or `step` is not at least 1.

    Notes
    -----
    Both are views of `codes`; of a GPU's, they are copies. So let the codes of a long text live on the CPU, and give the
    `Loader` a backend.

    Examples
    --------
    >>> import minifuse as mf
    >>> x, y = mf.data.windows(mf.arange(6), context=3, step=2)
    >>> x.tolist(), y.tolist()
    ([[0, 1, 2], [2, 3, 4]], [[1, 2, 3], [3, 4, 5]])
    """
    if not isinstance(codes, Tensor):
        raise DTypeError(f"windows: expected a tensor, got {type(codes).__name__}; encode the text first")
    if codes.ndim != 1 or context < 1 or step < 1:
        raise ShapeError(
            f"windows: got codes of shape {codes.shape}, context={context}, step={step}; expected a row, and both at least 1"
        )
    if len(codes) <= context:
        raise ShapeError(
            f"windows: {len(codes)} codes have no window of {context} and one to follow; expected {context + 1} or more"
        )
    both = np.lib.stride_tricks.sliding_window_view(codes.numpy(), context + 1)[::step]
    backend = codes.spec.backend
    return Tensor.from_numpy(both[:, :-1], backend), Tensor.from_numpy(both[:, 1:], backend)


class Text:
    """A text to learn from: its letters, and windows of its beginning and of its end.

    Parameters
    ----------
    text : str
        What there is.
    context : int
        Letters in a window.
    held_out : float
        The share at the end of the text that is kept to test with.
    backend : str, optional
        Where the tensors live; the default backend if left out.

    Attributes
    ----------
    characters : Characters
        The letters of all of the text, with `encode` and `decode`.
    train : Tensor of int64 (W, context), Tensor of int64 (W, context)
        Inputs and targets at every place of the first part.
    test : Tensor of int64 (V, context), Tensor of int64 (V, context)
        The same of the second, one window after the other.

    Raises
    ------
    DataError
        The text is empty.
    ShapeError
        A part is shorter than a window and one letter more.

    Notes
    -----
    Windows are views, see `windows`: those of the sonnets would take 170 MB with a context of 128, and take none.

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
        border = len(codes) - round(held_out * len(codes))
        self.train, self.test = windows(codes[:border], context), windows(codes[border:], context, step=context)
