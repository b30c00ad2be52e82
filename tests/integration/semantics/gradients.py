"""Points 13, 14 and the rest of autograd's behaviour."""

from __future__ import annotations

from typing import Any

from . import case, raises, warns


def leaf(torch: Any, *values: float) -> Any:
    return torch.tensor([float(v) for v in values], requires_grad=True)


@case(13, "A second backward through freed buffers.")
def second_backward(torch: Any) -> Any:
    x = leaf(torch, 1, 2)
    y = (x * x).sum()
    y.backward()
    error = raises(torch, "Trying to backward through the graph a second time", y.backward)
    return [error, x.grad]


@case(13, "an in-place change of a saved tensor (version counter).")
def saved_tensor_changed(torch: Any) -> Any:
    def run() -> Any:
        x = leaf(torch, 1, 2)
        y = x.exp()
        y.add_(1)
        y.sum().backward()
        return x.grad

    says = "one of the variables needed for gradient computation has been modified by an inplace"
    return raises(torch, says, run)


@case(13, "in-place on a leaf that requires grad.")
def in_place_on_a_leaf(torch: Any) -> Any:
    x = leaf(torch, 1, 2)
    says = "a leaf Variable that requires grad is being used in an in-place operation."
    error = raises(torch, says, lambda: x.add_(1))
    with torch.no_grad():
        x.add_(1)
    return [error, x]


@case(13, "in-place on a view of a leaf.")
def in_place_on_a_view_of_a_leaf(torch: Any) -> Any:
    x = leaf(torch, 1, 2)
    says = "a view of a leaf Variable that requires grad is being used in an in-place operation."
    return [
        raises(torch, says, lambda: x[0].add_(1)),
        raises(torch, says, lambda: x.view(2, 1).mul_(2)),
        x,
    ]


@case(13, "in-place on an expanded tensor.")
def in_place_on_an_expanded_tensor(torch: Any) -> Any:
    says = "more than one element of the written-to tensor refers to a single memory location"
    x = torch.ones(1)
    return [raises(torch, says, lambda: x.expand(3).add_(1)), x]


@case(13, "backward of a non-scalar without cotangent.")
def backward_of_a_vector(torch: Any) -> Any:
    x = leaf(torch, 1, 2)
    says = "grad can be implicitly created only for scalar outputs"
    return raises(torch, says, lambda: (x * 2).backward())


@case(13, "backward of a tensor that needs none.")
def backward_of_a_constant(torch: Any) -> Any:
    says = "element 0 of tensors does not require grad and does not have a grad_fn"
    return raises(torch, says, lambda: torch.ones(1).sum().backward())


@case(14, "In-place on a view rewrites the base's history.")
def in_place_through_a_view(torch: Any) -> Any:
    x = leaf(torch, 3, 4)
    y = x * 2
    y[1] *= y[0] * 5
    y.view(1, 2)[:, 0].add_(x[0])
    before = y[:1]
    y.mul_(3)
    (y.sum() + before.sum()).backward()
    return [y, x.grad]


@case(14, "`.grad` accumulates.")
def gradients_accumulate(torch: Any) -> Any:
    x = leaf(torch, 1, 2)
    (x * 2).sum().backward()
    (x * x).sum().backward()
    return x.grad


@case(14, "a non-leaf `.grad` is None with a warning unless retain_grad.")
def gradient_of_a_non_leaf(torch: Any) -> Any:
    x = leaf(torch, 1, 2)
    y, z = x * 2, x * 3
    z.retain_grad()
    (y * z).sum().backward()
    says = "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed"
    return [warns(lambda: y.grad, says), z.grad, z.retains_grad, y.retains_grad]


@case(14, "`zero_grad` sets None by default.")
def zero_grad_sets_none(torch: Any) -> Any:
    x = torch.nn.Parameter(torch.ones(2))
    opt = torch.optim.SGD([x], lr=0.1)
    x.sum().backward()
    opt.zero_grad()
    first = x.grad is None
    x.sum().backward()
    opt.zero_grad(set_to_none=False)
    return [first, x.grad]


@case(14, "None gradients skip weight decay and momentum, zero gradients do not.")
def none_gradients_skip(torch: Any) -> Any:
    a, b = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))
    opt = torch.optim.SGD([a, b], lr=0.1, momentum=0.9, weight_decay=0.5)
    (a.sum() + b.sum()).backward()
    opt.step()
    a.grad, b.grad = None, torch.zeros(2)
    opt.step()
    return [a, b]


@case(14, "autograd.grad: unused inputs, cotangents, graphs of gradients.")
def autograd_grad(torch: Any) -> Any:
    x, y = leaf(torch, 1, 2), leaf(torch, 3, 4)
    grad = torch.autograd.grad
    z = (x**3).sum()
    (g,) = grad(z, x, create_graph=True)
    (h,) = grad(g.sum(), x)
    says = "appears to not have been used in the graph"
    return [
        *(g, h),
        raises(torch, says, lambda: grad((x * 2).sum(), [x, y])),
        [v is None for v in grad((x * 2).sum(), [x, y], allow_unused=True)],
        list(grad((x * 2).sum(), [x, y], materialize_grads=True)),
        list(grad(x * 2, x, grad_outputs=torch.tensor([1.0, 10]))),
        [x.grad is None, y.grad is None],
    ]


