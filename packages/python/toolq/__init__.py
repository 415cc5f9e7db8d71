"""Runs a language model's tool calls: checked, in order, with timeouts and a session log.

with toolq.Toolq("tools.yaml", tools=[weather]) as t:
    results = t.answer(response)
"""

from ._approval import LATER, ApprovalRequest, Decision
from ._binary import find_binary
from ._client import DeclarationFormat, Toolq
from ._errors import (
    BinaryNotFoundError,
    ClosedError,
    DeclarationError,
    MessageError,
    ProcessError,
    ReloadError,
    StartError,
    ToolError,
    ToolqError,
)
from ._events import Event, EventStream
from ._messages import Message
from ._pending import Pending
from ._tool import Blocks, Tool, tool

__all__ = [
    "LATER",
    "ApprovalRequest",
    "BinaryNotFoundError",
    "Blocks",
    "ClosedError",
    "Decision",
    "DeclarationError",
    "DeclarationFormat",
    "Event",
    "EventStream",
    "Message",
    "MessageError",
    "Pending",
    "ProcessError",
    "ReloadError",
    "StartError",
    "Tool",
    "ToolError",
    "Toolq",
    "ToolqError",
    "find_binary",
    "tool",
]
