"""An agent's loop in Python. Its tools are those of tools.yaml, served by toolq.

It needs the package `mcp` of version 2: pip install "mcp>=2,<3". Run it where tools.yaml is: python3 examples/mcp_agent.py
"""

import asyncio
import json

from mcp import Client, StdioServerParameters

# The SDK starts the program with a short environment. If tools.yaml needs variables, pass them as `env`.
TOOLQ = StdioServerParameters(command="toolq", args=["serve", "-q", "--read-only"])


class ScriptedModel:
    """Plays the model. A real one is asked over its API, with the tools and the messages so far."""

    def __init__(self):
        count = {"type": "tool_use", "id": "toolu_1", "name": "count_words", "input": {"path": "fixtures/poem.txt"}}
        search = {"pattern": "rain", "path": "fixtures/poem.txt"}
        find = {"type": "tool_use", "id": "toolu_2", "name": "search_text", "input": search}
        escape = {"type": "tool_use", "id": "toolu_3", "name": "read_file", "input": {"path": "/etc/passwd"}}
        answer = {"type": "text", "text": "The poem has 16 words, and rain is in its 7th line."}
        self.contents = iter([[count, find], [escape], [answer]])

    async def respond(self, tools, messages):
        return {"role": "assistant", "content": next(self.contents)}


async def answer_call(client, call):
    """Has toolq run a call, and returns the result as the model reads it."""
    result = await client.call_tool(call["name"], call["input"])
    text = "\n".join(block.text for block in result.content if block.type == "text")
    return {"type": "tool_result", "tool_use_id": call["id"], "content": text, "is_error": result.is_error}


async def run_agent(model, client, question):
    """Asks the model until it makes no more calls, and returns its answer."""
    listed = await client.list_tools()
    tools = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema} for tool in listed.tools
    ]
    messages = [{"role": "user", "content": question}]
    while True:
        message = await model.respond(tools, messages)
        messages.append(message)
        calls = [block for block in message["content"] if block["type"] == "tool_use"]
        if not calls:
            return message["content"][0]["text"]
        # toolq decides which of them run at the same time.
        results = await asyncio.gather(*(answer_call(client, call) for call in calls))
        for call, result in zip(calls, results):
            print(f"{call['name']} {json.dumps(call['input'])}\n{result['content']}\n")
        messages.append({"role": "user", "content": results})


async def main():
    async with Client(TOOLQ, mode="auto") as client:
        print(await run_agent(ScriptedModel(), client, "How long is the poem, and where does it rain?"))


asyncio.run(main())