@case(14, "retain_graph, and backward for some inputs alone.")
def backward_options(torch: Any) -> Any:
    x, y = leaf(torch, 1, 2), leaf(torch, 3, 4)
    m = x * y
    z = (m * m).sum()
    z.backward(retain_graph=True, inputs=[x])
    only = [x.grad.clone(), y.grad is None]
    z.backward(inputs=[m])
    return [*only, m.grad, x.grad]


@case(14, "Hooks of tensors: they see and may change the gradient; removed ones do not run.")
def tensor_hooks(torch: Any) -> Any:
    x = leaf(torch, 1, 2)
    seen = []
    y = x * 3
    handle = y.register_hook(lambda g: seen.append(g.tolist()))
    y.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: g + 1)
    y.sum().backward(retain_graph=True)
    handle.remove()
    y.sum().backward()
    says = "cannot register a hook on a tensor that doesn't require gradient"
    error = raises(torch, says, lambda: torch.ones(1).register_hook(lambda g: g))
    return [seen, x.grad, error]


@case(14, "Hooks after accumulation run with the leaf.")
def accumulation_hooks(torch: Any) -> Any:
    x = leaf(torch, 1, 2)
    seen = []

    def hook(p: Any) -> None:
        seen.append([p is x, p.grad.tolist()])
        p.grad = None

    x.register_post_accumulate_grad_hook(hook)
    (x * x).sum().backward()
    says = "post accumulate grad hooks cannot be registered on non-leaf tensors"
    error = raises(torch, says, lambda: (x * 2).register_post_accumulate_grad_hook(hook))
    return [seen, x.grad is None, error]


@case(14, "Hooks of nodes, and the nodes' names and edges.")
def node_hooks(torch: Any) -> Any:
    x = leaf(torch, 1, 2)
    y = (x * x).exp()
    seen: list[Any] = []
    y.grad_fn.register_hook(lambda i, o: seen.append([i[0].tolist(), o[0].tolist()]))
    y.grad_fn.register_prehook(lambda o: (o[0] * 0.5,))
    inner = y.grad_fn.next_functions[0][0]
    ends = inner.next_functions
    y.sum().backward()
    names = [y.grad_fn.name(), inner.name(), ends[0][0].name(), ends[0][0] is ends[1][0]]
    return [seen, x.grad, names, ends[0][0].variable, y.grad_fn is y.grad_fn]


@case(14, "Function: saved tensors, needs_input_grad, None for what is no tensor.")
def functions(torch: Any) -> Any:
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any, factor: float) -> Any:
            ctx.save_for_backward(x, y)
            ctx.factor = factor
            return x * y * factor

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y = ctx.saved_tensors
            return (
                g * y * ctx.factor if ctx.needs_input_grad[0] else None,
                g * x * ctx.factor if ctx.needs_input_grad[1] else None,
                None,
            )

    x, y = leaf(torch, 1, 2), torch.tensor([3.0, 4])
    z = Scaled.apply(x, y, 2.0)
    z.sum().backward()
    d = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    e = torch.tensor([1.5, -1.0], dtype=torch.float64, requires_grad=True)

    def check(a: Any, b: Any) -> Any:
        return Scaled.apply(a, b, 3.0)

    return [
        *(z, x.grad, z.grad_fn.name(), y.grad is None),
        torch.autograd.gradcheck(check, (d, e)),
        torch.autograd.gradgradcheck(check, (d, e)),
    ]


