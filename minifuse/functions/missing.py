"""Say what to write in place of the names of PyTorch and NumPy that minifuse lacks. A test tries each of PyTorch's names."""

from difflib import get_close_matches

from ..ir.array_methods import Array
from .table import FUNCTIONS

RECIPES = {  # name -> what to write instead
    "half": "minifuse has no float16; write x.to(mf.float32)",
    "bfloat16": "minifuse has no bfloat16; write x.to(mf.float32), and mf.use_float32_matmul_precision for fast products",
    "lobpcg": "write mf.linalg.eigh(x), and take the first or the last columns of its eigenvectors",
    "autocast": 'minifuse has no float16 and bfloat16; write with mf.use_float32_matmul_precision("medium")',
    "index": "write x[indices]",
    "device": 'a device is a string; write device = "cuda" if mf.cuda.is_available() else "cpu"',
    "resize_": "write x = x.reshape(...), or mf.empty(...)",
}


def advice(name: str, prefix: str) -> str:
    """Return the end of an error message: the recipe for a name, or names that are spelled like it, or nothing."""
    if name in RECIPES:
        return f"; {RECIPES[name]}"
    names = FUNCTIONS if prefix == "mf." else [n for n in dir(Array) if not n.startswith("_")]
    close = get_close_matches(name, names, 2, 0.75)
    return f"; did you mean {' or '.join(prefix + n for n in close)}?" if close else ""
