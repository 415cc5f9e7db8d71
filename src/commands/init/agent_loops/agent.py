#!/usr/bin/env python3
"""An agent: a model calls the tools in tools.yaml until it has an answer. Needs toolq on the PATH, and no packages.

    ANTHROPIC_API_KEY=… python3 agent.py 'Which files are here?'

Each message of the model is saved to conversation.json before its calls run. After a crash, `python3 agent.py` without a task continues
from there, and no write runs twice.
"""

import json
import os
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
    """Returns the conversation so far, and the response whose calls come next: a new one, or one that was interrupted."""
    task = " ".join(sys.argv[1:])
    if not os.path.exists(STATE):
        messages = [{"role": "user", "content": task or sys.exit(f"usage: {sys.argv[0]} TASK")}]
        return messages, ask(messages, tools)
    if task:
        sys.exit(f"{STATE} holds an interrupted conversation: run {sys.argv[0]} without a task to continue it, or remove the file")
    with open(STATE) as file:
        state = json.load(file)
    return state["messages"], state["response"]


def main():
    tools = json.loads(subprocess.check_output(["toolq", "tools"]))
    messages, response = begin(tools)
    # One process answers all turns: a message in, the message with its results out, each on a line.
    command = ["toolq", "run", "--follow", "-q"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as toolq:
        for _ in range(MAX_TURNS):
            save(messages, response)
            # With its id, which tells it from one of another day that asks for the same.
            print(json.dumps(response), file=toolq.stdin, flush=True)
            line = toolq.stdout.readline()
            if not line:
                sys.exit(f"toolq ended with exit code {toolq.wait()}")
            results = json.loads(line)
            if not results:  # there were no calls, so this is the answer
                break
            messages += [{"role": "assistant", "content": response["content"]}, results]
            response = ask(messages, tools)
        else:
            sys.exit(f"there is no answer after {MAX_TURNS} turns")
        toolq.stdin.close()
    os.remove(STATE)
    print("\n".join(block["text"] for block in response["content"] if block["type"] == "text"))


main()
