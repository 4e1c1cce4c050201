"""Two layers read handwritten digits: the recipe that `minifuse/recipes/mlp.py` holds, to be read first.

    python project/run_mlp.py                     in a folder below runs/, with its log, checkpoints and curves
    python project/run_mlp.py --no-fuse           each operation by itself, to see the difference
    python project/run_mlp.py --help              all options: they are those of `minifuse train`

It needs `pip install "minifuse[train]"`.
"""

import sys

from minifuse.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["train", "mlp"]
    main()
