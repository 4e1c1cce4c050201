"""Digests of checkpoints: SHA-256 of all elements, and of the contents of the header.

They detect accidental damage, such as a flipped bit. They are not signatures: anyone who changes a file can also change its
digest.
"""

import json
from collections.abc import Mapping
from hashlib import sha256

import numpy as np

from ..core.dtypes import NumpyArray

DIGEST_KEY = "minifuse.digest"  # key of the metadata entry
DIGEST_PREFIX = "minifuse-sha256"  # the entry is this prefix, the digest of the elements, and the digest of the header

TensorHeaders = Mapping[str, tuple[str, list[int]]]  # name -> element type, as the format names it, and shape


def contents_digest(arrays: Mapping[str, NumpyArray]) -> str:
    """Return the SHA-256 of the elements of all arrays, each with its name."""
    digest = sha256()
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{len(name)} {name} {array.nbytes} ".encode())
        digest.update(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(-1).view(np.uint8).data)
        del array  # `arrays` may read one at a time
    return digest.hexdigest()


def header_digest(specs: TensorHeaders, texts: Mapping[str, str], contents: str) -> str:
    """Return the SHA-256 of a header: element types and shapes by name, metadata, and the digest of the elements."""
    return sha256(json.dumps([specs, texts, contents], sort_keys=True).encode()).hexdigest()


def digest_entry(arrays: Mapping[str, NumpyArray], specs: TensorHeaders, texts: Mapping[str, str]) -> str:
    """Return the metadata entry that detects damage."""
    contents = contents_digest(arrays)
    return f"{DIGEST_PREFIX} {contents} {header_digest(specs, texts, contents)}"
