"""Recurrent networks: RNN, LSTM and GRU, and their cells.

The inputs of all time steps are multiplied by their weights in one matmul. Each time step is one composite op, the same for
all steps, so it is planned once; in a fused function the steps become one graph. The outputs are joined in one op.
"""

import math
from collections.abc import Sequence
from typing import Any

from ..core.dtypes import float32
from ..core.errors import ShapeError
from ..core.operators import relu, sigmoid, tanh
from ..functions.joining import join
from ..ir.array_functions import A, BoundFunction
from ..ir.array_methods import Array
from ..tensors.creation import DTypeLike, tensor, zeros
from ..tensors.random import generator
from .dropout import dropout
from .layers import apply, linear, require_tensor
from .module import Module, Parameter

GATES = {"RNN": 1, "LSTM": 4, "GRU": 3}
States = Sequence[Array]


def step(kind: str, gates: Array, hidden: Array, *rest: Any) -> Any:
    """Compute the next states from the part of the gates that the input gives, and from the states.

    `rest` is the cell state (of LSTM), the weight of the hidden state, and, if there are any, its bias and a projection.
    """
    cell, rest = (rest[0], rest[1:]) if kind == "LSTM" else (None, rest)
    weight, has_bias, has_projection = rest[0], rest[-2], rest[-1]
    recurrent = linear(hidden, weight, rest[1] if has_bias else None)
    size = weight.shape[0] // GATES.get(kind, 1)

    def parts(x: Array) -> list[Array]:
        return [x[:, k * size : (k + 1) * size] for k in range(x.shape[1] // size)]

    if kind == "LSTM":
        into, forget, new, out = parts(gates + recurrent)
        state = sigmoid(forget) * cell + sigmoid(into) * tanh(new)
        y = sigmoid(out) * tanh(state)
        return (linear(y, rest[2 if has_bias else 1]) if has_projection else y), state
    if kind == "GRU":
        (reset, update, new), (reset_h, update_h, new_h) = parts(gates), parts(recurrent)
        z = sigmoid(update + update_h)
        return (1 - z) * tanh(new + sigmoid(reset + reset_h) * new_h) + z * hidden
    return (relu if kind == "relu" else tanh)(gates + recurrent)


def _rnn_step(*inputs: Any) -> Any:
    *tensors, kind, has_bias, has_projection = inputs
    return step(kind, *tensors, has_bias, has_projection)


def next_states(kind: str, gates: A, states: States, weights: Sequence[Array], has_bias: bool) -> list[Array]:
    """Run one time step as one composite op: the next hidden state, and the next cell state of an LSTM."""
    has_projection = len(weights) > 1 + has_bias
    y: Any = apply(BoundFunction(_rnn_step, (kind, has_bias, has_projection)), gates, *states, *weights)
    return [*y] if isinstance(y, tuple) else [y]


def joined(parts: Sequence[Array], dim: int, is_new: bool) -> Any:
    """Join arrays of one shape along a dim, or along a new dim."""
    return apply(BoundFunction(_joined, (dim, is_new)), *parts)


def _joined(*parts_and_options: Any) -> Array:
    *parts, dim, is_new = parts_and_options
    return join([part.unsqueeze(dim) for part in parts] if is_new else parts, dim)


class Recurrent(Module):
    """Base class of RNN, LSTM and GRU.

    Parameters
    ----------
    input_size, hidden_size : int
        Number of features of the input, and of the hidden state.
    num_layers : int
        Number of layers; each reads the outputs of the one before.
    bias : bool
        If True, add biases.
    batch_first : bool
        If True, inputs and outputs are (N, T, ...), else (T, N, ...).
    dropout : float
        The probability with which elements between layers are set to 0 in training.
    bidirectional : bool
        If True, a second network reads the input from its end, and the outputs of both are joined.
    proj_size : int
        If greater than 0, the hidden state of an LSTM is projected to this size.
    dtype, backend
        Dtype and backend of the parameters. Default: float32 on the default backend.

    Attributes
    ----------
    weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, ... : Parameter
        The weights of the input and of the hidden state, and their biases, of each layer. The names of the second direction
        end in "_reverse", those of projections begin with "weight_hr".
    """

    kind: str

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        dtype: DTypeLike = None,
        backend: str | None = None,
    ) -> None:
        name = type(self).__name__
        if min(input_size, hidden_size, num_layers) < 1 or not 0 <= proj_size < hidden_size:
            raise ShapeError(
                f"{name}: got input_size={input_size}, hidden_size={hidden_size}, num_layers={num_layers} and "
                f"proj_size={proj_size}, expected at least 1, and a proj_size below hidden_size"
            )
        if proj_size and self.kind != "LSTM":
            raise ValueError(f"{name}: got proj_size={proj_size}, which only an LSTM has; leave it out")
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional, self.proj_size = batch_first, dropout, bidirectional, proj_size
        bound, rows, out_size = 1 / math.sqrt(hidden_size), GATES[self.kind] * hidden_size, proj_size or hidden_size

        def draw(*shape: int) -> Parameter:
            return Parameter(tensor(generator().uniform(-bound, bound, shape), dtype or float32, backend))

        for suffix, layer in self.suffixes():
            features = out_size * (1 + bidirectional) if layer else input_size
            setattr(self, f"weight_ih{suffix}", draw(rows, features))
            setattr(self, f"weight_hh{suffix}", draw(rows, out_size))
            if bias:
                setattr(self, f"bias_ih{suffix}", draw(rows))
                setattr(self, f"bias_hh{suffix}", draw(rows))
            if proj_size:
                setattr(self, f"weight_hr{suffix}", draw(proj_size, hidden_size))

    def suffixes(self) -> list[tuple[str, int]]:
        """Return the end of the names of the parameters, and the number of the layer, for each layer and direction."""
        ends = ("", "_reverse")[: 1 + self.bidirectional]
        return [(f"_l{layer}{end}", layer) for layer in range(self.num_layers) for end in ends]

    def forward(self, x: A, states: Any = None) -> Any:
        """Map (T, N, input_size) to the outputs (T, N, hidden_size) and the last states, (layers, N, hidden_size) each.

        An input of 2 dims is one sequence. With `batch_first`, N is the first dim of input and output, not of the states.
        """
        require_tensor(type(self).__name__, x)
        if x.ndim not in (2, 3) or x.shape[-1] != self.input_size or 0 in x.shape:
            raise ShapeError(
                f"{type(self).__name__}: got x of shape {x.shape}, expected (T, N, {self.input_size}) or (T, "
                f"{self.input_size})"
            )
        given = None if states is None else [*states] if isinstance(states, tuple | list) else [states]
        if x.ndim == 2:
            batch_dim = 0 if self.batch_first else 1
            batched = None if given is None else tuple(state.unsqueeze(1) for state in given)
            y, last = self.forward(x.unsqueeze(batch_dim), batched)
            last = tuple(state.squeeze(1) for state in last) if isinstance(last, tuple) else last.squeeze(1)
            return y.squeeze(batch_dim), last
        z: Any = x.transpose(0, 1) if self.batch_first else x
        sizes = [self.proj_size or self.hidden_size, self.hidden_size][: 1 + (self.kind == "LSTM")]
        if given is None:
            given = [
                zeros(len(self.suffixes()), z.shape[1], n, dtype=x.dtype, backend=self.weight_ih_l0.backend) for n in sizes
            ]
        lasts: list[list[Array]] = []
        for layer in range(self.num_layers):
            if layer and self.dropout and self.training:
                z = dropout(z, self.dropout)
            outputs = []
            for suffix in [suffix for suffix, number in self.suffixes() if number == layer]:
                y, last = self.run(z, [state[len(lasts)] for state in given], suffix)
                outputs.append(y)
                lasts.append(last)
            z = outputs[0] if len(outputs) == 1 else joined(outputs, 2, False)
        last_states = tuple(joined(parts, 0, True) for parts in zip(*lasts, strict=True))
        return (z.transpose(0, 1) if self.batch_first else z), (last_states if self.kind == "LSTM" else last_states[0])

    def run(self, x: Any, states: list[Array], suffix: str) -> tuple[Array, list[Array]]:
        """Run all time steps of one layer in one direction, and return the outputs (T, N, ...) and the last states."""
        parameters = vars(self)
        gates = linear(x, parameters[f"weight_ih{suffix}"], parameters.get(f"bias_ih{suffix}"))
        names = f"weight_hh{suffix}", f"bias_hh{suffix}", f"weight_hr{suffix}"
        weights = [parameters[name] for name in names if name in parameters]
        outputs: list[Array] = []
        times = range(x.shape[0])
        for t in reversed(times) if suffix.endswith("reverse") else times:
            states = next_states(self.step_kind, gates[t], states, weights, self.bias)
            outputs.append(states[0])
        return joined(outputs[::-1] if suffix.endswith("reverse") else outputs, 0, True), states

    @property
    def step_kind(self) -> str:
        """The kind of a time step."""
        return self.kind

    def extra_repr(self) -> str:
        """Return the sizes, and the options that differ from their defaults."""
        options = {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0, "bidirectional": False}
        changed = [f"{name}={getattr(self, name)}" for name, default in options.items() if getattr(self, name) != default]
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *changed])


