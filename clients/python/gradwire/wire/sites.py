"""The user's own source lines, as small numbers."""

from __future__ import annotations

import os
import sys
from types import CodeType
from typing import Any

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
LIMIT = 65535
TEXT_BYTES = 512


class Sites:
    """Numbers the lines that issue ops, and keeps the entries a server has not yet been told.

    The key of a line is the code object and the instruction in it, which costs less to find
    than the line's number. After 65,535 entries the oldest number is used again.
    """

    def __init__(self) -> None:
        # By id of a code object: None for the package's own, else numbers by instruction.
        # Codes are kept alive so that an id means one code.
        self.codes: dict[int, dict[int, int] | None] = {}
        self.kept: list[CodeType] = []
        self.owner: dict[int, tuple[dict[int, int], int]] = {}
        self.texts: dict[int, str] = {}
        self.unsent: list[tuple[int, str]] = []
        self.last = 0

    def find(self, frame: Any) -> int:
        """The number of the first line outside the package, from `frame` outwards."""
        codes = self.codes
        while frame is not None:
            code = frame.f_code
            try:
                lines = codes[id(code)]
            except KeyError:
                lines = self._add_code(code)
            if lines is not None:
                number = lines.get(frame.f_lasti)
                return number if number is not None else self._add_line(lines, frame)
            frame = frame.f_back
        return 0

    def here(self) -> str:
        """The text of the line that called into the package."""
        return self.texts.get(self.find(sys._getframe(1)), "")

    def _add_code(self, code: CodeType) -> dict[int, int] | None:
        name = code.co_filename
        inside = name.startswith(PACKAGE) or name.startswith("<frozen ")
        lines: dict[int, int] | None = None if inside else {}
        self.codes[id(code)] = lines
        self.kept.append(code)
        return lines

    def _add_line(self, lines: dict[int, int], frame: Any) -> int:
        number = self.last % LIMIT + 1
        self.last += 1
        if number in self.owner:
            old, instruction = self.owner[number]
            old.pop(instruction, None)
        lines[frame.f_lasti] = number
        self.owner[number] = (lines, frame.f_lasti)
        code = frame.f_code
        text = f"{_short(code.co_filename)}:{frame.f_lineno} in {code.co_name}"
        text = text.encode("utf-8", "replace")[:TEXT_BYTES].decode("utf-8", "ignore")
        self.texts[number] = text
        self.unsent.append((number, text))
        return number


def _short(path: str) -> str:
    """A path under the working directory by its part below it, others whole."""
    try:
        here = os.getcwd() + os.sep
    except OSError:
        return path
    return path.removeprefix(here)
