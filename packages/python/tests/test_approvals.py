"""Calls that start only after a yes."""

from __future__ import annotations

import asyncio
import subprocess
from typing import Any

import pytest
from conftest import call, message, reader, results, wait_for

import toolq


def test_the_callback_decides() -> None:
    asked: list[toolq.ApprovalRequest] = []

    def approve(request: toolq.ApprovalRequest) -> toolq.Decision:
        asked.append(request)
        return toolq.Decision(request.input["amount"] < 10, "too much")

    with reader(approve=approve) as t:
        answers = results(t.answer(message(call("pay", amount=5), call("pay", "toolu_2", amount=50))))
    assert answers[0] == (False, "paid 5")
    assert answers[1][0] and "too much" in answers[1][1]
    assert asked[0] == toolq.ApprovalRequest("toolu_1", "pay", "write", {"amount": 5}, {"command": ["echo", "paid 5"]}, 0)


def _raises(_: Any) -> bool:
    raise ValueError("hunter2")


@pytest.mark.parametrize("approve", [None, lambda _: False, lambda _: None, lambda _: 1, lambda _: "yes", _raises])
def test_whatever_is_no_clear_yes_is_a_no(approve: Any) -> None:
    with reader(approve=approve) as t:
        [(is_error, text)] = results(t.answer(message(call("pay", amount=5))))
    assert is_error and "Denied" in text and "hunter2" not in text


def test_a_call_can_wait_for_a_later_approval(binary: str) -> None:
    turn = message(call("pay", "toolu_01A09q90qw90lq917835lq9x", amount=5))
    approve = [binary, "approvals", "approve", turn["content"][0]["id"], "--log", "log.jsonl"]
    with reader(approve=lambda _: toolq.LATER, log="log.jsonl") as t:
        [(is_error, text)] = results(t.answer(turn))
        assert is_error and "needs an approval" in text
        wait_for(lambda: subprocess.run(approve).returncode == 0)
        assert results(t.answer(turn)) == [(False, "paid 5")]


def test_async_callbacks() -> None:
    async def approve(_: toolq.ApprovalRequest) -> bool:
        await asyncio.sleep(0)
        return True

    async def main() -> None:
        async with reader(approve=approve) as t:
            assert results(await t.answer_async(message(call("pay", amount=5)))) == [(False, "paid 5")]

    asyncio.run(main())
    with reader(approve=approve) as t:
        assert results(t.answer(message(call("pay", amount=5)))) == [(False, "paid 5")]


def test_functions_are_approved_too() -> None:
    @toolq.tool(approve=True)
    def launch(where: str) -> str:
        return f"launched to {where}"

    with reader(tools=[launch], approve=lambda request: request.input["where"] == "orbit") as t:
        assert results(t.answer(message(call("launch", where="orbit")))) == [(False, "launched to orbit")]
        assert results(t.answer(message(call("launch", where="town"))))[0][0]
