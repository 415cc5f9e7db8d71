"""What the approval callback reads and returns."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Awaitable, Mapping
from typing import Any, Callable, Union

logger = logging.getLogger("toolq")


@dataclasses.dataclass(frozen=True)
class ApprovalRequest:
    """A call that starts only if it is approved."""

    tool_use_id: str
    tool_name: str
    effect: str
    """`read`, `idempotent` or `write`"""
    input: dict[str, Any]
    """What the call would run with: defaults are filled in"""
    runs: dict[str, Any]
    """The command, the request, or what else would run"""
    turn: int


@dataclasses.dataclass(frozen=True)
class Decision:
    """Yes or no, and why. The model reads the reason after a no; after a yes it stands in the session log."""

    approved: bool
    reason: str | None = None


LATER = Decision(False)
"""The call isn't run now: it waits for `toolq approvals approve`, and its message has to be answered again"""

ApprovalAnswer = Union[bool, Decision]
Approve = Callable[[ApprovalRequest], Union[ApprovalAnswer, Awaitable[ApprovalAnswer]]]


def read_request(call: Mapping[str, Any]) -> ApprovalRequest:
    """Return the call of an `approval` line."""
    return ApprovalRequest(
        tool_use_id=call["tool_use_id"],
        tool_name=call["tool_name"],
        effect=call.get("effect", "write"),
        input=call.get("input", {}),
        runs=call.get("runs", {}),
        turn=call.get("turn", 0),
    )


def to_decision(answer: Any, error: BaseException | None) -> Decision:
    """Return what the callback decided. Whatever isn't a clear yes is a no."""
    if error is not None:
        logger.error("approve=… failed, so the call is denied", exc_info=error)
        return Decision(False, "nobody could be asked: the approval itself failed")
    if isinstance(answer, Decision):
        return answer
    if isinstance(answer, bool):
        return Decision(answer)
    logger.error("approve=… returned %r, so the call is denied: return True, False or a Decision", answer)
    return Decision(False, "nobody could be asked: the approval itself failed")
