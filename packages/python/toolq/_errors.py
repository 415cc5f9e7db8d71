"""What can go wrong. Every exception of this package is a `ToolqError`."""

from __future__ import annotations


class ToolqError(Exception):
    """Base of all exceptions that this package raises."""


class BinaryNotFoundError(ToolqError):
    """There is no toolq program to start."""


class ProcessError(ToolqError):
    """The toolq process did not start, or ended before it was closed.

    `exit_code` is its exit code, negative for a signal, and None if it did not start. `stderr` has the last lines that it
    wrote.
    """

    def __init__(self, message: str, exit_code: int | None = None, stderr: str = "") -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.stderr = stderr


class StartError(ProcessError):
    """toolq refused to start: tools.yaml, a tool, or an argument is wrong. The message says which, and why."""


class MessageError(ToolqError, ValueError):
    """A message can't be answered, because it isn't one that toolq reads. Nothing ran."""


class ReloadError(ToolqError):
    """tools.yaml can't be used as it is now. The tools that were in force still are."""


class ClosedError(ToolqError):
    """This `Toolq` is closed."""


class DeclarationError(ToolqError, TypeError):
    """No JSON schema can be made for a function. The message names the parameter, and says what to write instead."""


class ToolError(ToolqError):
    """Raise it in a tool: the model reads exactly this message, as an error result."""
