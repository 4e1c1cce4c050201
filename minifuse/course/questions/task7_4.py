"""Questions of task 7.4: codes, batches, the loss and its gradient, clipped gradients, steps, a run, and samples."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np

from ...backends.registry import use_backend
from ...core.dispatch import is_grad_enabled, no_grad
from ...optim import AdamW
from ...tensors.creation import tensor
from ...tensors.tensor import Tensor
from ..strided import Array
from ..student import Student
from ..verdicts import Wrong
from .calling import Raised, answer_or_error
from .library import elementary_calls

STEPS_BEFORE = 3


class Draw(NamedTuple):
    """The arguments of a batch."""

    codes: list[int]
    context: int
    rows: int
    seed: int


class Step(NamedTuple):
    """Steps of a model that is a table of logits."""

    weights: Array
    """(vocabulary, vocabulary): the logits that follow each code."""
    batches: tuple[tuple[Any, Any], ...]
    rate: float
    max_norm: float


class Held(NamedTuple):
    """A text that was not trained on, and a model of it: the sum of two tables of logits."""

    codes: list[int]
    context: int
    of_code: Array
    of_place: Array


class Sampling(NamedTuple):
    """The arguments of a sample, and the number that the random source returns."""

    logits: list[float]
    temperature: float
    top_k: int | None
    u: float


class Training(NamedTuple):
    """A run: the codes of a text, those of another one, and how long to train."""

    codes: list[int]
    held_out: list[int]
    vocabulary: int
    context: int
    steps: int
    seed: int


class Tokens(NamedTuple):
    """The answers of a tokenizer."""

    length: int
    codes: list[int]
    decoded: str
    errors: list[str]
    """For encode of an unknown character, and for decode of the codes -1, len and -len."""


class Loss(NamedTuple):
    """A loss and the gradient of the logits."""

    dtype: str
    loss: Any
    gradient: Any


class Clipped(NamedTuple):
    """The result of clip_gradients, and what it changed."""

    norm: Any
    """The norm, or the name of the error."""
    gradients: list[Any]
    parameters: list[Any]


class Steps(NamedTuple):
    """The losses and effects of some calls of train_step."""

    losses: list[float]
    calls_of_the_model: int
    calls_of_step: int
    weights: Any


class Evaluation(NamedTuple):
    """The result of evaluate, and what the model was given."""

    loss_perplexity_bits: tuple[float, float, float]
    windows: list[list[int]]
    """The inputs of the model."""
    records_gradients: bool


class Sample(NamedTuple):
    """A code from sample_next, and the number of calls of random()."""

    code: int
    calls_of_random: int


class OneNumber:
    """A random source that returns one number, and counts how often."""

    def __init__(self, u: float) -> None:
        self.u, self.count = u, 0

    def random(self) -> float:
        """Return the number."""
        self.count += 1
        return self.u


class Descent:
    """Plain steps against the gradient, and the order of the calls."""

    def __init__(self, parameters: list[Tensor], rate: float) -> None:
        self.parameters, self.rate, self.steps = parameters, rate, 0

    def zero_grad(self) -> None:
        """Set all gradients to None."""
        for p in self.parameters:
            p.grad = None

    def step(self) -> None:
        """Subtract the gradients."""
        self.steps += 1
        with no_grad():
            for p in self.parameters:
                if p.grad is not None:
                    p.sub_(p.grad * self.rate)


class Adaptive:
    """AdamW of the library, with the attribute that `train_step` reads."""

    def __init__(self, parameters: list[Tensor]) -> None:
        self.parameters, self.inner = parameters, AdamW(parameters, lr=1e-2)
        self.zero_grad, self.step = self.inner.zero_grad, self.inner.step


def error_of(function: Callable[[], object]) -> str:
    """Return the name of the error that a function raises; "no error" if none."""
    try:
        function()
    except Exception as error:
        return type(error).__name__
    return "no error"


def ask_tokens(student: Student, case: tuple[str, str, str]) -> object:
    """Return what a tokenizer returns, and its errors."""
    text, other, unknown = case
    tokenizer = student.Tokenizer(text)
    codes = tokenizer.encode(other)
    count = len(tokenizer)
    errors = [error_of(lambda: tokenizer.encode(other + unknown))]
    errors += [error_of(lambda code=code: tokenizer.decode([*codes, code])) for code in (-1, count, -count)]  # type: ignore[misc]
    return Tokens(count, codes, tokenizer.decode(codes), errors)


@elementary_calls()
def ask_batches(student: Student, case: Draw) -> object:
    """Return (dtype, inputs, targets) of two batches from one source, and of the first one drawn again."""
    found = []
    for random, count in ((Random(case.seed), 2), (Random(case.seed), 1)):
        for _ in range(count):
            inputs, targets = student.draw_batch(case.codes, case.context, case.rows, random)
            found.append((str(inputs.dtype), str(targets.dtype), inputs.numpy(), targets.numpy()))
    return found


@elementary_calls()
def ask_loss(student: Student, case: tuple[Array, Array]) -> object:
    """Return the loss and its gradient; the loss has shape ()."""
    logits, targets = tensor(case[0]).requires_grad_(True), tensor(case[1])
    loss = student.cross_entropy(logits, targets)
    loss.backward()
    return Loss(str(loss.dtype), loss.detach().numpy(), None if logits.grad is None else logits.grad.numpy())


@elementary_calls()
def ask_clipped(student: Student, case: tuple[list[Array | None], float]) -> object:
    """Return the norm or the name of the error, and the gradients and values of the parameters after clipping."""
    gradients, max_norm = case
    parameters = []
    for k, gradient in enumerate(gradients):
        p = tensor(np.full(np.shape(gradient) if gradient is not None else (2,), 1.0 + k)).requires_grad_(True)
        p.grad = None if gradient is None else tensor(gradient)
        parameters.append(p)
    found: list[object] = []
    message = error_of(lambda: found.append(student.clip_gradients(parameters, max_norm)))
    after = [None if p.grad is None else p.grad.numpy() for p in parameters]
    return Clipped(found[0] if found else message, after, [p.detach().numpy() for p in parameters])


@elementary_calls()
def ask_steps(student: Student, case: Step) -> object:
    """Return the losses, the calls of the model and of the optimizer's step, and the table in the end."""
    weights = tensor(case.weights).requires_grad_(True)
    weights.grad = tensor(np.ones_like(case.weights))  # of an earlier batch
    optimizer, calls = Descent([weights], case.rate), [0]

    def model(inputs: Any) -> Any:
        calls[0] += 1
        return weights[inputs]

    losses = [student.train_step(model, optimizer, tensor(x), tensor(y), case.max_norm) for x, y in case.batches]
    return Steps(losses, calls[0], optimizer.steps, weights.detach().numpy())


