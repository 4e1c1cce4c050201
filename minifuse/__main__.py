"""`python -m minifuse` is the command `minifuse`."""

from .cli import main

main()
