"""Text as numbers, word by word: a vocabulary with padding and unknown words, and a small data set of sentences.

A word is a run of letters and digits in lower case; punctuation separates words and is dropped. This is enough for a bag of
words or a small network. Not supported: subword tokens, scripts without spaces.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from ..core.errors import DataError, ShapeError
from ..tensors.creation import from_numpy
from ..tensors.tensor import Tensor
from .char_vocab import TEXTS

PADDING, UNKNOWN = 0, 1  # codes of the special words
SPECIAL_WORDS = ("<pad>", "<unknown>")
WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")


def sentences(backend: str | None = None) -> tuple[list[str], Tensor, tuple[str, ...]]:
    """Load 480 short English sentences of four classes, 120 each: weather, cooking, music, travel.

    They were written for minifuse. Most contain a word that is typical of their class. About one in twenty is hard, for
    example "The song is about rain, though it was written in a desert."

    Parameters
    ----------
    backend : str, optional
        The backend of the tensor. Default: the default backend.

    Returns
    -------
    texts : list of str
        The sentences, ordered by class: shuffle them before a split, as `split` does.
    y : Tensor of int64 (480,)
        The class of each sentence, 0 to 3.
    names : tuple of str
        The names of the classes.

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
    """Split a text into words in lower case.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    list of str
        Runs of letters and digits, which may contain one apostrophe.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.data.split_words("It's 5 o'clock: time for tea-cakes!")
    ["it's", '5', "o'clock", 'time', 'for', 'tea', 'cakes']
    """
    return WORD.findall(text.lower())


class Words:
    """A vocabulary of words, ordered by frequency and numbered.

    Parameters
    ----------
    texts : iterable of str
        The texts that contain the words. Use the training texts only, so that test texts contain unknown words, as new
        texts do.
    most : int, optional
        The largest number of words in the vocabulary. Default: all.
    fewest : int
        The smallest number of occurrences for a word to be included.

    Attributes
    ----------
    words : tuple of str
        The words by number. Words 0 and 1 are "<pad>", which fills short texts, and "<unknown>".

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
            raise DataError("Words: got one text, expected a list of texts; write Words([text])")
        counts = Counter(word for text in texts for word in split_words(text))
        # stable: equally frequent words keep the order of the texts
        frequent_words = [word for word, count in counts.most_common() if count >= fewest]
        self.words = (*SPECIAL_WORDS, *frequent_words[:most])
        self.numbers = {word: k for k, word in enumerate(self.words)}

    def __len__(self) -> int:
        """Return the size of the vocabulary, including the two special words."""
        return len(self.words)

    def encode(self, texts: Sequence[str], length: int | None = None, backend: str | None = None) -> Tensor:
        """Convert texts to numbers, one row for each text.

        Parameters
        ----------
        texts : sequence of str
            N texts.
        length : int, optional
            Number of words in a row, T: longer texts are truncated. Default: that of the longest text.
        backend : str, optional
            The backend of the tensor. Default: the default backend.

        Returns
        -------
        Tensor of int64 (N, T)
            0 after the end of a text, 1 for unknown words.

        Raises
        ------
        DataError
            The argument is one text instead of a sequence.
        ShapeError
            `length` is less than 1.
        """
        if isinstance(texts, str):
            raise DataError("Words.encode: got one text, expected a list of texts; write encode([text])")
        if length is not None and length < 1:
            raise ShapeError(f"Words.encode: got length={length}, expected at least 1")
        rows = [[self.numbers.get(word, UNKNOWN) for word in split_words(text)][:length] for text in texts]
        width = length or max(map(len, rows), default=0)
        codes = np.full((len(rows), width), PADDING, np.int64)
        for k, row in enumerate(rows):
            codes[k, : len(row)] = row
        return from_numpy(codes, backend)

    def decode(self, row: Tensor | Sequence[int]) -> str:
        """Convert a row of numbers to words separated by spaces, up to the padding.

        Parameters
        ----------
        row : Tensor of integers (T,), or sequence of int
            From 0 to len(self) - 1.

        Returns
        -------
        str
            The words; unknown words become "<unknown>".

        Raises
        ------
        DataError
            A number is out of range.

        Examples
        --------
        >>> import minifuse as mf
        >>> words = mf.data.Words(["the rain and the sun"])
        >>> words.decode(words.encode(["The wind, the rain.", "one two three four five"])[0])
        'the <unknown> the rain'
        """
        codes = [int(code) for code in (row.tolist() if isinstance(row, Tensor) else row)]
        invalid_code = next((code for code in codes if not 0 <= code < len(self)), None)
        if invalid_code is not None:
            raise DataError(
                f"Words.decode: got {invalid_code}, expected numbers from 0 to {len(self) - 1} for {len(self)} words"
            )
        return " ".join(self.words[code] for code in codes if code != PADDING)
