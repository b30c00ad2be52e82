"""nn.Module: attributes, tree, state dicts, hooks, modes, text."""

from __future__ import annotations

import copy

import gradwire as torch
import gradwire.nn as nn
import pytest


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.body = nn.Sequential(nn.ReLU(), nn.Linear(4, 4), nn.Dropout(0.5))
        self.scale = nn.Parameter(torch.ones(4))
        self.register_buffer("steps", torch.zeros(()))
        self.register_buffer("cache", torch.zeros(2), persistent=False)
        self.none = None

    def forward(self, x):
        return self.body(self.first(x)) * self.scale


@pytest.fixture
def net(daemon):
    return Net()


def test_names(net):
    assert [n for n, _ in net.named_parameters()] == [
        "scale", "first.weight", "first.bias", "body.1.weight", "body.1.bias",
    ]  # fmt: skip
    assert [n for n, _ in net.named_modules()] == [
        "", "first", "body", "body.0", "body.1", "body.2",
    ]  # fmt: skip
    assert [n for n, _ in net.named_buffers()] == ["steps", "cache"]
    assert [n for n, _ in net.named_children()] == ["first", "body"]
    assert net.get_submodule("body.1") is net.body[1]
    assert net.get_parameter("first.weight") is net.first.weight
    assert all(p.requires_grad and p.is_leaf for p in net.parameters())


def test_attributes(net):
    with pytest.raises(TypeError, match="cannot assign 'Tensor' as parameter 'scale'"):
        net.scale = torch.ones(4)
    with pytest.raises(TypeError, match="as child module"):
        net.first = 3
    net.scale = None
    assert "scale" not in dict(net.named_parameters())
    net.first = nn.Identity()
    assert isinstance(net.first, nn.Identity)
    net.plain = 5
    assert net.plain == 5
    del net.first
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'first'"):
        net.first  # noqa: B018
    with pytest.raises(KeyError):
        net.register_buffer("a.b", None)
    with pytest.raises(KeyError, match="already exists"):
        net.register_buffer("plain", torch.ones(1))

    class Early(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match="before Module.__init__"):
        Early()


def test_state_dict(net):
    state = net.state_dict()
    assert list(state) == [
        "scale", "steps", "first.weight", "first.bias", "body.1.weight", "body.1.bias",
    ]  # fmt: skip
    assert not state["scale"].requires_grad
    state["scale"].add_(1)  # shares storage
    assert net.scale.tolist() == [2.0] * 4
    other = Net()
    result = other.load_state_dict(state)
    assert result.missing_keys == [] and other.scale.tolist() == [2.0] * 4
    assert other.first.weight.tolist() == net.first.weight.tolist()
    assert other.scale.requires_grad


def test_load_reports_everything_together(net):
    state = dict(net.state_dict())
    del state["scale"]
    state["extra"] = torch.ones(1)
    state["first.weight"] = torch.ones(7)
    with pytest.raises(RuntimeError) as caught:
        net.load_state_dict(state)
    text = str(caught.value)
    assert text.startswith("Error(s) in loading state_dict for Net:")
    assert 'Missing key(s) in state_dict: "scale"' in text
    assert 'Unexpected key(s) in state_dict: "extra"' in text
    assert "size mismatch for first.weight: copying a param with shape torch.Size([7])" in text
    del state["first.weight"]
    result = net.load_state_dict(state, strict=False)
    assert result.missing_keys == ["scale", "first.weight"]
    assert result.unexpected_keys == ["extra"]


def test_assign(net):
    fresh = torch.zeros(4)
    net.load_state_dict({"scale": fresh}, strict=False, assign=True)
    assert isinstance(net.scale, nn.Parameter) and net.scale.requires_grad


def test_tied_weights(daemon):
    a = nn.Linear(2, 2, bias=False)
    model = nn.ModuleList([a, nn.Linear(2, 2, bias=False)])
    model[1].weight = a.weight
    assert len(list(model.parameters())) == 1
    assert list(model.state_dict()) == ["0.weight", "1.weight"]


def test_modes_and_apply(net):
    assert net.training and net.eval() is net
    assert not any(m.training for m in net.modules())
    net.body.train()
    assert net.body[2].training and not net.first.training
    seen = []
    net.apply(lambda m: seen.append(type(m).__name__))
    assert seen == ["Linear", "ReLU", "Linear", "Dropout", "Sequential", "Net"]
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())


