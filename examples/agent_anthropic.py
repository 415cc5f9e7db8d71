"""An agent with Anthropic's API: python3 agent_anthropic.py 'How many words are in tools.yaml?'

It needs: pip install toolq anthropic. Its tools are those of tools.yaml, and a Python function.
"""

import os
import sys

import anthropic
import toolq
from anthropic.types import MessageParam


@toolq.tool(effect="read")
def multiply(a: float, b: float) -> float:
    """Multiply two numbers."""
    return a * b


def main() -> None:
    """Ask the model until it makes no more calls, and print its answer."""
    client = anthropic.Anthropic()
    messages: list[MessageParam] = [{"role": "user", "content": sys.argv[1]}]
    with toolq.Toolq("tools.yaml", tools=[multiply]) as t:
        while True:
            response = client.messages.create(
                model="claude-sonnet-5-5", max_tokens=1024, tools=t.tools("anthropic"), messages=messages
            )
            results = t.answer(response)
            if not results:
                break
            messages.extend([{"role": "assistant", "content": response.content}, results])
    print("".join(block.text for block in response.content if block.type == "text"))


if not os.environ.get("ANTHROPIC_API_KEY"):
    sys.exit("ANTHROPIC_API_KEY isn't set; set it to your key for the API")
try:
    main()
except anthropic.APIError as error:
    sys.exit(f"the request to {error.request.url} failed: {error.__cause__ or error}")
