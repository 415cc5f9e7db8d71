"""An agent in LangGraph, with toolq in place of ToolNode: python3 agent_langgraph.py 'How many words are in tools.yaml?'

It needs: pip install toolq langgraph langchain-anthropic. Its tools are those of tools.yaml, and a Python function.
"""

import asyncio
import os
import sys

import anthropic
import toolq
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import ToolMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import tools_condition


@toolq.tool(effect="read")
def multiply(a: float, b: float) -> float:
    """Multiply two numbers."""
    return a * b


def tool_node(t: toolq.Toolq):
    """Return a node that answers the calls of the last message."""

    async def answer_calls(state: MessagesState):
        calls = state["messages"][-1].tool_calls
        blocks = [{"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["args"]} for call in calls]
        results = await t.answer_async(blocks)
        return {"messages": [as_message(result) for result in results]}

    return answer_calls


def as_message(result) -> ToolMessage:
    """Return a result as LangChain has it."""
    status = "error" if result["is_error"] else "success"
    return ToolMessage(result["content"], tool_call_id=result["tool_use_id"], status=status)


async def main() -> None:
    """Build the graph, run it, and print the model's answer."""
    async with toolq.Toolq("tools.yaml", tools=[multiply]) as t:
        model = ChatAnthropic(model="claude-sonnet-5-5", max_tokens=1024).bind_tools(await t.tools_async("anthropic"))
        graph = StateGraph(MessagesState)
        graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
        graph.add_node("tools", tool_node(t))
        graph.add_edge(START, "model")
        graph.add_conditional_edges("model", tools_condition)
        graph.add_edge("tools", "model")
        state = await graph.compile().ainvoke({"messages": [("user", sys.argv[1])]})
        print(state["messages"][-1].text)


if not os.environ.get("ANTHROPIC_API_KEY"):
    sys.exit("ANTHROPIC_API_KEY isn't set; set it to your key for the API")
try:
    asyncio.run(main())
except anthropic.APIError as error:
    sys.exit(f"the request to {error.request.url} failed: {error.__cause__ or error}")
