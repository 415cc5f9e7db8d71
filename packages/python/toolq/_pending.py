"""A request that toolq hasn't answered yet."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
from collections.abc import Generator
from typing import Any, Callable, Generic, TypeVar

from ._errors import ToolqError

T = TypeVar("T")


class Pending(Generic[T]):
    """An answer that is on its way: wait for it with `result()` or `await`, or cancel it."""

    def __init__(self, send_cancel: Callable[[], None], read: Callable[[Any], T], error_type: type[ToolqError]) -> None:
        self._future: concurrent.futures.Future[T] = concurrent.futures.Future()
        # Waiting for it may be canceled, the answer itself can't: it comes in any case.
        self._future.set_running_or_notify_cancel()
        self._send_cancel = send_cancel
        self._read = read
        self.error_type = error_type

    def done(self) -> bool:
        """Return whether the answer is there."""
        return self._future.done()

    def cancel(self) -> None:
        """Stop the calls that run. The answer comes all the same, with a result for each call. Does nothing if it is there."""
        if not self.done():
            self._send_cancel()

    def result(self, timeout: float | None = None) -> T:
        """Wait for the answer, at most `timeout` seconds.

        Raises `TimeoutError` if it isn't there by then; the calls go on.
        """
        try:
            return self._future.result(timeout)
        except concurrent.futures.TimeoutError as error:
            if self.done():
                raise
            raise TimeoutError(f"no answer within {timeout:g} s") from error
        except KeyboardInterrupt:
            self.cancel()
            raise

    def __await__(self) -> Generator[Any, None, T]:
        return self._wait().__await__()

    async def _wait(self) -> T:
        future = asyncio.wrap_future(self._future)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            if not self.done():
                self.cancel()
                # Whoever cancels relies on nothing being left running afterwards. A second cancellation doesn't wait.
                with contextlib.suppress(Exception):
                    await asyncio.shield(future)
            raise

    def resolve(self, value: Any) -> None:
        """Set the answer."""
        if not self.done():
            try:
                self._future.set_result(self._read(value))
            except Exception as error:
                self._future.set_exception(error)

    def fail(self, error: Exception) -> None:
        """Set why there is no answer."""
        if not self.done():
            self._future.set_exception(error)
