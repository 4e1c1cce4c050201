"""Digests of checkpoints: SHA-256 of all elements, and of all that the header says.

They find accidental damage, such as a flipped bit. Whoever writes a file can also write its digest, so they sign nothing.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

DIGEST_KEY = "minifuse.digest"  # the name of the metadata entry
DIGEST_PREFIX = "minifuse-sha256"  # its text begins with this; the digests of the elements and of the header follow

TensorHeaders = Mapping[str, tuple[str, list[int]]]  # element type, in the words of the format, and shape, by name


def contents_digest(arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    """Return the SHA-256 of the elements of all arrays, each with its name."""
    found = sha256()
    for name in sorted(arrays):
        array = arrays[name]
        found.update(f"{len(name)} {name} {array.nbytes} ".encode())
        found.update(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(-1).view(np.uint8).data)
    return found.hexdigest()


def header_digest(specs: TensorHeaders, texts: Mapping[str, str], contents: str) -> str:
    """Return the SHA-256 of the content of a header: element types and shapes by name, metadata, the first digest."""
    return sha256(json.dumps([specs, texts, contents], sort_keys=True).encode()).hexdigest()


def digest_entry(arrays: Mapping[str, npt.NDArray[Any]], specs: TensorHeaders, texts: Mapping[str, str]) -> str:
    """Return the metadata entry by which damage is recognized."""
    contents = contents_digest(arrays)
    return f"{DIGEST_PREFIX} {contents} {header_digest(specs, texts, contents)}"
