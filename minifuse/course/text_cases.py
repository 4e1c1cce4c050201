"""Cases of task 7.4 and their right answers: texts, logits, gradients, steps, held-out texts, and samples."""

from math import exp, inf, log
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from .cases import among, at_random
from .check import same
from .questions.task7_4 import Clipped, Evaluation, Held, Loss, Sample, Sampling, Step, Steps, Tokens
from .strided import Array
from .student_process import StudentProcess

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

SMALLEST_SHARE = 1e-9
"""Of probabilities: a number that is drawn nearer to a border is not asked for."""
ALPHABET = "abcé \n'-zZ,"
EPSILON = 1e-6
"""PyTorch adds it to the norm of the gradients before it divides by it."""
Gradients = tuple[list[Array | None], float]
"""(gradients, max_norm)."""


def texts() -> "SearchStrategy[tuple[str, str, str]]":
    """Draw (text of the tokenizer, other text of its characters, unknown character)."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> tuple[str, str, str]:
        text = draw(st.text(ALPHABET, min_size=1, max_size=12))
        other = draw(st.text(sorted(set(text)), max_size=8))
        return text, other, draw(among(*[c for c in (*ALPHABET, "?") if c not in text]))

    return case()


def tokens_of(case: tuple[str, str, str]) -> Tokens:
    """Return what `ask_tokens` must find."""
    text, other, _ = case
    letters = sorted(set(text))
    return Tokens(len(letters), [letters.index(c) for c in other], other, ["ValueError"] * 4)


def losses() -> "SearchStrategy[tuple[Array, Array]]":
    """Draw (logits, targets)."""
    from hypothesis import strategies as st

    return st.builds(
        loss_case,
        among((1,), (3,), (2, 2)),
        among(3, 1, 4),
        among(1, 1, 1, 30, 1e3),
        among(0, 0, 700, -900, 1e6),
        among(False, False, True),
        st.integers(0, 2**32),
    )


def loss_case(
    rows: tuple[int, ...], vocabulary: int, factor: float, shift: float, is_masked: bool, seed: int
) -> tuple[Array, Any]:
    """Return logits, some of them large or -inf, and targets."""
    shape, draw = (*rows, vocabulary), np.random.default_rng(seed)
    logits = draw.integers(-6, 7, shape) / 2 * factor + shift
    targets = draw.integers(0, vocabulary, rows)
    if is_masked:
        masked = draw.random(shape) < 0.4
        np.put_along_axis(masked, targets[..., None], False, -1)
        logits[masked] = -inf
    return logits, targets


def describe_loss(case: tuple[Array, Any]) -> str:
    """Return a call of `cross_entropy` as text."""
    return f"cross_entropy(logits={case[0].tolist()}, targets={case[1].tolist()}), then backward"


def logs_of(logits: Array) -> Any:
    """Return log(softmax(logits)) in twice the precision."""
    wide = logits.astype(np.longdouble)
    shifted = wide - wide.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def mean_loss(logits: Array, targets: Any) -> float:
    """Return the mean of -log(probability) of the targets."""
    return float(-np.take_along_axis(logs_of(logits), targets[..., None], -1).mean())


def loss_gradient(logits: Array, targets: Any) -> Array:
    """Return the gradient of `mean_loss`."""
    is_target = np.arange(logits.shape[-1]) == targets[..., None]
    return np.asarray((np.exp(logs_of(logits)) - is_target) / targets.size, np.float64)


def loss_of(case: tuple[Array, Array], factor: float = 1.0) -> Loss:
    """Return what `ask_loss` must find."""
    return Loss("float64", np.array(mean_loss(*case) * factor), loss_gradient(*case) * factor)


def gradients() -> "SearchStrategy[Gradients]":
    """Draw (gradients, max_norm)."""
    from hypothesis import strategies as st

    def of_shape(shape: tuple[int, ...]) -> "SearchStrategy[Array]":
        size = int(np.prod(shape))
        numbers = st.lists(st.integers(-4, 4), min_size=size, max_size=size)
        return numbers.map(lambda found: np.reshape(np.array(found, np.float64), shape))

    gradient = among((1,), (2,), (), (2, 3), None).flatmap(lambda shape: st.none() if shape is None else of_shape(shape))
    bad = among(0.0, 0.0, 0.0, 0.0, np.nan, inf, -inf)
    return st.builds(
        gradient_case,
        st.lists(gradient, min_size=1, max_size=4),
        among(1.0, 1.0, 1e-3, 1e5),
        bad,
        among(1.0, 0.5, 10.0, 1e6),
    )


def gradient_case(found: list[Array | None], size: float, bad: float, max_norm: float) -> Gradients:
    """Return gradients times a size, and the largest norm; `bad` is added to the first element of the last one."""
    scaled = [None if g is None else np.asarray(g * size) for g in found]
    last = scaled[-1]
    if last is not None:
        last.flat[0] += bad
    return scaled, max_norm


def describe_gradients(case: Gradients) -> str:
    """Return a call of `clip_gradients` as text."""
    shown = ", ".join("None" if g is None else str(g.tolist()) for g in case[0])
    return f"clip_gradients(parameters with the gradients {shown}; max_norm={case[1]})"


def clipped(
    case: Gradients, *, each: bool = False, always: bool = False, is_silent: bool = False, epsilon: float = 0.0
) -> Clipped:
    """Return what `ask_clipped` must find, possibly with a mistake, or with PyTorch's factor max_norm / (norm + epsilon)."""
    found, max_norm = case
    parts = [0.0 if g is None else float(np.sum(np.square(g))) for g in found]
    values = [np.full((2,) if g is None else g.shape, 1.0 + k) for k, g in enumerate(found)]
    norm = sum(parts) ** 0.5
    if not np.isfinite(norm) and not is_silent:
        return Clipped("ValueError", found, values)
    with np.errstate(all="ignore"):
        scales = [max_norm / np.float64((part**0.5 if each else norm) + epsilon) for part in parts]
        after = [
            None if g is None else np.asarray(g * (scale if scale < 1 or always else 1.0))
            for g, scale in zip(found, scales, strict=True)
        ]
    return Clipped(norm, after, values)


