"""Recurrent nets: whole sequences, packed ones too, and single steps."""

from __future__ import annotations

import numbers
import warnings
from typing import Any

from .. import _call
from .._rows import ROWS
from .module import Module
from .parameter import Parameter
from .state import create, put_state
from .utils.rnn import PackedSequence

_ROW = {"RNN_TANH": "rnn_tanh", "RNN_RELU": "rnn_relu", "LSTM": "lstm", "GRU": "gru"}


def _permuted(tensor: Any, permutation: Any) -> Any:
    return tensor if permutation is None else tensor.index_select(1, permutation)


class RNNBase(Module):
    """Layers of a recurrent net; a forward is one command."""

    mode: str
    input_size: int
    hidden_size: int
    num_layers: int
    bias: bool
    batch_first: bool
    dropout: float
    bidirectional: bool
    proj_size: int
    weight_ih_l0: Any
    _dtype: Any

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if (
            not isinstance(dropout, numbers.Real)
            or not 0 <= dropout <= 1
            or isinstance(dropout, bool)
        ):
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an "
                "element being zeroed"
            )
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero "
                f"dropout expects num_layers greater than 1, but got dropout={dropout} and "
                f"num_layers={num_layers}",
                stacklevel=3,
            )
        for name, value, kind in (
            ("bias", bias, bool),
            ("batch_first", batch_first, bool),
            ("input_size", input_size, int),
            ("hidden_size", hidden_size, int),
        ):
            if not isinstance(value, kind):
                raise TypeError(
                    f"{name} should be of type {kind.__name__}, got: {type(value).__name__}"
                )
        for name, value in (
            ("input_size", input_size),
            ("hidden_size", hidden_size),
            ("num_layers", num_layers),
        ):
            if value <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if proj_size < 0:
            raise ValueError(
                "proj_size should be a positive integer or zero to disable projections"
            )
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        self.mode, self.input_size, self.hidden_size = mode, input_size, hidden_size
        self.num_layers, self.bias, self.batch_first = num_layers, bias, batch_first
        self.dropout, self.bidirectional, self.proj_size = float(dropout), bidirectional, proj_size
        self._dtype = dtype
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """All of them uniform in +-1/sqrt(hidden_size)."""
        kind = "RNN" if self.mode.startswith("RNN") else self.mode
        width, directions = self.proj_size or self.hidden_size, 1 + self.bidirectional
        gates = self.hidden_size * {"RNN": 1, "LSTM": 4, "GRU": 3}[kind]
        self._all_weights: list[list[str]] = []
        for layer in range(self.num_layers):
            features = width * directions if layer else self.input_size
            shapes: dict[str, tuple[int, ...] | None] = {
                "weight_ih": (gates, features),
                "weight_hh": (gates, width),
                "bias_ih": (gates,) if self.bias else None,
                "bias_hh": (gates,) if self.bias else None,
                "weight_hr": (self.proj_size, self.hidden_size) if self.proj_size else None,
            }
            named = {
                "input_size": features,
                "hidden_size": self.hidden_size,
                "bias": self.bias,
                "proj_size": self.proj_size,
            }
            for suffix in ("", "_reverse")[:directions]:
                state = create(f"nn.{kind}", named, shapes, self._dtype)
                made = {f"{n}_l{layer}{suffix}": v for n, v in state.items() if v is not None}
                self._all_weights.append(list(made))
                put_state(self, made)

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Any]:
        return [getattr(self, name) for name in self._flat_weights_names]

    @property
    def all_weights(self) -> list[list[Parameter]]:
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Nothing: the daemon lays out memory itself."""

    def check_input(self, input: Any, batch_sizes: Any) -> None:
        kind = self.weight_ih_l0.dtype
        if input.dtype is not kind:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({kind}). Convert "
                f"input: input.to({kind}), or convert model: model.to({input.dtype})"
            )
        expected = 3 if batch_sizes is None else 2
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got "
                f"{input.size(-1)}"
            )

    def get_expected_hidden_size(self, input: Any, batch_sizes: Any) -> tuple[int, int, int]:
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.size(0) if self.batch_first else input.size(1)
        width = self.proj_size or self.hidden_size
        return (self.num_layers * (1 + self.bidirectional), batch, width)

    def check_hidden_size(
        self,
        hx: Any,
        expected_hidden_size: tuple[int, int, int],
        msg: str = "Expected hidden size {}, got {}",
    ) -> None:
        if tuple(hx.size()) != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input: Any, hidden: Any, batch_sizes: Any) -> None:
        self.check_input(input, batch_sizes)
        if hidden is not None:
            self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Any) -> Any:
        return _permuted(hx, permutation)

    def _run(self, input: Any, hx: Any, batch_sizes: Any) -> tuple[Any, ...]:
        values = [
            input,
            hx,
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            self.batch_first,
            None if batch_sizes is None else batch_sizes.tolist(),
        ]
        made: tuple[Any, ...] = _call.call(ROWS[_ROW[self.mode]], values)
        return made

    def _ranks(self, hx: Any, batched: bool) -> None:
        want, kind = (3, "batched") if batched else (2, "unbatched")
        if hx.dim() != want:
            raise RuntimeError(
                f"For {kind} {want}-D input, hx should also be {want}-D but got {hx.dim()}-D tensor"
            )

    def _lifted(self, hx: Any) -> Any:
        return hx.unsqueeze(1)

    def _lowered(self, hx: Any) -> Any:
        return hx.squeeze(1)

    def _joined(self, states: tuple[Any, ...]) -> Any:
        return states[0]

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        given = input
        sizes = order = back = None
        batched, batch_dim = True, 0 if self.batch_first else 1
        if isinstance(given, PackedSequence):
            input, sizes, order, back = given
        else:
            name = type(self).__name__
            if input.dim() not in (2, 3):
                raise ValueError(
                    f"{name}: Expected input to be 2D or 3D, got {input.dim()}D instead"
                )
            batched = input.dim() == 3
            if hx is not None:
                self._ranks(hx, batched)
            if not batched:
                input = input.unsqueeze(batch_dim)
                hx = None if hx is None else self._lifted(hx)
        self.check_forward_args(input, hx, sizes)
        if hx is not None:
            hx = self.permute_hidden(hx, order)
        output, *states = self._run(input, hx, sizes)
        hidden = self.permute_hidden(self._joined(tuple(states)), back)
        if sizes is not None:
            return PackedSequence(output, sizes, order, back), hidden
        if not batched:
            return output.squeeze(batch_dim), self._lowered(hidden)
        return output, hidden

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        for name, usual in (
            ("proj_size", 0),
            ("num_layers", 1),
            ("bias", True),
            ("batch_first", False),
            ("dropout", 0),
            ("bidirectional", False),
        ):
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)}"
        return text


def _refuse_projection(named: dict[str, Any]) -> None:
    if "proj_size" in named:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class RNN(RNNBase):
    """h' = act(W_ih x + b_ih + W_hh h + b_hh)."""

    def __init__(self, *args: Any, **named: Any) -> None:
        _refuse_projection(named)
        if len(args) > 3:
            kind, args = args[3], args[:3] + args[4:]
        else:
            kind = named.pop("nonlinearity", "tanh")
        if kind not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{kind}'. Select from 'tanh' or 'relu'.")
        super().__init__("RNN_" + kind.upper(), *args, **named)
        self.nonlinearity = kind