@case(14, "Function: outputs without gradient, inputs written in place, gradients not made.")
def function_marks(torch: Any) -> Any:
    class Marks(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            y.mul_(2)
            ctx.mark_dirty(y)
            order = x.argsort()
            kept = x + 0
            ctx.mark_non_differentiable(order)
            ctx.set_materialize_grads(False)
            return y, order, kept

        @staticmethod
        def backward(ctx: Any, a: Any, b: Any, c: Any) -> Any:
            log.append([a is None, b is None, c is None])
            return c, None if a is None else a * 2

    log: list[Any] = []
    x, w = leaf(torch, 2, 1), leaf(torch, 5, 6)
    y = w * 1
    a, order, kept = Marks.apply(x, y)
    same = a is y
    kept.sum().backward(retain_graph=True)
    a.sum().backward()
    return [same, a, order, order.requires_grad, log, x.grad, w.grad]


@case(14, "Function: the form with setup_context; a backward that may run once.")
def function_forms(torch: Any) -> Any:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x * x

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2 * ctx.saved_tensors[0]

    x = leaf(torch, 3)
    (g,) = torch.autograd.grad((Square.apply(x) * x).sum(), x, create_graph=True)
    says = "trying to differentiate twice a function that was marked with @once_differentiable"
    return [g, raises(torch, says, lambda: g.sum().backward())]


@case(14, "Function: a wrong number of gradients.")
def function_counts(torch: Any) -> Any:
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x + y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    x = leaf(torch, 3)
    says = "returned an incorrect number of gradients (expected 2, got 1)"
    return raises(torch, says, lambda: Wrong.apply(x, x).backward())


@case(14, "detach shares values, not history; detach_ cuts.")
def detached(torch: Any) -> Any:
    x = leaf(torch, 1, 2)
    y = x * 2
    d = y.detach()
    d.zero_()
    z = (x * 3).detach_()
    return [y, d.requires_grad, z.requires_grad, z.is_leaf, z.grad_fn is None]


@case(14, "no_grad, enable_grad, set_grad_enabled: contexts and decorators.")
def grad_modes(torch: Any) -> Any:
    x = leaf(torch, 1)

    @torch.no_grad()
    def without() -> Any:
        return x * 2

    found = [(x * 2).requires_grad, without().requires_grad]
    with torch.no_grad():
        found.append((x * 2).requires_grad)
        with torch.enable_grad():
            found.append((x * 2).requires_grad)
        with torch.set_grad_enabled(True):
            found.append((x * 2).requires_grad)
        found.append(torch.is_grad_enabled())
    return [*found, torch.is_grad_enabled()]


@case(14, "inference_mode: its tensors stay out of graphs.")
def inference_tensors(torch: Any) -> Any:
    w = leaf(torch, 1, 2)
    with torch.inference_mode():
        i = torch.ones(2)
        inside = (w * i).requires_grad
    return [
        *(i.is_inference(), inside, (i * 2).is_inference()),
        raises(torch, "Inference tensors cannot be saved for backward.", lambda: w * i),
        raises(torch, "Inplace update to inference tensor outside InferenceMode is not allowed.",
               lambda: i.add_(1)),
        raises(torch, "Setting requires_grad=True on inference tensor outside InferenceMode",
               lambda: i.requires_grad_()),
        (w + i).requires_grad,
    ]  # fmt: skip


@case(14, "checkpoint: the same gradients, the same dropout mask, one more forward.")
def checkpoints(torch: Any) -> Any:
    import importlib

    checkpoint = importlib.import_module(f"{torch.__name__}.utils.checkpoint").checkpoint
    found = []
    for reentrant in (True, False):
        torch.manual_seed(3)
        x, w = leaf(torch, *range(1, 9)), leaf(torch, *[1.0] * 8)
        masks: list[Any] = []

        def region(t: Any, w: Any = w, masks: Any = masks) -> Any:
            d = torch.nn.functional.dropout(t * w, 0.5)
            masks.append((d != 0).tolist())
            return d.sin() * t

        out = checkpoint(region, x * 1, use_reentrant=reentrant)
        out.sum().backward()
        found.append([len(masks), masks[0] == masks[1]])
        mask = torch.tensor(masks[0]).float() * 2
        leaf2, w2 = x.detach().requires_grad_(), w.detach().requires_grad_()
        ((leaf2 * w2 * mask).sin() * leaf2).sum().backward()
        found.append([torch.allclose(x.grad, leaf2.grad), torch.allclose(w.grad, w2.grad)])
    return found


@case(14, "Anomaly detection names the node.")
def anomalies(torch: Any) -> Any:
    x = leaf(torch, 0, 4)

    def run() -> Any:
        (x.sqrt() * 0).sum().backward()

    says = "Function 'SqrtBackward0' returned nan values in its 0th output."

    def checked() -> Any:
        with torch.autograd.detect_anomaly():
            return raises(torch, says, run)

    return warns(checked, "Anomaly Detection has been enabled.")


@case(14, "Jacobians, Hessians and their products.")
def functional(torch: Any) -> Any:
    f = torch.autograd.functional
    x, v = torch.tensor([1.0, 2]), torch.tensor([1.0, -1])
    a = torch.tensor([[1.0, 2], [3, 4], [5, 6]])

    def cube(t: Any) -> Any:
        return (t**3).sum()

    return [
        f.jacobian(lambda t: a @ t**2, x),
        [list(r) for r in f.jacobian(lambda t, u: (t * u, t.sum()), (x, v))],
        *(f.hessian(cube, x), list(f.vjp(lambda t: t**2, x, v)), list(f.jvp(lambda t: t**2, x, v))),
        *(list(f.hvp(cube, x, v)), list(f.vhp(cube, x, v))),
        torch.func.grad(torch.func.grad(lambda t: t**4))(torch.tensor(2.0)),
        list(torch.func.vjp(lambda t: t**2, x)[1](v)),
        *(torch.func.jacrev(lambda t: t**2)(x), torch.func.hessian(cube)(x)),
    ]


@case(14, "functional_call runs a module with other parameters.")
def functional_calls(torch: Any) -> Any:
    m = torch.nn.Linear(2, 1)
    w = leaf(torch, 1, 2)
    params = {"weight": w.view(1, 2), "bias": torch.zeros(1)}
    y = torch.func.functional_call(m, params, torch.tensor([[3.0, 4]]))
    y.sum().backward()
    return [y, w.grad, m.weight.grad is None]
