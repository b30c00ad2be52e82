"""Runs an unmodified script with `import torch` resolved to Gradwire.

python -m gradwire script.py [arguments]
python -m gradwire -m module [arguments]
"""

from __future__ import annotations

import os
import runpy
import sys


def main() -> int:
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__.strip())
        return 0 if arguments else 2
    from gradwire import install

    install()
    if arguments[0] == "-m":
        if len(arguments) < 2:
            print(__doc__.strip())
            return 2
        sys.argv = arguments[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return 0
    if not os.path.exists(arguments[0]):
        print(f"gradwire: cannot open {arguments[0]}", file=sys.stderr)
        return 2
    sys.argv = arguments
    sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
    runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
