"""Finds the calls in recordings and their results, independently of the program that is tested with what it prints.

    python3 .ci/recordings.d/independent_reader.py DIRECTORY > DIRECTORY/calls.json

The format of a file is determined by its path and by the HTTP status in its directory's index, not by its contents.
The output has, for each file, null if it holds no model response, else the number of turns, how many of them were cut off, and
the calls: [turn, position, id, name, input, result]. The input is null if it isn't an object, and the result if there is none.
"""

import itertools
import json
import os
import sys

TRUNCATED = {"max_tokens", "length", "incomplete"}
STREAMS = (".sse", ".chunks.txt")


class Recording:
    def __init__(self):
        self.turns = []  # lists of [id, name, input, result]
        self.truncated = 0

    def add_turn(self, calls, truncated=False):
        self.turns.append([[*call, None] for call in calls])
        self.truncated += bool(truncated and calls)

    def add_result(self, call_id, result):
        """A result belongs to the nearest call before it with its id: programs reuse ids."""
        for calls in reversed(self.turns):
            for call in reversed(calls):
                if call[0] == call_id and call[3] is None:
                    call[3] = result
                    return

    def summary(self):
        calls = [
            [turn, position, call_id, name, value if isinstance(value, dict) else None, result]
            for turn, calls in enumerate(self.turns)
            for position, (call_id, name, value, result) in enumerate(calls)
        ]
        return {"turns": len(self.turns), "cut_off": self.truncated, "calls": calls}


def arguments(text):
    if not isinstance(text, str):
        return {} if text is None else text
    try:
        return {} if text.strip() in ("", "null") else json.loads(text)
    except ValueError:
        return None


def values(text):
    """Iterates over the JSON values in a text, whether or not they are on separate lines."""
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
            recording.add_turn(tool_uses(content))
        elif isinstance(content, list):
            for block in content:
                if block["type"] == "tool_result":
                    recording.add_result(block["tool_use_id"], block)


def chat_calls(message):
    calls = message.get("tool_calls") or []
    return [(c["id"], c["function"]["name"], arguments(c["function"].get("arguments"))) for c in calls]


def chat_messages(recording, messages):
    for message in messages:
        if message["role"] == "assistant":
            recording.add_turn(chat_calls(message))
        elif message["role"] == "tool":
            for call_id in message.get("tool_call_ids") or [message["tool_call_id"]]:
                recording.add_result(call_id, message)


def item_calls(items):
    return [(i["call_id"], i["name"], arguments(i["arguments"])) for i in items if i.get("type") == "function_call"]


def response_items(recording, items):
    def is_from_model(item):
        return item.get("role", "assistant") == "assistant" and item.get("type") != "function_call_output"

    for from_model, group in itertools.groupby(items, is_from_model):
        group = list(group)
        if from_model:
            recording.add_turn(item_calls(group))
        for item in group:
            if item.get("type") == "function_call_output":
                recording.add_result(item["call_id"], item)


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
        recording.add_turn(chat_calls(choice["message"]), choice["finish_reason"] in TRUNCATED)
    elif "output" in body:
        recording.add_turn(item_calls(body["output"]), body["status"] in TRUNCATED)
    elif body.get("type") == "message":
        calls = tool_uses(body["content"])
        recording.add_turn(calls, body["stop_reason"] in TRUNCATED and body["content"][-1]["type"] == "tool_use")
    else:
        return None
    return recording


def payloads(path, text):
    """Returns the data of a stream's events."""
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


def assembled_responses(events):
    """Assembles the responses of a stream as the API returns them without streaming; None for an aborted one."""
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
    found = list(assembled_responses(json.loads(data) for data in payloads(path, text) if data != "[DONE]"))
    if not found or None in found:
        return None
    for body in found:
        response(body, recording)
    return recording


def claude_code(lines):
    """Lines with the same message.id are one turn. Turns are in the order of their first lines."""
    recording, groups = Recording(), {}
    for line in lines:
        if line.get("type") == "assistant":
            message = line["message"]
            if message["id"] not in groups:
                recording.add_turn([])
                groups[message["id"]] = recording.turns[-1]
            groups[message["id"]] += [[*call, None] for call in tool_uses(message["content"])]
        elif line.get("type") == "user" and isinstance(line["message"]["content"], list):
            for block in line["message"]["content"]:
                if block["type"] == "tool_result":
                    recording.add_result(block["tool_use_id"], block)
    return recording


def toolq_log(lines):
    recording, turns, calls = Recording(), {}, {}
    for line in lines:
        if line["type"] == "turn":
            recording.add_turn([])
            turns[line["id"]] = recording.turns[-1]
        elif line["type"] == "tool_call":
            content = line["content"]
            calls[line["id"]] = [line["metadata"]["tool_use_id"], content["name"], content["input"], None]
            turns[line["parentId"]].append(calls[line["id"]])
        elif line["type"] == "tool_result":
            calls[line["parentId"]][3] = line
    return recording


def read(path, status):
    text = open(path, encoding="utf-8").read()
    if "/claude-code/" in path:
        return claude_code(values(text))
    if "/toolq/" in path:
        return toolq_log(values(text))
    if "/codex/" in path and "/rollout-" in path:
        recording = Recording()
        items = [line["payload"] for line in values(text) if line["type"] == "response_item"]
        response_items(recording, items)
        return recording
    if path.endswith("-tasks.json"):
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


def statuses(directory):
    found = {}
    for root, _, names in os.walk(directory):
        if "index.jsonl" in names:
            for line in open(os.path.join(root, "index.jsonl"), encoding="utf-8"):
                entry = json.loads(line)
                found[os.path.join(root, entry["dir"], entry["response"] or "")] = entry["status"]
    return found


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def row(name, recording):
    if recording is None:
        return f"{compact(name)}:null"
    summary = recording.summary()
    calls = ",".join("\n  " + compact(call) for call in summary["calls"])
    return f'{compact(name)}:{{"turns":{summary["turns"]},"cut_off":{summary["cut_off"]},"calls":[{calls}]}}'


def main(directory):
    # What a file is follows from the folders below this one, not from where it is.
    os.chdir(directory)
    status = statuses(".")
    files = {}
    for root, _, names in os.walk("."):
        for name in names:
            if name.endswith((".json", ".jsonl", ".traj", *STREAMS)) and name != "calls.json":
                path = os.path.join(root, name)
                files[os.path.relpath(path)] = read(path, status.get(path, 200))
    print("{" + ",\n".join(row(name, files[name]) for name in sorted(files)) + "}")


main(sys.argv[1])
