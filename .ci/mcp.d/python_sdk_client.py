"""Lists and calls the tools of sdk.tools.yaml with the Python SDK, 1.x or 2.x: python_sdk_client.py ERA URL|COMMAND….

Prints a line of JSON per check. The working directory is that of the server.
"""

import contextlib
import importlib.metadata
import json
import os
import sys
from pathlib import Path

import anyio
import mcp
from mcp.client.stdio import StdioServerParameters, stdio_client

IS_VERSION_1 = importlib.metadata.version("mcp").startswith("1.")
# How long a check waits for what has to happen. The machine may be busy.
PATIENCE_SECONDS = 60


def check(name, passed, detail=""):
    print(json.dumps({"name": name, "passed": bool(passed), "detail": str(detail)}), flush=True)


@contextlib.asynccontextmanager
async def connect(era, target):
    is_url = target[0].startswith("http")
    server = target[0] if is_url else StdioServerParameters(command=target[0], args=target[1:], env=dict(os.environ))
    if not IS_VERSION_1:
        async with mcp.Client(server, mode=era) as client:
            yield client
        return
    if is_url:
        from mcp.client.streamable_http import streamablehttp_client

        transport = streamablehttp_client(server)
    else:
        transport = stdio_client(server)
    async with transport as streams, mcp.ClientSession(*streams[:2]) as session:
        await session.initialize()
        yield session


def as_json(result):
    return result.model_dump(mode="json", by_alias=True)


async def check_calls(client):
    tools = as_json(await client.list_tools())["tools"]
    names = [tool["name"] for tool in tools]
    check("list", names == ["echo", "area", "steps", "fail", "hang"], names)

    result = as_json(await client.call_tool("echo", {"text": "grüße, 世界"}))
    check("call", result["content"][0]["text"] == "grüße, 世界" and not result["isError"], result)

    result = as_json(await client.call_tool("area", {"side": 12}))
    check("structured content", result["structuredContent"] == {"area": 144}, result)

    many = [None] * 20
    async with anyio.create_task_group() as group:
        for index in range(len(many)):
            group.start_soon(store_echo, client, many, index)
    check("20 calls at once", many == [str(index) for index in range(len(many))], many)


async def store_echo(client, texts, index):
    result = as_json(await client.call_tool("echo", {"text": str(index)}))
    texts[index] = result["content"][0]["text"]


async def check_errors(client):
    result = as_json(await client.call_tool("fail", {}))
    check("failed call", result["isError"] and "no such invoice" in result["content"][0]["text"], result)

    result = as_json(await client.call_tool("area", {"side": "a"}))
    check("invalid input", result["isError"] and "/side" in result["content"][0]["text"], result)

    try:
        result = await client.call_tool("no_such_tool", {})
        check("unknown tool", False, result)
    except Exception as error:
        check("unknown tool", "no_such_tool" in str(error), error)


async def check_progress(client):
    told = []

    async def on_progress(progress, total, message):
        told.append(progress)

    await client.call_tool("steps", {}, progress_callback=on_progress)
    # Of values that are read at once, toolq sends the last. The SDK may hand that over after the answer, although it came before.
    check("progress", told and told == sorted(set(told)), told)


async def check_cancellation(client):
    pid_file = Path("pid")
    pid_file.unlink(missing_ok=True)
    # Only the SDK 1.x doesn't tell the server that a call was given up.
    request_id = client._request_id if IS_VERSION_1 else None
    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "hang", {})
            while not pid_file.exists():
                await anyio.sleep(0.02)
            process = Path("/proc") / pid_file.read_text().strip()
            check("call runs", process.exists())
            if IS_VERSION_1:
                params = mcp.types.CancelledNotificationParams(requestId=request_id)
                cancelled = mcp.types.CancelledNotification(method="notifications/cancelled", params=params)
                await client.send_notification(mcp.types.ClientNotification(cancelled))
            group.cancel_scope.cancel()
        while process.exists():
            await anyio.sleep(0.02)
    check("canceled call's process is gone", True)
    result = as_json(await client.call_tool("echo", {"text": "still there"}))
    check("call after a canceled one", result["content"][0]["text"] == "still there", result)


async def main(era, target):
    async with connect(era, target) as client:
        await check_calls(client)
        await check_errors(client)
        await check_progress(client)
        await check_cancellation(client)
    check("disconnect", True)


anyio.run(main, sys.argv[1], sys.argv[2:])
