"""Questions of task 4.5: a network that reads digits, on the student's own engine."""

from collections.abc import Callable
from random import Random
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from ..capstone import SLOT, Digits, TrainingEngine, batches, lent_slots, missing, predict, refuse_loans
from ..engine import Engine
from ..overlay import Overlay
from ..strided import Array
from ..student import Student
from ..values import Numbers, Values
from ..variables import Tensor

Guesses = tuple[Array, tuple[int, ...]]
Training = tuple[Array, list[int], int, int, Array]  # (images, labels, steps, seed, other images)


class Trained(NamedTuple):
    """A training, and what the network says afterwards."""

    predictions: npt.NDArray[np.int64] | None
    """The digit that it reads in each of the other images; None without a network."""
    losses: list[float]
    """Losses that went backward."""
    share: str
    """How many of the calls ran the student's functions."""
    compiled: str
    """Which of the student's loops were compiled."""
    accumulates: bool
    """Gradients were added to those of an earlier step."""
    moved: float
    """The distance of all parameters from their first values, divided by the norm of those."""


def ask_loss(student: Student, case: Guesses) -> object:
    """Return the student's loss, and the gradient of each log-probability."""
    engine = Engine(student)
    likely = engine.tensor(case[0])
    loss = student.digit_loss(likely, list(case[1]))
    loss.backward()
    gradient: Any = likely.grad  # None if backward was not called, which raises below
    return float(np.sum(loss.tolist())), np.array(gradient.tolist())


def ask_right(student: Student, case: Guesses) -> object:
    """Return the student's count."""
    return student.count_right(Engine(student).constant(case[0]), list(case[1]))


def ask_untrained(student: Student, images: Array) -> dict[str, object]:
    """Return what a new network says about images, its parameters, and those that get no gradient."""
    engine = Engine(student)
    network = student.DigitNetwork(engine, Random(1))
    parameters, likely = list(network.parameters()), network(engine.constant(images))
    seen = {
        "shape": tuple(likely.shape),
        "likely": likely.tolist(),
        "parameters": [np.ravel(p.tolist()) for p in parameters],
    }
    if likely.shape != (len(images), 10):
        return seen
    (likely * np.arange(10.0 * len(images)).reshape(len(images), 10)).sum().backward()
    return seen | {"unused": [k for k, p in enumerate(parameters) if p.grad is None]}


def ask_dropped(student: Student, case: tuple[Array, list[int]]) -> tuple[Array, Array, Array, list[Array]]:
    """Return what a new network says twice without a seed, about each image alone, and with each seed."""
    images, seeds = case
    engine = Engine(student)
    network = student.DigitNetwork(engine, Random(1))
    once, again = predict(engine, network, images), predict(engine, network, images)
    alone = np.concatenate([predict(engine, network, images[k : k + 1]) for k in range(len(images))])
    return once, again, alone, [np.array(network(engine.constant(images), seed).tolist()) for seed in seeds]


class RecordingEngine(TrainingEngine):
    """An engine that records the losses that go backward, on whatever way, and on any engine of this class."""

    losses: ClassVar[list[float]] = []

    def __init__(self, student: Overlay) -> None:
        super().__init__(student)
        self.first: dict[Tensor, Array] = {}
        """Values of the tensors with gradients when they were created."""
        self.latest: dict[Tensor, Values] = {}
        """Their values in the latest backward pass."""
        self.accumulates = False

    def tensor(self, values: Numbers | Values) -> Tensor:
        """Create a tensor with gradients."""
        x = super().tensor(values)
        self.first[x] = np.array(x.value.array())
        return x

    def slot(self, name: str) -> Any:
        """Return the function of a slot; that of backpropagation records the losses that it gets."""
        function = super().slot(name)
        return self.recording(function) if name == "backpropagate" else function

    def recording(self, function: Callable[..., object]) -> Callable[..., object]:
        """Return a function that records the losses of its calls."""

        def call(root: Tensor, *args: Any) -> object:
            RecordingEngine.losses.append(float(np.sum(root.value.array())))
            before = {x: (x.grad, x.value) for x in self.first}
            found = function(root, *args)
            for x, (grad, value) in before.items():
                has_moved = self.latest.get(x, value) is not value
                self.accumulates |= has_moved and grad is not None and x.grad is not grad and bool(grad.array().any())
            self.latest = {x: value for x, (_, value) in before.items()}
            return found

        return call

    def moved(self, parameters: list[Tensor]) -> float:
        """Return the distance of parameters from their first values, divided by the norm of those."""
        pairs = [(p.value.array(), self.first[p]) for p in parameters if p in self.first]
        norm = np.sqrt(sum(np.square(first).sum() for _, first in pairs))
        return float(np.sqrt(sum(np.square(now - first).sum() for now, first in pairs)) / norm) if norm else np.inf


class MisleadingEngine(Engine):
    """An engine whose gradients of parameters are shuffled and of random signs: who learns by them learns nothing."""

    def __init__(self, student: Student) -> None:
        super().__init__(student)
        self.leaves: list[Tensor] = []
        self.noise = np.random.default_rng(0)

    def tensor(self, values: Numbers | Values) -> Tensor:
        """Create a tensor with gradients."""
        self.leaves.append(super().tensor(values))
        return self.leaves[-1]

    def slot(self, name: str) -> Any:
        """Return the function of a slot; after backpropagation, gradients are shuffled."""
        function = super().slot(name)
        if name != "backpropagate":
            return function

        def call(*args: Any) -> None:
            function(*args)
            for x in self.leaves:
                if x.grad is not None:
                    x.grad = self.values(self.shuffled(x.grad.array()))

        return call

    def shuffled(self, d: Array) -> Array:
        """Return the elements in another order and with other signs."""
        return np.asarray(self.noise.permutation(d.ravel()).reshape(d.shape) * self.noise.choice([-1.0, 1.0], d.shape))


def read_digits(engine: Engine, network: Any, images: Array) -> npt.NDArray[np.int64] | None:
    """Return the digit that a network reads in each image; None without a network."""
    if network is None:
        return None
    return np.concatenate([predict(engine, network, part).argmax(axis=1) for part in batches(images)])


def ask_misled(student: Student, case: Training) -> tuple[npt.NDArray[np.int64] | None, int]:
    """Train with shuffled gradients on lent functions; return what the network reads, and the number of losses."""
    images, labels, steps, seed, others = case
    engine = MisleadingEngine(student)
    network = getattr(student, SLOT)(engine, list(images), list(labels), steps, seed)
    return read_digits(engine, network, others), engine.backwards


def ask_trained(student: Student, case: Training) -> Trained:
    """Train on the student's engine; what is not written is lent, unless the whole folder is judged."""
    images, labels, steps, seed, others = case
    mine = Overlay(student.folder, student.tasks)
    engine = RecordingEngine(mine)
    RecordingEngine.losses.clear()
    network: Any = getattr(mine, SLOT)(engine, list(images), list(labels), steps, seed)
    if student.task is None:
        refuse_loans(lent_slots(mine))
    losses, share = [*RecordingEngine.losses], str(engine.share())
    predictions = read_digits(engine, network, others)
    for slot, calls in mine.calls.items():
        if student.task is None or slot in student.task.slots:
            student.calls[slot] += calls
    moved = 0.0 if network is None else engine.moved(network.parameters())
    return Trained(predictions, losses, share, engine.yours.serial.summary(), engine.accumulates, moved)


def ask_missing(student: Student, training: Digits) -> list[tuple[str, str]]:
    """Return (slot, task) of what training needs and the folder lacks."""
    return missing(student.folder, student.tasks, training)
