"""Runs one call of a function in a process of its own, which can be ended."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ._errors import ToolError
from ._tool import Blocks

# How many seconds a process may take to end after SIGTERM, and by itself after it has written its result.
GRACE = 2.0

_PROGRAM = str(Path(__file__).with_name("_function_process.py"))


class ProcessEndedError(ToolError):
    """The process of a function ended without a result."""


class FunctionProcess:
    """A call that runs in a process of its own."""

    def __init__(self, target: Mapping[str, Any], values: dict[str, Any]) -> None:
        job = {"path": sys.path, "target": target, "input": values}
        self._job = json.dumps(job).encode() + b"\n"
        self._lock = threading.Lock()
        self._popen: subprocess.Popen[bytes] | None = None
        self._ending = False

    def run(self) -> Any:
        """Run the call, and return what the function returned.

        Raises `ToolError` with what the model reads, if it failed.
        """
        reader, writer = os.pipe()
        try:
            with self._lock:
                if self._ending:
                    raise ProcessEndedError("canceled")
                # A session of its own: what the function starts ends with it.
                self._popen = subprocess.Popen(
                    [sys.executable, _PROGRAM, str(writer)],
                    stdin=subprocess.PIPE,
                    pass_fds=[writer],
                    start_new_session=True,
                )
        finally:
            os.close(writer)
            if self._popen is None:
                os.close(reader)
        try:
            line = self._exchange(reader)
        finally:
            os.close(reader)
            exit_code = self._finish()
        if not line:
            how = f"signal {-exit_code}" if exit_code < 0 else f"exit code {exit_code}"
            raise ProcessEndedError(f"its process ended without a result ({how})")
        result = json.loads(line)
        if "error" in result:
            raise ToolError(result["error"])
        content = result["content"]
        return Blocks(content) if isinstance(content, list) else content

    def end(self) -> None:
        """End the process and what it started. Its result is dropped."""
        with self._lock:
            self._ending = True
            self._signal(signal.SIGTERM)
        threading.Thread(target=self._kill_after_grace, name="toolq-end", daemon=True).start()

    def _exchange(self, reader: int) -> bytes:
        """Send the job, and return the line that comes back. Its stdin stays open: when it closes, the process ends itself."""
        assert self._popen is not None and self._popen.stdin is not None
        try:
            self._popen.stdin.write(self._job)
            self._popen.stdin.flush()
        except BrokenPipeError:
            return b""
        received = b""
        while not received.endswith(b"\n"):
            readable, _, _ = select.select([reader], [], [], 0.5)
            if not readable:
                # What the function started may hold the pipe open behind its end.
                if self._has_exited():
                    return b""
                continue
            chunk = os.read(reader, 1 << 20)
            if not chunk:
                return b""
            received += chunk
        return received

    def _finish(self) -> int:
        """Wait for the end of the process, end what is left of its group, and return its exit code."""
        assert self._popen is not None
        deadline = time.monotonic() + GRACE
        while not self._has_exited() and time.monotonic() < deadline:
            time.sleep(0.005)
        with self._lock:
            # Before it is reaped, so that its number is still its own.
            self._signal(signal.SIGKILL)
            exit_code = self._popen.wait()
        if self._popen.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._popen.stdin.close()
        return exit_code

    def _has_exited(self) -> bool:
        """Return whether the process has exited, without reaping it."""
        assert self._popen is not None
        if self._popen.returncode is not None:
            return True
        if not hasattr(os, "waitid"):
            return False
        return os.waitid(os.P_PID, self._popen.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None

    def _signal(self, number: int) -> None:
        if self._popen is not None and self._popen.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._popen.pid, number)

    def _kill_after_grace(self) -> None:
        deadline = time.monotonic() + GRACE
        while time.monotonic() < deadline:
            time.sleep(0.02)
            if self._popen is None or self._popen.returncode is not None:
                return
        with self._lock:
            self._signal(signal.SIGKILL)
