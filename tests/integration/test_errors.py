"""Faults: torch's exception with op, shapes and the user's line; nothing else is harmed."""

from __future__ import annotations

import re

import gradwire as torch
import gradwire.nn.functional as F
import pytest
from gradwire import _call
from gradwire._rows import ROWS
from gradwire.wire import current, frame

HERE = r"at \S*test_errors\.py:\d+ in (test_|step)"


def still_works():
    assert (torch.ones(2) + 1).tolist() == [2, 2]


def test_wrong_shape():
    a, b = torch.ones(2, 3), torch.ones(4, 5)
    with pytest.raises(RuntimeError, match=r"\[add\].*\[2, 3\].*\[4, 5\]") as caught:
        a + b
    assert re.search(HERE, str(caught.value))
    with pytest.raises(RuntimeError, match="2x3 and 4x5"):
        a @ b
    still_works()


def test_wrong_dtype():
    with pytest.raises(RuntimeError, match="mean") as caught:
        torch.arange(3).mean()
    assert re.search(HERE, str(caught.value))
    with pytest.raises(RuntimeError, match="float32 != int64"):
        torch.ones(2, 3) @ torch.ones(3, 2).long()
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.arange(3).add_(0.5)
    still_works()


def test_unknown_op():
    session = current.session()
    made = _call._new(session.new_id(), None, None, False, None)
    session.emit(frame.head(65000, 0, False, 0, 1), [made._id], None)
    good = torch.ones(2) * 3
    with pytest.raises((RuntimeError, NotImplementedError), match="65000"):
        made.tolist()
    assert good.tolist() == [3, 3]
    still_works()


def test_released_id():
    x = torch.ones(2) + 1
    _call.command(ROWS["session.release"], ([x],))
    with pytest.raises(RuntimeError, match="was released or never existed"):
        (x + 1).tolist()
    x._id = 0
    still_works()


def test_index_out_of_range_at_the_call():
    x = torch.zeros(3, 4)
    with pytest.raises(IndexError, match="index 5 is out of bounds for dimension 0 with size 3"):
        x[5]
    still_works()


def test_index_out_of_range_at_the_read():
    weight = torch.randn(10, 4)
    good = weight.sum()
    bad = F.embedding(torch.tensor([1, 12]), weight) * 2
    other = weight * 0
    with pytest.raises(IndexError) as caught:
        bad.tolist()
    assert "embedding" in str(caught.value) and re.search(HERE, str(caught.value))
    good.item()
    assert other.sum().item() == 0
    still_works()


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("ASGD", {"t0": 0}),
        ("Adadelta", {}),
        ("Adafactor", {}),
        ("Adagrad", {"lr_decay": 0.1}),
        ("Adam", {}),
        ("AdamW", {}),
        ("Adamax", {}),
        ("NAdam", {}),
        ("RAdam", {}),
        ("RMSprop", {"momentum": 0.9, "centered": True}),
        ("Rprop", {}),
        ("SGD", {"momentum": 0.9}),
    ],
)
def test_poisoned_step_changes_nothing(kind, more):
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 3)
    options = {"lr": 0.1, **more}
    optimizer = getattr(torch.optim, kind)(model.parameters(), **options)

    def step(target):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(torch.ones(2, 4)), torch.tensor(target))
        loss.backward()
        optimizer.step()
        return loss

    step([0, 1]).item()
    weights = {k: v.clone().numpy() for k, v in model.state_dict().items()}
    state = optimizer.state_dict()["state"]
    before = {i: {k: v.clone().tolist() for k, v in s.items()} for i, s in state.items()}
    loss = step([0, 99])
    with pytest.raises(IndexError, match="99") as caught:
        loss.item()
    assert re.search(HERE, str(caught.value))
    for name, value in model.state_dict().items():
        assert (value.numpy() == weights[name]).all(), name
    after = optimizer.state_dict()["state"]
    assert {i: {k: v.tolist() for k, v in s.items()} for i, s in after.items()} == before
    optimizer.zero_grad()
    step([1, 2]).item()
    assert not (model.weight.detach().numpy() == weights["weight"]).all()


def test_second_backward():
    x = torch.ones(2, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    y.backward()
    with pytest.raises(RuntimeError, match="second time|already been freed"):
        x.grad.tolist()
        torch.synchronize()
        raise_unread()


def raise_unread():
    """Raises the first error that no read has shown."""
    session = current.session()
    session.flush()
    from gradwire.wire import errors

    for error in session.events:
        raise errors.decode(error)


def test_unread_errors_are_reported_at_close():
    torch.ones(2, 3).t().view(6)
    with pytest.warns(RuntimeWarning, match=r"never read: .*view") as caught:
        torch.close()
    assert caught[0].filename.endswith("test_errors.py")


def test_cancel_leaves_the_session_usable():
    x = torch.randn(600, 600)
    y = x
    for _ in range(200):
        y = y @ x
    current.session().flush()
    current.session().cancel()
    try:
        y.sum().item()
    except RuntimeError as error:
        assert "cancel" in str(error).lower()
    still_works()
