"""save and load: safetensors files, with the structure of plain objects beside the tensors.

A state dict becomes a safetensors file of the same names that any program reads. Other nesting
(lists, numbers, strings, dicts) is kept as JSON in the file's metadata. Nothing is ever executed.
"""

from __future__ import annotations

import json
import os
import struct
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

from . import _device, _dtype, _host, _row

_CODES = {
    "float32": "F32",
    "float64": "F64",
    "float16": "F16",
    "bfloat16": "BF16",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint8": "U8",
    "bool": "BOOL",
}
_KINDS = {code: _dtype.by_name(name) for name, code in _CODES.items()}
HEADER_MOST = 100 << 20


def save(obj: Any, f: str | os.PathLike[str] | BinaryIO, **options: Any) -> None:
    """Writes tensors, or dicts, lists and plain values with tensors in them."""
    tensors: dict[str, Any] = {}
    flat = isinstance(obj, Mapping) and all(
        isinstance(k, str) and isinstance(v, _row.Tensor) for k, v in obj.items()
    )
    tree = None
    if flat:
        tensors = dict(obj)
    else:
        tree = _pack(obj, "", tensors)
    values = _host.read(list(tensors.values()))
    head: dict[str, Any] = {}
    if tree is not None:
        head["__metadata__"] = {"gradwire": json.dumps(tree)}
    at = 0
    # Largest elements first, so that every tensor is aligned to its own.
    order = sorted(tensors, key=lambda name: -tensors[name].dtype.itemsize)
    by_name = dict(zip(tensors, values, strict=True))
    for name in order:
        size = by_name[name].nbytes
        head[name] = {
            "dtype": _CODES[tensors[name].dtype.name],
            "shape": list(by_name[name].shape),
            "data_offsets": [at, at + size],
        }
        at += size
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    parts = [struct.pack("<Q", len(text)), text]
    parts += [np.ascontiguousarray(by_name[name]).tobytes() for name in order]
    if hasattr(f, "write"):
        for part in parts:
            f.write(part)
        return
    path = os.fspath(f)
    partial = f"{path}.{os.getpid()}.partial"
    try:
        with open(partial, "wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        if os.path.exists(partial):
            os.unlink(partial)
        raise


def load(
    f: str | os.PathLike[str] | BinaryIO,
    map_location: Any = None,
    weights_only: bool = True,
    **options: Any,
) -> Any:
    """What save wrote, or the tensors of any safetensors file. Executes nothing."""
    if map_location is not None and not callable(map_location):
        _device.check(map_location)
    if hasattr(f, "read"):
        data = f.read()
    else:
        with open(f, "rb") as file:
            data = file.read()
    head, body = _split(data)
    metadata = head.pop("__metadata__", {})
    tensors: OrderedDict[str, Any] = OrderedDict()
    for name, entry in head.items():
        tensors[name] = _tensor(name, entry, body)
    tree = metadata.get("gradwire") if isinstance(metadata, dict) else None
    return tensors if tree is None else _unpack(json.loads(tree), tensors)


def _split(data: bytes) -> tuple[dict[str, Any], memoryview]:
    # The length of a safetensors header may look like a pickle's first bytes; its JSON does not.
    if data[8:9] != b"{" and (data[:4] == b"PK\x03\x04" or data[:1] == b"\x80"):
        raise RuntimeError(
            "this is a pickle file of torch: save its state dict as safetensors to load it here"
        )
    if len(data) < 8:
        raise RuntimeError("not a safetensors file: it is shorter than its header's length")
    (size,) = struct.unpack("<Q", data[:8])
    if size > min(HEADER_MOST, len(data) - 8):
        raise RuntimeError("not a safetensors file: its header does not fit")
    try:
        head = json.loads(data[8 : 8 + size])
    except ValueError:
        raise RuntimeError("not a safetensors file: its header is not JSON") from None
    if not isinstance(head, dict):
        raise RuntimeError("not a safetensors file: its header is not an object")
    return head, memoryview(data)[8 + size :]


def _tensor(name: str, entry: Any, body: memoryview) -> Any:
    try:
        kind = _KINDS[entry["dtype"]]
        shape = tuple(int(s) for s in entry["shape"])
        start, end = (int(o) for o in entry["data_offsets"])
    except (KeyError, TypeError, ValueError):
        raise RuntimeError(f"safetensors: tensor '{name}' has a bad header") from None
    count = 1
    for size in shape:
        count *= size
    if min(shape, default=0) < 0 or not 0 <= start <= end <= len(body):
        raise RuntimeError(f"safetensors: tensor '{name}' lies outside the file")
    if count * kind.itemsize != end - start:
        raise RuntimeError(f"safetensors: tensor '{name}' has a size other than its shape's")
    values = np.frombuffer(body[start:end], kind.numpy).reshape(shape).copy()
    return _host.host_tensor(values, kind, True)


def _pack(value: Any, path: str, tensors: dict[str, Any]) -> Any:
    """Plain values as JSON; every tensor by its name in the file."""
    if isinstance(value, _row.Tensor):
        name = path or "tensor"
        tensors[name] = value
        return {"t": name, "g": value.requires_grad}
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return {"f": repr(value)}
    if isinstance(value, np.generic):
        return _pack(value.item(), path, tensors)
    if isinstance(value, _dtype.dtype):
        return {"dtype": value.name}
    if isinstance(value, Mapping):
        items = []
        for key, item in value.items():
            if not isinstance(key, (str, int, float, bool)):
                raise TypeError(f"save: a key of type {type(key).__name__} at '{path}'")
            inner = f"{path}.{key}" if path else str(key)
            items.append([key, _pack(item, inner, tensors)])
        return {"d": items}
    if isinstance(value, (list, tuple)):
        items = [_pack(v, f"{path}.{i}" if path else str(i), tensors) for i, v in enumerate(value)]
        return {"l" if isinstance(value, list) else "u": items}
    raise TypeError(
        f"save: cannot write a {type(value).__name__} at '{path}': save state dicts and plain "
        "values, not objects"
    )


def _unpack(node: Any, tensors: Mapping[str, Any]) -> Any:
    if not isinstance(node, dict):
        return node
    if "t" in node:
        return tensors[node["t"]]
    if "f" in node:
        return float(node["f"])
    if "dtype" in node:
        return _dtype.by_name(node["dtype"])
    if "d" in node:
        return {key: _unpack(value, tensors) for key, value in node["d"]}
    if "l" in node:
        return [_unpack(value, tensors) for value in node["l"]]
    return tuple(_unpack(value, tensors) for value in node["u"])
