#!/usr/bin/env python3
"""Runs the recorded results against a module that mirrors torch, and says what differs.

An entry passes when the values and gradients of all its samples pass. With `--module torch` all
of them pass on the PyTorch that recorded them.
"""

import argparse
import json
import warnings
from pathlib import Path

from pack import DATA, Pack
from runner import Runner

SUITES = ("opinfo", "dtypes", "layout", "inplace", "errors", "modules", "optimizers", "schedulers")


def guard(check, *args):
    try:
        return check(*args)
    except Exception as error:
        lines = str(error).splitlines() or [""]
        return f"{type(error).__name__}: {lines[0][:140]}"


def checks(runner, suite, folder):
    """(entry, checks of its samples), each to be called without arguments."""
    if suite == "schedulers":
        for case in json.loads((folder / "schedulers.json").read_text())["cases"]:
            yield case["scheduler"], [lambda case=case: guard(runner.scheduler, case)]
        return
    key, check = {
        "modules": ("samples", runner.module),
        "optimizers": ("configs", runner.optimizer),
    }.get(suite, ("samples", runner.op))
    pack = Pack(suite, folder)
    for entry, spec in sorted(pack.cases.items()):
        samples = spec[key]
        yield (
            entry,
            [lambda e=entry, p=spec, s=sample: guard(check, pack, e, p, s) for sample in samples],
        )


def run_suite(runner, suite, folder, only=None, verbose=False):
    """Per entry: how many samples there are, how many passed, which failed, the first failure."""
    report = {}
    for entry, samples in checks(runner, suite, folder):
        if only and entry not in only:
            continue
        results = [sample() for sample in samples]
        failed = [i for i, result in enumerate(results) if result]
        report[entry] = {
            "samples": len(results),
            "passed": len(results) - len(failed),
            "failed": failed,
            "first": results[failed[0]] if failed else None,
        }
        if failed and verbose:
            print(f"  {entry}: {len(failed)} of {len(results)}: {results[failed[0]]}")
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--module", default="gradwire")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--suite", nargs="*", choices=SUITES, default=SUITES)
    parser.add_argument("--only", nargs="*", metavar="ENTRY")
    parser.add_argument("--verbose", action="store_true", help="the first failure of each entry")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the report")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")

    runner = Runner(options.module)
    if hasattr(runner.torch, "connect"):
        runner.torch.connect()
    reports = {}
    for suite in options.suite:
        report = run_suite(runner, suite, options.data, options.only, options.verbose)
        reports[suite] = report
        whole = sum(not entry["failed"] for entry in report.values())
        passed = sum(entry["passed"] for entry in report.values())
        samples = sum(entry["samples"] for entry in report.values())
        print(f"{suite}: {whole} of {len(report)} entries whole, {passed} of {samples} samples")
    if options.json:
        options.json.write_text(json.dumps(reports, indent=1) + "\n")


if __name__ == "__main__":
    main()
