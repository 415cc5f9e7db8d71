"""Makes JSON schemas from annotations, and Python values from the JSON that matches them."""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import functools
import inspect
import sys
import types
import typing
from typing import Any, Callable, NamedTuple, NoReturn

from ._errors import DeclarationError, ToolError
from ._json_type import ANY_TYPE, JsonType, Mismatch, Schema, check, is_model, model_type, plain_type


class ParameterTypes(NamedTuple):
    """The parameters of a function: the schema of an input, and the type of each."""

    schema: Schema
    types: dict[str, JsonType]

    def convert(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the keyword arguments for an input.

        Raises `ToolError` if a value matches the schema but isn't what it should be, such as a text that is no date.
        """
        arguments: dict[str, Any] = {}
        for name, value in values.items():
            try:
                arguments[name] = self.types[name].convert(value)
            except Mismatch as error:
                raise ToolError(f"invalid input: /{name}: {error}") from error
        return arguments


def parameter_types(function: Callable[..., Any], name: str) -> ParameterTypes:
    """Return the types of a function's parameters.

    Raises `DeclarationError` if a parameter can't be described.
    """
    signature = inspect.signature(function)
    hints = _hints(function, name)
    found: dict[str, JsonType] = {}
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for parameter in signature.parameters.values():
        place = f"parameter `{parameter.name}` of {name}"
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            _fail(place, "can't be passed by its name", "declare it as an ordinary parameter")
        if parameter.name not in hints:
            _fail(
                place,
                "has no annotation",
                f"write `{parameter.name}: str`, or whatever it is; of a method, decorate the bound one: "
                "`toolq.tool(object.method)`",
            )
        json_type = _compile(hints[parameter.name], place, ())
        found[parameter.name] = json_type
        properties[parameter.name] = json_type.schema
        if parameter.default is parameter.empty:
            required.append(parameter.name)
        else:
            default = _plain_default(parameter.default)
            if default is not _NO_DEFAULT:
                properties[parameter.name] = {**json_type.schema, "default": default}
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = required
    return ParameterTypes(schema, found)


_NO_DEFAULT = object()


def _plain_default(value: Any) -> Any:
    """Return a default as JSON, so that the model sees it. Null would only say that it may be left out."""
    if isinstance(value, enum.Enum):
        value = value.value
    return value if isinstance(value, (bool, int, float, str)) else _NO_DEFAULT


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    target: Any = inspect.unwrap(function)
    if isinstance(target, functools.partial):
        target = target.func
    elif not inspect.isroutine(target):
        target = type(target).__call__
    try:
        return typing.get_type_hints(target, include_extras=True)
    except (NameError, TypeError, AttributeError) as error:
        hint = "annotate with names that the module itself defines"
        if isinstance(error, TypeError) and sys.version_info < (3, 10):
            hint += "; before Python 3.10, write `Optional[X]` for `X | None` and `Union[X, Y]` for `X | Y`"
        raise DeclarationError(f"the annotations of {name} can't be read: {error}; {hint}") from error


def _fail(place: str, why: str, hint: str) -> NoReturn:
    raise DeclarationError(f"{place} {why}: {hint}")


_Parents = tuple[type, ...]
_UNIONS = (typing.Union, getattr(types, "UnionType", typing.Union))
_LISTS = (list, collections.abc.Sequence, collections.abc.MutableSequence, collections.abc.Iterable, collections.abc.Collection)
_SETS = (set, frozenset, collections.abc.Set, collections.abc.MutableSet)
_DICTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


def _compile(annotation: Any, place: str, parents: _Parents) -> JsonType:
    """Return the type of an annotation. `parents` are the classes that it stands in."""
    plain = plain_type(annotation)
    if plain is not None:
        return plain
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if hasattr(annotation, "__metadata__"):
        return _annotated(annotation, place, parents)
    if origin in _UNIONS:
        return _union([_compile(member, place, parents) for member in arguments])
    if origin is not None and getattr(origin, "_name", "") in ("Required", "NotRequired", "ReadOnly"):
        return _compile(arguments[0], place, parents)
    if origin is typing.Literal:
        return _literal(list(arguments))
    container = origin or annotation
    if container is tuple and arguments and arguments[-1] is not Ellipsis:
        return _fixed_tuple([_compile(item, place, parents) for item in arguments])
    if container is tuple or container in _LISTS or container in _SETS:
        items = _compile(arguments[0], place, parents) if arguments else ANY_TYPE
        return _array(container, items)
    if container in _DICTS:
        return _mapping(arguments, place, parents)
    if isinstance(annotation, type):
        return _class(annotation, place, parents)
    supertype = getattr(annotation, "__supertype__", None)
    if supertype is not None:
        return _compile(supertype, place, parents)
    value = getattr(annotation, "__value__", None)
    if value is not None:
        return _compile(value, place, parents)
    return _unsupported(annotation, place)


def _unsupported(annotation: Any, place: str) -> NoReturn:
    shown = getattr(annotation, "__name__", None) or str(annotation)
    _fail(
        place,
        f"has the type {shown}, for which there is no JSON schema",
        "use str, int, float, bool, list, dict, Literal, Optional, Union, TypedDict, a dataclass, an enum, "
        "date, datetime or a Pydantic model, or pass input_schema=…",
    )


def _annotated(annotation: Any, place: str, parents: _Parents) -> JsonType:
    """A text is the description; a dict has further keys of the schema, such as `{"minimum": 1}`."""
    inner = _compile(annotation.__origin__, place, parents)
    schema = dict(inner.schema)
    for extra in annotation.__metadata__:
        if isinstance(extra, str):
            schema["description"] = extra
        elif isinstance(extra, dict):
            schema.update(typing.cast("dict[str, Any]", extra))
    return JsonType(schema, inner.convert)


def _union(members: list[JsonType]) -> JsonType:
    def convert(value: Any) -> Any:
        for member in members:
            try:
                return member.convert(value)
            except ValueError:
                continue
        raise Mismatch

    names = [member.schema.get("type") for member in members]
    if all(len(member.schema) == 1 and isinstance(name, str) for member, name in zip(members, names)):
        return JsonType({"type": names}, convert)
    return JsonType({"anyOf": [member.schema for member in members]}, convert)


def _literal(values: list[Any]) -> JsonType:
    by_json = [(value.value if isinstance(value, enum.Enum) else value, value) for value in values]

    def convert(value: Any) -> Any:
        for plain, python in by_json:
            if plain == value and type(plain) is type(value):
                return python
        raise Mismatch

    return JsonType({"enum": [plain for plain, _ in by_json]}, convert)


def _array(container: Any, items: JsonType) -> JsonType:
    schema: Schema = {"type": "array"}
    if items.schema:
        schema["items"] = items.schema
    if container in _SETS:
        schema["uniqueItems"] = True

    def convert(value: Any) -> Any:
        found: list[Any] = [items.convert(item) for item in check((list,))(value)]
        if container is frozenset:
            return frozenset(found)
        if container in _SETS:
            return set(found)
        return tuple(found) if container is tuple else found

    return JsonType(schema, convert)


def _fixed_tuple(items: list[JsonType]) -> JsonType:
    def convert(value: Any) -> Any:
        parts: list[Any] = check((list,))(value)
        if len(parts) != len(items):
            raise Mismatch
        return tuple(item.convert(part) for item, part in zip(items, parts))

    count = len(items)
    schema = {"type": "array", "prefixItems": [item.schema for item in items], "minItems": count, "maxItems": count}
    return JsonType(schema, convert)


def _mapping(arguments: tuple[Any, ...], place: str, parents: _Parents) -> JsonType:
    if arguments and arguments[0] not in (str, Any):
        _fail(place, "is a dict whose keys aren't texts", "JSON has no others; use `dict[str, …]`")
    values = _compile(arguments[1], place, parents) if arguments else ANY_TYPE

    def convert(value: Any) -> Any:
        return {key: values.convert(item) for key, item in check((dict,))(value).items()}

    schema: Schema = {"type": "object"}
    if values.schema:
        schema["additionalProperties"] = values.schema
    return JsonType(schema, convert)


def _class(cls: type[Any], place: str, parents: _Parents) -> JsonType:
    if cls in parents:
        _fail(place, f"holds {cls.__name__}, which holds itself", "pass input_schema=…, and take a dict")
    if issubclass(cls, enum.Enum):
        return _literal(list(cls))
    if is_model(cls):
        return model_type(cls, place)
    if dataclasses.is_dataclass(cls):
        return _dataclass(cls, place, (*parents, cls))
    if hasattr(cls, "__required_keys__"):
        return _typed_dict(cls, place, (*parents, cls))
    _unsupported(cls, place)


def _dataclass(cls: Any, place: str, parents: _Parents) -> JsonType:
    hints = _hints_of_class(cls, place)
    fields = [field for field in dataclasses.fields(cls) if field.init]
    found = {field.name: _compile(hints[field.name], place, parents) for field in fields}
    missing = dataclasses.MISSING
    required = [field.name for field in fields if field.default is missing and field.default_factory is missing]
    record = _record(found, required)

    def convert(value: Any) -> Any:
        return cls(**record.convert(value))

    return JsonType(record.schema, convert)


def _typed_dict(cls: Any, place: str, parents: _Parents) -> JsonType:
    hints = _hints_of_class(cls, place)
    required: list[str] = []
    for key, hint in hints.items():
        marker = getattr(typing.get_origin(hint), "_name", "")
        is_required = key in cls.__required_keys__ and marker != "NotRequired"
        if is_required or marker == "Required":
            required.append(key)
    return _record({key: _compile(hint, place, parents) for key, hint in hints.items()}, required)


def _hints_of_class(cls: type, place: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls, include_extras=True)
    except (NameError, TypeError) as error:
        raise DeclarationError(f"{place} has the type {cls.__name__}, whose annotations can't be read: {error}") from error


def _record(found: dict[str, JsonType], required: list[str]) -> JsonType:
    def convert(value: Any) -> Any:
        items: dict[str, Any] = check((dict,))(value)
        if not set(required) <= items.keys() <= found.keys():
            raise Mismatch
        return {key: found[key].convert(item) for key, item in items.items()}

    properties = {key: json_type.schema for key, json_type in found.items()}
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = required
    return JsonType(schema, convert)