def read_clipped(case: Gradients, answer: object) -> object:
    """Return the expected answer in place of one with PyTorch's factor."""
    return clipped(case) if same(answer, clipped(case, epsilon=EPSILON)) else answer


def steps() -> "SearchStrategy[Step]":
    """Draw one to three steps of a table of logits."""
    return at_random(step_case)


def step_case(random: Random) -> Step:
    """Return some steps."""
    draw, count = np.random.default_rng(random.getrandbits(32)), random.choice([2, 4])
    shape = random.choice([(1, 1), (2, 3)])
    batches = [(draw.integers(0, count, shape), draw.integers(0, count, shape)) for _ in range(random.randint(1, 3))]
    return Step(
        draw.integers(-6, 7, (count, count)) / 2, tuple(batches), random.choice([0.5, 4.0]), random.choice([0.125, 9.0])
    )


def stepped(case: Step, *, keeps: bool = False, clips: bool = True, epsilon: float = 0.0) -> Steps:
    """Return what `ask_steps` must find, possibly with a mistake."""
    weights, found = case.weights.copy(), list[float]()
    gradient = np.ones_like(weights)
    for inputs, targets in case.batches:
        found.append(mean_loss(weights[inputs], targets))
        gradient = gradient * keeps
        np.add.at(gradient, inputs, loss_gradient(weights[inputs], targets))
        norm = float(np.sqrt(np.square(gradient).sum()))
        gradient = gradient * (min(1.0, case.max_norm / (norm + epsilon)) if clips and norm else 1.0)
        weights -= case.rate * gradient
    return Steps(found, len(case.batches), len(case.batches), weights)


def read_stepped(case: Step, answer: object) -> object:
    """Return the expected answer in place of one with PyTorch's factor."""
    return stepped(case) if same(answer, stepped(case, epsilon=EPSILON)) else answer


def describe_step(case: Step) -> str:
    """Return steps as text."""
    shown = ", then ".join(f"inputs {x.tolist()} with targets {y.tolist()}" for x, y in case.batches)
    return (
        f"model(codes) returns weights[codes], weights {case.weights.tolist()}; {shown}; max_norm {case.max_norm}; step() "
        f"subtracts {case.rate} * gradient"
    )


def held_texts() -> "SearchStrategy[Held]":
    """Draw a held-out text, and a model of it."""
    return at_random(held_case)


