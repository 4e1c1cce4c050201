"""CTC: the loss of a sequence of labels whose positions in time are unknown."""

import math
from functools import partial, reduce
from typing import Any

from ..core.errors import DTypeError, ShapeError
from ..core.operators import exp, log, maximum, minimum, where
from ..ir.array_functions import A, PadSlice
from ..ir.array_methods import Array
from ..ir.gather import Gather
from ..tensors.creation import tensor
from .function_layers import layer, one_call
from .regression import Reduction, reduce_loss

__all__: list[str] = []  # `layer` adds the names
IMPOSSIBLE = -1e30  # the log of probability 0: finite, so that its gradient is 0 and not NaN


@layer("CTCLoss", is_op=False)
def ctc_loss(
    log_probs: A,
    targets: Array,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: Reduction = "mean",
    zero_infinity: bool = False,
) -> A:
    """Compute -log of the probability that a sequence of frames spells the targets, blanks and repetitions removed [1]_.

    Parameters
    ----------
    log_probs : Tensor of floats (T, N, C) or (T, C)
        Log-probabilities of C classes in each frame, for instance of `log_softmax`.
    targets : Tensor of int64 or int32 (N, S), or (S,) of all targets one after the other
        Class indices, without blanks.
    input_lengths, target_lengths : Tensor of integers (N,), or sequences of ints
        The number of frames, and of labels, of each example.
    blank : int
        The class of no label.
    reduction : {"mean", "sum", "none"}
        "mean" divides the loss of each example by its number of labels, then takes the mean.
    zero_infinity : bool
        Whether the loss of an example with too few frames is 0 instead of infinite.

    Notes
    -----
    The recursion over frames is unrolled, so a fused function has operations for each of them. The gradient is that of
    `log_probs`; PyTorch returns that of the logits, which is the same after `log_softmax`.

    References
    ----------
    .. [1] A. Graves, S. Fernandez, F. Gomez, J. Schmidhuber, Connectionist Temporal Classification, 2006

    Examples
    --------
    >>> import minifuse as mf
    >>> frames = mf.zeros(2, 1, 3).log_softmax(2)
    >>> loss = mf.nn.functional.ctc_loss(frames, mf.tensor([[1]]), [2], [1])
    >>> round(loss.exp().item(), 4)  # 3 of 9 paths: label and blank, blank and label, label twice
    3.0
    """
    is_one = log_probs.ndim == 2
    if is_one:
        log_probs = log_probs.unsqueeze(1)
    examples = log_probs.shape[1]
    inputs, labels = as_lengths(input_lengths, log_probs), as_lengths(target_lengths, log_probs)
    if inputs.shape != (examples,) or labels.shape != (examples,):
        raise ShapeError(f"ctc_loss: got lengths of shapes {inputs.shape} and {labels.shape}, expected ({examples},) each")
    if not targets.dtype.is_integer:
        raise DTypeError(f"ctc_loss: got targets of {targets.dtype}, expected class indices of int64")
    if targets.ndim == 1:
        targets = targets.unsqueeze(0) if is_one else split_rows(targets, labels)
    loss: A = log_likelihood(log_probs, targets, inputs, labels, blank, zero_infinity)
    if reduction == "mean":
        return (loss / maximum(labels, 1).to(loss.dtype)).mean()
    return loss.squeeze(0) if is_one and reduction == "none" else reduce_loss(loss, reduction)


def as_lengths(lengths: Any, like: Array) -> Array:
    """Return lengths as a tensor (N,)."""
    if isinstance(lengths, Array):
        return lengths.reshape(-1)
    values = lengths if isinstance(lengths, tuple | list) else [lengths]
    return tensor([int(n) for n in values], backend=getattr(like, "backend", None))


@partial(one_call, floats=False)
def split_rows(targets: Array, lengths: Array) -> Array:
    """Return targets that are one after the other as rows (N, S). Each row ends with labels of the next ones."""
    examples, count = lengths.shape[0], targets.shape[0]
    example = targets.positions(examples)
    start = where(example < example.unsqueeze(1), lengths, 0).sum(1, True)  # the sum of the lengths before
    return Gather(0)(targets, minimum(start + targets.positions(count), count - 1))


@one_call
def log_likelihood(x: A, targets: Array, inputs: Array, labels: Array, blank: int, zero_infinity: bool) -> A:
    """Return -log(p) of each example, by the recursion over prefixes of the labels with blanks before, between and after."""
    frames, examples, classes = x.shape
    states = 2 * targets.shape[1] + 1
    position = x.positions(states)
    if states > 1:
        label = Gather(1)(targets, minimum(position // 2, targets.shape[1] - 1))
        symbol = where(position % 2 == 0, blank, label)  # (N, states)
    else:
        symbol = (position * 0 + blank).expand(examples, 1)
    may_skip = (position >= 2) & (symbol != blank) & (symbol != shift(symbol, 2, blank))
    row = x.positions(frames * examples).reshape(frames, examples, 1)
    scores = maximum(Gather(0)(x.reshape(-1), row * classes + symbol), IMPOSSIBLE)  # (T, N, states)
    alpha = where(position < 2, scores[0], IMPOSSIBLE)
    final = alpha
    for frame in range(1, frames):
        skipped = where(may_skip, shift(alpha, 2, IMPOSSIBLE), IMPOSSIBLE)
        alpha = log_add(alpha, shift(alpha, 1, IMPOSSIBLE), skipped) + scores[frame]
        final = where((inputs == frame + 1).unsqueeze(1), alpha, final)
    last = 2 * labels.unsqueeze(1)
    loss = -where((position == last) | (position == last - 1), final, IMPOSSIBLE).logsumexp(1)
    return where(loss < -IMPOSSIBLE / 2, loss, 0.0 if zero_infinity else math.inf)


def shift(x: A, count: int, fill: float) -> A:
    """Move the columns of a matrix to the right, and fill those on the left."""
    rows, columns = x.shape
    if columns <= count:
        return x * 0 + fill
    moved = PadSlice(x.shape, ((0, 1, rows), (count, 1, columns - count)))(x[:, : columns - count])
    return where(x.positions(columns) < count, fill, moved)


def log_add(*xs: Array) -> Array:
    """Return log(exp(a) + exp(b) + ...), without overflow."""
    largest = reduce(maximum, xs).detach()
    return largest + log(sum(exp(x - largest) for x in xs))
