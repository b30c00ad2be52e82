"""Points 17 to 19, 22: recurrent modules, optimizers, clipping, schedulers, state."""

from __future__ import annotations

from typing import Any

from . import case, raises, warns


def filled(torch: Any, module: Any) -> Any:
    """The module with parameters that are simple functions of their place."""
    with torch.no_grad():
        for k, p in enumerate(module.parameters()):
            p.copy_(((torch.arange(p.numel()) * 7 + 3 * k) % 11 - 5).reshape(p.shape) * 0.1)
    return module


def sequence(torch: Any, *shape: int) -> Any:
    count = 1
    for size in shape:
        count *= size
    return ((torch.arange(count) * 5) % 13 - 6).reshape(shape) * 0.2


@case(17, "LSTM gate order i, f, g, o, two bias vectors, `_reverse` names.")
def lstm(torch: Any) -> Any:
    m = filled(torch, torch.nn.LSTM(2, 3, bidirectional=True))
    out, (h, c) = m(sequence(torch, 4, 1, 2))
    return [out, h, c, [n for n, _ in m.named_parameters()], list(m.weight_ih_l0.shape)]


@case(17, "GRU applies reset after the matmul, b_hn included.")
def gru(torch: Any) -> Any:
    m = filled(torch, torch.nn.GRU(2, 3))
    return list(m(sequence(torch, 4, 1, 2)))


@case(17, "dropout only between layers.")
def dropout_between_layers(torch: Any) -> Any:
    m = filled(torch, torch.nn.LSTM(2, 3, num_layers=2, dropout=1.0))
    out, _ = m(sequence(torch, 3, 1, 2))
    message = "dropout option adds dropout after all but last recurrent layer"
    return [out, warns(lambda: torch.nn.LSTM(2, 3, dropout=0.5).dropout, message)]


def steps(torch: Any, make: Any, count: int = 3) -> Any:
    p = torch.nn.Parameter(torch.tensor([1.0, -2.0, 0.5]))
    opt = make([p])
    for k in range(count):
        opt.zero_grad()
        (p * torch.tensor([0.1, 2.0, 0.0]) * (k + 1)).sum().backward()
        opt.step()
    return p


@case(18, "Adam's eps is outside the square root, after bias correction.")
def adam_eps(torch: Any) -> Any:
    return steps(torch, lambda p: torch.optim.Adam(p, lr=0.1, eps=0.5))


@case(18, "AdamW decays decoupled, default 0.01.")
def adamw_decay(torch: Any) -> Any:
    opt = torch.optim.AdamW([torch.nn.Parameter(torch.ones(1))])
    return [
        steps(torch, lambda p: torch.optim.AdamW(p, lr=0.1)),
        steps(torch, lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.5)),
        steps(torch, lambda p: torch.optim.Adam(p, lr=0.1, weight_decay=0.5)),
        opt.defaults["weight_decay"],
    ]


@case(18, "SGD's first momentum step ignores dampening.")
def sgd_dampening(torch: Any) -> Any:
    make = torch.optim.SGD
    return [
        steps(torch, lambda p: make(p, lr=0.1, momentum=0.9, dampening=0.5), n) for n in (1, 2, 3)
    ]


@case(18, "eps defaults: Adagrad 1e-10, Adadelta 1e-6 (lr 1.0), RMSprop lr 0.01.")
def optimizer_defaults(torch: Any) -> Any:
    p = [torch.nn.Parameter(torch.ones(1))]
    o = torch.optim
    return [
        o.Adagrad(p).defaults["eps"],
        o.Adadelta(p).defaults["eps"],
        o.Adadelta(p).defaults["lr"],
        o.RMSprop(p).defaults["lr"],
        steps(torch, lambda q: o.Adagrad(q)),
        steps(torch, lambda q: o.Adadelta(q)),
        steps(torch, lambda q: o.RMSprop(q)),
    ]


@case(19, "clip_grad_norm_ returns the norm before clipping; max/(norm + 1e-6), capped at 1.")
def clipping(torch: Any) -> Any:
    found = []
    for limit in (1.0, 100.0):
        p = torch.nn.Parameter(torch.zeros(2))
        p.grad = torch.tensor([3.0, 4.0])
        norm = torch.nn.utils.clip_grad_norm_([p], limit)
        found += [norm, p.grad.clone()]
    torch.nn.utils.clip_grad_value_([p], 3.5)
    return [*found, p.grad]


@case(19, "A scheduler stepped before its optimizer warns.")
def scheduler_order(torch: Any) -> Any:
    def run() -> Any:
        p = torch.nn.Parameter(torch.zeros(2))
        opt = torch.optim.SGD([p], lr=1.0)
        sched = torch.optim.lr_scheduler.StepLR(opt, 1)
        sched.step()
        return sched.get_last_lr()

    return warns(run, "Detected call of `lr_scheduler.step()` before `optimizer.step()`")


@case(19, "Cosine rises again past T_max.")
def cosine(torch: Any) -> Any:
    opt = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 4)
    found = []
    for _ in range(10):
        opt.step()
        sched.step()
        found.append(sched.get_last_lr()[0])
    return found


@case(22, "Tied weights: parameters() lists them once, state_dict twice.")
def tied_weights(torch: Any) -> Any:
    m = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    m[1].weight = m[0].weight
    return [len(list(m.parameters())), list(m.state_dict()), [n for n, _ in m.named_parameters()]]


@case(22, "load_state_dict reports missing, unexpected and mismatched names together.")
def load_state_dict_reports(torch: Any) -> Any:
    m = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1))
    state = m.state_dict()
    del state["0.bias"]
    state["extra"] = torch.ones(1)
    state["1.weight"] = torch.ones(2, 2)
    parts = [
        'Missing key(s) in state_dict: "0.bias"',
        'Unexpected key(s) in state_dict: "extra"',
        "size mismatch for 1.weight: copying a param with shape torch.Size([2, 2]) from checkpoint",
    ]
    found = [raises(torch, part, lambda: m.load_state_dict(state)) for part in parts]
    loose = m.load_state_dict({k: v for k, v in state.items() if k != "1.weight"}, strict=False)
    return [*found, sorted(loose.missing_keys), loose.unexpected_keys]
