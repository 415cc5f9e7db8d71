"""Serves the calls of tools that are Python functions."""

from __future__ import annotations

import functools
import json
import logging
import threading
from collections.abc import Mapping
from typing import Any, Callable, NamedTuple

from ._callbacks import CallbackRunner, Caller, Cancel
from ._function_call import FunctionProcess
from ._tool import Tool, render_error, render_result

logger = logging.getLogger("toolq")


class CallKey(NamedTuple):
    """Which call it is: the id of its turn, and the number that no other attempt at a call has."""

    turn: Any
    number: int


SendResult = Callable[[CallKey, str, Any, bool], None]


class HostCalls:
    """The calls that run in this process, or in processes of functions.

    `send` receives the result of each: its content, and whether it is an error.
    """

    def __init__(self, tools: Mapping[str, Tool[Any, Any]], runner: CallbackRunner, send: SendResult) -> None:
        self._tools, self._runner, self._send = tools, runner, send
        self._lock = threading.Lock()
        # What ends each call that nobody has canceled yet.
        self._running: dict[CallKey, Cancel] = {}

    def begin(self, key: CallKey, call: Mapping[str, Any], caller: Caller) -> None:
        """Start a call."""
        tool = self._tools.get(call["tool_name"])
        if tool is None:
            self._send(key, call["tool_use_id"], f"this program serves no tool {call['tool_name']}", True)
            return
        on_done = functools.partial(self._finish, key, call["tool_use_id"])
        # Its end waits for the lock.
        with self._lock:
            self._running[key] = self._start(tool, call["input"], caller, on_done)

    def cancel(self, key: CallKey) -> None:
        """End a call whose result nobody waits for any more. What it returns is dropped."""
        with self._lock:
            cancel = self._running.pop(key, None)
        if cancel is not None:
            cancel()

    def cancel_all(self) -> None:
        """End all calls."""
        with self._lock:
            running, self._running = self._running, {}
        for cancel in running.values():
            cancel()

    def _start(
        self,
        tool: Tool[Any, Any],
        values: dict[str, Any],
        caller: Caller,
        on_done: Callable[[Any, BaseException | None], None],
    ) -> Cancel:
        if tool.target is not None:
            process = FunctionProcess(tool.target, values)
            self._runner.run(process.run, caller, tool.name, on_done)
            return process.end
        function = functools.partial(_call, tool, values)
        return self._runner.run(function, caller, tool.name, on_done)

    def _finish(self, key: CallKey, tool_use_id: str, value: Any, error: BaseException | None) -> None:
        with self._lock:
            was_canceled = self._running.pop(key, None) is None
        if was_canceled:  # nobody waits for it any more
            return
        content: Any = None
        if error is None:
            try:
                content = render_result(value)
                json.dumps(content)
            except Exception as wrong:
                error = wrong
        if error is not None:
            logger.debug("call %s failed", tool_use_id, exc_info=error)
            content = render_error(error)
        self._send(key, tool_use_id, content, error is not None)


def _call(tool: Tool[Any, Any], values: dict[str, Any]) -> Any:
    return tool.function(**tool.arguments(values))