class GRU(RNNBase):
    """Gates r, z, n; the reset gate acts after the product."""

    def __init__(self, *args: Any, **named: Any) -> None:
        _refuse_projection(named)
        super().__init__("GRU", *args, **named)


class LSTM(RNNBase):
    """Gates i, f, g, o; the state is a pair (h, c)."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__("LSTM", *args, **named)

    def get_expected_cell_size(self, input: Any, batch_sizes: Any) -> tuple[int, int, int]:
        layers, batch, _ = self.get_expected_hidden_size(input, batch_sizes)
        return (layers, batch, self.hidden_size)

    def check_forward_args(self, input: Any, hidden: Any, batch_sizes: Any) -> None:
        self.check_input(input, batch_sizes)
        if hidden is None:
            return
        for i, size in enumerate((self.get_expected_hidden_size, self.get_expected_cell_size)):
            self.check_hidden_size(
                hidden[i], size(input, batch_sizes), f"Expected hidden[{i}] size {{}}, got {{}}"
            )

    def permute_hidden(self, hx: Any, permutation: Any) -> Any:
        return _permuted(hx[0], permutation), _permuted(hx[1], permutation)

    def _run(self, input: Any, hx: Any, batch_sizes: Any) -> tuple[Any, ...]:
        return super()._run(input, [] if hx is None else list(hx), batch_sizes)

    def _ranks(self, hx: Any, batched: bool) -> None:
        want, kind = (3, "batched") if batched else (2, "unbatched")
        if hx[0].dim() != want or hx[1].dim() != want:
            raise RuntimeError(
                f"For {kind} {want}-D input, hx and cx should also be {want}-D but got "
                f"({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
            )

    def _lifted(self, hx: Any) -> Any:
        return hx[0].unsqueeze(1), hx[1].unsqueeze(1)

    def _lowered(self, hx: Any) -> Any:
        return hx[0].squeeze(1), hx[1].squeeze(1)

    def _joined(self, states: tuple[Any, ...]) -> Any:
        return states


class RNNCellBase(Module):
    """One step."""

    input_size: int
    hidden_size: int
    bias: bool
    weight_ih: Any
    weight_hh: Any
    bias_ih: Any
    bias_hh: Any
    _dtype: Any
    _gates = 1
    _row_name = "nn.RNNCell"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        self._dtype = dtype
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """All of them uniform in +-1/sqrt(hidden_size)."""
        gates = self._gates * self.hidden_size
        shapes = {
            "weight_ih": (gates, self.input_size),
            "weight_hh": (gates, self.hidden_size),
            "bias_ih": (gates,) if self.bias else None,
            "bias_hh": (gates,) if self.bias else None,
        }
        named = {
            "input_size": self.input_size,
            "hidden_size": self.hidden_size,
            "bias": self.bias,
        }
        for name, value in create(self._row_name, named, shapes, self._dtype).items():
            if value is None:
                self.register_parameter(name, None)
            else:
                put_state(self, {name: value})

    def _check(self, what: str, tensor: Any) -> None:
        if tensor.dim() not in (1, 2):
            raise ValueError(
                f"{type(self).__name__}: Expected {what} to be 1D or 2D, got {tensor.dim()}D "
                "instead"
            )

    def _zeros(self, input: Any) -> Any:
        from .._create import zeros

        return zeros((input.size(0), self.hidden_size), dtype=input.dtype)

    def _step(self, row: str, input: Any, hx: Any) -> Any:
        values = [input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh]
        return _call.call(ROWS[row], values)

    def _one(self, row: str, input: Any, hx: Any) -> Any:
        self._check("input", input)
        if hx is not None:
            self._check("hidden", hx)
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
            hx = None if hx is None else hx.unsqueeze(0)
        out = self._step(row, input, self._zeros(input) if hx is None else hx)
        return out if batched else out.squeeze(0)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text


class RNNCell(RNNCellBase):
    """act(W_ih x + b_ih + W_hh h + b_hh)."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Any = None) -> Any:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._one(f"rnn_{self.nonlinearity}_cell", input, hx)


class GRUCell(RNNCellBase):
    """One step of a GRU."""

    _gates = 3
    _row_name = "nn.GRUCell"

    def forward(self, input: Any, hx: Any = None) -> Any:
        return self._one("gru_cell", input, hx)


class LSTMCell(RNNCellBase):
    """One step of an LSTM; the state is a pair (h, c)."""

    _gates = 4
    _row_name = "nn.LSTMCell"

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        self._check("input", input)
        for i, value in enumerate(hx or ()):
            self._check(f"hx[{i}]", value)
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
            hx = None if hx is None else (hx[0].unsqueeze(0), hx[1].unsqueeze(0))
        if hx is None:
            zero = self._zeros(input)
            hx = (zero, zero)
        hidden, cell = self._step("lstm_cell", input, list(hx))
        return (hidden, cell) if batched else (hidden.squeeze(0), cell.squeeze(0))


__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]