def held_case(random: Random) -> Held:
    """Return a held-out text whose length is rarely a multiple of the context, and a model of it."""
    draw, count, context = np.random.default_rng(random.getrandbits(32)), random.choice([2, 4]), random.choice([1, 3, 4])
    codes = draw.integers(0, count, random.randint(2, 15)).tolist()
    tables = [draw.integers(-6, 7, (rows, count)) / 2 for rows in (count, context)]
    return Held(codes, context, *tables)


def describe_held(case: Held) -> str:
    """Return a held-out text and its model as text."""
    return (
        f"codes {case.codes}, context {case.context}; the logits of a code c at place t of a window are a[c] + b[t], with "
        f"a = {case.of_code.tolist()} and b = {case.of_place.tolist()}"
    )


def evaluated(case: Held, is_of_windows: bool = False, records: bool = False) -> Evaluation:
    """Return what `ask_evaluated` must find; `is_of_windows` is the mean of the means of windows."""
    windows = [case.codes[k : k + case.context + 1] for k in range(0, len(case.codes) - 1, case.context)]
    sums = []
    for row in windows:
        logits = case.of_code[row[:-1]] + case.of_place[: len(row) - 1]
        sums.append(mean_loss(logits, np.array(row[1:])) * (1 if is_of_windows else len(row) - 1))
    loss = sum(sums) / (len(windows) if is_of_windows else len(case.codes) - 1)
    return Evaluation((loss, exp(loss), loss / log(2)), [row[:-1] for row in windows], records)


def draw_samplings(student: StudentProcess, random: Random, count: int) -> list[Sampling]:
    """Draw cases for `sample_next`."""
    return [sampling_of(random) for _ in range(10 * count)]


def sampling_of(random: Random) -> Sampling:
    """Return logits, and a number that is not near the border of two codes."""
    scale = random.choice([0.5, 0.5, 1, 20, 1000])
    logits = [
        random.randint(-4, 4) * scale + random.choice([0, 0, 0, 900.0]) * (scale < 1) for _ in range(random.randint(1, 7))
    ]
    if random.random() < 0.3:
        logits = [-inf if random.random() < 0.4 and k else x for k, x in enumerate(logits)]
        random.shuffle(logits)
    temperature = random.choice([1.0, 1.0, 0.5, 2.0, 0.1, 0])
    top_k = random.choice([None, None, 1, 2, 3, len(logits), len(logits) + 2])
    if random.random() < 0.05:  # the probabilities add up to 1 but for rounding, and code 0 has none
        many = [-inf, *[random.randint(-8, 8) / 4 for _ in range(random.randint(10, 40))]]
        return Sampling(many, 1.0, None, 1 - 2.0**-53)
    case = Sampling(logits, temperature, top_k, 0.5)
    if temperature == 0:
        return case
    shares = shares_of(case)
    sums = np.concatenate([[0.0], np.cumsum(shares)])
    code = random.choice([k for k, share in enumerate(shares) if share > SMALLEST_SHARE])
    u = sums[code] + shares[code] * random.uniform(0.1, 0.9)
    kept = np.flatnonzero(shares)
    if shares[kept[0]] > SMALLEST_SHARE and random.random() < 0.1:
        u = 0.0
    elif shares[kept[-1]] > SMALLEST_SHARE and random.random() < 0.1:
        u = 1 - 2.0**-53
    return case._replace(u=float(u))


def shares_of(case: Sampling, *, power: float = -1.0) -> Array:
    """Return the probabilities that are left by top_k; `power` is that of the temperature."""
    logits = np.array(case.logits)
    kept = np.argsort(-logits, kind="stable")[: case.top_k]
    scaled = (logits - logits.max()) * case.temperature**power
    weights = np.zeros(len(logits))
    weights[kept] = np.exp(scaled[kept])
    return np.asarray(weights / weights.sum())


def sampled(case: Sampling, *, power: float = -1.0) -> Sample:
    """Return what `ask_samples` must find."""
    if case.temperature == 0:
        return Sample(int(np.argmax(case.logits)), 0)
    shares = shares_of(case, power=power)
    return Sample(int(min(np.searchsorted(np.cumsum(shares), case.u, side="right"), np.flatnonzero(shares)[-1])), 1)


def describe_sampling(case: Sampling) -> str:
    """Return a call of `sample_next` as text."""
    return f"logits {case.logits}, temperature {case.temperature}, top_k {case.top_k}, u = {case.u!r}"
