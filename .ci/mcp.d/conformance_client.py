"""Calls the tools of the scenario http-custom-headers of the conformance suite.

The suite calls a tool with a null where its schema wants a boolean, which toolq refuses to send. A person may declare what
the server takes, as here. The last argument is the URL of the suite's server, and MCP_CONFORMANCE_CONTEXT has the calls.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

TOOLS = """
version: 1
servers:
  suite: {url: "%s", prefix: "", defaults: {timeout: 20s}}
tools:
  test_custom_headers_null:
    description: Takes a null.
    input_schema: {type: object, properties: {verbose: {type: [boolean, "null"]}}}
    mcp: {server: suite}
"""

calls = json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])["toolCalls"]
blocks = [
    {"type": "tool_use", "id": f"toolu_{index}", "name": call["name"], "input": call["arguments"]}
    for index, call in enumerate(calls)
]
with tempfile.TemporaryDirectory() as directory:
    tools = Path(directory) / "tools.yaml"
    tools.write_text(TOOLS % sys.argv[-1])
    command = [os.environ["TOOLQ_BIN"], "run", "-q", "--no-log", "-c", tools]
    sys.exit(subprocess.run(command, input=json.dumps(blocks), text=True).returncode)
