"""Reads a pair NAME.json (cases) and NAME.safetensors (tensors) of tests/data/goldens."""

import json
from pathlib import Path

import numpy as np

DATA = Path(__file__).parents[2] / "data" / "goldens"

NUMPY = {
    "F64": "f8",
    "F32": "f4",
    "F16": "f2",
    "I64": "i8",
    "I32": "i4",
    "I16": "i2",
    "I8": "i1",
    "U8": "u1",
    "BOOL": "?",
}
TORCH = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U8": "uint8",
    "BOOL": "bool",
}


class Pack:
    def __init__(self, name, folder=DATA):
        self.cases = json.loads((Path(folder) / f"{name}.json").read_text())
        raw = (Path(folder) / f"{name}.safetensors").read_bytes()
        head = 8 + int.from_bytes(raw[:8], "little")
        self.index = json.loads(raw[8:head])
        self.data = memoryview(raw)[head:]

    def array(self, entry, number):
        """Tensor `number` of an entry as numpy; bfloat16, which numpy lacks, as float32."""
        facts = self.index[f"{entry}/t{number}"]
        begin, end = facts["data_offsets"]
        raw = self.data[begin:end]
        if facts["dtype"] == "BF16":
            bits = np.frombuffer(raw, "<u2").astype("<u4") << 16
            return bits.view("f4").reshape(facts["shape"])
        return np.frombuffer(raw, NUMPY[facts["dtype"]]).reshape(facts["shape"]).copy()

    def dtype(self, entry, number):
        return TORCH[self.index[f"{entry}/t{number}"]["dtype"]]
