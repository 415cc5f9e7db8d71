"""The tools that the tests call, and the toolq that answers."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import pytest

import toolq

TOOLS = """
version: 1
tools:
  look: {input_schema: {type: object}, effect: read, command: [echo, seen]}
  nap:
    input_schema: {type: object, properties: {seconds: {type: string}}, required: [seconds]}
    effect: read
    command: [sleep, "{seconds}"]
  pay:
    approve: true
    input_schema: {type: object, properties: {amount: {type: integer}}, required: [amount]}
    command: [echo, "paid {amount}"]
"""


@pytest.fixture(scope="session")
def binary() -> str:
    """The toolq that is tested: TOOLQ_BINARY, or the debug build of this checkout."""
    named = os.environ.get("TOOLQ_BINARY")
    path = Path(named) if named else Path(__file__).resolve().parents[2] / "target" / "debug" / "toolq"
    if not path.is_file():
        pytest.fail(f"{path} is missing: build it with `cargo build`, or set TOOLQ_BINARY")
    return str(path)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, binary: str) -> Path:
    """An empty directory with the tools, in which the test runs."""
    (tmp_path / "tools.yaml").write_text(TOOLS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOOLQ_BINARY", binary)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("TOOLQ_TOOLS", raising=False)
    return tmp_path


@pytest.fixture(autouse=True)
def nothing_left(home: Path) -> Iterator[None]:
    """Fail if a test leaves a thread, or a descriptor, behind."""
    threads = set(threading.enumerate())
    before = set(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else None
    yield
    wait_for(lambda: not [thread for thread in set(threading.enumerate()) - threads if thread.name.startswith("toolq")])
    if before is not None:
        wait_for(lambda: len(set(os.listdir("/proc/self/fd"))) <= len(before))


def wait_for(condition: Callable[[], object], seconds: float = 20) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.01)


def call(name: str, call_id: str = "toolu_1", **values: Any) -> dict[str, Any]:
    """A tool call in Anthropic's form."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": values}


def message(*calls: dict[str, Any]) -> dict[str, Any]:
    """An assistant's message with calls."""
    return {"role": "assistant", "content": list(calls)}


def results(answer: Any) -> list[tuple[bool, str]]:
    """Whether each result is an error, and its text."""
    return [(block["is_error"], block["content"]) for block in answer["content"]]


def is_alive(pid: int) -> bool:
    """Whether a process runs."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def reader(**settings: Any) -> Any:
    """A `Toolq` without a log."""
    return toolq.Toolq("tools.yaml", **{"log": False, **settings})
