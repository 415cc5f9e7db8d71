"""Turns what a model answered into one line of JSON: dicts, objects of the vendors' SDKs, or JSON text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Union

from ._errors import MessageError

Message = Union[str, bytes, Mapping[str, Any], Sequence[Any], object]
"""A model's answer: a dict, a list of content blocks or messages, an object of an SDK, or JSON text."""


def to_json(message: Message) -> str:
    """Return `message` as one line of JSON.

    Raises `MessageError` if it is no JSON, or has objects that aren't JSON.
    """
    if isinstance(message, bytes):
        message = message.decode("utf-8", "surrogatepass")
    if isinstance(message, str):
        return _check_text(message)
    try:
        return json.dumps(message, separators=(",", ":"), default=_to_plain, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise MessageError(f"the message is not JSON: {error}") from error


def _check_text(text: str) -> str:
    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MessageError(f"the message is not JSON: {error}") from error
    # A line break in JSON text is white space: within strings it is escaped. Numbers keep their digits, since the text stays.
    return text.replace("\r", " ").replace("\n", " ")


_CONTAINERS: tuple[tuple[Any, Callable[[Any], Any]], ...] = ((Mapping, dict), ((set, frozenset, Sequence), list))


def _to_plain(value: Any) -> Any:
    # What wasn't set is left out, as the SDKs do when they send a message back.
    if hasattr(value, "model_dump"):
        try:
            return value.model_dump(mode="json", by_alias=True, exclude_unset=True)
        except TypeError:
            return value.model_dump()
    if hasattr(value, "to_dict"):
        return value.to_dict()
    for kinds, to_plain in _CONTAINERS:
        if isinstance(value, kinds):
            return to_plain(value)
    raise TypeError(f"{type(value).__name__} is neither JSON nor has it `model_dump` or `to_dict`")
