"""Lines of PyTorch, run with minifuse in place of torch: does it do what a user of PyTorch expects?

names.txt      the documented names of PyTorch, listed and drawn as `entries.py` says
lines.txt      a line for each of the 400 names drawn: what a user types from memory. The list does not change
answers.json   what PyTorch returns: dtype, shape and values; dtype and shape alone for a line that ends in `# shape`
same.txt       the lines to which minifuse gives the same answer. It may only grow

`python -m tests.like_pytorch --help` has the commands.
"""
