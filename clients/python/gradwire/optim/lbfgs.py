"""L-BFGS. It decides from values at every turn, so it runs here over ops of tensors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from .. import _create, _ops, _row
from ..autograd import enable_grad, no_grad
from .optimizer import Optimizer, check

# Slopes are tensors: the interpolation rounds and overflows in their dtype, as torch's does.
Point = tuple[Any, float, Any, Any]  # where along the direction, loss, gradient, slope


def _between(a: Point, b: Point, bounds: tuple[Any, Any] | None = None) -> Any:
    """The minimum of the cubic through two points with their slopes, kept within bounds."""
    (x1, f1, _, g1), (x2, f2, _, g2) = a, b
    low, high = bounds if bounds else (min(x1, x2), max(x1, x2))
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1 * d1 - g1 * g2
    if not square >= 0:
        return (low + high) / 2.0
    d2 = square.sqrt()
    if x1 <= x2:
        at = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        at = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(at, low), high)


def _strong_wolfe(
    at: Callable[[Any], Point],
    t: Any,
    start: Point,
    extent: float,
    most: int,
    tolerance: float = 1e-9,
) -> tuple[Point, int]:
    """A point that meets the strong Wolfe conditions, or the best found, and the evaluations.

    `start` is the point at 0, `extent` the direction's largest element. First a bracket around
    such a point is sought, then it is narrowed (Nocedal and Wright 2006, section 3.5).
    """
    _, loss, _, slope = start

    def too_high(point: Point) -> bool:
        return point[1] > loss + 1e-4 * point[0] * slope

    def flat(point: Point) -> bool:
        return abs(point[3]) <= -0.9 * slope

    before, now = start, at(t)
    evaluations, turn, done = 1, 0, False
    bracket = [start, now]
    while turn < most:
        if too_high(now) or (turn > 1 and now[1] >= before[1]) or now[3] >= 0:
            done = flat(now) and not (too_high(now) or (turn > 1 and now[1] >= before[1]))
            bracket = [now] if done else [before, now]
            break
        if flat(now):
            bracket, done = [now], True
            break
        x = now[0]
        t = _between(before, now, (x + 0.01 * (x - before[0]), x * 10))
        before, now = now, at(t)
        evaluations, turn = evaluations + 1, turn + 1
    else:
        bracket = [start, now]

    stuck = False
    low, high = (0, 1) if bracket[0][1] <= bracket[-1][1] else (1, 0)
    while not done and turn < most:
        left, right = sorted((bracket[0][0], bracket[1][0]))
        if (right - left) * extent < tolerance:
            break
        t = _between(bracket[0], bracket[1])
        # A minimum close to an end twice, or at it, is moved a tenth inwards.
        margin = 0.1 * (right - left)
        if min(right - t, t - left) < margin:
            if stuck or t >= right or t <= left:
                t = right - margin if abs(t - right) < abs(t - left) else left + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        now = at(t)
        evaluations, turn = evaluations + 1, turn + 1
        if too_high(now) or now[1] >= bracket[low][1]:
            bracket[high] = now
            low, high = (0, 1) if bracket[0][1] <= bracket[1][1] else (1, 0)
            continue
        if flat(now):
            done = True
        elif now[3] * (bracket[high][0] - bracket[low][0]) >= 0:
            bracket[high] = bracket[low]
        bracket[low] = now
    return bracket[low if len(bracket) > 1 else 0], evaluations


class LBFGS(Optimizer):
    """Limited-memory BFGS over all parameters as one vector."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
        *,
        maximize: bool = False,
    ) -> None:
        check("learning rate", lr)
        self._kept: dict[Any, dict[str, Any]] = defaultdict(dict)
        super().__init__(
            params,
            {
                "lr": lr,
                "max_iter": max_iter,
                "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                "tolerance_grad": tolerance_grad,
                "tolerance_change": tolerance_change,
                "history_size": history_size,
                "line_search_fn": line_search_fn,
                "maximize": maximize,
            },
        )
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def _values(self, group: dict[str, Any]) -> list[float]:
        return []

    def _create(self, params: list[Any], values: list[float]) -> None:
        pass

    def zero_grad(self, set_to_none: bool = True) -> None:
        for value in self._params:
            if value.grad is None:
                continue
            value.grad = None if set_to_none else _create.zeros_like(value.grad)

    @property
    def state(self) -> dict[Any, dict[str, Any]]:
        """The whole state is the first parameter's."""
        return self._kept

    def _states(self, count: int) -> list[dict[str, Any]]:
        return [dict(self._kept.get(p, {})) for p in self._params[:count]]

    def _load(self, states: list[dict[str, Any]]) -> None:
        def copied(value: Any) -> Any:
            if isinstance(value, _row.Tensor):
                return value.detach().clone()
            return [copied(v) for v in value] if isinstance(value, list) else deepcopy(value)

        self._kept.clear()
        for param, entry in zip(self._params, states, strict=True):
            if entry:
                self._kept[param] = {k: copied(v) for k, v in entry.items()}

    # Steps.

    def _flat_grad(self) -> Any:
        parts = [
            _create.zeros_like(p).reshape(-1) if p.grad is None else p.grad.reshape(-1)
            for p in self._params
        ]
        flat = _ops.cat(parts)
        return -flat if self.param_groups[0]["maximize"] else flat

    def _move(self, t: Any, direction: Any) -> None:
        offset = 0
        for value in self._params:
            count = value.numel()
            value.add_(direction[offset : offset + count].view(*value.shape), alpha=float(t))
            offset += count

    def _loss(self, loss: Any) -> float:
        return -float(loss) if self.param_groups[0]["maximize"] else float(loss)

    def _direction(self, state: dict[str, Any], grad: Any, history: int) -> Any:
        """Minus the inverse Hessian, as far as it is known, times the gradient."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return -grad
        dirs, steps, ro = state["old_dirs"], state["old_stps"], state["ro"]
        y, s = grad - state["prev_flat_grad"], state["d"] * state["t"]
        ys = y.dot(s)
        if float(ys) > 1e-10:
            if len(dirs) == history:
                for kept in (dirs, steps, ro):
                    kept.pop(0)
            dirs.append(y)
            steps.append(s)
            ro.append(1.0 / ys)
            state["H_diag"] = ys / y.dot(y)
        q = -grad
        state["al"] = [None] * history
        for i in range(len(dirs) - 1, -1, -1):
            state["al"][i] = steps[i].dot(q) * ro[i]
            q = q - dirs[i] * state["al"][i]
        r = q * state["H_diag"]
        for i in range(len(dirs)):
            r = r + steps[i] * (state["al"][i] - dirs[i].dot(r) * ro[i])
        return r

    def _minimum_along(
        self, closure: Any, t: float, d: Any, start: Point, most: int
    ) -> tuple[Point, int]:
        weights = [p.clone() for p in self._params]

        def at(x: Any) -> Point:
            self._move(x, d)
            loss = self._loss(closure())
            grad = self._flat_grad()
            for value, weight in zip(self._params, weights, strict=True):
                value.copy_(weight)
            return x, loss, grad, grad.dot(d)

        return _strong_wolfe(at, t, start, float(d.abs().max()), most)

    def step(self, closure: Any) -> Any:  # type: ignore[override]
        """Up to max_iter iterations; the closure clears the gradients and gives the loss."""
        for hook in list(self._step_pre_hooks.values()):
            hook(self, (closure,), {})
        with no_grad():
            loss = self._step(enable_grad()(closure))
        self._stepped = True
        for hook in list(self._step_hooks.values()):
            hook(self, (closure,), {})
        return loss

    def _step(self, closure: Any) -> Any:
        group = self.param_groups[0]
        search = group["line_search_fn"]
        if not self._params:
            return closure()
        lr, most, tolerance = float(group["lr"]), group["max_iter"], group["tolerance_change"]
        state = self._kept[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = closure()
        loss, evaluations = self._loss(first), 1
        state["func_evals"] += 1
        grad = self._flat_grad()

        def small() -> bool:
            return float(grad.abs().max()) <= group["tolerance_grad"]

        if small():
            return first
        for turn in range(1, most + 1):
            state["n_iter"] += 1
            d = self._direction(state, grad, group["history_size"])
            before = loss
            t = lr
            if state["n_iter"] == 1:
                total = float(grad.abs().sum())
                t = min(1.0, 1.0 / total) * lr
            state.update(d=d, t=t, prev_flat_grad=grad, prev_loss=before)
            slope = grad.dot(d)
            if slope > -tolerance:
                break
            used, done = 0, False
            if search is None:
                self._move(t, d)
                if turn != most:
                    loss, used = self._loss(closure()), 1
                    grad = self._flat_grad()
                    done = small()
            elif search != "strong_wolfe":
                raise RuntimeError("only 'strong_wolfe' is supported")
            else:
                (t, loss, grad, _), used = self._minimum_along(
                    closure, t, d, (0.0, loss, grad, slope), group["max_eval"] - evaluations
                )
                self._move(t, d)
                done = small()
            state["t"] = t
            evaluations += used
            state["func_evals"] += used
            if turn == most or evaluations >= group["max_eval"] or done:
                break
            if float(d.abs().max()) * abs(float(t)) <= tolerance or abs(loss - before) < tolerance:
                break
        return first
