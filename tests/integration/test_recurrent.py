"""Recurrent nets: packed sequences, gradients by differences, and how the parts fit together."""

import gradwire as torch
import numpy as np
import pytest
from gradwire import nn
from gradwire.nn.utils import rnn

NETS = {
    "tanh": (nn.RNN, {}),
    "relu": (nn.RNN, {"nonlinearity": "relu"}),
    "lstm": (nn.LSTM, {}),
    "projected": (nn.LSTM, {"proj_size": 2}),
    "gru": (nn.GRU, {}),
}
LENGTHS = [2, 5, 3, 3]


def _tensor(seed, *sizes):
    values = np.random.default_rng(seed).normal(size=sizes)
    return torch.tensor(values, dtype=torch.float64)


def _net(name, features=3, units=4, **options):
    kind, own = NETS[name]
    torch.manual_seed(3)
    return kind(features, units, dtype=torch.float64, **own, **options)


def _states(hidden):
    return list(hidden) if isinstance(hidden, tuple) else [hidden]


def _close(a, b):
    a, b = a.detach().numpy(), b.detach().numpy()
    np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("batch_first", [False, True])
def test_packed_sequences_are_computed_one_by_one(daemon, name, batch_first):
    net = _net(name, num_layers=2, bidirectional=True, batch_first=batch_first)
    x = _tensor(0, *((4, 5, 3) if batch_first else (5, 4, 3))).requires_grad_(True)
    packed = rnn.pack_padded_sequence(x, LENGTHS, batch_first, enforce_sorted=False)
    output, hidden = net(packed)
    output, lengths = rnn.pad_packed_sequence(output, batch_first)
    assert lengths.tolist() == LENGTHS
    loss = output.square().sum()
    alone = []
    for i, length in enumerate(LENGTHS):
        one = x[i, :length] if batch_first else x[:length, i]
        want, last = net(one)
        got = output[i, :length] if batch_first else output[:length, i]
        _close(got, want)
        for a, b in zip(_states(hidden), _states(last), strict=True):
            _close(a[:, i], b)
        alone.append(want.square().sum())
    leaves = [x, *net.parameters()]
    both = [torch.autograd.grad(f, leaves) for f in (loss, sum(alone))]
    for a, b in zip(*both, strict=True):
        _close(a, b)


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("packed", [False, True])
def test_first_and_second_gradients_by_differences(daemon, name, packed):
    net = _net(name, 1, 3, bidirectional=packed)
    names = [n for n, _ in net.named_parameters()]

    def run(x, *weights):
        steps = x
        if packed:
            steps = rnn.pack_padded_sequence(x, [2, 1])
        given = dict(zip(names, weights, strict=True))
        output, hidden = torch.func.functional_call(net, given, (steps,))
        return (output.data if packed else output), *_states(hidden)

    leaves = [_tensor(1, 2, 2, 1).requires_grad_(True)]
    leaves += [p.detach().clone().requires_grad_(True) for p in net.parameters()]
    assert torch.autograd.gradcheck(run, leaves)
    assert torch.autograd.gradgradcheck(run, leaves)


@pytest.mark.parametrize("name", NETS)
def test_the_kernel_gradient_is_the_composed_one(daemon, name):
    net = _net(name, num_layers=2, bidirectional=True)
    x = _tensor(0, 4, 3, 3).requires_grad_(True)
    leaves = [x, *net.parameters()]
    found = []
    for again in (False, True):
        output, hidden = net(x)
        loss = (output * _tensor(1, *output.shape)).sum()
        loss = loss + sum(s.square().sum() for s in _states(hidden))
        found.append(torch.autograd.grad(loss, leaves, create_graph=again))
    for a, b in zip(*found, strict=True):
        _close(a, b)


@pytest.mark.parametrize(
    ("net", "cell"),
    [(nn.RNN, nn.RNNCell), (nn.GRU, nn.GRUCell), (nn.LSTM, nn.LSTMCell)],
)
def test_a_net_is_its_cell_step_by_step(daemon, net, cell):
    whole, one = net(3, 4), cell(3, 4)
    state = whole.state_dict()
    one.load_state_dict({n[:-3]: v for n, v in state.items()})
    x = torch.randn(6, 2, 3)
    want, _ = whole(x)
    hidden = None
    for t in range(6):
        hidden = one(x[t], hidden)
        top = hidden[0] if isinstance(hidden, tuple) else hidden
        assert torch.allclose(top, want[t], atol=1e-6)


