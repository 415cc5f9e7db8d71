"""Runs one call of a function in a process of its own, which can be ended."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ._errors import ToolError
from ._tool import Blocks

# How many seconds a function may take to end after SIGTERM, and its process after it has written its result.
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
                # A session of its own: Ctrl-C on a terminal reaches the caller alone.
                self._popen = subprocess.Popen(
                    [sys.executable, _PROGRAM, str(writer), str(GRACE)],
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
        content: str | list[dict[str, Any]] = result["content"]
        return Blocks(content) if isinstance(content, list) else content

    def end(self) -> None:
        """End the process and what it started. Its result is dropped."""
        with self._lock:
            self._ending = True
            if self._popen is not None and self._popen.returncode is None:
                self._popen.terminate()

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
                if self._popen.poll() is not None:
                    return b""
                continue
            chunk = os.read(reader, 1 << 20)
            if not chunk:
                return b""
            received += chunk
        return received

    def _finish(self) -> int:
        """Wait until the process and all that it started have ended, and return its exit code."""
        assert self._popen is not None and self._popen.stdin is not None
        try:
            return self._popen.wait(GRACE)
        except subprocess.TimeoutExpired:
            pass
        finally:
            with contextlib.suppress(BrokenPipeError):
                self._popen.stdin.close()
        return self._popen.wait()
