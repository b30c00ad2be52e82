"""torch.func: derivatives as functions of functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _row
from .autograd import enable_grad
from .autograd import functional as _functional
from .autograd.backward import grad as _grad

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "stack_module_state",
    "vjp",
    "vmap",
]


def _map(value: Any, change: Callable[[Any], Any]) -> Any:
    """A tree of tuples, lists and dicts with its tensors changed."""
    if isinstance(value, _row.Tensor):
        return change(value)
    if isinstance(value, dict):
        return type(value)((k, _map(v, change)) for k, v in value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_map(v, change) for v in value))
    if isinstance(value, (tuple, list)):
        return type(value)(_map(v, change) for v in value)
    return value


def _leaves(value: Any) -> list[Any]:
    found: list[Any] = []

    def keep(tensor: Any) -> Any:
        found.append(tensor)
        return tensor

    _map(value, keep)
    return found


def _wrapped(tensor: Any) -> Any:
    """The tensor as something to differentiate by, still in the graph of an outer transform."""
    if not tensor.is_floating_point():
        return tensor
    return tensor.view_as(tensor) if tensor.requires_grad else tensor.detach().requires_grad_()


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives the gradient of func by some arguments, and func's value."""

    def run(*args: Any, **kwargs: Any) -> Any:
        with enable_grad():
            outer = any(t.requires_grad for t in _leaves((args, kwargs)))
            given = list(args)
            single = isinstance(argnums, int)
            places = (argnums,) if isinstance(argnums, int) else argnums
            for i in places:
                given[i] = _map(args[i], _wrapped)
            output = func(*given, **kwargs)
            aux = None
            if has_aux:
                output, aux = output
            if not isinstance(output, _row.Tensor):
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a tensor, got "
                    f"{type(output)}"
                )
            if output.dim() != 0:
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a scalar tensor, got "
                    f"tensor with {output.dim()} dims. Did you forget to call .sum() on it?"
                )
            wanted = [given[i] for i in places]
            leaves = _leaves(wanted)
            if output.requires_grad:
                found = iter(_grad(output, leaves, create_graph=outer, materialize_grads=True))
            else:
                found = iter([t * 0 for t in leaves])
            results = _map(wanted, lambda _: next(found))
            if not outer:
                results = _map(results, lambda t: t.detach())
                output = output.detach()
                aux = _map(aux, lambda t: t.detach())
            value = results[0] if single else tuple(results)
            return (value, (output, aux)) if has_aux else (value, output)

    return run


