"""What single annotations mean: a JSON schema, and how a value that matches it becomes a Python value."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Callable, NamedTuple, cast

from ._errors import DeclarationError

Schema = dict[str, Any]


class Mismatch(ValueError):
    """A JSON value is not of the type. It decides between the members of a `Union`: toolq has checked the input."""


class JsonType(NamedTuple):
    """An annotation: its schema, and how a value that matches it becomes a Python value."""

    schema: Schema
    convert: Callable[[Any], Any]


def check(kinds: tuple[type, ...], but_not: tuple[type, ...] = ()) -> Callable[[Any], Any]:
    """Return a function that returns a value of these kinds as it is, and raises `Mismatch` for any other."""

    def convert(value: Any) -> Any:
        if not isinstance(value, kinds) or isinstance(value, but_not):
            raise Mismatch
        return value

    return convert


def _to_int(value: Any) -> int:
    # In JSON Schema, 2.0 is an integer.
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value):
        raise Mismatch
    return int(value)


_text = check((str,))


def _to_path(value: Any) -> Path:
    return Path(_text(value))


def _to_date(value: Any) -> datetime.date:
    text: str = _text(value)
    try:
        return datetime.date.fromisoformat(text)
    except ValueError as error:
        raise Mismatch(f"{text!r} is no date, such as 2026-01-31: {error}") from error


def _to_datetime(value: Any) -> datetime.datetime:
    text: str = _text(value)
    # Before Python 3.11, `Z` isn't read.
    iso = text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text
    try:
        return datetime.datetime.fromisoformat(iso)
    except ValueError as error:
        raise Mismatch(f"{text!r} is no time, such as 2026-01-31T09:30:00Z: {error}") from error


ANY_TYPE = JsonType({}, check((object,)))
_PLAIN: dict[Any, JsonType] = {
    Any: ANY_TYPE,
    object: ANY_TYPE,
    str: JsonType({"type": "string"}, _text),
    int: JsonType({"type": "integer"}, _to_int),
    float: JsonType({"type": "number"}, check((int, float), but_not=(bool,))),
    bool: JsonType({"type": "boolean"}, check((bool,))),
    None: JsonType({"type": "null"}, check((type(None),))),
    type(None): JsonType({"type": "null"}, check((type(None),))),
    Path: JsonType({"type": "string"}, _to_path),
    datetime.date: JsonType({"type": "string", "format": "date"}, _to_date),
    datetime.datetime: JsonType({"type": "string", "format": "date-time"}, _to_datetime),
}


def plain_type(annotation: Any) -> JsonType | None:
    """Return the type of an annotation that has no parts."""
    try:
        return _PLAIN.get(annotation)
    except TypeError:  # Not hashable, such as Annotated with a dict.
        return None


def is_model(cls: type[Any]) -> bool:
    """Return whether a class is a model of Pydantic, which this package doesn't import."""
    return hasattr(cls, "model_json_schema") and hasattr(cls, "model_validate")


def model_type(cls: Any, place: str) -> JsonType:
    """Return the type of a model of Pydantic, which knows its schema itself."""
    schema: Schema = cls.model_json_schema()
    definitions: Schema = schema.pop("$defs", {})
    return JsonType(_inline(schema, definitions, (), place), cls.model_validate)


def _inline(value: Any, definitions: Mapping[str, Any], parents: tuple[str, ...], place: str) -> Any:
    """Put definitions where they are referred to: the references hold only at the root of a schema."""
    if isinstance(value, list):
        items = cast("Sequence[Any]", value)
        return [_inline(item, definitions, parents, place) for item in items]
    if not isinstance(value, dict):
        return value
    schema = cast("Schema", value)
    name = str(schema.get("$ref", "")).replace("#/$defs/", "")
    if name in parents:
        raise DeclarationError(f"{place} holds {name}, which holds itself: pass input_schema=…, and take a dict")
    if name in definitions:
        rest = {key: item for key, item in schema.items() if key != "$ref"}
        schema, parents = {**definitions[name], **rest}, (*parents, name)
    return {key: _inline(item, definitions, parents, place) for key, item in schema.items()}
