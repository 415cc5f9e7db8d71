"""Plays the APIs of two vendors on loopback: fake_api.py COMMAND… runs a command that finds them, and exits as it does.

The model calls every tool that it is offered and knows, one of them wrongly, and then answers with the results it has read.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

INPUTS = {"count_words": {"path": "tools.yaml"}, "list_files": {}, "multiply": {"a": 6, "b": 7}}


def calls_for(names: list[str]) -> list[tuple[str, str, dict[str, Any]]]:
    """The calls of the model: id, name, input."""
    calls = [(f"call_{name}", name, INPUTS[name]) for name in names if name in INPUTS]
    return [*calls, ("call_wrong", "count_words", {"file": "tools.yaml"})]


def anthropic(request: dict[str, Any]) -> dict[str, Any]:
    last = request["messages"][-1]["content"]
    if isinstance(last, list) and last[0]["type"] == "tool_result":
        texts = [json.dumps([block["tool_use_id"], block.get("is_error", False), block["content"]]) for block in last]
        content, reason = [{"type": "text", "text": "\n".join(texts)}], "end_turn"
    else:
        calls = calls_for([tool["name"] for tool in request["tools"]])
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
        calls = calls_for([tool["function"]["name"] for tool in request["tools"]])
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


def check(output: str, has_function: bool) -> None:
    results = [json.loads(line) for line in output.splitlines()]
    names = ["call_count_words", "call_list_files", *(["call_multiply"] if has_function else []), "call_wrong"]
    assert [result[0] for result in results] == names, output
    assert [result[1] for result in results] == [False] * (len(names) - 1) + [True], output
    words = len(open("tools.yaml").read().split())
    assert f"{words} tools.yaml" in str(results[0][2]), output
    if has_function:
        assert "42" in str(results[2][2]), output


def main() -> int:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    keys = {"ANTHROPIC_API_KEY": "none", "OPENAI_API_KEY": "none", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    env = {**os.environ, **keys, "ANTHROPIC_BASE_URL": url, "OPENAI_BASE_URL": f"{url}/v1"}
    ended = subprocess.run(sys.argv[1:], env=env, stdout=subprocess.PIPE, text=True, timeout=120)
    if ended.returncode == 0:
        check(ended.stdout, has_function=not sys.argv[-2].endswith(".sh"))
    return ended.returncode


if __name__ == "__main__":
    sys.exit(main())
