"""`python -m minifuse` is the command `minifuse`."""

from minifuse.cli import main

if __name__ == "__main__":
    main()
