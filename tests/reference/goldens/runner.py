"""Runs single cases of the recorded results against a module that mirrors torch.

Every method returns None when the case passes, or what differs; it may also raise.
"""

import importlib
import math

import numpy as np
from compare import AMBIGUOUS, LOOSE, difference, difference_of_factors

# Called on the first argument, even where the module has a function of that name.
METHODS = set(
    """
    bfloat16 bool byte char contiguous double expand expand_as float half int long new_full
    new_ones new_zeros repeat short sum_to_size to type_as unflatten view view_as
    """.split()  # noqa: SIM905
)
# In place by keyword rather than by a name that ends in an underscore.
INPLACE_BY_KEYWORD = {
    f"nn.functional.{name}"
    for name in """
    celu elu hardsigmoid hardswish hardtanh leaky_relu mish relu relu6 rrelu selu silu threshold
    """.split()  # noqa: SIM905
}


def _dtype(tensor):
    return str(tensor.dtype).split(".")[-1]


class Runner:
    def __init__(self, module):
        self.torch = importlib.import_module(module)
        self.nn = importlib.import_module(f"{module}.nn")
        self.optim = importlib.import_module(f"{module}.optim")

    # Trees of the data files -> arguments; leaves that require a gradient are appended to `leaves`.

    def value(self, pack, entry, node, leaves):
        if isinstance(node, list):
            return [self.value(pack, entry, x, leaves) for x in node]
        if not isinstance(node, dict):
            return node
        if "t" in node:
            return self.tensor(pack, entry, node, leaves)
        if "tuple" in node:
            return tuple(self.value(pack, entry, x, leaves) for x in node["tuple"])
        if "dict" in node:
            return self.keywords(pack, entry, node, leaves)
        if "dtype" in node:
            return getattr(self.torch, node["dtype"])
        if "device" in node:
            return self.torch.device(node["device"])
        if "float" in node:
            return float(node["float"])
        if "slice" in node:
            return slice(*self.value(pack, entry, node["slice"], leaves))
        if "ellipsis" in node:
            return Ellipsis
        if "enum" in node:
            return getattr(self.torch, node["enum"])
        raise TypeError(f"node {list(node)}")

    def keywords(self, pack, entry, node, leaves):
        values = node.get("dict", node)
        return {key: self.value(pack, entry, x, leaves) for key, x in values.items()}

    def tensor(self, pack, entry, node, leaves):
        array = pack.array(entry, node["t"])
        tensor = self.torch.tensor(array if array.ndim else array[()])
        dtype = pack.dtype(entry, node["t"])
        if _dtype(tensor) != dtype:
            tensor = tensor.to(getattr(self.torch, dtype))
        if node.get("noncontiguous") and tensor.ndim >= 2:
            tensor = tensor.transpose(0, -1).contiguous().transpose(0, -1)
        if node.get("requires_grad"):
            tensor.requires_grad_(True)
            leaves.append(tensor)
        return tensor

    # Results -> numpy

    def flat(self, tree):
        if isinstance(tree, self.torch.Tensor):
            return [tree]
        if isinstance(tree, dict):
            tree = tree.values()
        elif not isinstance(tree, list | tuple):
            return []
        return [tensor for x in tree for tensor in self.flat(x)]

    def wanted(self, node):
        """The nodes of all tensors in an expected tree, in the order of `flat`."""
        if isinstance(node, dict):
            if "t" in node:
                return [node]
            node = node.get("tuple") or list(node.get("dict", {}).values())
        elif not isinstance(node, list):
            return []
        return [leaf for x in node for leaf in self.wanted(x)]

    def numpy(self, tensor):
        tensor = tensor.detach().cpu()
        if tensor.dtype == self.torch.bfloat16:
            tensor = tensor.float()
        return np.asarray(tensor.numpy())

    def compare(self, what, tensor, pack, entry, node, loose=False):
        want, dtype = pack.array(entry, node["t"]), pack.dtype(entry, node["t"])
        return difference(what, self.numpy(tensor), _dtype(tensor), want, dtype, loose)

    def compare_outputs(self, outputs, pack, entry, want, loose=False):
        if len(outputs) != len(want):
            return f"{len(outputs)} outputs, want {len(want)}"
        for i, (output, node) in enumerate(zip(outputs, want, strict=True)):
            if error := self.compare(f"output {i}", output, pack, entry, node, loose):
                return error
        return None

    # Ops

    def call(self, name, args, kwargs):
        torch = self.torch
        if name == "einsum":
            return torch.einsum(args[1], *args[0])
        if name == "where":
            return torch.where(args[1], args[0], args[2])
        if name == "nn.functional.embedding":
            return self.nn.functional.embedding(args[1], args[0], **kwargs)
        if name == "zero_":
            return args[0].clone().zero_()
        if name.startswith("__") or name in ("T", "mT", "t", "item"):
            attribute = getattr(args[0], name)
            return attribute(*args[1:], **kwargs) if callable(attribute) else attribute
        if "." in name:
            return self.function(name)(*args, **kwargs)
        on_tensor = bool(args) and isinstance(args[0], torch.Tensor)
        if on_tensor and (name in METHODS or not hasattr(torch, name)):
            return getattr(args[0], name)(*args[1:], **kwargs)
        return getattr(torch, name)(*args, **kwargs)

    def function(self, path):
        found = self.torch
        for part in path.split("."):
            found = getattr(found, part)
        return found

    def call_inplace(self, name, args, kwargs):
        target = args[0].clone()
        if name in INPLACE_BY_KEYWORD:
            return self.function(name)(target, *args[1:], inplace=True, **kwargs)
        return getattr(target, name.split(".")[-1] + "_")(*args[1:], **kwargs)

    def op(self, pack, entry, spec, sample):
        name, leaves = spec["op"], []
        args = [self.value(pack, entry, x, leaves) for x in sample["args"]]
        kwargs = {k: self.value(pack, entry, x, leaves) for k, x in sample["kwargs"].items()}
        if "raises" in sample:
            return self.op_raises(name, args, kwargs, sample["raises"])
        call = self.call_inplace if sample.get("inplace") else self.call
        result, expected = call(name, args, kwargs), sample["expected"]
        want = self.wanted(expected)
        if not want:
            same = result == expected or isinstance(expected, dict | list)
            return None if same else f"value {result}, want {expected}"
        outputs = self.flat(result)
        if name in AMBIGUOUS:
            if len(outputs) != len(want):
                return f"{len(outputs)} outputs, want {len(want)}"
            matrix = self.numpy(args[0]).astype("f8")
            factors = [self.numpy(output).astype("f8") for output in outputs]
            arrays = [pack.array(entry, node["t"]) for node in want]
            upper = kwargs.get("UPLO", "L") == "U"
            return difference_of_factors(name, matrix, upper, factors, arrays)
        if error := self.compare_outputs(outputs, pack, entry, want, name in LOOSE):
            return error
        return self.op_gradients(pack, entry, sample, name in LOOSE, outputs, leaves)

    def op_raises(self, name, args, kwargs, want):
        try:
            for tensor in self.flat(self.call(name, args, kwargs)):
                self.numpy(tensor)
        except Exception as error:
            if want in [c.__name__ for c in type(error).__mro__]:
                return None
            return f"raises {type(error).__name__}, want {want}"
        return f"no error, want {want}"

    def op_gradients(self, pack, entry, sample, loose, outputs, leaves):
        if "grads" not in sample:
            return None
        gradients = self.torch.autograd.grad(
            [outputs[i] for i in sample["grad_outputs_of"]],
            leaves,
            [self.value(pack, entry, {"t": x["t"]}, []) for x in sample["cotangents"]],
            allow_unused=True,
        )
        for i, (gradient, node) in enumerate(zip(gradients, sample["grads"], strict=True)):
            what = f"gradient {i}"
            if node is None:
                if gradient is not None and self.numpy(gradient).any():
                    return f"{what}: want none"
            elif gradient is None:
                return f"{what}: none"
            elif error := self.compare(what, gradient, pack, entry, node, loose):
                return error
        return None

    # Modules

    def module(self, pack, entry, spec, sample):
        leaves, ctor, forward = [], sample["ctor"], sample["forward"]
        module = getattr(self.nn, spec["name"])(
            *[self.value(pack, entry, x, []) for x in ctor["args"]],
            **self.keywords(pack, entry, ctor["kwargs"], []),
        )
        state = {k: self.value(pack, entry, {"t": x["t"]}, []) for k, x in sample["state"].items()}
        module.load_state_dict(state)
        module.train(sample["training"])
        args = [self.value(pack, entry, x, leaves) for x in forward["args"]]
        kwargs = self.keywords(pack, entry, forward["kwargs"], leaves)
        outputs = self.flat(module(*args, **kwargs))
        want = self.wanted(sample["expected"])
        if error := self.compare_outputs(outputs, pack, entry, want):
            return error
        if "cotangents" in sample and (
            error := self.module_gradients(pack, entry, sample, module, outputs, leaves)
        ):
            return error
        for key, tensor in module.state_dict().items():
            node = sample["state_after"][key]
            if error := self.compare(f"state {key}", tensor, pack, entry, node):
                return error
        return None

    def module_gradients(self, pack, entry, sample, module, outputs, leaves):
        parameters = dict(module.named_parameters())
        names = list(sample["param_grads"])
        gradients = self.torch.autograd.grad(
            [outputs[i] for i in sample["grad_outputs_of"]],
            leaves + [parameters[name] for name in names],
            [self.value(pack, entry, {"t": x["t"]}, []) for x in sample["cotangents"]],
            allow_unused=True,
        )
        names = [f"input {i}" for i in range(len(leaves))] + names
        inputs = sample["input_grads"]  # shorter where the last inputs are targets
        want = inputs + [None] * (len(leaves) - len(inputs)) + list(sample["param_grads"].values())
        for name, gradient, node in zip(names, gradients, want, strict=True):
            what = f"gradient of {name}"
            if node is None:
                continue
            if gradient is None:
                return f"{what}: none"
            if error := self.compare(what, gradient, pack, entry, node, loose=True):
                return error
        return None

    # Optimizers and schedulers

    def optimizer(self, pack, entry, spec, config):
        parameters = [self.nn.Parameter(self.value(pack, entry, x, [])) for x in config["start"]]
        settings = self.value(pack, entry, config["kwargs"], [])
        optimizer = getattr(self.optim, spec["optimizer"])(parameters, **settings)
        with_closure = bool(config["note"])

        def closure():
            for parameter in parameters:
                parameter.grad = None
            loss = sum(((p - 0.5) ** 4).sum() + (p**2).sum() for p in parameters)
            loss.backward()
            return loss

        steps = zip(config["grads"], config["after_step"], strict=True)
        for step, (gradients, after) in enumerate(steps):
            for parameter, node in zip(parameters, gradients, strict=False):
                parameter.grad = None if node is None else self.value(pack, entry, node, [])
            optimizer.step(*([closure] if with_closure else []))
            for i, (parameter, node) in enumerate(zip(parameters, after, strict=True)):
                what = f"step {step} parameter {i}"
                if error := self.compare(what, parameter, pack, entry, node, with_closure):
                    return error
        return None

    def scheduler(self, case):
        kinds, settings = self.optim.lr_scheduler, case["kwargs"]
        optimizer = self.optim.SGD(
            [self.nn.Parameter(self.torch.ones(1))],
            lr=case["base_lr"],
            momentum=case.get("momentum", 0),
        )
        if case["scheduler"] == "SequentialLR":
            parts = [
                getattr(kinds, name)(optimizer, **settings[name])
                for name in ("LinearLR", "CosineAnnealingLR")
            ]
            scheduler = kinds.SequentialLR(optimizer, parts, milestones=settings["milestones"])
        elif case["scheduler"] == "LambdaLR":
            scheduler = kinds.LambdaLR(optimizer, lambda epoch: 0.9**epoch)
        else:
            scheduler = getattr(kinds, case["scheduler"])(optimizer, **settings)
        group = optimizer.param_groups[0]
        for i, lr in enumerate(case["lr"]):
            if not math.isclose(group["lr"], lr, rel_tol=1e-6, abs_tol=1e-12):
                return f"step {i}: lr {group['lr']}, want {lr}"
            momentum = case.get("momentum_after", [group["momentum"]] * (i + 1))[i]
            if not math.isclose(group["momentum"], momentum, rel_tol=1e-6):
                return f"step {i}: momentum {group['momentum']}, want {momentum}"
            optimizer.step()
            scheduler.step(*([case["metrics"][i]] if "metrics" in case else []))
        return None
