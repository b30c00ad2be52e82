"""Points 10 to 12, 15, 16 and 20: losses, norms, pooling, gradients at edges, masks."""

from __future__ import annotations

from typing import Any

from . import case, gradient, raises

nan, inf = float("nan"), float("inf")


def logits(torch: Any) -> Any:
    return torch.tensor([[1.0, 2, 3], [0, 0, 1], [2, -1, 0]])


@case(10, "ignore_index leaves the mean.")
def ignored_targets_leave_the_mean(torch: Any) -> Any:
    F, t = torch.nn.functional, torch.tensor([0, -100, 2])
    x = logits(torch).requires_grad_()
    loss = F.cross_entropy(x, t)
    loss.backward()
    return [
        loss,
        x.grad,
        F.cross_entropy(x, torch.tensor([0, 1, 2]), ignore_index=1),
        F.cross_entropy(x, t, reduction="none"),
        F.nll_loss(F.log_softmax(x, 1), t),
    ]


@case(10, "a weighted mean divides by the weights' sum.")
def weighted_mean(torch: Any) -> Any:
    F, w = torch.nn.functional, torch.tensor([1.0, 5, 0.5])
    x, t = logits(torch), torch.tensor([0, 1, 2])
    return [
        F.cross_entropy(x, t, w),
        F.cross_entropy(x, t, w, reduction="sum"),
        F.cross_entropy(x, t, w, label_smoothing=0.1),
        F.nll_loss(x, t, w),
    ]


@case(10, "all ignored gives nan.")
def all_ignored(torch: Any) -> Any:
    t = torch.tensor([-100, -100, -100])
    F = torch.nn.functional
    return [F.cross_entropy(logits(torch), t), F.cross_entropy(logits(torch), t, reduction="sum")]


@case(10, "probability targets combine with smoothing.")
def probability_targets(torch: Any) -> Any:
    F = torch.nn.functional
    p = torch.tensor([[0.2, 0.3, 0.5], [1, 0, 0], [0, 0.5, 0.5]])
    x, w = logits(torch), torch.tensor([1.0, 5, 0.5])
    return [
        F.cross_entropy(x, p),
        F.cross_entropy(x, p, label_smoothing=0.2),
        F.cross_entropy(x, p, w),
        F.cross_entropy(x, p, reduction="none"),
    ]


@case(10, "class targets must be int64; out of range is IndexError.")
def class_targets(torch: Any) -> Any:
    F, x = torch.nn.functional, logits(torch)
    bad = torch.tensor([0, 1, 5])
    return [
        raises(torch, "", lambda: F.cross_entropy(x, torch.tensor([0, 1, 2], dtype=torch.int32))),
        raises(torch, "Target 5 is out of bounds.", lambda: F.cross_entropy(x, bad)),
    ]


@case(10, "BCE clamps log at -100 and refuses inputs outside [0, 1].")
def bce_limits(torch: Any) -> Any:
    F = torch.nn.functional
    x, t = torch.tensor([0.0, 1, 0.5]), torch.tensor([1.0, 0, 1])
    return [
        F.binary_cross_entropy(x, t, reduction="none"),
        gradient(torch, lambda v: F.binary_cross_entropy(v, t), [0.25, 0.5, 0.5]),
        raises(torch, "all elements of input should be between 0 and 1",
               lambda: F.binary_cross_entropy(x + 1, t)),
    ]  # fmt: skip


@case(10, "`kl_div` 'mean' differs from 'batchmean'.")
def kl_div_means(torch: Any) -> Any:
    F = torch.nn.functional
    x, t = F.log_softmax(logits(torch), 1), torch.full((3, 3), 1 / 3)
    return [F.kl_div(x, t, reduction=r) for r in ("mean", "batchmean", "sum", "none")]


@case(11, "BatchNorm normalises with the biased variance and stores the unbiased.")
def batch_norm_variances(torch: Any) -> Any:
    norm = torch.nn.BatchNorm1d(2)
    x = torch.tensor([[1.0, 2], [3, 8], [8, 2]])
    return [norm(x), norm.running_mean, norm.running_var]


@case(11, "momentum=None is cumulative.")
def batch_norm_cumulative(torch: Any) -> Any:
    norm = torch.nn.BatchNorm1d(2, momentum=None)
    norm(torch.tensor([[1.0, 2], [3, 8]]))
    norm(torch.tensor([[5.0, 2], [3, 0], [1, 1]]))
    return [norm.running_mean, norm.running_var]


@case(11, "one value per channel in training is ValueError.")
def batch_norm_of_one_value(torch: Any) -> Any:
    norm = torch.nn.BatchNorm1d(2)
    says = "Expected more than 1 value per channel when training"
    return [raises(torch, says, lambda: norm(torch.ones(1, 2))), norm.eval()(torch.ones(1, 2))]


@case(11, "it counts num_batches_tracked.")
def batch_norm_counts(torch: Any) -> Any:
    norm = torch.nn.BatchNorm1d(2)
    norm(torch.ones(3, 2))
    norm(torch.ones(3, 2))
    norm.eval()(torch.ones(3, 2))
    return norm.num_batches_tracked


@case(12, "avg_pool: count_include_pad=True by default, ceil_mode windows, pad at most kernel/2.")
def average_pools(torch: Any) -> Any:
    F = torch.nn.functional
    x = torch.arange(25.0).reshape(1, 1, 5, 5)
    return [
        F.avg_pool2d(x, 3, 2, 1),
        F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
        F.avg_pool2d(x, 2, ceil_mode=True),
        F.max_pool2d(x, 2, ceil_mode=True),
        F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, divisor_override=2),
        raises(torch, "pad should be at most half of", lambda: F.max_pool2d(x, 3, 2, 2)),
        raises(torch, "pad should be at most half of", lambda: F.avg_pool2d(x, 3, 2, 2)),
    ]


