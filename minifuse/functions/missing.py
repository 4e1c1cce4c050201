"""Say what to write in place of the names of PyTorch and NumPy that minifuse lacks. A test tries each of PyTorch's names."""

from collections.abc import Iterable
from difflib import get_close_matches

from ..ir.array_methods import Array
from .table import FUNCTIONS

AUTOCAST = 'minifuse has no float16 and bfloat16; write with mf.use_float32_matmul_precision("medium")'
LEGACY_TENSORS = {  # PyTorch's classes, FloatTensor and others, and the dtypes of their elements
    **{"Float": "float32", "Double": "float64", "Half": "float32", "Long": "int64", "Int": "int32", "Short": "int16"},
    **{"Char": "int8", "Byte": "uint8", "Bool": "bool_"},
}
RECIPES = {  # name -> what to write instead
    "half": "minifuse has no float16; write x.to(mf.float32)",
    "bfloat16": "minifuse has no bfloat16; write x.to(mf.float32), and mf.use_float32_matmul_precision for fast products",
    "lobpcg": "write mf.linalg.eigh(x), and take the first or the last columns of its eigenvectors",
    "autocast": AUTOCAST,
    "index": "write x[indices]",
    "device": 'a device is a string; write device = "cuda" if mf.cuda.is_available() else "cpu"',
    "dtype": "the class of mf.float32 and the others is minifuse.core.dtypes.DType",
    "Size": "a shape is a tuple of ints",
    "float16": "minifuse has no float16; write mf.float32",
    **dict.fromkeys(("complex64", "complex128"), "minifuse has no complex numbers; mf.fft returns pairs of real numbers"),
    "set_default_dtype": "write dtype=mf.float64 in the calls that create tensors, or module.to(mf.float64)",
    **{f"{kind}Tensor": f"write mf.tensor([1, 2], dtype=mf.{dtype})" for kind, dtype in LEGACY_TENSORS.items()},
    "Generator": "there is one generator: write mf.manual_seed(0), and mf.get_rng_state() and mf.set_rng_state(state)",
    "set_num_threads": "set the environment variable MINIFUSE_THREADS before the first kernel runs",
    "set_printoptions": "write np.printoptions around print(x.numpy())",
    "distributed": "write import minifuse.distributed as dist",
    "amp": AUTOCAST,
    "astype": "write x.to(dtype)",
    # mf.data and mf.utils
    **dict.fromkeys(("DataLoader", "TensorDataset", "Dataset"), "write mf.data.Loader(x, y, batch_size=64, seed=0)"),
    "random_split": "write train, test = mf.data.split(x, y, fraction=0.8, seed=0)",
    **dict.fromkeys(("MNIST", "mnist"), "write mf.data.digits(), or mf.data.read_idx(path) for the files of MNIST"),
    "data": "write mf.data.Loader(x, y, batch_size=64, seed=0)",
    "resize_": "write x = x.reshape(...), or mf.empty(...)",
}


def advice(name: str, prefix: str, public: Iterable[str] = ()) -> str:
    """Return the end of an error message: the recipe for a name, or names that are spelled like it, or nothing.

    `public` are names of `mf` besides those of the table.
    """
    if name in RECIPES:
        return f"; {RECIPES[name]}"
    methods = [n for n in dir(Array) if not n.startswith("_")] if prefix == "x." else []
    names = [*FUNCTIONS, *public] if prefix == "mf." else methods
    close = get_close_matches(name, names, 2, 0.75)
    return f"; did you mean {' or '.join(prefix + n for n in close)}?" if close else ""