def test_hooks(net):
    net.eval()
    calls = []
    first = net.register_forward_pre_hook(lambda m, a: calls.append("pre"))
    net.register_forward_hook(lambda m, a, out: out * 0)
    kw = net.register_forward_hook(lambda m, a, k, out: calls.append(k), with_kwargs=True)
    assert net(torch.ones(2, 3)).tolist() == [[0.0] * 4] * 2
    assert calls == ["pre", {}]
    first.remove()
    kw.remove()
    net(torch.ones(2, 3))
    assert calls == ["pre", {}]


def test_conversion(net):
    before = net.first.weight
    net.double()
    assert net.first.weight is before and before.dtype is torch.float64
    assert before.requires_grad and before.is_leaf and isinstance(before, nn.Parameter)
    assert net.steps.dtype is torch.float64
    net.to(torch.float32)
    assert net.scale.dtype is torch.float32


def test_deepcopy(net):
    twin = copy.deepcopy(net)
    assert twin.first.weight.tolist() == net.first.weight.tolist()
    with torch.no_grad():
        twin.scale.add_(1)
    assert net.scale.tolist() == [1.0] * 4 and twin.scale.tolist() == [2.0] * 4
    assert isinstance(twin.scale, nn.Parameter) and twin.scale.requires_grad


def test_text(net):
    assert repr(net) == (
        "Net(\n"
        "  (first): Linear(in_features=3, out_features=4, bias=True)\n"
        "  (body): Sequential(\n"
        "    (0): ReLU()\n"
        "    (1): Linear(in_features=4, out_features=4, bias=True)\n"
        "    (2): Dropout(p=0.5, inplace=False)\n"
        "  )\n"
        ")"
    )
    conv = nn.Conv2d(1, 32, 3, padding=1)
    assert repr(conv) == ("Conv2d(1, 32, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))")
    assert conv.weight.shape == (32, 1, 3, 3)
    assert repr(nn.BatchNorm2d(8)) == (
        "BatchNorm2d(8, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)"
    )
    assert repr(nn.MaxPool2d(2)) == (
        "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)"
    )
    assert repr(nn.Embedding(5, 2, padding_idx=-1)) == "Embedding(5, 2, padding_idx=4)"


def test_norm_state(daemon):
    norm = nn.BatchNorm2d(3)
    assert list(norm.state_dict()) == [
        "weight", "bias", "running_mean", "running_var", "num_batches_tracked",
    ]  # fmt: skip
    assert norm.num_batches_tracked.dtype is torch.int64
    assert [n for n, _ in norm.named_parameters()] == ["weight", "bias"]
    bare = nn.BatchNorm2d(3, affine=False, track_running_stats=False)
    assert list(bare.state_dict()) == [] and bare.weight is None and bare.running_mean is None
    with pytest.raises(ValueError, match="expected 4D input"):
        norm(torch.ones(2, 3))
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        norm(torch.ones(1, 3, 1, 1))


def test_containers(daemon):
    layers = nn.Sequential(nn.ReLU(), nn.Tanh())
    layers.append(nn.Sigmoid())
    assert len(layers) == 3 and isinstance(layers[-1], nn.Sigmoid)
    assert isinstance(layers[:2], nn.Sequential) and len(layers[:2]) == 2
    layers.insert(0, nn.Identity())
    del layers[1]
    assert [type(m).__name__ for m in layers] == ["Identity", "Tanh", "Sigmoid"]
    by_name = nn.ModuleDict({"a": nn.ReLU()})
    by_name["b"] = nn.Tanh()
    assert list(by_name) == ["a", "b"] and "a" in by_name
    with pytest.raises(IndexError):
        layers[9]
    with pytest.raises(TypeError, match="is not a Module subclass"):
        nn.Sequential(3)


def test_parameters_in_lists_and_by_name(daemon):
    listed = nn.ParameterList([torch.ones(2), nn.Parameter(torch.zeros(3)), "text"])
    assert list(listed.state_dict()) == ["0", "1"] and listed[2] == "text"
    listed[0] = torch.zeros(4)
    listed += [torch.ones(1)]
    assert [p.numel() for p in listed.parameters()] == [4, 3, 1]
    assert len(listed[1:]) == 3 and listed.pop(0).shape == (4,)
    assert list(dict(listed.named_parameters())) == ["0", "2"]
    named = nn.ParameterDict({"b": torch.ones(2), "a": torch.zeros(1)})
    assert list(named) == ["a", "b"] and isinstance(named["a"], nn.Parameter)
    both = named | {"c": torch.ones(3)}
    assert list(both.state_dict()) == ["a", "b", "c"] and "c" not in named
    assert both.pop("b").shape == (2,) and both.popitem()[0] == "c"
    assert both.get("b") is None
    with pytest.raises(TypeError, match="not a string"):
        named[1] = torch.ones(1)
    with pytest.raises(RuntimeError, match="should not be called"):
        named(1)
