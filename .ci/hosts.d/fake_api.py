"""Plays the APIs of two vendors on loopback: fake_api.py TOOLS COMMAND… runs a command that finds them, and exits as it does.

The model calls each of TOOLS, separated by commas, and the first once more with a wrong input. Then it answers with the results it
has read. It fails if the command doesn't offer one of them, or if a result isn't as expected.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOOLS = sys.argv[1].split(",")
VALUES = {"path": "tools.yaml", "a": 6, "b": 7, "city": "Oslo"}


def calls_for(schemas: dict[str, dict[str, Any]]) -> list[tuple[str, str, dict[str, Any]]]:
    """The calls of the model: id, name, input."""
    inputs = {name: {key: VALUES[key] for key in schemas[name].get("required", [])} for name in TOOLS}
    calls = [(f"call_{name}", name, values) for name, values in inputs.items()]
    return [*calls, ("call_wrong", TOOLS[0], {"file": "tools.yaml"})]


def anthropic(request: dict[str, Any]) -> dict[str, Any]:
    last = request["messages"][-1]["content"]
    if isinstance(last, list) and last[0]["type"] == "tool_result":
        texts = [json.dumps([block["tool_use_id"], block.get("is_error", False), block["content"]]) for block in last]
        content, reason = [{"type": "text", "text": "\n".join(texts)}], "end_turn"
    else:
        calls = calls_for({tool["name"]: tool["input_schema"] for tool in request["tools"]})
        content = [{"type": "tool_use", "id": call_id, "name": name, "input": values} for call_id, name, values in calls]
        reason = "tool_use"
    usage = {"input_tokens": 1, "output_tokens": 1}
    reply = {"id": "msg_1", "type": "message", "role": "assistant", "model": request["model"], "content": content}
    return {**reply, "stop_reason": reason, "stop_sequence": None, "usage": usage}


def openai(request: dict[str, Any]) -> dict[str, Any]:
    results = [message for message in request["messages"] if message["role"] == "tool"]
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if results:
        lines = [json.dumps([result["tool_call_id"], "Invalid input" in result["content"], result["content"]]) for result in results]
        message["content"] = "\n".join(lines)
    else:
        calls = calls_for({tool["function"]["name"]: tool["function"]["parameters"] for tool in request["tools"]})
        functions = [(call_id, {"name": name, "arguments": json.dumps(values)}) for call_id, name, values in calls]
        message["tool_calls"] = [{"id": call_id, "type": "function", "function": function} for call_id, function in functions]
    reason = "stop" if results else "tool_calls"
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return {"id": "c", "object": "chat.completion", "created": 0, "model": request["model"], "choices": [choice]}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        answer = anthropic if self.path.split("?")[0] == "/v1/messages" else openai
        body = json.dumps(answer(request)).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def check(output: str) -> None:
    results = [json.loads(line) for line in output.splitlines()]
    assert [result[0] for result in results] == [*(f"call_{name}" for name in TOOLS), "call_wrong"], output
    assert [result[1] for result in results] == [False] * len(TOOLS) + [True], output
    words = len(open("tools.yaml").read().split())
    expected = {"count_words": f"{words} tools.yaml", "multiply": "42", "weather": "Oslo: rain"}
    for name, result in zip(TOOLS, results):
        assert expected.get(name, "tools") in str(result[2]), output


def main() -> int:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    keys = {"ANTHROPIC_API_KEY": "none", "OPENAI_API_KEY": "none", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    env = {**os.environ, **keys, "ANTHROPIC_BASE_URL": url, "OPENAI_BASE_URL": f"{url}/v1"}
    ended = subprocess.run(sys.argv[2:], env=env, stdout=subprocess.PIPE, text=True, timeout=120)
    if ended.returncode == 0:
        check(ended.stdout)
    return ended.returncode


if __name__ == "__main__":
    sys.exit(main())
