"""The program that runs one function: it reads a job from stdin, and writes the result to a descriptor.

It ends itself, and all that it started, when its stdin closes: then the program that waits for it is gone.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    # This file's directory is the package itself, whose modules are no top-level ones.
    del sys.path[0]

import importlib
import io
import json
import runpy
import signal
import threading
from typing import Any


def _end_with_parent() -> None:
    while os.read(0, 4096):
        pass
    os.killpg(0, signal.SIGKILL)


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
    from toolq._tool import as_tool, render_error, render_result

    try:
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


def _main() -> None:
    results = int(sys.argv[1])
    os.set_inheritable(results, False)
    line = b""
    while not line.endswith(b"\n"):
        chunk = os.read(0, 1 << 20)
        if not chunk:
            return
        line += chunk
    threading.Thread(target=_end_with_parent, daemon=True).start()
    job = json.loads(line)
    sys.path[:] = job["path"]
    # The function's own program reads nothing from here.
    sys.stdin = io.StringIO()
    text = json.dumps(_run(job)).encode() + b"\n"
    while text:
        text = text[os.write(results, text) :]
    sys.stdout.flush()
    sys.stderr.flush()


if __name__ == "__main__":
    _main()