def test_names_and_order_of_the_state(daemon):
    net = nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2)
    parts = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
    assert list(net.state_dict()) == [
        f"{part}_l{layer}{way}" for layer in range(2) for way in ("", "_reverse") for part in parts
    ]
    assert net.weight_ih_l1.shape == (16, 4)
    assert net.weight_hr_l0_reverse.shape == (2, 4)
    assert all(p.abs().max().item() <= 0.5 for p in net.parameters())
    net.flatten_parameters()


def test_dropout_is_between_layers_alone(daemon):
    x = torch.randn(4, 2, 3)
    net = nn.GRU(3, 4, num_layers=2, dropout=1.0)
    first, second = net(x)[0], net(torch.zeros(4, 2, 3))[0]
    assert torch.equal(first, second)
    net.eval()
    assert not torch.equal(net(x)[0], first)
    with pytest.warns(UserWarning, match="all but last"):
        nn.GRU(3, 4, dropout=0.5)


def test_16_bit_nets_give_16_bit_results(daemon):
    net = nn.LSTM(3, 4).to(torch.bfloat16)
    output, (hidden, cell) = net(torch.randn(5, 2, 3).to(torch.bfloat16))
    assert {t.dtype for t in (output, hidden, cell)} == {torch.bfloat16}
    output.float().sum().backward()
    assert net.weight_hh_l0.grad.dtype is torch.bfloat16


def test_sequences_side_by_side(daemon):
    parts = [torch.arange(n, dtype=torch.float32) + 1 for n in (2, 3, 1)]
    assert rnn.pad_sequence(parts, True).tolist() == [[1, 2, 0], [1, 2, 3], [1, 0, 0]]
    left = rnn.pad_sequence(parts, padding_value=-1.0, padding_side="left")
    assert left.T.tolist() == [[-1, 1, 2], [1, 2, 3], [-1, -1, 1]]
    packed = rnn.pack_sequence(parts, enforce_sorted=False)
    assert packed.data.tolist() == [1, 1, 1, 2, 2, 3]
    assert packed.batch_sizes.tolist() == [3, 2, 1]
    assert packed.sorted_indices.tolist() == [1, 0, 2]
    back = [t.tolist() for t in rnn.unpack_sequence(packed)]
    assert back == [t.tolist() for t in parts]
    wide, _ = rnn.pad_packed_sequence(packed, True, 9.0, total_length=4)
    assert wide.tolist() == [[1, 2, 9, 9], [1, 2, 3, 9], [1, 9, 9, 9]]


def test_packing_has_gradients_of_gradients(daemon):
    def run(x):
        packed = rnn.pack_padded_sequence(x, [4, 2, 1])
        return rnn.pad_packed_sequence(packed, total_length=5)[0] ** 3

    x = _tensor(0, 4, 3, 2).requires_grad_(True)
    assert torch.autograd.gradcheck(run, [x])
    assert torch.autograd.gradgradcheck(run, [x])


def test_wrong_arguments_are_named(daemon):
    net = nn.LSTM(3, 4)
    with pytest.raises(RuntimeError, match="Expected 3, got 5"):
        net(torch.zeros(2, 2, 5))
    with pytest.raises(ValueError, match="Expected input to be 2D or 3D, got 4D"):
        net(torch.zeros(2, 2, 2, 3))
    with pytest.raises(RuntimeError, match=r"Expected hidden\[1\] size \(1, 2, 4\)"):
        net(torch.zeros(2, 2, 3), (torch.zeros(1, 2, 4), torch.zeros(1, 1, 4)))
    with pytest.raises(ValueError, match="does not match weight dtype"):
        net(torch.zeros(2, 2, 3, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="larger than 0"):
        net(torch.zeros(0, 2, 3))[0].tolist()
    with pytest.raises(ValueError, match="only supported for LSTM"):
        nn.GRU(3, 4, proj_size=2)
    with pytest.raises(RuntimeError, match="sorted in decreasing order"):
        rnn.pack_padded_sequence(torch.zeros(3, 2, 1), [1, 3]).data.tolist()
    with pytest.raises(RuntimeError, match="greater than 0"):
        rnn.pack_padded_sequence(torch.zeros(3, 2, 1), [1, 0]).data.tolist()
    with pytest.raises(RuntimeError, match="inconsistent"):
        nn.GRUCell(3, 4)(torch.zeros(2, 5)).tolist()