class RNN(Recurrent):
    """A recurrent network: h' = tanh(W_ih x + b_ih + W_hh h + b_hh). The parameters are those of `LSTM`, and a nonlinearity.

    Parameters
    ----------
    nonlinearity : {"tanh", "relu"}
        The function of the sum.

    Examples
    --------
    >>> import minifuse as mf
    >>> y, last = mf.nn.RNN(4, 3, batch_first=True)(mf.ones(2, 5, 4))
    >>> y.shape, last.shape
    ((2, 5, 3), (1, 2, 3))
    """

    kind = "RNN"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        *options: Any,
        **named: Any,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f'RNN: got nonlinearity={nonlinearity!r}, expected "tanh" or "relu"')
        self.nonlinearity = nonlinearity
        super().__init__(input_size, hidden_size, num_layers, bias, *options, **named)

    @property
    def step_kind(self) -> str:
        """The nonlinearity."""
        return self.nonlinearity


class LSTM(Recurrent):
    """Long short-term memory [1]_: a recurrent network with a cell state, and gates for input, forgetting and output.

    Parameters
    ----------
    input_size, hidden_size : int
        Number of features of the input, and of the hidden state.
    num_layers, bias, batch_first, dropout, bidirectional, proj_size, dtype, backend
        As in PyTorch: layers, biases, whether the batch is the first dim, the probability of dropout between layers, whether
        a second network reads backwards, and the size that the hidden state is projected to.

    References
    ----------
    .. [1] S. Hochreiter, J. Schmidhuber, Long Short-Term Memory, 1997, doi:10.1162/neco.1997.9.8.1735

    Examples
    --------
    >>> import minifuse as mf
    >>> lstm = mf.nn.LSTM(4, 3, num_layers=2)
    >>> y, (h, c) = lstm(mf.ones(5, 2, 4))
    >>> y.shape, h.shape, c.shape
    ((5, 2, 3), (2, 2, 3), (2, 2, 3))
    """

    kind = "LSTM"


