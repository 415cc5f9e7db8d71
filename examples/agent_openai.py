"""An agent with OpenAI's chat completions, on an event loop: python3 agent_openai.py 'How many words are in tools.yaml?'

It needs: pip install toolq openai. Its tools are those of tools.yaml, and a Python function.
"""

import asyncio
import os
import sys
from typing import Any

import openai
import toolq


@toolq.tool(effect="read")
async def multiply(a: float, b: float) -> float:
    """Multiply two numbers."""
    return a * b


async def main() -> None:
    """Ask the model until it makes no more calls, and print its answer."""
    messages: list[Any] = [{"role": "user", "content": sys.argv[1]}]
    async with openai.AsyncOpenAI() as client, toolq.Toolq("tools.yaml", tools=[multiply]) as t:
        tools = await t.tools_async("openai-chat")
        while True:
            response = await client.chat.completions.create(model="gpt-5", tools=tools, messages=messages)
            message = response.choices[0].message
            results = await t.answer_async(message)
            if not results:
                break
            messages += [message, *results]
    print(message.content)


if not os.environ.get("OPENAI_API_KEY"):
    sys.exit("OPENAI_API_KEY isn't set; set it to your key for the API")
try:
    asyncio.run(main())
except openai.APIError as error:
    sys.exit(f"the request to {error.request.url} failed: {error.__cause__ or error}")
