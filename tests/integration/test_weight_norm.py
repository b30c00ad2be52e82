"""Weights as magnitude times direction, and parametrisations of any kind."""

import copy

import gradwire as torch
import numpy as np
import pytest
from gradwire import nn
from gradwire.nn.utils import parametrizations, parametrize


def _norms(weight, dim):
    values = weight.detach().numpy()
    if dim is None:
        return np.linalg.norm(values)
    axes = tuple(i for i in range(values.ndim) if i != dim)
    return np.sqrt((values**2).sum(axes, keepdims=True))


@pytest.mark.parametrize("dim", [0, 1, None])
def test_a_normalised_weight_starts_as_it_was(daemon, dim):
    net = nn.Linear(3, 4)
    before = net.weight.detach().clone()
    parametrizations.weight_norm(net, dim=dim)
    assert type(net).__name__ == "ParametrizedLinear"
    assert list(net.state_dict()) == [
        "bias",
        "parametrizations.weight.original0",
        "parametrizations.weight.original1",
    ]
    g = net.parametrizations.weight.original0
    np.testing.assert_allclose(g.detach().numpy(), _norms(before, dim), rtol=1e-6)
    assert torch.allclose(net.weight, before, atol=1e-6)
    net(torch.randn(2, 3)).sum().backward()
    assert g.grad is not None and net.parametrizations.weight.original1.grad is not None
    with torch.no_grad():
        g.mul_(2.0)
    assert torch.allclose(net.weight, before * 2, atol=1e-6)
    parametrize.remove_parametrizations(net, "weight")
    assert type(net) is nn.Linear and isinstance(net.weight, nn.Parameter)
    assert torch.allclose(net.weight, before * 2, atol=1e-6)


def test_gradients_of_a_normalised_weight(daemon):
    for dim in (0, 1, -1):
        v = torch.randn(3, 4, 2, dtype=torch.float64, requires_grad=True)
        g = torch.norm_except_dim(v, 2, dim).detach().requires_grad_(True)

        def run(v, g, dim=dim):
            return torch._ops._weight_norm(v, g, dim)

        assert torch.autograd.gradcheck(run, [v, g])
        assert torch.autograd.gradgradcheck(run, [v, g])


def test_the_older_form_has_its_names(daemon):
    net, new = nn.Linear(3, 4), parametrizations.weight_norm(nn.Linear(3, 4))
    with pytest.warns(FutureWarning, match="deprecated"):
        nn.utils.weight_norm(net)
    assert list(net.state_dict()) == ["bias", "weight_g", "weight_v"]
    with (
        pytest.warns(FutureWarning),
        pytest.raises(RuntimeError, match="two weight_norm hooks"),
    ):
        nn.utils.weight_norm(net)
    x = torch.randn(2, 3)
    new.load_state_dict(net.state_dict())
    assert torch.allclose(new(x), net(x), atol=1e-6)
    net(x).sum().backward()
    assert net.weight_g.grad.shape == (4, 1)
    before = net.weight.detach().clone()
    nn.utils.remove_weight_norm(net)
    assert torch.allclose(net.weight, before) and isinstance(net.weight, nn.Parameter)
    with pytest.raises(ValueError, match="not found"):
        nn.utils.remove_weight_norm(net)


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).T

    def right_inverse(self, x):
        return x.triu()


def test_parametrisations_stack_copy_and_cache(daemon):
    class Doubled(nn.Module):
        calls = 0

        def forward(self, x):
            Doubled.calls += 1
            return x * 2

    net = nn.Linear(3, 3)
    parametrize.register_parametrization(net, "weight", Symmetric())
    assert torch.equal(net.weight, net.weight.T)
    parametrize.register_parametrization(net, "weight", Doubled(), unsafe=True)
    other = copy.deepcopy(net)
    assert torch.equal(other.weight, net.weight)
    Doubled.calls = 0
    with parametrize.cached():
        assert net.weight is net.weight
    assert Doubled.calls == 1
    kept = net.parametrizations.weight.original.detach().clone()
    parametrize.remove_parametrizations(net, "weight", leave_parametrized=False)
    assert torch.equal(net.weight, kept)
    assert parametrize.is_parametrized(other, "weight")
    assert not parametrize.is_parametrized(net)
    plain = nn.Linear(3, 3)
    parametrize.register_parametrization(plain, "weight", Symmetric())
    plain.weight = torch.ones(3, 3)
    assert plain.weight.tolist() == [[1.0] * 3] * 3
    with pytest.raises(ValueError, match="may not change the shape"):
        parametrize.register_parametrization(nn.Linear(2, 3), "weight", nn.Flatten(0))
    with pytest.raises(ValueError, match="does not have a parameter"):
        parametrize.register_parametrization(nn.Linear(2, 3), "nothing", Symmetric())
