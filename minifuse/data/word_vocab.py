"""Text as numbers, word by word: a vocabulary with a place for unknown words, padding, and sentences with a class.

A word is letters and digits, in small letters; signs between them part words and are dropped. This is enough for a bag of
words or a small network; not here: pieces of words, other scripts' ways of writing without spaces.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from ..core.errors import DataError, ShapeError
from ..tensors.creation import from_numpy
from ..tensors.tensor import Tensor
from .char_vocab import TEXTS

PADDING, UNKNOWN = 0, 1  # numbers that stand for no known word
MARKS = ("<pad>", "<unknown>")
WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")


def sentences(backend: str | None = None) -> tuple[list[str], Tensor, tuple[str, ...]]:
    """480 short English sentences of four classes, 120 each: weather, cooking, music, travel.

    Written for minifuse. Most give themselves away by a word; about one in twenty is hard, such as "The song is about rain,
    though it was written in a desert."

    Parameters
    ----------
    backend : str, optional
        Where the tensor lives; the default backend if left out.

    Returns
    -------
    texts : list of str
        The sentences, class by class: shuffle before you split them, as `split` does.
    y : Tensor of int64 (480,)
        The class of each, 0 to 3.
    names : tuple of str
        What the classes are called.

    Examples
    --------
    >>> import minifuse as mf
    >>> texts, y, names = mf.data.sentences()
    >>> len(texts), texts[0], names[y[0].item()]
    (480, 'The rain stopped just before noon and the sun came out.', 'weather')
    """
    rows = [line.split("\t") for line in (TEXTS / "sentences.tsv").read_text("ascii").splitlines()]
    names = tuple(dict.fromkeys(name for name, _ in rows))
    y = np.array([names.index(name) for name, _ in rows], np.int64)
    return [text for _, text in rows], from_numpy(y, backend), names


def split_words(text: str) -> list[str]:
    """The words of a text, in small letters.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    list of str
        Runs of letters and digits, with one apostrophe inside.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.data.split_words("It's 5 o'clock: time for tea-cakes!")
    ["it's", '5', "o'clock", 'time', 'for', 'tea', 'cakes']
    """
    return WORD.findall(text.lower())


class Words:
    """The words of some texts, the most frequent first, each with its number.

    Parameters
    ----------
    texts : iterable of str
        What the words are taken from: the training part only, so that the test says something.
    most : int, optional
        How many words at most are known; all if left out.
    fewest : int
        How often a word must occur to be known.

    Attributes
    ----------
    words : tuple of str
        By number. Words 0 and 1 are "<pad>", which fills up short texts, and "<unknown>".

    Examples
    --------
    >>> import minifuse as mf
    >>> words = mf.data.Words(["the rain and the sun", "the snow"])
    >>> words.words, len(words)
    (('<pad>', '<unknown>', 'the', 'rain', 'and', 'sun', 'snow'), 7)
    >>> words.encode(["the wind", "and the rain"])
    tensor([[2, 1, 0],
            [4, 2, 3]])
    """

    def __init__(self, texts: Iterable[str], most: int | None = None, fewest: int = 1) -> None:
        if isinstance(texts, str):
            raise DataError("Words: got one text, expected a list of them; put it in brackets")
        counts = Counter(word for text in texts for word in split_words(text))
        ranked = [word for word, count in counts.most_common() if count >= fewest]  # as they came, where equal
        self.words = (*MARKS, *ranked[:most])
        self.numbers = {word: k for k, word in enumerate(self.words)}

    def __len__(self) -> int:
        """How many numbers there are: words, and the two marks."""
        return len(self.words)

    def encode(self, texts: Sequence[str], length: int | None = None, backend: str | None = None) -> Tensor:
        """The numbers of the words of texts, a row a text.

        Parameters
        ----------
        texts : sequence of str
            N texts.
        length : int, optional
            Words a row, T: longer texts lose their end. If left out, those of the longest text.
        backend : str, optional
            Where the tensor lives; the default backend if left out.

        Returns
        -------
        Tensor of int64 (N, T)
            0 behind the end of a text, 1 for a word that is not known.

        Raises
        ------
        DataError
            One text instead of several.
        ShapeError
            `length` is not at least 1.
        """
        if isinstance(texts, str):
            raise DataError("Words: got one text, expected a list of them; put it in brackets")
        if length is not None and length < 1:
            raise ShapeError(f"Words: length is {length}, expected at least 1 word")
        rows = [[self.numbers.get(word, UNKNOWN) for word in split_words(text)][:length] for text in texts]
        wide = length or max(map(len, rows), default=0)
        found = np.full((len(rows), wide), PADDING, np.int64)
        for k, row in enumerate(rows):
            found[k, : len(row)] = row
        return from_numpy(found, backend)

    def decode(self, row: Tensor | Sequence[int]) -> str:
        """The words of a row of numbers, up to the padding, with spaces between.

        Parameters
        ----------
        row : Tensor of integers (T,), or sequence of int
            From 0 to len(self) - 1.

        Returns
        -------
        str
            Unknown words as "<unknown>".

        Raises
        ------
        DataError
            A number that no word has.

        Examples
        --------
        >>> import minifuse as mf
        >>> words = mf.data.Words(["the rain and the sun"])
        >>> words.decode(words.encode(["The wind, the rain.", "one two three four five"])[0])
        'the <unknown> the rain'
        """
        codes = [int(code) for code in (row.tolist() if isinstance(row, Tensor) else row)]
        wrong = next((code for code in codes if not 0 <= code < len(self)), None)
        if wrong is not None:
            raise DataError(f"Words: got the number {wrong}, expected 0 to {len(self) - 1}, as there are {len(self)} words")
        return " ".join(self.words[code] for code in codes if code != PADDING)