def grad(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives the gradient of func by some arguments."""
    both = grad_and_value(func, argnums, has_aux)

    def run(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return run


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """func's value, and a function from a cotangent to the gradients by the primals."""
    with enable_grad():
        outer = any(t.requires_grad for t in _leaves(primals))
        given = tuple(_map(p, _wrapped) for p in primals)
        output = func(*given)
        aux = None
        if has_aux:
            output, aux = output

    def pull(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        outputs, given_back = _leaves(output), _leaves(cotangents)
        pairs = [(o, c) for o, c in zip(outputs, given_back, strict=True) if o.requires_grad]
        inside = outer or any(c.requires_grad for c in given_back)
        with enable_grad():
            found = iter(
                _grad(
                    [o for o, _ in pairs],
                    _leaves(given),
                    [c for _, c in pairs],
                    retain_graph=True,
                    create_graph=inside if create_graph is None else create_graph,
                    materialize_grads=True,
                )
            )
        return _map(given, lambda _: next(found))

    value = output if outer else _map(output, lambda t: t.detach())
    return (value, pull, aux) if has_aux else (value, pull)


def jvp(func: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
    """func's value, and its Jacobian times the tangents."""
    return _functional.jvp(func, tuple(primals), tuple(tangents))


def jacrev(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives the Jacobian of func by some arguments."""

    def run(*args: Any) -> Any:
        places = (argnums,) if isinstance(argnums, int) else argnums
        aux: list[Any] = []

        def partial(*chosen: Any) -> Any:
            given = list(args)
            for i, value in zip(places, chosen, strict=True):
                given[i] = value
            result = func(*given)
            if has_aux:
                result, extra = result
                aux.append(extra)
            return result

        outer = any(t.requires_grad for t in _leaves(args))
        chosen = tuple(args[i] for i in places)
        single = isinstance(argnums, int)
        found = _functional.jacobian(partial, chosen[0] if single else chosen, create_graph=outer)
        return (found, aux[0]) if has_aux else found

    return run


jacfwd = jacrev


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """A function that gives the second derivatives of func."""

    def run(*args: Any) -> Any:
        def first(*inner: Any) -> Any:
            return jacrev(func, argnums)(*inner)

        given = list(args)
        for i in (argnums,) if isinstance(argnums, int) else argnums:
            given[i] = _map(args[i], lambda t: t.detach().requires_grad_())
        found = jacrev(first, argnums)(*given)
        return _map(found, lambda t: t.detach())

    return run


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Runs a module with these tensors in the place of its own parameters and buffers."""
    dicts = parameter_and_buffer_dicts
    values = dict(dicts) if isinstance(dicts, dict) else {k: v for d in dicts for k, v in d.items()}
    own = dict(module.named_parameters(remove_duplicate=False))
    own.update(module.named_buffers(remove_duplicate=False))
    if strict:
        missing = [k for k in own if k not in values]
        unexpected = [k for k in values if k not in own]
        if missing or unexpected:
            raise RuntimeError(
                "Error(s) in swapping parameters and buffers: missing keys "
                f"{missing}, unexpected keys {unexpected}"
            )
    if tie_weights:
        for name, tensor in own.items():
            if name in values:
                for other, same in own.items():
                    if same is tensor:
                        values.setdefault(other, values[name])
    swapped: list[tuple[dict[str, Any], str, Any]] = []
    try:
        for name, value in values.items():
            path, _, last = name.rpartition(".")
            holder = module.get_submodule(path)
            for table in (holder._parameters, holder._buffers):
                if last in table:
                    swapped.append((table, last, table[last]))
                    table[last] = value
        if args is None:
            args = ()
        elif not isinstance(args, tuple):
            args = (args,)
        return module(*args, **(kwargs or {}))
    finally:
        for table, last, value in reversed(swapped):
            table[last] = value


def stack_module_state(models: Any) -> Any:
    """The parameters and the buffers of several models of one kind, stacked by name."""
    from ._ops import stack

    def stacked(of: str) -> dict[str, Any]:
        tables = [dict(getattr(m, of)()) for m in models]
        return {k: stack([t[k] for t in tables]).detach() for k in tables[0]}

    parameters = stacked("named_parameters")
    for value in parameters.values():
        value.requires_grad_()
    return parameters, stacked("named_buffers")


def _slice(value: Any, dim: int | None, index: int) -> Any:
    return value if dim is None else _map(value, lambda t: t.select(dim, index))


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: int = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """func over a dimension of its arguments: called once for each slice, results stacked."""
    from ._ops import stack

    def run(*args: Any, **kwargs: Any) -> Any:
        dims = in_dims if isinstance(in_dims, (tuple, list)) else (in_dims,) * len(args)
        sizes = {
            t.shape[d] for a, d in zip(args, dims, strict=True) if d is not None for t in _leaves(a)
        }
        if len(sizes) != 1:
            raise ValueError(
                "vmap: Expected all tensors to have the same size in the mapped dimension, got "
                f"sizes {sorted(sizes)} for the mapped dimension"
            )
        results = []
        for i in range(sizes.pop()):
            given = [_slice(a, d, i) for a, d in zip(args, dims, strict=True)]
            results.append(func(*given, **kwargs))
        columns = [iter(column) for column in zip(*map(_leaves, results), strict=True)]
        position = iter(columns)
        return _map(results[0], lambda _: stack(list(next(position)), out_dims))

    return run
