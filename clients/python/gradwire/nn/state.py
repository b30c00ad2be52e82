"""Loading a state dict into a module, and making the state of one from a catalog row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import _dtype, _row, _state
from .._rows import MODULES, ROWS
from ..autograd import no_grad
from ..wire import current, frame
from .parameter import Parameter, adopt


def load(
    module: Any, state: Mapping[str, Any], strict: bool, assign: bool
) -> tuple[list[str], list[str]]:
    """Copies values into `module`; raises one error that names all that does not fit."""
    left = dict(state)
    missing: list[str] = []
    errors: list[str] = []
    with no_grad():
        _load(module, left, "", missing, errors, assign)
    unexpected = list(left)
    if strict:
        if unexpected:
            names = ", ".join(f'"{n}"' for n in unexpected)
            errors.insert(0, f"Unexpected key(s) in state_dict: {names}. ")
        if missing:
            names = ", ".join(f'"{n}"' for n in missing)
            errors.insert(0, f"Missing key(s) in state_dict: {names}. ")
    if errors:
        raise RuntimeError(
            f"Error(s) in loading state_dict for {type(module).__name__}:\n\t" + "\n\t".join(errors)
        )
    return missing, unexpected


def _load(
    module: Any,
    left: dict[str, Any],
    prefix: str,
    missing: list[str],
    errors: list[str],
    assign: bool,
) -> None:
    for hook in module._load_state_dict_pre_hooks.values():
        hook(module, left, prefix, {}, True, missing, list(left), errors)
    own = {**module._parameters}
    for name, value in module._buffers.items():
        if name not in module._non_persistent_buffers_set:
            own[name] = value
    for name, value in own.items():
        if value is None:
            continue
        key = prefix + name
        if key not in left:
            missing.append(key)
            continue
        given = left.pop(key)
        if not isinstance(given, _row.Tensor):
            errors.append(
                f'While copying the parameter named "{key}", expected torch.Tensor but received '
                f"{type(given)}"
            )
        elif given._sizes() != value._sizes():
            errors.append(
                f"size mismatch for {key}: copying a param with shape {given.shape} from "
                f"checkpoint, the shape in current model is {value.shape}."
            )
        elif assign:
            if isinstance(value, Parameter):
                fresh = given if isinstance(given, Parameter) else Parameter(
                    given, value._requires_grad
                )  # fmt: skip
                module._parameters[name] = fresh
            else:
                module._buffers[name] = given
        else:
            value.copy_(given)
    extra = prefix + "_extra_state"
    if extra in left:
        module.set_extra_state(left.pop(extra))
    for name, child in module._modules.items():
        if child is not None:
            _load(child, left, f"{prefix}{name}.", missing, errors, assign)


def create(
    row_name: str,
    named: Mapping[str, Any],
    shapes: Mapping[str, tuple[int, ...] | None],
    dtype: Any = None,
) -> dict[str, Any]:
    """The state of a module, made and initialised in the daemon by a row of the catalog.

    `shapes` has every name of the row's state; None: the module is built without it.
    """
    from .._tensor import new

    row = ROWS[row_name]
    module = MODULES[row_name]
    kind = dtype or _state.default_dtype
    given = {**named, "dtype": kind}
    values = [given.get(n, d) for n, d in zip(row.names, row.defaults, strict=True)]
    ids, tape, _ = row.encode(values)
    session = current.session()
    names = [*module["parameters"], *module["buffers"]]
    present = [n for n in names if shapes.get(n) is not None]  # the row gives no others
    wanted = [session.new_id() for _ in present]
    head = frame.head(row.number, 0, tape is not None, len(ids), len(wanted))
    session.emit(head | _row.site() << 48, [*ids, *wanted], tape)
    made: dict[str, Any] = dict.fromkeys(names)
    for name, id in zip(present, wanted, strict=True):
        counts = name.startswith("num_")
        tensor = new(id, shapes[name], _dtype.int64 if counts else kind, False, None)
        made[name] = adopt(tensor) if name in module["parameters"] else tensor
    return made


def put_state(module: Any, state: dict[str, Any]) -> None:
    """Registers made state; where the module has some already its values are replaced."""
    for name, value in state.items():
        have = module._parameters.get(name)
        if have is None:
            have = module._buffers.get(name)
        if have is not None and value is not None:
            with no_grad():
                have.copy_(value)
        elif isinstance(value, Parameter) or value is None and name in ("weight", "bias"):
            module.register_parameter(name, value)
        else:
            module.register_buffer(name, value)