class GRU(Recurrent):
    """Gated recurrent units: a recurrent network with a reset gate and an update gate. The parameters are those of `LSTM`.

    Examples
    --------
    >>> import minifuse as mf
    >>> y, last = mf.nn.GRU(4, 3, bidirectional=True)(mf.ones(5, 2, 4))
    >>> y.shape, last.shape
    ((5, 2, 6), (2, 2, 3))
    """

    kind = "GRU"


class RecurrentCell(Module):
    """Base class of RNNCell, LSTMCell and GRUCell: one time step of a network of one layer.

    Parameters
    ----------
    input_size, hidden_size : int
        Number of features of the input, and of the hidden state.
    bias : bool
        If True, add biases.
    dtype, backend
        Dtype and backend of the parameters. Default: float32 on the default backend.

    Attributes
    ----------
    weight_ih, weight_hh, bias_ih, bias_hh : Parameter
    """

    kind: str
    nonlinearity = ""
    bias_ih: Parameter | None
    bias_hh: Parameter | None

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, dtype: DTypeLike = None, backend: str | None = None
    ) -> None:
        self.input_size, self.hidden_size = input_size, hidden_size
        bound, rows = 1 / math.sqrt(hidden_size), GATES[self.kind] * hidden_size

        def draw(*shape: int) -> Parameter:
            return Parameter(tensor(generator().uniform(-bound, bound, shape), dtype or float32, backend))

        self.weight_ih, self.weight_hh = draw(rows, input_size), draw(rows, hidden_size)
        self.bias_ih, self.bias_hh = (draw(rows), draw(rows)) if bias else (None, None)

    def forward(self, x: A, states: Any = None) -> Any:
        """Map (N, input_size), and the states (N, hidden_size), to the next states; also without N."""
        require_tensor(type(self).__name__, x)
        given = None if states is None else [*states] if isinstance(states, tuple | list) else [states]
        if x.ndim == 1:
            y = self.forward(x[None], None if given is None else tuple(state[None] for state in given))
            return tuple(state[0] for state in y) if isinstance(y, tuple) else y[0]
        if given is None:
            shape, count = (x.shape[0], self.hidden_size), 1 + (self.kind == "LSTM")
            given = [zeros(shape, dtype=x.dtype, backend=self.weight_ih.backend) for _ in range(count)]
        gates = linear(x, self.weight_ih, self.bias_ih)
        weights = [self.weight_hh] if self.bias_hh is None else [self.weight_hh, self.bias_hh]
        y = next_states(self.nonlinearity or self.kind, gates, given, weights, self.bias_hh is not None)
        return tuple(y) if self.kind == "LSTM" else y[0]

    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"{self.input_size}, {self.hidden_size}" + ", bias=False" * (self.bias_ih is None)


class RNNCell(RecurrentCell):
    """One time step of `RNN`.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.RNNCell(4, 3)(mf.ones(2, 4)).shape
    (2, 3)
    """

    kind = "RNN"

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", **named: Any
    ) -> None:
        super().__init__(input_size, hidden_size, bias, **named)
        self.nonlinearity = nonlinearity


class LSTMCell(RecurrentCell):
    """One time step of `LSTM`: the next hidden state and the next cell state."""

    kind = "LSTM"


class GRUCell(RecurrentCell):
    """One time step of `GRU`."""

    kind = "GRU"


__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNCell"]
