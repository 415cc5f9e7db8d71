"""A running `toolq run --follow --control`. One thread reads what it writes, and writes what its pipe had no room for."""

from __future__ import annotations

import collections
import contextlib
import logging
import os
import selectors
import subprocess
import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import Callable

from ._errors import ClosedError, StartError

logger = logging.getLogger("toolq")

# How many seconds toolq may take to end all calls and then itself, after its stdin was closed, and after SIGTERM.
CLOSE_GRACE = 15.0
TERMINATE_GRACE = 5.0

_STDERR_LINES = 50
_CHUNK = 1 << 18


class LineBuffer:
    """Cuts what is read into lines. A long line is joined once, not once a chunk."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def push(self, chunk: bytes) -> list[bytes]:
        """Return the lines that are whole now."""
        if b"\n" not in chunk:
            self._parts.append(chunk)
            return []
        self._parts.append(chunk)
        lines = b"".join(self._parts).split(b"\n")
        rest = lines.pop()
        self._parts = [rest] if rest else []
        return lines

    def rest(self) -> bytes:
        """Return what stands behind the last line."""
        return b"".join(self._parts)


class ToolqProcess:
    """The process, its pipes, and the thread that reads them.

    `on_line` and `on_event` receive lines on that thread, and must not block. `on_end` is called once, when the process has
    ended and all its lines were passed on.
    """

    def __init__(
        self,
        command: Sequence[str],
        cwd: str | None,
        env: Mapping[str, str] | None,
        on_line: Callable[[bytes], None],
        on_event: Callable[[bytes], None] | None,
        on_end: Callable[[int, str], None],
    ) -> None:
        self._on_line, self._on_event, self._on_end = on_line, on_event, on_end
        self._ended = threading.Event()
        self._write_lock = threading.Lock()
        self._pending: collections.deque[bytes] = collections.deque()
        self._stdin_open = True
        self._close_when_written = False
        self._forked = False
        self._stderr: collections.deque[str] = collections.deque(maxlen=_STDERR_LINES)
        self._events_fd: int | None = None
        self._wake_reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_writer, False)
        arguments, passed = list(command), []
        event_writer = None
        if on_event is not None:
            self._events_fd, event_writer = os.pipe()
            passed = [event_writer]
            arguments += ["--events", f"fd:{event_writer}"]
        try:
            # A session of its own, so that Ctrl-C ends a call by way of this program, not toolq itself.
            self._popen = subprocess.Popen(
                arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=cwd,
                env=None if env is None else dict(env),
                pass_fds=passed,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            for fd in (self._wake_reader, self._wake_writer, self._events_fd):
                if fd is not None:
                    os.close(fd)
            raise StartError(f"{command[0]} can't be started: {error}") from error
        finally:
            if event_writer is not None:
                os.close(event_writer)
        assert self._popen.stdin and self._popen.stdout and self._popen.stderr
        self._stdin_fd = self._popen.stdin.fileno()
        os.set_blocking(self._stdin_fd, False)
        self._thread = threading.Thread(target=self._serve_pipes, name="toolq-io", daemon=True)
        _open_processes.add(self)
        self._thread.start()

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._popen.pid

    def send(self, line: bytes) -> None:
        """Write a line, without waiting for room in the pipe.

        Raises `ClosedError` if nothing can be written any more.
        """
        with self._write_lock:
            if self._forked:
                raise ClosedError("this Toolq belongs to the process that started it; make one after the fork")
            if not self._stdin_open or self._close_when_written:
                raise ClosedError("toolq is closed")
            if not self._pending:
                line = line[self._write(line) :]
            if line:
                self._pending.append(line)
                self._wake()

    def close_stdin(self) -> None:
        """Close stdin once everything is written. toolq then answers what is in flight, and ends."""
        with self._write_lock:
            self._close_when_written = True
            if not self._pending:
                self._close_stdin_now()
            else:
                self._wake()

    def wait(self, seconds: float | None) -> bool:
        """Return whether the process has ended, and `on_end` was called."""
        if threading.current_thread() is self._thread:
            return self._ended.is_set()
        return self._ended.wait(seconds)

    def close(self) -> None:
        """End the process, and return when it is gone."""
        if self._forked:
            return
        self.close_stdin()
        if not self.wait(CLOSE_GRACE):
            logger.warning("toolq didn't end within %g s; it is terminated", CLOSE_GRACE)
            self._popen.terminate()
            if not self.wait(TERMINATE_GRACE):
                self._popen.kill()
                self.wait(TERMINATE_GRACE)
        if threading.current_thread() is not self._thread:
            self._thread.join(TERMINATE_GRACE)

    def stderr_tail(self) -> str:
        """Return the last lines of its stderr."""
        return "\n".join(self._stderr)

    def _write(self, data: bytes) -> int:
        try:
            return os.write(self._stdin_fd, data)
        except BlockingIOError:
            return 0
        except BrokenPipeError:
            # Its end is reported by the reading side, with what it said last.
            return len(data)

    def _wake(self) -> None:
        with contextlib.suppress(OSError):
            os.write(self._wake_writer, b"w")

    def _close_stdin_now(self) -> None:
        if self._stdin_open:
            self._stdin_open = False
            assert self._popen.stdin
            self._popen.stdin.close()

    def _serve_pipes(self) -> None:
        try:
            self._read_until_end()
        except Exception:
            # A fault of this package: without its reader the process is of no use.
            logger.exception("reading from toolq failed")
            self._popen.kill()
        exit_code = self._popen.wait()
        with self._write_lock:
            self._pending.clear()
            self._close_stdin_now()
        self._close_pipes()
        _open_processes.discard(self)
        try:
            self._on_end(exit_code, self.stderr_tail())
        except Exception:
            logger.exception("the end of toolq can't be handled")
        self._ended.set()

    def _read_until_end(self) -> None:
        assert self._popen.stdout and self._popen.stderr
        handlers: dict[int, Callable[[bytes], None]] = {
            self._popen.stdout.fileno(): self._on_line,
            self._popen.stderr.fileno(): self._note_stderr,
        }
        if self._events_fd is not None and self._on_event is not None:
            handlers[self._events_fd] = self._on_event
        buffers = {fd: LineBuffer() for fd in handlers}
        with selectors.DefaultSelector() as selector:
            for fd in (*handlers, self._wake_reader):
                selector.register(fd, selectors.EVENT_READ)
            watching_stdin = False
            stdout = self._popen.stdout.fileno()
            while buffers:
                # Who else has stderr may hold it open behind toolq's own end: then what is there is all.
                ready = selector.select(None if stdout in buffers else 0.2)
                if not ready and stdout not in buffers and self._popen.poll() is not None:
                    break
                for key, _ in ready:
                    fd = key.fd
                    if fd == self._wake_reader:
                        os.read(fd, 512)
                    elif fd == self._stdin_fd and watching_stdin:
                        pass
                    elif not self._read_chunk(fd, buffers[fd], handlers[fd]):
                        selector.unregister(fd)
                        del buffers[fd]
                watching_stdin = self._write_pending(selector, watching_stdin)

    def _read_chunk(self, fd: int, buffer: LineBuffer, handler: Callable[[bytes], None]) -> bool:
        chunk = os.read(fd, _CHUNK)
        lines = buffer.push(chunk) if chunk else [buffer.rest()]
        for line in lines:
            if line:
                handler(line)
        return bool(chunk)

    def _write_pending(self, selector: selectors.BaseSelector, watching: bool) -> bool:
        """Write what there is room for. Return whether the selector waits for more room."""
        with self._write_lock:
            while self._pending and self._stdin_open:
                line = self._pending[0]
                written = self._write(line)
                if written < len(line):
                    self._pending[0] = line[written:]
                    break
                self._pending.popleft()
            wanted = bool(self._pending) and self._stdin_open
            if wanted and not watching:
                selector.register(self._stdin_fd, selectors.EVENT_WRITE)
            if watching and not wanted:
                selector.unregister(self._stdin_fd)
            if self._close_when_written and not self._pending:
                self._close_stdin_now()
        return wanted

    def _note_stderr(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace")
        self._stderr.append(text)
        level = logging.WARNING if text.startswith("warning") else logging.INFO
        logger.log(level, "%s", text)

    def _close_pipes(self) -> None:
        assert self._popen.stdout and self._popen.stderr
        self._popen.stdout.close()
        self._popen.stderr.close()
        for fd in (self._wake_reader, self._wake_writer, self._events_fd):
            if fd is not None:
                with contextlib.suppress(OSError):
                    os.close(fd)
        self._wake_writer = -1

    def leave_to_parent(self) -> None:
        """In a child of `os.fork`: close the pipes. Else toolq's stdin would stay open for as long as the child lives."""
        self._forked = True
        self._write_lock = threading.Lock()
        self._close_stdin_now()
        self._close_pipes()
        # The child must not wait for a process that isn't its own.
        self._popen.returncode = 0


_open_processes: weakref.WeakSet[ToolqProcess] = weakref.WeakSet()


def _leave_all_to_parent() -> None:
    for process in list(_open_processes):
        process.leave_to_parent()
    _open_processes.clear()


os.register_at_fork(after_in_child=_leave_all_to_parent)
