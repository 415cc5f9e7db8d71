"""The program that runs one function: it reads a job from stdin, and its child runs the function and writes the result.

On Linux, what the function starts becomes a child of this program once its own parent has ended, even if it has left its process
group. So all of it can be ended: after the function, after SIGTERM and a grace period, or as soon as stdin closes, because then the
program that waits for it is gone.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    # This file's directory is the package itself, whose modules are no top-level ones.
    del sys.path[0]

import contextlib
import importlib
import io
import json
import resource
import runpy
import select
import signal
import time
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def _prctl(option: int, value: int) -> None:
    if sys.platform != "linux":
        return
    # Some builds of Python have no ctypes. There, what leaves the process group stays.
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _read_job() -> dict[str, Any] | None:
    line = b""
    while not line.endswith(b"\n"):
        chunk = os.read(0, 1 << 20)
        if not chunk:
            return None
        line += chunk
    job: dict[str, Any] = json.loads(line)
    return job


def _find(target: dict[str, Any]) -> Any:
    if target["path"] is not None:
        found: Any = _Namespace(runpy.run_path(target["path"], run_name="__toolq_main__"))
    else:
        found = importlib.import_module(target["module"])
    for name in target["name"].split("."):
        found = getattr(found, name)
    return found


class _Namespace:
    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)


def _run(job: dict[str, Any]) -> dict[str, Any]:
    from toolq._client import no_start
    from toolq._tool import as_tool, render_error, render_result

    try:
        with no_start():
            tool = as_tool(_find(job["target"]))
        value = tool.function(**tool.arguments(job["input"]))
        if hasattr(value, "__await__"):
            import asyncio

            async def wait() -> Any:
                return await value

            value = asyncio.run(wait())
        return {"content": render_result(value)}
    except BaseException as error:
        return {"error": render_error(error)}


def _run_job(job: dict[str, Any], results: int, guard: int) -> None:
    """Run the function, and write its result."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != guard:
        return
    os.setsid()
    os.set_inheritable(results, False)
    # What the function starts reads nothing from the pipe on which the guard waits.
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.path[:] = job["path"]
    sys.stdin = io.StringIO()
    text = json.dumps(_run(job)).encode() + b"\n"
    while text:
        text = text[os.write(results, text) :]


def _guard(child: int, grace: float) -> int:
    """Return the wait status of the child, which is ended after a SIGTERM or once stdin has closed."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, _do_nothing)
    deadline = None
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        seconds = None if deadline is None else max(0.0, deadline - time.monotonic())
        ready, _, _ = select.select([0, reader], [], [], seconds)
        if not ready or (0 in ready and not os.read(0, 4096)):
            _kill(child, signal.SIGKILL)
            return os.waitpid(child, 0)[1]
        if reader in ready and signal.SIGTERM in os.read(reader, 4096) and deadline is None:
            _kill(child, signal.SIGTERM)
            deadline = time.monotonic() + grace


def _do_nothing(_number: int, _frame: object) -> None:
    """Handle a signal, so that the wakeup descriptor reports it."""


def _kill(child: int, number: int) -> None:
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(child, number)


def _children() -> list[int]:
    task = Path(f"/proc/self/task/{os.getpid()}/children")
    return [int(pid) for pid in task.read_text().split()] if task.is_file() else []


def _end_what_is_left(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
    # The children of what ends here become children of this program in turn.
    while True:
        for pid in _children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not ended:
            time.sleep(0.001)


def _end_like(status: int) -> None:
    """End as the child has ended."""
    if os.WIFSIGNALED(status):
        # The child has left the core dump.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        number = os.WTERMSIG(status)
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))


def _main() -> None:
    results, grace = int(sys.argv[1]), float(sys.argv[2])
    job = _read_job()
    if job is None:
        return
    guard = os.getpid()
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    child = os.fork()
    if child == 0:
        _run_job(job, results, guard)
        return
    os.close(results)
    status = _guard(child, grace)
    _end_what_is_left(child)
    _end_like(status)


if __name__ == "__main__":
    _main()
