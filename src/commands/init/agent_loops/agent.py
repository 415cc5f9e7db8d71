#!/usr/bin/env python3
"""An agent: a model calls the tools in tools.yaml until it has an answer. Needs toolq on the PATH, and no packages.

    ANTHROPIC_API_KEY=… python3 agent.py 'Which files are here?'

Each message of the model is saved to conversation.json before its calls run. After a crash, the same command continues from there, and
no write runs twice. The exit code is 6 if a call waits for an approval, and 3 if not every call could run: then, too, run it again.
"""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

URL = os.environ.get("ANTHROPIC_BASE_URL", "https://api.anthropic.com") + "/v1/messages"
MODEL = os.environ.get("ANTHROPIC_MODEL", "claude-sonnet-5-5")
HEADERS = {
    "x-api-key": os.environ.get("ANTHROPIC_API_KEY") or sys.exit("ANTHROPIC_API_KEY isn't set; set it to your key for the API"),
    "anthropic-version": "2023-06-01",
    "content-type": "application/json",
}
MAX_TURNS = 50
STATE = "conversation.json"
# The exit codes of toolq that say what is left to do.
NO_CALLS = 5
TO_DO = {
    3: "not every call could run: see 'toolq log show'",
    6: "a call waits for an approval: see 'toolq approvals'",
}


def ask(messages, tools):
    """Sends the conversation, and returns the model's response."""
    body = {"model": MODEL, "max_tokens": 4096, "tools": tools, "messages": messages}
    request = urllib.request.Request(URL, json.dumps(body).encode(), HEADERS)
    for pause in (2, 4, 8, None):  # seconds before a busy API is asked again
        try:
            with urllib.request.urlopen(request) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            is_busy = error.code == 429 or error.code >= 500
            if not is_busy or pause is None:
                sys.exit(f"the API answered {error.code}: {error.read().decode(errors='replace')}")
            after = error.headers.get("Retry-After", "")
            time.sleep(int(after) if after.isdecimal() else pause)
        except OSError as error:
            sys.exit(f"{URL} can't be reached: {getattr(error, 'reason', error)}")
        except ValueError:
            sys.exit(f"{URL} answered with something that isn't JSON: did a proxy answer?")


def save(messages, response):
    with open(STATE + ".new", "w") as file:
        json.dump({"messages": messages, "response": response}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(STATE + ".new", STATE)


def begin(tools):
    """Returns the conversation so far, and the response whose calls come next: a new one, or one whose calls didn't all run."""
    task = " ".join(sys.argv[1:])
    if not os.path.exists(STATE):
        messages = [{"role": "user", "content": task or sys.exit(f"usage: {sys.argv[0]} TASK")}]
        return messages, ask(messages, tools)
    with open(STATE) as file:
        state = json.load(file)
    if task not in ("", state["messages"][0]["content"]):
        sys.exit(f"{STATE} holds an interrupted conversation about another task: run {sys.argv[0]} without one to continue it, or remove the file")
    return state["messages"], state["response"]


def answer(response):
    """Runs the calls of a response. Returns the message with their results, or None if there are no calls."""
    # With its id, which tells it from one of another day that asks for the same.
    toolq = subprocess.run(["toolq", "run", "-q"], input=json.dumps(response), stdout=subprocess.PIPE, text=True)
    code = toolq.returncode
    if code == NO_CALLS:
        return None
    if code in TO_DO:
        print(f"{TO_DO[code]}, then run {sys.argv[0]} again", file=sys.stderr)
    if code != 0:
        sys.exit(code if code > 0 else 128 - code)
    return json.loads(toolq.stdout)


def main():
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C also reaches toolq, which ends its calls by itself
    tools = json.loads(subprocess.check_output(["toolq", "tools"]))
    messages, response = begin(tools)
    for _ in range(MAX_TURNS):
        save(messages, response)
        results = answer(response)
        if results is None:
            break
        messages += [{"role": "assistant", "content": response["content"]}, results]
        response = ask(messages, tools)
    else:
        sys.exit(f"there is no answer after {MAX_TURNS} turns")
    os.remove(STATE)
    print("\n".join(block["text"] for block in response["content"] if block["type"] == "text"))


main()