@case(12, "interpolate nearest uses floor; align_corners differs.")
def interpolations(torch: Any) -> Any:
    F = torch.nn.functional
    x = torch.arange(6.0).reshape(1, 1, 2, 3)
    return [
        F.interpolate(x, size=(3, 5)),
        F.interpolate(x, scale_factor=2, mode="bilinear"),
        F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True),
    ]


@case(12, "`F.pad` lists the last dim first; reflect pad < dim.")
def pads(torch: Any) -> Any:
    F = torch.nn.functional
    x = torch.arange(6.0).reshape(1, 2, 3)
    return [
        F.pad(x, (1, 0, 0, 2)),
        F.pad(x, (-1, 1), value=9),
        F.pad(x, (2, 1), mode="reflect"),
        F.pad(x, (3, 1), mode="replicate"),
        F.pad(x, (1, 1), mode="circular"),
        raises(torch, "Padding size should be less than the corresponding input dimension",
               lambda: F.pad(x, (3, 0), mode="reflect")),
    ]  # fmt: skip


@case(15, "Gradients at 0: abs 0, relu 0, leaky_relu slope, sqrt inf, norm 0.")
def gradients_at_zero(torch: Any) -> Any:
    F = torch.nn.functional
    at = [0.0, -0.0]
    return [
        gradient(torch, lambda x: x.abs(), at),
        gradient(torch, lambda x: x.relu(), at),
        gradient(torch, lambda x: F.leaky_relu(x, 0.1), at),
        gradient(torch, lambda x: x.sqrt(), [0.0]),
        gradient(torch, lambda x: x.norm(), at),
        gradient(torch, lambda x: x.sign(), at),
        gradient(torch, lambda x: x**0, at),
        gradient(torch, lambda x: x**2, at),
        gradient(torch, lambda x: F.elu(x), at),
        gradient(torch, lambda x: F.relu6(x), [0.0, 6.0]),
        gradient(torch, lambda x: F.hardtanh(x), [-1.0, 1.0]),
    ]


@case(15, "clamp passes the gradient at both bounds.")
def clamp_at_its_bounds(torch: Any) -> Any:
    return gradient(torch, lambda x: x.clamp(-1, 1), [-1.0, 1, 0, 2, -2])


@case(15, "`where(x > 0, log x, 0)` gives a nan gradient at 0.")
def where_does_not_mask_nan(torch: Any) -> Any:
    return gradient(torch, lambda x: torch.where(x > 0, x.log(), torch.zeros(2)) * 1, [0.0, 2.0])


@case(16, "Embedding padding_idx: zero row, no gradient.")
def embedding_padding(torch: Any) -> Any:
    e = torch.nn.Embedding(4, 2, padding_idx=1)
    e(torch.tensor([[1, 1], [0, 3]])).sum().backward()
    return [e.weight[1], e.weight.grad]


@case(16, "from_pretrained freezes.")
def embedding_from_pretrained(torch: Any) -> Any:
    w = torch.arange(6.0).reshape(3, 2)
    e = torch.nn.Embedding.from_pretrained(w)
    free = torch.nn.Embedding.from_pretrained(w, freeze=False)
    return [e.weight.requires_grad, free.weight.requires_grad, e(torch.tensor([2, 0]))]


@case(16, "GELU erf and tanh forms differ by 1.5e-4 at 1.")
def gelu_forms(torch: Any) -> Any:
    F, x = torch.nn.functional, torch.tensor([1.0, -2.0, 0.5])
    return [F.gelu(x), F.gelu(x, approximate="tanh")]


@case(16, "Dropout scales by 1/(1-p); p = 1 gives zeros.")
def dropout_scale(torch: Any) -> Any:
    F = torch.nn.functional
    torch.manual_seed(0)
    y = F.dropout(torch.ones(1000), 0.75)
    kept = y[y != 0]
    return [
        bool((kept == 4).all()),
        100 < kept.numel() < 400,
        F.dropout(torch.ones(3), 1.0),
        F.dropout(torch.ones(3), 0.5, training=False),
        raises(torch, "dropout probability has to be between 0 and 1",
               lambda: F.dropout(torch.ones(3), 1.5)),
    ]  # fmt: skip


@case(20, "MultiheadAttention True = blocked.")
def multihead_attention_mask(torch: Any) -> Any:
    m = torch.nn.MultiheadAttention(2, 1, bias=False, batch_first=True)
    with torch.no_grad():
        m.in_proj_weight.copy_(torch.eye(2).repeat(3, 1))
        m.out_proj.weight.copy_(torch.eye(2))
    x = torch.tensor([[[1.0, 2], [3, -1], [0, 1]]])
    mask = torch.tensor([[False, True, False], [False, False, True], [True, False, False]])
    return list(m(x, x, x, attn_mask=mask))


@case(20, "SDPA True = keep.")
def sdpa_mask(torch: Any) -> Any:
    F = torch.nn.functional
    x = torch.tensor([[[1.0, 2], [3, -1], [0, 1]]])
    mask = torch.tensor([[True, False, True], [True, True, False], [False, True, True]])
    return [
        F.scaled_dot_product_attention(x, x, x, attn_mask=mask),
        F.scaled_dot_product_attention(x, x, x, is_causal=True),
    ]


@case(20, "Softmax of all -inf is nan; logsumexp -inf.")
def softmax_of_minus_infinity(torch: Any) -> Any:
    x = torch.full((2,), -inf)
    return [x.softmax(0), x.log_softmax(0), x.logsumexp(0), torch.tensor([-inf, 0]).softmax(0)]
