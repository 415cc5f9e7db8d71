"""The events of a `Toolq`, to iterate over."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

Event = dict[str, Any]
"""An event as `docs/events.md` describes it."""

# A stream that nobody reads doesn't fill the memory.
MAX_WAITING = 100_000


class EventStream(Iterator[Event], AsyncIterator[Event]):
    """Events from when the stream was made until toolq is closed: for `for`, or `async for`.

    If more than 100,000 events wait to be read, further ones are left out, and `dropped` counts them.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._waiting: collections.deque[Event] = collections.deque()
        self._ended = False
        self._waker: asyncio.Future[None] | None = None
        self.dropped = 0

    def push(self, event: Event | None) -> None:
        """Add an event; None ends the stream."""
        with self._condition:
            if event is None:
                self._ended = True
            elif len(self._waiting) < MAX_WAITING:
                self._waiting.append(event)
            else:
                self.dropped += 1
            self._condition.notify_all()
            waker, self._waker = self._waker, None
        if waker is not None:
            with contextlib.suppress(RuntimeError):  # That loop is closed: nobody waits.
                waker.get_loop().call_soon_threadsafe(_wake, waker)

    def close(self) -> None:
        """End the stream."""
        self.push(None)

    def __iter__(self) -> EventStream:
        return self

    def __next__(self) -> Event:
        with self._condition:
            self._condition.wait_for(lambda: self._waiting or self._ended)
            if self._waiting:
                return self._waiting.popleft()
        raise StopIteration

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> Event:
        while True:
            with self._condition:
                if self._waiting:
                    return self._waiting.popleft()
                if self._ended:
                    raise StopAsyncIteration
                self._waker = waker = asyncio.get_running_loop().create_future()
            await waker


def _wake(waker: asyncio.Future[None]) -> None:
    if not waker.done():
        waker.set_result(None)
