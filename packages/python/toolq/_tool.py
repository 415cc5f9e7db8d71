"""`@toolq.tool`: a Python function as a tool."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import functools
import inspect
import json
import os
import sys
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Generic, TypeVar, Union, overload

from ._errors import DeclarationError, ToolError
from ._schema import ParameterTypes, parameter_types

if sys.version_info >= (3, 10):
    from typing import Literal, ParamSpec

    P = ParamSpec("P")
else:
    from typing import Literal

    # Before 3.10 there is no ParamSpec: calls of a decorated function aren't checked there.
    P = TypeVar("P")
R = TypeVar("R")

Effect = Literal["read", "idempotent", "write"]
Content = Union[str, list[dict[str, Any]]]


class Blocks(list[dict[str, Any]]):
    """A tool's answer as content blocks, such as `{"type": "image", …}`, rather than text."""


class Tool(Generic[P, R]):
    """A function that a model can call. It can still be called as the function that it was."""

    def __init__(self, function: Callable[P, R], settings: Mapping[str, Any], in_process: bool) -> None:
        declared = dict(settings)
        name = declared.pop("name", None) or getattr(function, "__name__", None)
        if not name or name == "<lambda>":
            raise DeclarationError("a function without a name can't be a tool: pass name=…")
        self.name: str = name
        self.function = function
        self.in_process = in_process
        self._types: ParameterTypes | None = None
        if declared.get("input_schema") is None:
            self._types = parameter_types(function, self.name)
            declared["input_schema"] = self._types.schema
        if declared.get("description") is None:
            declared["description"] = inspect.getdoc(function)
        self._declared = {key: value for key, value in declared.items() if value is not None}
        self.target = None if in_process else process_target(function, self.name)
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    @property
    def declaration(self) -> dict[str, Any]:
        """The tool as in tools.yaml."""
        return {**self._declared, "backing": "host"}

    def arguments(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the keyword arguments for an input that matches the schema."""
        return self._types.convert(values) if self._types else values


_SETTINGS = {"name", "description", "effect", "timeout", "approve", "paths", "input_schema", "process", "keys"}


@overload
def tool(function: Callable[P, R]) -> Tool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    effect: Effect | None = None,
    timeout: None | float | str = None,
    approve: None | bool | Mapping[str, Any] = None,
    paths: Sequence[Any] | None = None,
    input_schema: Mapping[str, Any] | None = None,
    process: bool = False,
    keys: Mapping[str, Any] | None = None,
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
def tool(function: Callable[P, R] | None = None, **settings: Any) -> Tool[P, R] | Callable[[Callable[P, R]], Tool[P, R]]:
    """Make a function a tool.

    Its annotations become the JSON schema of the input, its docstring the description. `effect`, `approve` and `paths` are as
    in tools.yaml; `timeout` is in seconds, or a text such as "5s". `keys` has further keys of tools.yaml, such as `locks`.
    With `process=True`, each call runs in a process of its own, which is ended when the call times out or is canceled.

    Raises `DeclarationError` if the function can't be declared.
    """
    unknown = settings.keys() - _SETTINGS
    if unknown:
        known = ", ".join(sorted(_SETTINGS))
        raise TypeError(f"toolq.tool has no `{min(unknown)}`, only {known}; other keys of tools.yaml belong in `keys`")
    in_process = not settings.pop("process", False)
    declared: dict[str, Any] = {**(settings.pop("keys", None) or {}), **settings}
    declared["timeout"] = _duration(declared.get("timeout"))
    if declared.get("paths") is not None:
        declared["paths"] = list(declared["paths"])

    def declare(function: Callable[P, R]) -> Tool[P, R]:
        if not callable(function):
            raise DeclarationError(f"@toolq.tool takes a function, or keywords such as effect=…, not {function!r}")
        return Tool(function, declared, in_process)

    return declare if function is None else declare(function)


def as_tool(value: Any) -> Tool[Any, Any]:
    """Return `value` as a tool: a decorated function, or any other."""
    if isinstance(value, Tool):
        return value  # pyright: ignore[reportUnknownVariableType] (it can't narrow `Any` to a generic class)
    if callable(value):
        return Tool(value, {}, in_process=True)
    raise DeclarationError(f"tools=[…] takes functions, not {value!r}")


def _duration(timeout: None | float | str) -> str | None:
    if timeout is None or isinstance(timeout, str):
        return timeout
    return f"{max(1, round(timeout * 1000))}ms"


def process_target(function: Callable[..., Any], name: str) -> dict[str, Any]:
    """Return where another process finds the function.

    Raises `DeclarationError` if it can't.
    """
    qualified = getattr(function, "__qualname__", "")
    if not qualified or "<" in qualified or inspect.ismethod(function):
        raise DeclarationError(
            f"{name} can't run in a process of its own, because no other process finds it: define it at the top of a module"
        )
    module = function.__module__
    main = sys.modules.get("__main__")
    path = getattr(main, "__file__", None) if module == "__main__" else None
    spec = getattr(main, "__spec__", None) if module == "__main__" else None
    if module == "__main__" and path is None:
        raise DeclarationError(f"{name} can't run in a process of its own: it isn't in a file. Define it in a module")
    return {"module": spec.name if spec else module, "path": None if spec else path, "name": qualified}


def render_result(value: Any) -> Content:
    """Return what the model reads: a text as it is, nothing as an empty text, anything else as JSON.

    Raises `TypeError` or `ValueError` if the value isn't JSON.
    """
    if isinstance(value, Blocks):
        return list(value)
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=_to_plain, allow_nan=False)
    except ValueError as error:
        raise ToolError(f"the tool returned what is not JSON: {error}") from error


def _sorted(values: Any) -> list[Any]:
    return sorted(values, key=str)


def _isoformat(value: Any) -> str:
    return value.isoformat()  # type: ignore[no-any-return]


_PLAIN: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    ((set, frozenset), _sorted),
    (os.PathLike, os.fspath),
    ((datetime.date, datetime.time), _isoformat),
    ((decimal.Decimal, uuid.UUID), str),
)


def _to_plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    for kinds, to_plain in _PLAIN:
        if isinstance(value, kinds):
            return to_plain(value)
    if isinstance(value, enum.Enum):
        return value.value
    dump: Any = getattr(value, "model_dump", None)
    if dump is not None:
        return dump(mode="json")
    raise TypeError(f"the tool returned a {type(value).__name__}, which is not JSON: return a text, a dict or a list")


def render_error(error: BaseException) -> str:
    """Return what the model reads about an exception: its type and message, and nothing of the stack."""
    text = str(error)
    if isinstance(error, ToolError):
        return text or "failed"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
