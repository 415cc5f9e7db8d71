"""`Toolq`: the tools of a tools.yaml and of Python functions, for one program."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import threading
import warnings
from collections.abc import Generator, Mapping, Sequence
from types import TracebackType
from typing import Any, Callable, Literal, Union, get_args

from ._approval import Approve
from ._binary import find_binary
from ._callbacks import Caller, running_loop
from ._connection import Connection
from ._errors import ClosedError, DeclarationError, MessageError, ReloadError, StartError
from ._events import EventStream
from ._messages import Message, to_json
from ._pending import Pending
from ._tool import Tool, as_tool

DeclarationFormat = Literal["anthropic", "openai-chat", "openai-responses", "gemini", "bedrock", "mcp"]
"""The form of declarations for a model."""

PathOrText = Union[str, "os.PathLike[str]"]

_starting_is_refused = False


@contextlib.contextmanager
def no_start() -> Generator[None, None, None]:
    """Refuse to start toolq meanwhile: a program is only read, to find a function in it."""
    global _starting_is_refused
    _starting_is_refused = True
    try:
        yield
    finally:
        _starting_is_refused = False


class Toolq:
    """Answers the tool calls of a model's messages.

    It starts a toolq process when it is first used, or at the beginning of `with` or `async with`, and ends it with `close()`
    or at the end of the block. Its methods may be called from several threads, and several turns may be in flight.
    """

    def __init__(
        self,
        tools_file: PathOrText | None = None,
        *,
        tools: Sequence[Tool[Any, Any] | Callable[..., Any]] = (),
        approve: Approve | None = None,
        events: bool = False,
        log: None | bool | PathOrText = None,
        jobs: int | None = None,
        cwd: PathOrText | None = None,
        env: Mapping[str, str] | None = None,
        binary: PathOrText | None = None,
        arguments: Sequence[str] = (),
    ) -> None:
        """Take the tools of `tools_file` and of the functions `tools`.

        `approve` is asked about calls that need an approval; without it, they are denied. `events=True` makes `events()` work.
        `log` is the session log: a path, False for none, or None for a new file in toolq's state directory. `jobs` is how many
        calls may run at once. `cwd` and `env` are those of the toolq process, `binary` its path, and `arguments` are further
        arguments of `toolq run`.

        Raises `DeclarationError` if a function can't be declared, or two have the same name.
        """
        self._tools: dict[str, Tool[Any, Any]] = {}
        if callable(tools):
            raise DeclarationError("tools=… takes a list of functions: put this one into brackets")
        for tool in map(as_tool, tools):
            if tool.name in self._tools:
                raise DeclarationError(f"two functions are called {tool.name}: pass name=… to one of them")
            self._tools[tool.name] = tool
        self._tools_file, self._approve, self._with_events, self._log = tools_file, approve, events, log
        self._jobs, self._cwd, self._binary = jobs, cwd, binary
        self._env = None if env is None else dict(env)
        self._arguments = list(arguments)
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._closed = False

    def answer(self, message: Message) -> Any:
        """Answer the calls of a message, and return what goes back to the model.

        It has the form of the message: a user message for Anthropic's, a list of messages for OpenAI's. A message without calls
        is answered by an empty list.

        Raises `MessageError` if the message isn't one that toolq reads, and `ProcessError` if toolq ends unexpectedly.
        """
        self.start()
        return self._submit(message, Caller(None)).result()

    async def answer_async(self, message: Message) -> Any:
        """Like `answer`, without blocking the event loop. If it is canceled, the calls are, too, before it returns."""
        await self._connect().ready
        return await self._submit(message, Caller(running_loop()))

    def submit(self, message: Message) -> Pending[Any]:
        """Begin to answer a message. The answer can be waited for and canceled: see `Pending`."""
        self.start()
        return self._submit(message, Caller(running_loop()))

    def plan(self, message: Message) -> Any:
        """Return what `answer` would run, in which batches, and why, as `docs/plan.md` describes it. Nothing runs."""
        self.start()
        return self._plan(message).result()

    async def plan_async(self, message: Message) -> Any:
        """Like `plan`, without blocking the event loop."""
        await self._connect().ready
        return await self._plan(message)

    def tools(self, format: DeclarationFormat = "anthropic") -> list[Any]:
        """Return the declarations for a model, each a dict, as `toolq tools --format` has them."""
        self.start()
        return self._list(format).result()

    async def tools_async(self, format: DeclarationFormat = "anthropic") -> list[Any]:
        """Like `tools`, without blocking the event loop."""
        await self._connect().ready
        return await self._list(format)

    def reload(self) -> None:
        """Read tools.yaml again, for the messages that come from now on.

        Raises `ReloadError` if it can't be used. Then the tools stay as they were.
        """
        self.start()
        self._reload().result()

    async def reload_async(self) -> None:
        """Like `reload`, without blocking the event loop."""
        await self._connect().ready
        await self._reload()

    def events(self) -> EventStream:
        """Return what happens from now on, to iterate over with `for` or `async for`: see `docs/events.md`."""
        return self._connect().events()

    def start(self) -> None:
        """Start the toolq process, if it isn't running.

        Raises `StartError` if tools.yaml or a tool is wrong, and `BinaryNotFoundError` if there is no toolq.
        """
        self._connect().ready.result()

    def close(self) -> None:
        """Cancel what is in flight, end the process, and return when it is gone. May be called again."""
        connection = self._begin_close()
        if connection is not None:
            connection.close()

    async def close_async(self) -> None:
        """Like `close`, without blocking the event loop."""
        connection = self._begin_close()
        if connection is not None:
            await _in_thread(connection.close)

    @property
    def pid(self) -> int | None:
        """The id of the toolq process, if one runs."""
        return self._connection.pid if self._connection is not None and not self._closed else None

    def __enter__(self) -> Toolq:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    async def __aenter__(self) -> Toolq:
        try:
            await self._connect().ready
        except BaseException:
            await self.close_async()
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close_async()

    def __del__(self) -> None:
        connection = getattr(self, "_connection", None)
        if connection is not None and not self._closed and not connection.has_ended:
            with contextlib.suppress(Exception):
                warnings.warn(f"{self!r} was not closed", ResourceWarning, stacklevel=2, source=self)
            connection.abandon()

    def _connect(self) -> Connection:
        with self._lock:
            if self._closed:
                raise ClosedError("this Toolq is closed: make another one")
            if self._connection is None:
                if _starting_is_refused:
                    raise StartError(
                        "this program is only read, to find a function with process=True in it: "
                        'put what it does under `if __name__ == "__main__":`'
                    )
                cwd = None if self._cwd is None else os.fspath(self._cwd)
                self._connection = Connection(self._command(), cwd, self._env, self._tools, self._approve, self._with_events)
            return self._connection

    def _begin_close(self) -> Connection | None:
        with self._lock:
            self._closed = True
            return self._connection

    def _command(self) -> list[str]:
        binary = os.fspath(self._binary) if self._binary is not None else find_binary()
        command = [binary, "run", "--follow", "--control", "--progress", "none", "--color", "never"]
        if self._tools_file is not None:
            command += ["--tools", os.fspath(self._tools_file)]
        if self._log is False:
            command += ["--no-log"]
        elif self._log is not None and self._log is not True:
            command += ["--log", os.fspath(self._log)]
        if self._jobs is not None:
            command += ["--jobs", str(self._jobs)]
        return command + self._arguments

    def _submit(self, message: Message, caller: Caller) -> Pending[Any]:
        text = to_json(message)
        return self._connect().request(
            lambda number: f'{{"type":"turn","id":{number},"message":{text}}}', lambda line: line["message"], caller=caller
        )

    def _plan(self, message: Message) -> Pending[Any]:
        text = to_json(message)
        return self._connect().request(
            lambda number: f'{{"type":"plan","id":{number},"message":{text}}}', lambda line: line["plan"]
        )

    def _list(self, format: DeclarationFormat) -> Pending[list[Any]]:
        if format not in get_args(DeclarationFormat):
            raise MessageError(f"there are no declarations in the form {format!r}, only: {', '.join(get_args(DeclarationFormat))}")
        form = json.dumps(format)
        return self._connect().request(
            lambda number: f'{{"type":"list","id":{number},"format":{form}}}', lambda line: _tools_of(line["tools"])
        )

    def _reload(self) -> Pending[None]:
        return self._connect().request(
            lambda number: f'{{"type":"reload","id":{number}}}',
            lambda line: None,
            ReloadError,
        )


def _tools_of(declarations: dict[str, list[Any]] | list[Any]) -> list[Any]:
    # Bedrock's and MCP's forms are objects around the list. What the vendors' SDKs declare accepts `Any`, but no dict of anything.
    return declarations["tools"] if isinstance(declarations, dict) else declarations


async def _in_thread(function: Callable[[], None]) -> None:
    """Run a function on a thread that ends with it, unlike those of the event loop's executor."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    loop = asyncio.get_running_loop()

    def run() -> None:
        failure: tuple[BaseException, ...] = ()
        try:
            function()
        except BaseException as error:
            failure = (error,)
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(finish, failure)

    def finish(failure: tuple[BaseException, ...]) -> None:
        if done.done():
            return
        if failure:
            done.set_exception(failure[0])
        else:
            done.set_result(None)

    thread = threading.Thread(target=run, name="toolq-close", daemon=True)
    thread.start()
    await asyncio.shield(done)
    thread.join()
