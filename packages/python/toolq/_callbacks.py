"""Runs functions of the user: plain ones on a thread of their own, async ones on the event loop of the turn."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
from collections.abc import Awaitable
from typing import Any, Callable, Optional

OnDone = Callable[[Any, Optional[BaseException]], None]
Cancel = Callable[[], None]


class Caller:
    """Who asked for a turn: its context variables, and the event loop that waits for it, if one does."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self.context = contextvars.copy_context()
        self.loop = loop


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that this code runs on."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class CallbackRunner:
    """Runs functions, and passes on how each ended."""

    def __init__(self) -> None:
        self._loop = BackgroundLoop()

    def run(self, function: Callable[[], Any], caller: Caller, name: str, on_done: OnDone) -> Cancel:
        """Start a function, and return what cancels it. `on_done` is called on another thread.

        An async function is canceled like any task. A plain one can't be ended: its result is nobody's then.
        """
        job = _Job(function, caller, on_done, self._loop)
        # A daemon, so that a function that never returns doesn't keep the interpreter from exiting.
        threading.Thread(target=job.start, name=f"toolq-{name}", daemon=True).start()
        return job.cancel

    def close(self) -> None:
        """Cancel async functions on the loop of this object, and end its thread."""
        self._loop.close()


class _Job:
    def __init__(self, function: Callable[[], Any], caller: Caller, on_done: OnDone, own_loop: BackgroundLoop) -> None:
        self._function, self._caller, self._on_done, self._own_loop = function, caller, on_done, own_loop
        self._lock = threading.Lock()
        self._canceled = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        try:
            value = self._caller.context.copy().run(self._function)
            if inspect.isawaitable(value):
                self._schedule(value)
                return
        except BaseException as error:  # Also SystemExit: a tool doesn't end the program.
            self._on_done(None, error)
        else:
            self._on_done(value, None)

    def cancel(self) -> None:
        with self._lock:
            self._canceled = True
            if self._task is not None and self._loop is not None:
                with contextlib.suppress(RuntimeError):  # The loop is closed, and its tasks with it.
                    self._loop.call_soon_threadsafe(self._task.cancel)

    def _schedule(self, awaitable: Awaitable[Any]) -> None:
        loop = self._caller.loop
        if loop is None or loop.is_closed():
            loop = self._own_loop.get()
        context = self._caller.context.copy()

        def begin() -> None:
            with self._lock:
                self._loop = loop
                if self._canceled:
                    # It has not begun, and never will.
                    getattr(awaitable, "close", lambda: None)()
                    return
                self._task = context.run(loop.create_task, self._wait(awaitable))

        loop.call_soon_threadsafe(begin)

    async def _wait(self, awaitable: Awaitable[Any]) -> None:
        try:
            value = await awaitable
        except asyncio.CancelledError as error:
            self._on_done(None, error)
            raise
        except BaseException as error:
            self._on_done(None, error)
        else:
            self._on_done(value, None)


class BackgroundLoop:
    """An event loop on a thread of its own, for async functions of turns that were begun without one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    def get(self) -> asyncio.AbstractEventLoop:
        """Return the loop, and start it if it isn't running."""
        with self._lock:
            if self._closed:
                raise RuntimeError("toolq is closed")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._serve, args=(self._loop,), name="toolq-loop", daemon=True)
                self._thread.start()
            return self._loop

    def close(self) -> None:
        """Cancel what runs on the loop, and end its thread."""
        with self._lock:
            self._closed = True
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None:
            return
        loop.call_soon_threadsafe(loop.stop)
        if thread is not threading.current_thread():
            thread.join(5)

    @staticmethod
    def _serve(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            tasks: set[asyncio.Task[Any]] = asyncio.all_tasks(loop)
            for task in tasks:
                task.cancel()
            if tasks:
                loop.run_until_complete(asyncio.wait(tasks, timeout=2))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()
