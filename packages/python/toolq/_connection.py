"""The lines between this program and toolq: requests and their answers, approvals, and calls of functions."""

from __future__ import annotations

import atexit
import contextlib
import functools
import itertools
import json
import logging
import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Callable

from ._approval import LATER, Approve, read_request, to_decision
from ._callbacks import CallbackRunner, Caller
from ._errors import ClosedError, MessageError, ProcessError, StartError, ToolqError
from ._events import EventStream
from ._host_calls import CallKey, HostCalls
from ._pending import Pending
from ._process import ToolqProcess
from ._tool import Tool

logger = logging.getLogger("toolq")

NOBODY_TO_ASK = "nobody could be asked"


class Connection:
    """A running toolq, and what waits for its lines."""

    def __init__(
        self,
        command: Sequence[str],
        cwd: str | None,
        env: Mapping[str, str] | None,
        tools: Mapping[str, Tool[Any, Any]],
        approve: Approve | None,
        with_events: bool,
    ) -> None:
        self._lock = threading.Lock()
        self._ids = itertools.count(1)
        self._pending: dict[int, Pending[Any]] = {}
        self._callers: dict[int, Caller] = {}
        self._failure: ToolqError | None = None
        self._closing = False
        self._streams: weakref.WeakSet[EventStream] = weakref.WeakSet()
        self._has_events = with_events
        self._approve = approve
        self._runner = CallbackRunner()
        self._calls = HostCalls(tools, self._runner, self._send_result)
        self._started = False
        on_event = self._handle_event if with_events else None
        self._process = ToolqProcess(command, cwd, env, self._handle_line, on_event, self._handle_end)
        _open_connections.add(self)
        declarations = {name: tool.declaration for name, tool in tools.items()}
        text = json.dumps(declarations, separators=(",", ":"))
        self.ready: Pending[None] = self.request(
            lambda number: f'{{"type":"tools","id":{number},"tools":{text}}}', self._note_start, StartError
        )

    @property
    def pid(self) -> int:
        """The id of the toolq process."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether nothing can be asked any more."""
        return self._failure is not None

    def request(
        self,
        line: Callable[[int], str],
        read: Callable[[Any], Any],
        error_type: type[ToolqError] = MessageError,
        caller: Caller | None = None,
    ) -> Pending[Any]:
        """Send a line that `line` makes of an id. `read` makes the answer of the line that has this id."""
        number = next(self._ids)
        pending: Pending[Any] = Pending(functools.partial(self._send_cancel, number), read, error_type)
        with self._lock:
            if self._failure is not None:
                raise self._failure
            if self._closing:
                raise ClosedError("this Toolq is closed: make another one")
            self._pending[number] = pending
            if caller is not None:
                self._callers[number] = caller
        try:
            self._process.send(line(number).encode() + b"\n")
        except ClosedError:
            # It has just ended: why, its end says.
            self._process.wait(1)
            if not pending.done():
                self._take(number)
                raise
        return pending

    def events(self) -> EventStream:
        """Return the events from now on."""
        if not self._has_events:
            raise ToolqError("no events are asked for: pass events=True to Toolq")
        stream = EventStream()
        with self._lock:
            self._streams.add(stream)
            ended = self._closing or self._failure is not None
        if ended:
            stream.close()
        return stream

    def close(self) -> None:
        """Cancel all turns, end the process, and return when it is gone."""
        with self._lock:
            was_closing, self._closing = self._closing, True
            turns = [number for number in self._callers if number in self._pending]
        if not was_closing:
            for number in turns:
                self._send_cancel(number)
        self._process.close()
        self._calls.cancel_all()
        self._runner.close()
        _open_connections.discard(self)

    def abandon(self) -> None:
        """Close without waiting, for an object that nobody has any more."""
        with self._lock:
            self._closing = True
            turns = list(self._callers)
        for number in turns:
            self._send_cancel(number)
        self._process.close_stdin()

    def _note_start(self, _: Any) -> None:
        self._started = True

    def _send(self, line: dict[str, Any]) -> None:
        # Whoever waits for something learns from the end of the process that it is closed.
        with contextlib.suppress(ClosedError):
            self._process.send(json.dumps(line, separators=(",", ":")).encode() + b"\n")

    def _send_cancel(self, number: int) -> None:
        self._send({"type": "cancel", "id": number})

    def _send_result(self, key: CallKey, tool_use_id: str, content: Any, is_error: bool) -> None:
        line = {"type": "result", "id": key.turn, "number": key.number, "tool_use_id": tool_use_id}
        self._send({**line, "content": content, "is_error": is_error})

    def _take(self, number: Any) -> Pending[Any] | None:
        with self._lock:
            self._callers.pop(number, None)
            return self._pending.pop(number, None)

    def _handle_line(self, text: bytes) -> None:
        line = json.loads(text)
        kind, number = line["type"], line.get("id")
        if kind == "approval":
            self._ask(number, line["question"], line["call"])
        elif kind == "call":
            self._calls.begin(CallKey(number, line["number"]), line["call"], self._caller(number))
        elif kind == "cancel_call":
            self._calls.cancel(CallKey(number, line["number"]))
        elif kind == "error":
            self._handle_error(number, line["error"])
        else:
            pending = self._take(number)
            if pending is not None:
                pending.resolve(line)

    def _handle_error(self, number: Any, error: dict[str, Any]) -> None:
        pending = self._take(number)
        if pending is not None:
            failure = pending.error_type(_describe_error(error))
            if isinstance(failure, StartError):
                # It would wait for other tools.
                with self._lock:
                    self._failure = failure
                self._process.close_stdin()
            pending.fail(failure)
        elif number is None:
            logger.warning("toolq didn't understand a line: %s", error["message"])
        else:
            # Such as the cancellation of a turn that was answered in the meantime.
            logger.debug("toolq refused a line about turn %s: %s", number, error["message"])

    def _caller(self, number: Any) -> Caller:
        with self._lock:
            return self._callers.get(number) or Caller(None)

    def _ask(self, number: Any, question: Any, call: Mapping[str, Any]) -> None:
        def decide(answer: Any, error: BaseException | None) -> None:
            decision = to_decision(answer, error)
            line = {"type": "approve", "id": number, "question": question}
            line["decision"] = "later" if decision is LATER else "yes" if decision.approved else "no"
            if decision.reason:
                line["reason"] = decision.reason
            self._send(line)

        if self._approve is None:
            self._send({"type": "approve", "id": number, "question": question, "decision": "no", "reason": NOBODY_TO_ASK})
        else:
            self._runner.run(functools.partial(self._approve, read_request(call)), self._caller(number), "approval", decide)

    def _handle_event(self, text: bytes) -> None:
        with self._lock:
            streams = list(self._streams)
        if streams:
            event = json.loads(text)
            for stream in streams:
                stream.push(event)

    def _handle_end(self, exit_code: int, stderr: str) -> None:
        with self._lock:
            waiting: list[Pending[Any]] = list(self._pending.values())
            self._pending.clear()
            self._callers.clear()
            streams = list(self._streams)
            if self._closing:
                self._failure = ClosedError("this Toolq is closed: make another one")
            elif self._failure is None:
                self._failure = _unexpected_end(exit_code, stderr, is_start=not self._started)
        self._calls.cancel_all()
        for stream in streams:
            stream.close()
        for pending in waiting:
            pending.fail(self._failure)
        _open_connections.discard(self)


def _describe_error(error: Mapping[str, Any]) -> str:
    problems: list[Mapping[str, Any]] = error.get("problems", [])
    lines = [str(error["message"])]
    for problem in problems:
        place = "/".join(problem.get("at", [])) or f"{problem.get('file')}, line {problem.get('line')}"
        # The first one stands in the message.
        if len(problems) > 1:
            lines.append(f"- {place}: {problem['message']}")
        if problem.get("hint"):
            lines.append(f"  hint: {problem['hint']}")
    return "\n".join(lines)


def _unexpected_end(exit_code: int, stderr: str, is_start: bool) -> ToolqError:
    how = f"signal {-exit_code}" if exit_code < 0 else f"exit code {exit_code}"
    when = "toolq didn't start" if is_start else "toolq ended unexpectedly"
    text = f"{when} ({how})" + (f":\n{stderr}" if stderr else "")
    return (StartError if is_start else ProcessError)(text, exit_code, stderr)


_open_connections: set[Connection] = set()


def _close_all() -> None:
    for connection in list(_open_connections):
        connection.close()


# Also where a program ends without `close()`, no process is left behind.
atexit.register(_close_all)
