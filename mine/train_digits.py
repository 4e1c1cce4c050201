"""Trains the network of digits.py on the engine that the files of this folder make.

    python train_digits.py                   what is still to be written is lent by the course
    python train_digits.py --strict          nothing is lent
    python train_digits.py --steps 200 --seed 1
"""

from pathlib import Path

from minifuse.course.capstone import main

if __name__ == "__main__":
    main(Path(__file__).parent)
