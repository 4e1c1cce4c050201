"""Task 4.5 from outside: the digits, an engine of what a student has written, training that is watched, the accuracy."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..core.errors import NotDoneYet
from .engine import Engine
from .imports import Assignment
from .overlay import Overlay, is_open
from .strided import Array
from .student import Student
from .values import Numbers, Values
from .variables import Tensor, Variable

Digits = tuple[Array, list[int]]
Network = Callable[[Tensor], Tensor]
STEPS, UNSEEN = 120, 300
ENOUGH = 0.9
"""Of the digits that it has not seen; by chance it is one tenth."""
SLOT = "train_digits"
PARALLEL = ("parallel_map", "parallel_zip", "parallel_reduce", "parallel_matmul")
AT_ONCE = 100  # images that a network is asked about together


class Watched(Engine):
    """An engine that tells each loss that goes backward: its number, from 1, and its value.

    Its loops are those of module 3 where any of them is written; if it is strict, where all of them are.
    """

    def __init__(
        self, student: Student, tell: Callable[[int, float], None] | None = None, *, is_strict: bool = False
    ) -> None:
        is_parallel = (all if is_strict else any)(is_written(student, slot) for slot in PARALLEL)
        super().__init__(student, is_parallel=is_parallel, is_compiled=True)
        self.tell = tell

    def backward(self, root: Variable[Any], d: Numbers | Values | None = None) -> None:
        """Gather derivatives, and tell."""
        super().backward(root, d)
        if self.tell:
            self.tell(self.backwards, float(np.sum(root.value.array())))


def is_written(student: Student, slot: str) -> bool:
    """Return whether a slot is the student's, and more than a `todo`."""
    return student.is_theirs(slot) if isinstance(student, Overlay) else not is_open(getattr(student, slot))


def digits(seed: int) -> tuple[Digits, Digits]:
    """Images (n, 1, 8, 8) and labels to learn from, and others that are kept aside, in an order of the seed."""
    from ..data import digits as read

    pixels, labels = read(images=True)
    order = np.random.default_rng(seed).permutation(len(labels))
    images, kinds = 2 * pixels.numpy()[order, None].astype(np.float64) - 1, labels.numpy()[order].tolist()
    return (images[UNSEEN:], kinds[UNSEEN:]), (images[:UNSEEN], kinds[:UNSEEN])


def share_right(engine: Engine, network: Network, data: Digits) -> float:
    """The part of all digits that a network reads right."""
    images, labels = data
    parts = [range(k, min(k + AT_ONCE, len(images))) for k in range(0, len(images), AT_ONCE)]
    found = [said(engine, network, images[part.start : part.stop]).argmax(axis=1) for part in parts]
    return float(np.mean(np.concatenate(found) == np.asarray(labels)))


def said(engine: Engine, network: Network, images: Array) -> Array:
    """The log-probabilities that a network gives, without dropout."""
    return np.array(network(engine.constant(images)).tolist(), np.float64)


def missing(folder: Path, tasks: Sequence[Assignment], training: Digits) -> list[str]:
    """Slots that training needs, and that are still to be written: found by a step on an engine that lends them."""
    student = Overlay(folder, tuple(tasks))
    engine = Watched(student, is_strict=True)
    images, labels = training[0][:20], training[1][:20]
    share_right(engine, getattr(student, SLOT)(engine, list(images), labels, 1, 0), (images[:1], labels[:1]))
    return sorted(student.lent, key=place_of)


def place_of(slot: str) -> tuple[str, str]:
    """The task of a slot, and its name."""
    from .registry import task_named

    return task_named(slot).id, slot


def all_written(folder: Path, tasks: Sequence[Assignment], training: Digits) -> None:
    """Raise NotDoneYet, with what is missing, where an engine of this folder alone cannot train."""
    if found := missing(folder, tasks, training):
        names = ", ".join(f"{slot} ({place_of(slot)[0]})" for slot in found)
        raise NotDoneYet(
            place_of(found[0])[0], f"with --strict nothing is lent, and at least these are still to be written: {names}"
        )


def main(folder: Path, arguments: Sequence[str] | None = None) -> None:
    """Train the network of a folder on its engine, and print how it goes."""
    from .registry import TASKS

    asked = argparse.ArgumentParser(description="Train the network of digits.py on the engine that these files make.")
    asked.add_argument("--strict", action="store_true", help="lend nothing: what is still to be written is named")
    asked.add_argument("--steps", type=int, default=STEPS, help=f"losses that go backward ({STEPS})")
    asked.add_argument("--seed", type=int, default=0, help="for the order of the digits, and for the training")
    chosen = asked.parse_args(arguments)
    sys.path[:] = [place for place in sys.path if Path(place or ".").resolve() != folder.resolve()]
    training, unseen = digits(chosen.seed)

    def tell(step: int, loss: float) -> None:
        if step == 1 or step % 10 == 0:
            sys.stdout.write(f"step {step:>4} of {chosen.steps}   loss {loss:.3f}\n")
            sys.stdout.flush()

    try:
        if chosen.strict:
            all_written(folder, TASKS, training)
        student = Student(folder, TASKS, None) if chosen.strict else Overlay(folder, TASKS)
        engine = Watched(student, tell, is_strict=chosen.strict)
        network = getattr(student, SLOT)(engine, list(training[0]), training[1], chosen.steps, chosen.seed)
    except NotDoneYet as error:
        raise SystemExit(str(error)) from None
    right = share_right(engine, network, unseen)
    said_last = (f"{right:.1%} of {UNSEEN} digits that it had not seen are read right", engine.share(), engine.serial.told())
    sys.stdout.write("".join(f"{line}\n" for line in said_last if line))


SCRIPT = '''"""Trains the network of digits.py on the engine that the files of this folder make.

    python train_digits.py                   what is still to be written is lent by the course
    python train_digits.py --strict          nothing is lent
    python train_digits.py --steps 200 --seed 1
"""

from pathlib import Path

from minifuse.course.capstone import main

if __name__ == "__main__":
    main(Path(__file__).parent)
'''
