"""What PyTorch gives, recorded once, so that tests compare with it where it is not installed.

    python -m tests.nn.record               all tables; needs torch
    python -m tests.nn.record convolution   one of them

A table is a module `tests/nn/record_NAME.py` with a function `record()` that gives named arrays: inputs and what PyTorch
makes of them. It becomes `tests/nn/recorded/NAME.npz`, with the version of torch under the name "torch".
"""

import sys
from importlib import import_module
from pathlib import Path

import numpy as np

from .recorded import path_of

HERE = Path(__file__).parent


def main(names: list[str]) -> None:
    """Record some tables, or all."""
    import torch

    known = sorted(path.stem.removeprefix("record_") for path in HERE.glob("record_*.py"))
    if unknown := set(names) - set(known):
        sys.exit(f"there is no table {', '.join(sorted(unknown))}; expected some of {', '.join(known)}")
    torch.set_num_threads(1)  # so that sums have one order
    for name in names or known:
        torch.manual_seed(0)
        arrays = import_module(f"{__package__}.record_{name}").record()
        path_of(name).parent.mkdir(exist_ok=True)
        np.savez_compressed(path_of(name), torch=np.array(torch.__version__), **arrays)
        print(f"{path_of(name).name}: {len(arrays)} arrays, {path_of(name).stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
