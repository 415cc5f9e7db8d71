"""Counts the tool calls of recorded data, written apart from the program that is tested with it.

    python3 tests/independent_reader.py FOLDER > tests/recordings.json

What a file is comes from where it lies and from the HTTP status in its folder's index, not from its form. For each
file: null where it holds no model's answer, else [turns, calls, answered, cut off, digest]. The digest is over a line
for each call: turn, position, id, name, input. No content leaves the folder.
"""

import hashlib
import itertools
import json
import os
import struct
import sys

CUT = {"max_tokens", "length", "incomplete"}
STREAMS = (".sse", ".chunks.txt")


class Recording:
    def __init__(self):
        self.turns = []  # lists of [id, name, input, answered]
        self.cut = 0

    def turn(self, calls, cut=False):
        self.turns.append([[*call, False] for call in calls])
        self.cut += bool(cut and calls)

    def answer(self, answer_id):
        for calls in reversed(self.turns):
            for call in reversed(calls):
                if call[0] == answer_id and not call[3]:
                    call[3] = True
                    return

    def summary(self):
        digest = hashlib.sha256()
        calls = 0
        for number, turn in enumerate(self.turns):
            for position, (call_id, name, value, _) in enumerate(turn):
                line = [str(number), str(position), call_id, name, canonical(value)]
                digest.update(("\t".join(line) + "\n").encode())
                calls += 1
        answered = sum(call[3] for turn in self.turns for call in turn)
        return [len(self.turns), calls, answered, self.cut, digest.hexdigest()[:16]]


