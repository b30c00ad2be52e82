"""A private daemon on this machine, for users who name no address."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
import time

from .errors import ConnectionLost


def find() -> str:
    """The path of `gradwired`: $GRADWIRED, the PATH, or a build folder above this file."""
    named = os.environ.get("GRADWIRED")
    if named:
        return named
    found = shutil.which("gradwired")
    if found:
        return found
    for start in (os.path.abspath(__file__), os.path.join(os.getcwd(), "_")):
        folder = os.path.dirname(start)
        while True:
            path = os.path.join(folder, "build", "gradwired")
            if os.access(path, os.X_OK):
                return path
            above = os.path.dirname(folder)
            if above == folder:
                break
            folder = above
    raise ConnectionLost(
        "no daemon to connect to: set GRADWIRE_ADDRESS to a running one, or GRADWIRED to the "
        "path of the gradwired program"
    )


class Daemon:
    """A `gradwired` on a unix socket in a private folder; it ends when this process does."""

    def __init__(self, timeout: float = 20.0):
        self.folder = tempfile.mkdtemp(prefix="gradwire-")  # mode 0700
        self.token = secrets.token_urlsafe(32)
        token_file = os.path.join(self.folder, "token")
        with open(os.open(token_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(self.token + "\n")
        socket = os.path.join(self.folder, "socket")
        self.address = "unix:" + socket
        self.log = os.path.join(self.folder, "log")
        program = find()
        arguments = [program, "--listen", self.address, "--token-file", token_file]
        with open(self.log, "w") as log:
            try:
                self.process = subprocess.Popen(
                    [*arguments, "--exit-on-stdin-close"],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,  # Ctrl-C is the client's to handle
                )
            except OSError as error:
                self._clean()
                raise ConnectionLost(f"cannot start {program}: {error.strerror}") from None
        deadline = time.monotonic() + timeout
        while not os.path.exists(socket):
            if self.process.poll() is not None or time.monotonic() > deadline:
                with open(self.log) as log:
                    said = log.read()[-2000:].strip()
                self.stop()
                raise ConnectionLost(f"{program} did not start:\n{said}")
            time.sleep(0.005)

    def stop(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._clean()

    def _clean(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
