"""Train the digit network of task 4.5 on an engine built from a student's functions, and measure its accuracy."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..core.errors import CourseError, NotDoneYet
from .engine import Engine
from .imports import Assignment
from .overlay import Overlay
from .strided import Array, Strided
from .values import Numbers, Operand, Values
from .variables import Tensor, Variable

Digits = tuple[Array, list[int]]
Network = Callable[[Tensor], Tensor]
STEPS, UNSEEN = 120, 300
MIN_ACCURACY = 0.9
"""On digits that were not trained on. Guessing gets one tenth."""
SLOT = "train_digits"
BATCH_SIZE = 100  # images, in the evaluation


class TrainingEngine(Engine):
    """An engine whose loops are those of the backend "yours": compiled where a student has written module 3.

    It reports each backward pass to a callback: its number, from 1, and the loss.
    """

    def __init__(self, student: Overlay, report: Callable[[int, float], None] | None = None) -> None:
        from .student_engine.backend import StudentBackend
        from .student_engine.engine import StudentEngine
        from .student_engine.value_engine import StudentValueEngine

        super().__init__(student)
        self.report = report
        self.yours = StudentValueEngine(StudentBackend(StudentEngine(student)))

    def loop(self, kind: str, name: str, out: Strided, a: Strided, *operands: Operand) -> None:
        """Run map, zip or reduce with an operator."""
        self.yours.loop(kind, name, out, a, *operands)

    def write(self, slot: str, out: Strided, *operands: Operand) -> None:
        """Let a convolution or a pooling write a tensor."""
        self.yours.write(slot, out, *operands)

    def matmul(self, a: Values, b: Values) -> Values:
        """Multiply matrices."""
        return Values(self, self.yours.matmul(a, b).data)

    def backward(self, root: Variable[Any], d: Numbers | Values | None = None) -> None:
        """Run the backward pass, and report the loss."""
        super().backward(root, d)
        if self.report:
            self.report(self.backwards, float(np.sum(root.value.array())))


def digits(seed: int) -> tuple[Digits, Digits]:
    """Load the digits, shuffle them, and split them into training and test sets of images (n, 1, 8, 8) and labels."""
    from ..data import digits as read

    pixels, labels = read(images=True)
    order = np.random.default_rng(seed).permutation(len(labels))
    images, kinds = 2 * pixels.numpy()[order, None].astype(np.float64) - 1, labels.numpy()[order].tolist()
    return (images[UNSEEN:], kinds[UNSEEN:]), (images[:UNSEEN], kinds[:UNSEEN])


def accuracy(engine: Engine, network: Network, data: Digits) -> float:
    """Return the fraction of digits that a network classifies correctly."""
    images, labels = data
    predictions = [predict(engine, network, part).argmax(axis=1) for part in batches(images)]
    return float(np.mean(np.concatenate(predictions) == np.asarray(labels)))


def batches(images: Array) -> list[Array]:
    """Split images into parts of BATCH_SIZE."""
    return [images[k : k + BATCH_SIZE] for k in range(0, len(images), BATCH_SIZE)]


def predict(engine: Engine, network: Network, images: Array) -> Array:
    """Return the log-probabilities of a network, without dropout."""
    return np.array(network(engine.constant(images)).tolist(), np.float64)


def missing(folder: Path, tasks: Sequence[Assignment], training: Digits) -> list[tuple[str, str]]:
    """Return (slot, task) of what training needs and is not written yet: what an overlay lends in one step."""
    student = Overlay(folder, tuple(tasks))
    engine = TrainingEngine(student)
    images, labels = training[0][:20], training[1][:20]
    accuracy(engine, getattr(student, SLOT)(engine, list(images), labels, 1, 0), (images[:1], labels[:1]))
    return lent_slots(student)


def lent_slots(student: Overlay) -> list[tuple[str, str]]:
    """Return (slot, task) of all functions that were lent, in the order of the tasks."""
    return sorted([(slot, student.home[slot].id) for slot in student.lent], key=lambda pair: pair[::-1])


def refuse_loans(slots: Sequence[tuple[str, str]]) -> None:
    """Raise NotDoneYet if there are (slot, task) pairs that are still to be written."""
    if slots:
        names = ", ".join(f"{slot} ({task})" for slot, task in slots)
        message = f"with --strict nothing is lent, and at least these are still to be written: {names}"
        raise NotDoneYet(slots[0][1], message)


def main(folder: Path, arguments: Sequence[str] | None = None) -> None:
    """Train the network of a folder on its engine, and print the losses and the accuracy."""
    from .registry import TASKS

    parser = argparse.ArgumentParser(description="Train the network of digits.py on the engine that these files make.")
    parser.add_argument("--strict", action="store_true", help="lend nothing: what is still to be written is named")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"losses that go backward ({STEPS})")
    parser.add_argument("--seed", type=int, default=0, help="for the order of the digits, and for the training")
    options = parser.parse_args(arguments)
    sys.path[:] = [place for place in sys.path if Path(place or ".").resolve() != folder.resolve()]
    training, unseen = digits(options.seed)

    def report(step: int, loss: float) -> None:
        if step == 1 or step % 10 == 0:
            sys.stdout.write(f"step {step:>4} of {options.steps}   loss {loss:.3f}\n")
            sys.stdout.flush()

    try:
        if options.strict:
            refuse_loans(missing(folder, TASKS, training))
        student = Overlay(folder, TASKS)
        engine = TrainingEngine(student, report)
        network = getattr(student, SLOT)(engine, list(training[0]), training[1], options.steps, options.seed)
        if options.strict:
            refuse_loans(lent_slots(student))
    except (CourseError, NotDoneYet) as error:
        raise SystemExit(str(error)) from None
    right = accuracy(engine, network, unseen)
    summary = (
        f"{right:.1%} of {UNSEEN} digits that it had not seen are read right",
        engine.share(),
        engine.yours.serial.summary(),
    )
    sys.stdout.write("".join(f"{line}\n" for line in summary if line))


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
