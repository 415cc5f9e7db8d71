"""The MCP Inspector as a client of `toolq serve`, over stdio and over HTTP, in both eras."""

import json
import tempfile
from pathlib import Path

from http_server import serve_http
from kit import INSPECTOR, TOOLQ, everything_printed, run
from part_report import PartReport

TOOLS = """
version: 1
tools:
  echo:
    description: Say it again.
    input_schema: {type: object, properties: {text: {type: string}}, required: [text], additionalProperties: false}
    effect: read
    command: {argv: [printf, "%s", "{text}"], dashes: [text]}
"""
CALL = ["--method", "tools/call", "--tool-name", "echo", "--tool-arg", "text=hello there"]
ERAS = ["legacy", "modern", "auto"]
LOAD_REQUESTS, LOAD_CONCURRENCY = 500, 16


class InspectedServer:
    """A server that the Inspector connects to: a command, or a URL."""

    def __init__(self, report, name, directory, target):
        self.report = report
        self.name = name
        self.directory = directory
        self.target = target

    def inspect(self, era, *arguments):
        # An option with any number of values can't stand right before the server's command.
        command = [*INSPECTOR, *arguments, "--protocol-era", era, *self.target]
        return run(command, cwd=self.directory, timeout=300)

    def check(self, what, era, arguments, expected):
        name = f"{self.name}, {era}: {what}"
        with self.report.guard(name):
            result = self.inspect(era, *arguments)
            passed = result.returncode == 0 and expected in result.stdout
            self.report.check(name, passed, everything_printed(result))

    def check_load(self, era):
        name = f"{self.name}, {era}: {LOAD_REQUESTS} calls, {LOAD_CONCURRENCY} at a time"
        with self.report.guard(name):
            load = ["--method", "tools/call", "--tool-name", "echo", "--tool-arg", "text=hello", "--load"]
            load += ["--load-concurrency", LOAD_CONCURRENCY, "--load-requests", LOAD_REQUESTS, "--format", "json"]
            result = self.inspect(era, *load)
            if result.returncode != 0:
                self.report.check(name, False, everything_printed(result))
                return
            load = json.loads(result.stdout)["result"]
            rate = f"{load['throughput']:.0f} a second"
            self.report.check(name, load["ok"] == LOAD_REQUESTS, result.stdout, rate)

    def check_all(self):
        for era in ERAS:
            self.check("tools/list --strict", era, ["--method", "tools/list", "--strict"], "Say it again.")
            self.check("tools/call", era, CALL, "hello there")
        self.check_load("modern")


def check_token(report, directory):
    token = "a-token-of-some-length"
    with serve_http(directory, "--token-env", "MCP_CHECK_TOKEN", MCP_CHECK_TOKEN=token) as url:
        target = ["--transport", "http", "--server-url", url]
        header = ["--header", f"Authorization: Bearer {token}"]
        server = InspectedServer(report, "HTTP, token", directory, [*header, *target])
        server.check("tools/call", "auto", CALL, "hello there")
        refused = InspectedServer(report, "HTTP", directory, target).inspect("auto", *CALL)
        report.check("HTTP, no token: refused", refused.returncode != 0, everything_printed(refused))


report = PartReport("inspector")
with tempfile.TemporaryDirectory() as directory:
    Path(directory, "tools.yaml").write_text(TOOLS)
    InspectedServer(report, "stdio", directory, [TOOLQ, "serve", "-q"]).check_all()
    with report.guard("HTTP"), serve_http(directory) as url:
        InspectedServer(report, "HTTP", directory, ["--transport", "http", "--server-url", url]).check_all()
    with report.guard("HTTP, token"):
        check_token(report, directory)
report.exit()