@elementary_calls()
def ask_evaluated(student: Student, case: Held) -> object:
    """Return the three numbers of a text, the windows that the model read, and whether gradients were recorded."""
    of_code, of_place = tensor(case.of_code).requires_grad_(True), tensor(case.of_place)
    seen: list[list[int]] = []
    recorded: list[bool] = []

    def model(inputs: Any) -> Any:
        if inputs.ndim != 2 or inputs.shape[1] > case.context:
            raise Wrong(f"the model gets inputs of shape {inputs.shape}; expected (count, at most {case.context})")
        seen.extend(inputs.tolist())
        recorded.append(bool(is_grad_enabled()))
        return of_code[inputs] + of_place[: inputs.shape[1]]

    found = student.evaluate(model, case.codes, case.context)
    return Evaluation(found, seen, any(recorded))


def ask_samples(student: Student, cases: Sequence[Sampling]) -> object:
    """Return a `Sample` or the exception for each case, twice."""

    def answer(case: Sampling) -> object:
        random = OneNumber(case.u)
        code = answer_or_error(student, student.sample_next, (list(case.logits), random, case.temperature, case.top_k))
        return code if isinstance(code, Raised) else Sample(code, random.count)  # type: ignore[arg-type]  # it may be anything

    return [answer(case) for case in cases], [answer(case) for case in cases]


@elementary_calls()
def ask_logits(student: Student, case: tuple[int, int, int, list[Array]]) -> list[Array]:
    """Return the logits for each of some inputs, of a model after a few steps: some of its weights may be 0 before."""
    vocabulary, context, seed, inputs = case
    model = student.SonnetModel(vocabulary, context, seed)
    optimizer, random = Descent(list(model.parameters()), 0.5), Random(seed)
    for _ in range(STEPS_BEFORE):
        x = np.array([[random.randrange(vocabulary) for _ in range(context + 1)] for _ in range(2)])
        student.train_step(model, optimizer, tensor(x[:, :-1].copy()), tensor(x[:, 1:].copy()), 1.0)
    with no_grad():
        return [model(tensor(x)).numpy() for x in inputs]


def ask_run(student: Student, case: Training) -> object:
    """Train a model, and return its logits for held-out windows before and after, the losses, and what parameters did.

    The last part is, for each parameter, whether each of its elements had a gradient and whether it has changed. The steps
    are `train_step`s on batches of `draw_batch`; the optimizer is the library's AdamW.
    """
    with use_backend("parallel"):
        return run(student, case)


def run(student: Student, case: Training) -> object:
    """Train on the default backend."""
    model = student.SonnetModel(case.vocabulary, case.context, case.seed)
    parameters = list(model.parameters())
    optimizer, random = Adaptive(parameters), Random(case.seed)
    held_out = np.array(case.held_out[:-1]).reshape(-1, case.context)
    before = [p.detach().numpy().copy() for p in parameters]
    with no_grad():
        first = model(tensor(held_out)).numpy()
    losses = []
    for _ in range(case.steps):
        inputs, targets = student.draw_batch(case.codes, case.context, 8, random)
        losses.append(student.train_step(model, optimizer, inputs, targets, 1.0))
    with no_grad():
        last = model(tensor(held_out)).numpy()
    changed = [bool(np.any(p.detach().numpy() != x)) for p, x in zip(parameters, before, strict=True)]
    return first, last, losses, changed
