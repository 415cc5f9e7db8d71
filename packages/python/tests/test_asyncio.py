"""Event loops: many turns, cancellation, events."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from conftest import call, message, reader, results

import toolq


def test_turns_run_together() -> None:
    arrived = 0

    @toolq.tool(effect="read")
    async def meet() -> str:
        nonlocal arrived
        arrived += 1
        while arrived < 5:
            await asyncio.sleep(0.001)
        return "met"

    async def main() -> None:
        async with reader(tools=[meet], jobs=8) as t:
            answers = await asyncio.gather(*(t.answer_async(message(call("meet"))) for _ in range(5)))
            assert [results(answer) for answer in answers] == [[(False, "met")]] * 5
            assert [tool["name"] for tool in await t.tools_async("mcp")][-1] == "meet"
            assert (await t.plan_async(message(call("look"))))["rejected"] == []
            await t.reload_async()

    asyncio.run(main())


def test_a_canceled_wait_cancels_the_calls_first() -> None:
    begun: list[bool] = []
    ended: list[bool] = []

    @toolq.tool(effect="read")
    async def hangs() -> str:
        begun.append(True)
        try:
            await asyncio.sleep(1000)
        finally:
            ended.append(True)
        return ""

    async def main() -> None:
        async with reader(tools=[hangs], events=True) as t:
            events = t.events()
            task = asyncio.create_task(t.answer_async(message(call("hangs"))))
            async for event in events:
                if event["type"] == "tool_started":
                    break
            while not begun:
                await asyncio.sleep(0.001)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            while not ended:
                await asyncio.sleep(0.001)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(t.answer_async(message(call("nap", seconds="1000"))), 0.1)
            assert results(await t.answer_async(message(call("look")))) == [(False, "seen")]

    asyncio.run(main())


def test_the_loop_stays_free() -> None:
    async def main() -> None:
        async with reader() as t:
            task = asyncio.create_task(t.answer_async(message(call("look", x="y" * 4_000_000))))
            turns_of_loop = 0
            while not task.done():
                await asyncio.sleep(0)
                turns_of_loop += 1
            assert results(await task) == [(False, "seen")]
            # If the answer blocked the loop, it would turn only once or twice.
            assert turns_of_loop > 10

    asyncio.run(main())


def test_events_are_told_to_all_readers() -> None:
    with reader(events=True) as t:
        first, second = t.events(), t.events()
        t.answer(message(call("look")))
    kinds = [event["type"] for event in first]
    assert kinds == [event["type"] for event in second]
    assert kinds[-1] == "queue_drained" and "tool_completed" in kinds
    with reader() as t, pytest.raises(toolq.ToolqError, match="events=True"):
        t.events()


def test_an_exception_in_the_block_closes() -> None:
    async def main(seen: Any) -> None:
        async with reader() as t:
            seen.append(asyncio.create_task(t.answer_async(message(call("nap", seconds="1000")))))
            await asyncio.sleep(0.1)
            raise KeyError("of the block")

    async def run() -> None:
        seen: Any = []
        with pytest.raises(KeyError):
            await main(seen)
        assert results(await seen[0])[0][0]

    asyncio.run(run())
