"""Optimizers. State and steps are the daemon's: a step is one small command."""

from __future__ import annotations

import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from .. import _call, _row
from .._rows import ROWS
from .._tensor import new
from ..wire import current, frame
from ..wire.session import released

# Keywords of rows that are parts of torch's options.
PARTS = {
    "beta1": ("betas", 0),
    "beta2": ("betas", 1),
    "etaminus": ("etas", 0),
    "etaplus": ("etas", 1),
    "step_min": ("step_sizes", 0),
    "step_max": ("step_sizes", 1),
    "eps1": ("eps", 0),
    "eps2": ("eps", 1),
}


class Optimizer:
    """Base of the optimizers: groups, state dicts, steps.

    `row` names the catalog row; its keywords are the options, which torch may spell otherwise
    (`_values`).
    """

    row = ""
    counts_steps = True  # whether torch's state dict of this kind has "step"
    scalars: tuple[str, ...] = ()  # state that is a number: the outputs after "step"

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.param_groups: list[dict[str, Any]] = []
        self._id = 0
        self._sent: list[list[float]] = []
        self._step_hooks: OrderedDict[int, Any] = OrderedDict()
        self._step_pre_hooks: OrderedDict[int, Any] = OrderedDict()
        self._stepped = False
        if isinstance(params, _row.Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or "
                f"dicts, but got {type(params).__name__}"
            )
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    # Groups.

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        group = dict(param_group)
        params = group["params"]
        params = [params] if isinstance(params, _row.Tensor) else list(params)
        if params and isinstance(params[0], tuple):
            group["param_names"] = [name for name, _ in params]
            params = [value for _, value in params]
        for value in params:
            if not isinstance(value, _row.Tensor):
                raise TypeError(
                    "optimizer can only optimize Tensors, but one of the params is "
                    + type(value).__name__
                )
            if not value.is_leaf:
                raise ValueError("can't optimize a non-leaf Tensor")
        if len({id(p) for p in params}) != len(params):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters", stacklevel=3
            )
        have = {id(p) for g in self.param_groups for p in g["params"]}
        if any(id(p) in have for p in params):
            raise ValueError("some parameters appear in more than one parameter group")
        group["params"] = params
        for name, value in self.defaults.items():
            group.setdefault(name, value)
        self.param_groups.append(group)
        values = self._values(group)
        if self._id == 0:
            self._create(params, values)
        else:
            _call.command(ROWS["session.optimizer_add_group"], (self._id, params, values))
        self._sent.append(values)

    def _create(self, params: list[Any], values: list[float]) -> None:
        row = ROWS[self.row]
        typed = [bool(v) if row.kinds[i + 1] == _row.BOOL else v for i, v in enumerate(values)]
        self._id = current.session().new_id()
        _call.command(row, (params, *typed), (self._id,))

    def __del__(self, _append: Callable[[int], None] = released.append) -> None:
        if self.__dict__.get("_id"):
            _append(self._id)

    def _values(self, group: dict[str, Any]) -> list[float]:
        """A group's options in the order of the row's keywords."""
        names = ROWS[self.row].names[1:]
        return [float(self._option(group, name)) for name in names]

    def _option(self, group: dict[str, Any], name: str) -> Any:
        if name in PARTS:
            whole, index = PARTS[name]
            value = group[whole][index]
            return -1.0 if value is None else value
        return group.get(name, 0.0)

    # Steps.

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates every parameter that has a gradient."""
        loss = None
        if closure is not None:
            from ..autograd import enable_grad

            with enable_grad():
                loss = closure()
        for hook in self._step_pre_hooks.values():
            hook(self, (), {})
        for i, group in enumerate(self.param_groups):
            values = self._values(group)
            if values != self._sent[i]:
                _call.command(ROWS["session.optimizer_set_group"], (self._id, i, values))
                self._sent[i] = values
        _call.command(ROWS["session.optimizer_step"], (self._id,))
        self._stepped = True
        for hook in self._step_hooks.values():
            hook(self, (), {})
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        _call.command(ROWS["session.optimizer_zero_grad"], (self._id, bool(set_to_none)))

    def register_step_post_hook(self, hook: Callable[..., Any]) -> Any:
        return self._hook(self._step_hooks, hook)

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> Any:
        return self._hook(self._step_pre_hooks, hook)

    def _hook(self, hooks: Any, hook: Any) -> Any:
        from ..nn.hooks import RemovableHandle

        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        return handle

    # State.

    @property
    def state(self) -> dict[Any, dict[str, Any]]:
        """What the daemon keeps, by parameter: handles of its tensors."""
        found: dict[Any, dict[str, Any]] = defaultdict(dict)
        params = [p for g in self.param_groups for p in g["params"]]
        for value, entry in zip(params, self._states(len(params)), strict=True):
            if entry:
                found[value] = entry
        return found

    def _states(self, count: int) -> list[dict[str, Any]]:
        session = current.session()
        row = ROWS["session.optimizer_state"]
        names = ROWS[self.row].outputs  # "step", then the buffers
        asked = []
        for index in range(count):
            ids = [session.new_id() for _ in names]
            encoded, tape, _ = row.encode((self._id, index))
            head = frame.head(row.number, 0, tape is not None, len(encoded), len(ids))
            asked.append((ids, session.ask(head, [*encoded, *ids], tape)))
        found = []
        for ids, waiter in asked:
            entry: dict[str, Any] = {}
            for name, id, meta in zip(names, ids, session.wait(waiter).metas.metas, strict=True):
                if meta.defined and (name != "step" or self.counts_steps):
                    tensor = new(id, None, None, False, None)
                    tensor._learn(meta)
                    entry[name] = tensor
            # Before the first step there is a count and nothing else.
            found.append(entry if set(entry) - {"step"} else {})
        return found

    def state_dict(self) -> dict[str, Any]:
        groups, index = [], 0
        for group in self.param_groups:
            packed = {k: v for k, v in group.items() if k != "params"}
            packed["params"] = list(range(index, index + len(group["params"])))
            index += len(group["params"])
            groups.append(packed)
        states = {i: entry for i, entry in enumerate(self._states(index)) if entry}
        return {"state": states, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        given = state_dict["param_groups"]
        if len(given) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(
            len(a["params"]) != len(b["params"])
            for a, b in zip(given, self.param_groups, strict=True)
        ):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of "
                "optimizer's group"
            )
        for group, loaded in zip(self.param_groups, given, strict=True):
            group.update({k: deepcopy(v) for k, v in loaded.items() if k != "params"})
        order = [i for group in given for i in group["params"]]
        states = state_dict["state"]
        self._load([states.get(key, states.get(str(key), {})) for key in order])

    def _load(self, states: list[dict[str, Any]]) -> None:
        names = ROWS[self.row].outputs[1 + len(self.scalars) :]
        row = ROWS["session.optimizer_load_state"]
        for index, entry in enumerate(states):
            step = int(entry.get("step", 0))
            buffers = [entry.get(name) for name in names]
            numbers = [float(entry[name]) for name in self.scalars if name in entry]
            _call.command(row, (self._id, buffers, index, step, numbers))

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state_dict": self.state_dict()}

    def __repr__(self) -> str:
        text = type(self).__name__ + " ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            for name in sorted(group):
                if name != "params":
                    text += f"    {name}: {group[name]}\n"
        return text + ")"


def check(name: str, value: Any, most: float | None = None) -> None:
    """Refuses a negative option, or one outside [0, most)."""
    if not value >= 0.0 or (most is not None and value >= most):
        raise ValueError(f"Invalid {name}: {value}")


def flags(maximize: bool, foreach: bool | None, **others: Any) -> dict[str, Any]:
    """The options that say how torch runs a step, checked as torch does.

    Only `maximize` changes anything here: every step runs over all tensors at once.
    """
    if others.get("differentiable"):
        raise NotImplementedError("differentiable optimizer steps are not supported")
    if others.get("fused") and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    return {"maximize": maximize, "foreach": foreach, **others}
