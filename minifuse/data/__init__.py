"""Data to learn from: a set of real digits, and tensors split, shuffled and cut into batches by seed.

    x, y = mf.data.digits()
    train, test = mf.data.split(x, y, fraction=0.8, seed=0, stratify=y)
    for x, y in mf.data.Loader(*train, batch_size=64, seed=0): ...

Stands on tensors; all of it is NumPy's work on the CPU. Not here: downloads, files, pictures, augmentation.
"""

from .digits import digits
from .loader import Loader, split

__all__ = ["Loader", "digits", "split"]
