"""Annotations and the schemas that they become."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import sys
from pathlib import Path
from typing import Annotated, Any, Dict, List, Literal, NamedTuple, Optional, Set, Tuple, TypedDict, Union

import pytest

import toolq
from toolq._schema import parameter_types


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: float
    y: float = 0.0


@dataclasses.dataclass
class Line:
    points: List[Point]


class Person(TypedDict):
    name: str


class Optionals(Person, total=False):
    age: int


@dataclasses.dataclass
class Node:
    children: List[Node]


class Row(NamedTuple):
    n: int


def _type_of(annotation: Any) -> Any:
    def function(value: Any) -> None: ...

    function.__annotations__ = {"value": annotation}
    types = parameter_types(function, "function")
    return types.schema["properties"]["value"], types


@pytest.mark.parametrize(
    ("annotation", "schema", "given", "received"),
    [
        (str, {"type": "string"}, "a", "a"),
        (int, {"type": "integer"}, 2.0, 2),
        (float, {"type": "number"}, 1, 1),
        (bool, {"type": "boolean"}, True, True),
        (Any, {}, [1, None], [1, None]),
        (Path, {"type": "string"}, "a/b", Path("a/b")),
        (datetime.date, {"type": "string", "format": "date"}, "2026-02-01", datetime.date(2026, 2, 1)),
        (datetime.datetime, None, "2026-02-01T10:00:00Z", datetime.datetime(2026, 2, 1, 10, tzinfo=datetime.timezone.utc)),
        (Union[datetime.date, str], None, "tomorrow", "tomorrow"),
        (List[int], {"type": "array", "items": {"type": "integer"}}, [1], [1]),
        (list, {"type": "array"}, [1], [1]),
        (Set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}, ["a"], {"a"}),
        (Tuple[int, ...], {"type": "array", "items": {"type": "integer"}}, [1], (1,)),
        (Dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}, {"a": 1}, {"a": 1}),
        (Optional[int], {"type": ["integer", "null"]}, None, None),
        (Union[str, List[str]], {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, ["a"], ["a"]),
        (Literal["a", 1], {"enum": ["a", 1]}, 1, 1),
        (Color, {"enum": ["red", "blue"]}, "blue", Color.BLUE),
        (Annotated[int, "how many"], {"type": "integer", "description": "how many"}, 1, 1),
        (Annotated[int, {"minimum": 1}], {"type": "integer", "minimum": 1}, 1, 1),
        (Union[Point, str], None, {"x": 1, "y": 2}, Point(1, 2)),
        (Union[Line, Point], None, {"points": [{"x": 1}]}, Line([Point(1)])),
        (Dict[str, Color], None, {"a": "red"}, {"a": Color.RED}),
        (Union[bool, int], {"type": ["boolean", "integer"]}, 1, 1),
    ],
)
def test_types(annotation: Any, schema: Any, given: Any, received: Any) -> None:
    found, types = _type_of(annotation)
    assert schema is None or found == schema
    value = types.convert({"value": given})["value"]
    assert value == received and type(value) is type(received)


def test_records() -> None:
    assert _type_of(Point)[0] == {
        "type": "object",
        "properties": {"x": {"type": "number"}, "y": {"type": "number"}},
        "required": ["x"],
        "additionalProperties": False,
    }
    assert _type_of(Person)[0]["required"] == ["name"]
    found = _type_of(Optionals)[0]
    assert found["required"] == ["name"] and list(found["properties"]) == ["name", "age"]


class Model:
    """What toolq uses of a model of Pydantic."""

    def __init__(self, value: Any) -> None:
        self.value = value

    @classmethod
    def model_json_schema(cls) -> Any:
        leg = {"type": "object", "properties": {"to": {"$ref": "#/$defs/Place", "description": "where"}}}
        legs = {"type": "array", "items": {"$ref": "#/$defs/Leg"}}
        return {"type": "object", "properties": {"legs": legs}, "$defs": {"Leg": leg, "Place": {"type": "string"}}}

    @classmethod
    def model_validate(cls, value: Any) -> Any:
        return cls(value)


class RecursiveModel(Model):
    @classmethod
    def model_json_schema(cls) -> Any:
        tree = {"type": "object", "properties": {"child": {"$ref": "#/$defs/Tree"}}}
        return {"$ref": "#/$defs/Tree", "$defs": {"Tree": tree}}


def test_models_of_pydantic() -> None:
    schema, types = _type_of(List[Model])
    leg = {"type": "object", "properties": {"to": {"type": "string", "description": "where"}}}
    assert schema["items"] == {"type": "object", "properties": {"legs": {"type": "array", "items": leg}}}
    assert types.convert({"value": [{"legs": []}]})["value"][0].value == {"legs": []}
    with pytest.raises(toolq.DeclarationError, match="holds itself"):
        _type_of(RecursiveModel)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="NotRequired came with Python 3.11")
def test_keys_that_may_be_left_out() -> None:
    import typing

    Partly = typing.TypedDict("Partly", {"a": int, "b": typing.NotRequired[int]})  # noqa: UP013
    assert _type_of(Partly)[0]["required"] == ["a"]


@pytest.mark.skipif(sys.version_info < (3, 10), reason="`X | Y` came with Python 3.10")
def test_unions_with_a_bar() -> None:
    assert _type_of(eval("int | None"))[0] == {"type": ["integer", "null"]}


def test_defaults_are_shown_and_not_required() -> None:
    def search(text: str, limit: int = 10, color: Color = Color.RED, folder: Optional[Path] = None, *, deep: bool = False) -> None:
        """Search."""

    declared = toolq.tool(search).declaration
    assert declared["input_schema"]["required"] == ["text"]
    properties = declared["input_schema"]["properties"]
    assert (properties["limit"]["default"], properties["color"]["default"], properties["deep"]["default"]) == (10, "red", False)
    assert "default" not in properties["folder"]
    assert declared["description"] == "Search." and declared["backing"] == "host"


def _bare(a) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001
def _rest(*a: int) -> None: ...
def _bytes(a: bytes) -> None: ...
def _keys(a: Dict[int, str]) -> None: ...
def _node(a: Node) -> None: ...
def _row(a: Row) -> None: ...
def _unknown(a: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (_bare, "`a` of _bare has no annotation"),
        (_rest, "can't be passed by its name"),
        (_bytes, "has the type bytes"),
        (_keys, "whose keys aren't texts"),
        (_node, "holds itself"),
        (_row, "has the type Row"),
        (_unknown, "Nowhere"),
        (lambda: None, "pass name="),
    ],
)
def test_what_has_no_schema_is_refused(function: Any, text: str) -> None:
    with pytest.raises(toolq.DeclarationError, match=text):
        toolq.tool(function)


def test_a_schema_of_ones_own() -> None:
    declared = toolq.tool(input_schema={"type": "object"}, timeout=1.5, paths=["a"], keys={"max_parallel": 2})(_bytes).declaration
    assert declared == {
        "backing": "host",
        "input_schema": {"type": "object"},
        "timeout": "1500ms",
        "paths": ["a"],
        "max_parallel": 2,
    }


def test_bound_methods_are_tools() -> None:
    class Shop:
        def price(self, of: str) -> int:
            return len(of)

    tool = toolq.tool(Shop().price)
    assert list(tool.declaration["input_schema"]["properties"]) == ["of"]
    assert tool.name == "price" and tool("abc") == 3
