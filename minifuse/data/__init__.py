"""Data sets that need no download, readers of files, text as numbers, train/test splits, and seeded batches.

    x, y = mf.data.digits()                                             digits.py, bundled.py, toy_2d.py: data sets by name
    x = mf.data.read_idx("train-images-idx3-ubyte.gz", "float32")       files.py, tables.py: MNIST's idx format, npz, CSV
    text = mf.data.Text(mf.data.sonnets(), context=128)                 char_vocab.py, word_vocab.py: text as numbers
    train, test = mf.data.split(x, y, fraction=0.8, seed=0, stratify=y) split.py
    for x, y in mf.data.Loader(*train, batch_size=64, prefetch=2): ...  loader.py

Depends on tensors; the work is done by NumPy on the CPU. Not here: downloads, image formats, multiple processes.
"""

from typing import NoReturn as _NoReturn

from ..functions import missing_error as _missing_error
from .bundled import breast_cancer, diabetes, iris, linnerud, names, wine
from .char_vocab import Characters, Text, sonnets, windows
from .digits import digits
from .files import read_idx, read_npz
from .loader import Loader
from .split import split, standardize
from .tables import read_csv
from .toy_2d import points
from .word_vocab import Words, sentences, split_words


def __getattr__(name: str) -> _NoReturn:
    """Raise AttributeError with what to write in place of PyTorch's names."""
    raise _missing_error("module 'mf.data'", name, "mf.data.")


__all__ = [
    "Characters",
    "Loader",
    "Text",
    "Words",
    "breast_cancer",
    "diabetes",
    "digits",
    "iris",
    "linnerud",
    "names",
    "points",
    "read_csv",
    "read_idx",
    "read_npz",
    "sentences",
    "sonnets",
    "split",
    "split_words",
    "standardize",
    "windows",
    "wine",
]
