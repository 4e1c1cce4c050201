"""Trees of dicts, lists, numbers and tensors as tensors by name, and metadata that describes the tree."""

import json
from collections.abc import Mapping
from typing import Any

from ..core.errors import DTypeError
from .tensor import Tensor

STATE_KEY = "minifuse.state"  # key of the metadata that describes the tree of save_state
ONE_TENSOR = json.dumps({"tensor": "value"})  # the tree of a tensor alone


def flatten_state(tree: object, call: str = "save_state") -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the tensors of a tree by name, and metadata from which `unflatten_state` restores the tree.

    In the metadata a tensor is {"tensor": name}, a tuple {"tuple": [...]}, and a dict {"dict": [[key, value], ...]}.
    Lists, numbers and strings are stored as they are. `call` is the name of the public function, for errors.
    """
    tensors: dict[str, Tensor] = {}

    def encode(x: object, keys: tuple[str, ...]) -> object:
        if isinstance(x, Tensor):
            name = ".".join(keys) or "value"
            if name in tensors:
                raise DTypeError(f"{call}: two tensors would have the name {name!r}; rename a key that contains a dot")
            tensors[name] = x
            return {"tensor": name}
        if x is None or type(x) in (bool, int, float, str):
            return x
        if type(x) is list or type(x) is tuple:
            parts = [encode(y, (*keys, str(k))) for k, y in enumerate(x)]
            return parts if type(x) is list else {"tuple": parts}
        if isinstance(x, dict):
            return {"dict": [[encode(key, (*keys, "key")), encode(y, (*keys, str(key)))] for key, y in x.items()]}
        raise DTypeError(
            f"{call}: {'.'.join(keys) or 'the state'} is {type(x).__name__}, expected a tensor, a number, a str, or "
            "dicts, lists and tuples of them; wrap arrays in mf.tensor"
        )

    return tensors, {STATE_KEY: json.dumps(encode(tree, ()))}


def unflatten_state(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> Any:
    """Restore the tree that `flatten_state` received."""

    def decode(x: Any) -> Any:
        if isinstance(x, list):
            return [decode(y) for y in x]
        if not isinstance(x, dict):
            return x
        ((kind, parts),) = x.items()
        if kind == "tensor":
            return tensors[parts]
        if kind == "tuple":
            return tuple(decode(y) for y in parts)
        if kind == "dict":
            return {decode(key): decode(y) for key, y in parts}
        raise ValueError(kind)

    return decode(json.loads(metadata[STATE_KEY]))
