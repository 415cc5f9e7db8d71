"""Messages in, answers out."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from conftest import call, message, reader, results

import toolq


class Dumped:
    """An object of an SDK that is made of pydantic."""

    def __init__(self, **values: Any) -> None:
        self._values = values

    def model_dump(self, **_: Any) -> dict[str, Any]:
        return self._values


class Plain:
    """An object of an SDK with `to_dict`."""

    def __init__(self, **values: Any) -> None:
        self._values = values

    def to_dict(self) -> dict[str, Any]:
        return self._values


def test_each_form_is_answered_in_its_own() -> None:
    with reader() as t:
        assert t.answer(message(call("look"))) == {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "seen", "is_error": False}],
        }
        chat = {"role": "assistant", "content": None, "tool_calls": [_chat_call("call_1"), _chat_call("call_2")]}
        assert [answer["tool_call_id"] for answer in t.answer(chat)] == ["call_1", "call_2"]
        responses = {
            "output": [{"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}],
            "object": "response",
        }
        assert t.answer(responses) == [{"type": "function_call_output", "call_id": "c", "output": "seen"}]


def _chat_call(call_id: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "look", "arguments": "{}"}}


@pytest.mark.parametrize(
    "given",
    [
        Dumped(**message(call("look"))),
        Plain(**message(call("look"))),
        {"role": "assistant", "content": [Dumped(**call("look"))]},
        {"role": "assistant", "content": (call("look"),)},
        json.dumps(message(call("look")), indent=2),
        json.dumps(message(call("look"))).encode(),
    ],
)
def test_objects_of_sdks_and_json_text_are_messages(given: Any) -> None:
    with reader() as t:
        assert results(t.answer(given)) == [(False, "seen")]


def test_a_message_without_calls_is_answered_by_an_empty_list() -> None:
    with reader() as t:
        assert t.answer({"role": "assistant", "content": "Nothing to do."}) == []


@pytest.mark.parametrize("wrong", [{"a": 1}, "{", {"a": object()}, {"a": float("nan")}, '{}, "type": "approve"', 5])
def test_what_is_no_message_is_an_error_and_the_process_lives_on(wrong: Any) -> None:
    with reader() as t:
        with pytest.raises(toolq.MessageError):
            t.answer(wrong)
        assert results(t.answer(message(call("look")))) == [(False, "seen")]


def test_text_survives_whole() -> None:
    text = 'line\nbreak \u2028 \0 \U0001f600 "quoted" ' + "x" * 3_000_000

    @toolq.tool(effect="read")
    def echo(text: str) -> str:
        return str(len(text)) + text[:40]

    with reader(tools=[echo]) as t:
        assert results(t.answer(message(call("echo", text=text)))) == [(False, str(len(text)) + text[:40])]


def test_several_threads_have_turns_in_flight() -> None:
    found: list[Any] = []
    with reader() as t:

        def ask(number: int) -> None:
            answer = t.answer(message(call("look", f"toolu_{number}")))
            found.append((number, answer["content"][0]["tool_use_id"]))

        threads = [threading.Thread(target=ask, args=[number]) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(found) == [(number, f"toolu_{number}") for number in range(20)]


def test_a_canceled_turn_has_a_result_for_each_call() -> None:
    with reader() as t:
        pending = t.submit(message(call("nap", seconds="100"), call("nap", "toolu_2", seconds="100")))
        with pytest.raises(TimeoutError):
            pending.result(0.1)
        pending.cancel()
        answer = pending.result(30)
        assert [is_error for is_error, _ in results(answer)] == [True, True]
        pending.cancel()


def test_plan_and_tools() -> None:
    with reader() as t:
        plan = t.plan(message(call("look"), call("pay", "toolu_2", amount=1), call("nothing", "toolu_3")))
        assert [[call["tool_name"] for call in batch["calls"]] for batch in plan["batches"]] == [["look"], ["pay"]]
        assert plan["rejected"][0]["reason"] == "unknown_tool"
        assert [tool["name"] for tool in t.tools()] == ["look", "nap", "pay"]
        assert t.tools("openai-chat")[0]["function"]["name"] == "look"
        with pytest.raises(toolq.MessageError, match="only: anthropic, openai-chat"):
            t.tools("cobol")  # type: ignore[arg-type]


def test_reload_reads_the_file_again(home: Any) -> None:
    with reader() as t:
        text = (home / "tools.yaml").read_text()
        (home / "tools.yaml").write_text(text.replace("look:", "watch:"))
        t.reload()
        (home / "tools.yaml").write_text("tools: [")
        with pytest.raises(toolq.ReloadError):
            t.reload()
        assert results(t.answer(message(call("watch")))) == [(False, "seen")]