def canonical(value):
    """Sorted keys, no white space, floats by their bits; `!` for what is no object."""

    def bits(value):
        if isinstance(value, float):
            return "f" + struct.pack(">d", value).hex()
        if isinstance(value, list):
            return [bits(item) for item in value]
        if isinstance(value, dict):
            return {key: bits(item) for key, item in value.items()}
        return value

    if not isinstance(value, dict):
        return "!"
    return json.dumps(bits(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def arguments(text):
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text) if text.strip() else {}
    except ValueError:
        return None


def values(text):
    """Values one after another, on lines or not."""
    decoder, at = json.JSONDecoder(), 0
    while True:
        while at < len(text) and text[at] in " \t\r\n":
            at += 1
        if at == len(text):
            return
        value, at = decoder.raw_decode(text, at)
        yield value


def tool_uses(content):
    blocks = content if isinstance(content, list) else []
    return [(b["id"], b["name"], b["input"]) for b in blocks if b["type"] == "tool_use"]


def anthropic_messages(recording, messages):
    for message in messages:
        content = message["content"]
        if message["role"] == "assistant":
            recording.turn(tool_uses(content))
        elif isinstance(content, list):
            for block in content:
                if block["type"] == "tool_result":
                    recording.answer(block["tool_use_id"])


def chat_calls(message):
    calls = message.get("tool_calls") or []
    return [(c["id"], c["function"]["name"], arguments(c["function"].get("arguments"))) for c in calls]


def chat_messages(recording, messages):
    for message in messages:
        if message["role"] == "assistant":
            recording.turn(chat_calls(message))
        elif message["role"] == "tool":
            for answer_id in message.get("tool_call_ids") or [message["tool_call_id"]]:
                recording.answer(answer_id)


def item_calls(items):
    return [(i["call_id"], i["name"], arguments(i["arguments"])) for i in items if i.get("type") == "function_call"]


def response_items(recording, items):
    def of_model(item):
        return item.get("role", "assistant") == "assistant" and item.get("type") != "function_call_output"

    for model, run in itertools.groupby(items, of_model):
        run = list(run)
        if model:
            recording.turn(item_calls(run))
        for item in run:
            if item.get("type") == "function_call_output":
                recording.answer(item["call_id"])


def request(body, recording):
    if "anthropic_version" in body or is_anthropic(body):
        anthropic_messages(recording, body["messages"])
    elif "messages" in body:
        chat_messages(recording, body["messages"])
    elif "input" in body:
        response_items(recording, body["input"] if isinstance(body["input"], list) else [])
    else:
        return None
    return recording


def is_anthropic(body):
    return "/anthropic/" in body["path"] and "messages" in body


def response(body, recording):
    if "choices" in body:
        choice = body["choices"][0]
        recording.turn(chat_calls(choice["message"]), choice["finish_reason"] in CUT)
    elif "output" in body:
        recording.turn(item_calls(body["output"]), body["status"] in CUT)
    elif body.get("type") == "message":
        calls = tool_uses(body["content"])
        recording.turn(calls, body["stop_reason"] in CUT and body["content"][-1]["type"] == "tool_use")
    else:
        return None
    return recording


def payloads(path, text):
    """The data of a stream's events."""
    if path.endswith(".txt"):
        return [line for line in text.splitlines() if line]
    events = text.replace("\r\n", "\n").split("\n\n")
    lines = ([line[5:] for line in event.split("\n") if line.startswith("data:")] for event in events)
    return ["\n".join(data).strip() for data in lines if data]


def add_pieces(calls, pieces):
    for piece in pieces:
        if piece["index"] == len(calls):
            calls.append({"id": piece["id"], "function": {"name": piece["function"]["name"], "arguments": ""}})
        calls[piece["index"]]["function"]["arguments"] += piece["function"].get("arguments") or ""


def answers(events):
    """The answers that a stream adds up to, as the API would have given them whole; None where one breaks off."""
    message, chat = None, None
    for event in events:
        kind = event.get("type", "")
        if kind == "message_start":
            message = {"type": "message", "content": [], "stop_reason": None}
        elif kind == "content_block_start":
            message["content"].append({**event["content_block"], "pieces": ""})
        elif kind == "content_block_delta":
            message["content"][event["index"]]["pieces"] += event["delta"].get("partial_json", "")
        elif kind == "message_delta":
            message["stop_reason"] = event["delta"]["stop_reason"]
        elif kind == "message_stop":
            for block in message["content"]:
                if block["pieces"]:
                    block["input"] = arguments(block["pieces"])
            yield message
            message = None
        elif kind == "response.created":
            message = {}
        elif kind in ("response.completed", "response.incomplete"):
            yield event["response"]
            message = None
        elif event.get("choices"):
            choice = event["choices"][0]
            if not chat or chat["id"] != event["id"]:
                message = {"tool_calls": []}
                chat = {"id": event["id"], "choices": [{"message": message}]}
            add_pieces(chat["choices"][0]["message"]["tool_calls"], choice.get("delta", {}).get("tool_calls") or [])
            if choice.get("finish_reason") and message:
                chat["choices"][0]["finish_reason"] = choice["finish_reason"]
                yield chat
                message = None
    if message is not None:
        yield None


def stream(path, text):
    recording = Recording()
    found = list(answers(json.loads(data) for data in payloads(path, text) if data != "[DONE]"))
    if not found or None in found:
        return None
    for answer in found:
        response(answer, recording)
    return recording


def claude_code(lines):
    """All lines of one message.id are one turn; in the order of their first lines."""
    recording, groups = Recording(), {}
    for line in lines:
        if line.get("type") == "assistant":
            message = line["message"]
            if message["id"] not in groups:
                recording.turn([])
                groups[message["id"]] = recording.turns[-1]
            groups[message["id"]] += [[*call, False] for call in tool_uses(message["content"])]
        elif line.get("type") == "user" and isinstance(line["message"]["content"], list):
            for block in line["message"]["content"]:
                if block["type"] == "tool_result":
                    recording.answer(block["tool_use_id"])
    return recording


def read(path, status):
    text = open(path, encoding="utf-8").read()
    if "/claude-code/" in path:
        return claude_code(values(text))
    if "/codex/agentcmd/" in path:
        recording = Recording()
        items = [line["payload"] for line in values(text) if line["type"] == "response_item"]
        response_items(recording, items)
        return recording
    if path.endswith("gpt-4o-airline.even-tasks.json"):
        recording = Recording()
        for trial in json.loads(text):
            chat_messages(recording, trial["traj"])
        return recording
    if path.endswith(".traj"):
        recording = Recording()
        chat_messages(recording, json.loads(text)["history"])
        return recording
    if path.endswith(STREAMS):
        return stream(path, text)
    exchange = path.endswith((".request.json", ".response.json"))
    if exchange or "/vercel-ai/" in path:
        body = json.loads(text)
        if not isinstance(body, dict) or status >= 400:
            return None
        body["path"] = path
        return (request if path.endswith(".request.json") else response)(body, Recording())
    return None


def statuses(folder):
    found = {}
    for root, _, names in os.walk(folder):
        if "index.jsonl" in names:
            for line in open(os.path.join(root, "index.jsonl"), encoding="utf-8"):
                entry = json.loads(line)
                found[os.path.join(root, entry["dir"], entry["response"] or "")] = entry["status"]
    return found


def main(folder):
    status = statuses(folder)
    files = {}
    for root, _, names in os.walk(folder):
        for name in names:
            if name.endswith((".json", ".jsonl", ".traj", *STREAMS)):
                path = os.path.join(root, name)
                recording = read(path, status.get(path, 200))
                files[os.path.relpath(path, folder)] = recording and recording.summary()
    rows = [f"{json.dumps(name)}:{json.dumps(files[name], separators=(',', ':'))}" for name in sorted(files)]
    print("{" + ",\n".join(rows) + "}")


main(os.path.abspath(sys.argv[1]))
