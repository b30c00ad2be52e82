"""Records what PyTorch gives for the cases of tests/integration/semantics. Needs torch."""

import json
import sys
import warnings
from pathlib import Path

import torch

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "integration"))
import semantics  # noqa: E402
from semantics import functional, gradients, host, tensors, training  # noqa: E402, F401


def main():
    torch.set_num_threads(1)
    results = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (_, function) in semantics.CASES.items():
            results[name] = semantics.plain(function(torch))
            text = json.dumps(results[name])
            if '"NOT ' in text:
                raise SystemExit(f"{name}: torch says otherwise: {text}")
    lines = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in results.items())
    version = torch.__version__.split("+")[0]
    path = HERE.parent / "data" / "semantics.json"
    path.write_text(f'{{\n"torch": "{version}",\n"results": {{\n{lines}\n}}\n}}\n')


main()
