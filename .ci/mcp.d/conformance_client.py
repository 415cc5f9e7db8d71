"""What the conformance suite runs as the client: makes toolq do what the scenario asks for.

The last argument is the URL of the suite's server. MCP_CONFORMANCE_SCENARIO names the scenario, and
MCP_CONFORMANCE_CONTEXT has its data.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

MRTR_TOOLS = ["test_mrtr_no_result_type", "test_mrtr_unrelated", "test_mrtr_echo_state", "test_mrtr_no_state"]
# The suite calls a tool with a null where its schema wants a boolean. A person may declare what the server takes.
NULLABLE = """
tools:
  test_custom_headers_null:
    description: Takes a null.
    input_schema: {type: object, properties: {verbose: {type: [boolean, "null"]}}}
    mcp: {server: suite}
"""


def tools_file(url, scenario):
    declared = NULLABLE if scenario == "http-custom-headers" else ""
    return f'version: 1\nservers:\n  suite: {{url: "{url}", prefix: "", defaults: {{timeout: 20s}}}}\n{declared}'


def toolq(*arguments, **options):
    command = [os.environ["TOOLQ_BIN"], *arguments]
    return subprocess.run(command, text=True, stdout=subprocess.PIPE, **options)


def answer_calls(calls):
    """Runs the calls, and returns whether toolq answered them all."""
    blocks = [
        {"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": arguments}
        for index, (name, arguments) in enumerate(calls)
    ]
    result = toolq("run", "-q", "--no-log", input=json.dumps(blocks))
    print(result.stdout)
    return result.returncode == 0


def echoed_schema():
    """The schema as toolq declares it to a model."""
    tools = json.loads(toolq("tools", "-q", "--format", "mcp").stdout)["tools"]
    return next(tool["inputSchema"] for tool in tools if tool["name"] == "json_schema_2020_12_tool")


def scenario_calls(scenario):
    if scenario == "tools_call":
        return [("add_numbers", {"a": 2, "b": 3})]
    if scenario == "http-standard-headers":
        return [("test_headers", {})]
    if scenario == "http-custom-headers":
        calls = json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])["toolCalls"]
        return [(call["name"], call["arguments"]) for call in calls]
    if scenario == "http-invalid-tool-headers":
        return [("valid_tool", {"region": "us-west1"})]
    if scenario == "json-schema-2020-12-preservation":
        return [("json_schema_echo", {"schema": echoed_schema()})]
    if scenario == "sse-retry":
        return [("test_reconnection", {})]
    if scenario == "sep-2322-client-request-state":
        return [(tool, {}) for tool in MRTR_TOOLS]
    return []


scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
with tempfile.TemporaryDirectory() as directory:
    os.chdir(directory)
    Path("tools.yaml").write_text(tools_file(sys.argv[-1], scenario))
    locked = toolq("servers", "lock", "-q").returncode == 0
    calls = scenario_calls(scenario)
    answered = answer_calls(calls) if calls else True
sys.exit(0 if locked and answered else 1)
