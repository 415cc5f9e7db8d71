"""Real servers of both eras as backings, eight on stdio and two over HTTP: their lock, calls, and drift."""

import json
import tempfile

from http_backings import http_backings
from kit import INSPECTOR, PYTHON_1, TOOLQ, everything_printed, run
from part_report import PartReport
from real_servers import RealServers, call_blocks, page_server

LEGACY_SERVERS = ["everything", "filesystem", "memory", "thinking", "sqlite"]
MODERN_SERVERS = ["time", "git", "fetch"]


def check_exit(report, name, result, code, *texts):
    """Checks the exit code of toolq, and that it said all of these texts."""
    passed = result.returncode == code and all(text in result.stdout + result.stderr for text in texts)
    report.check(name, passed, everything_printed(result))


def check_eras(report, servers):
    result = servers.toolq("servers", "--format", "json")
    listed = {server["server"]: server for server in json.loads(result.stdout)["servers"]}
    for era, names in (("legacy", LEGACY_SERVERS), ("modern", MODERN_SERVERS)):
        found = [name for name in names if listed[name]["state"] == "locked" and listed[name].get("era") == era]
        report.check(f"locked, {era}: {', '.join(names)}", found == names and result.returncode == 0, result.stdout)


def answers_of_run(servers, calls):
    """The answer to each call, by the name of its tool."""
    result = servers.toolq("run", "-q", "--no-log", input=call_blocks(calls))
    answers = json.loads(result.stdout)
    return {tool: answer for (tool, _), answer in zip(calls, answers, strict=True)}


def check_calls(report, servers):
    calls = servers.calls()
    answers = answers_of_run(servers, [(tool, arguments) for tool, arguments, _ in calls.values()])
    for name, (tool, _, expected) in calls.items():
        answer = answers[tool]
        report.check(f"run: {tool}", expected in str(answer["content"]) and not answer["is_error"], json.dumps(answer))
    report.check("no process is left", servers.processes_left() == [], servers.processes())


def check_serve(report, servers):
    """A client of `toolq serve` reaches another server behind it."""
    tool, arguments, expected = servers.calls()["filesystem"]
    call = ["--method", "tools/call", "--tool-name", tool, "--tool-arg", f"path={arguments['path']}"]
    result = run([*INSPECTOR, *call, "--protocol-era", "auto", TOOLQ, "serve", "-q"], cwd=servers.directory)
    check_exit(report, f"serve: {tool} for the Inspector", result, 0, expected)


def check_drift(report, servers):
    """Another version of a server has other descriptions; the other servers are as they were."""
    commands = servers.commands()
    commands["time"][0] = str(PYTHON_1 / "mcp-server-time")
    servers.write_tools(commands)
    check_exit(report, "servers: drift, exit code 1", servers.toolq("servers", "time"), 1, "changed")
    calls = servers.calls()
    (changed, arguments, _), (other, other_arguments, other_text) = calls["time"], calls["filesystem"]
    answers = answers_of_run(servers, [(changed, arguments), (other, other_arguments)])
    report.check("run: a changed tool is refused", answers[changed]["is_error"], json.dumps(answers[changed]))
    report.check("run: the others are not", other_text in str(answers[other]["content"]), json.dumps(answers[other]))
    check_exit(report, "servers lock: keeps what was locked, exit code 1", servers.toolq("servers", "lock", "time"), 1)
    check_exit(report, "servers lock --update", servers.toolq("servers", "lock", "--update", "time"), 0)
    check_exit(report, "servers: no drift anymore", servers.toolq("servers", "time"), 0, "locked")


def check_failure(report, servers):
    commands = servers.commands()
    commands["memory"] = ["false"]
    servers.write_tools(commands)
    check_exit(report, "servers: one that doesn't start, exit code 1", servers.toolq("servers", "memory"), 1, "failed")
    report.check("no process is left in the end", servers.processes_left() == [], servers.processes())


def check_http(report, directory):
    def toolq(*arguments, **options):
        return run([TOOLQ, *arguments], cwd=directory, **options)

    check_exit(report, "HTTP: servers lock", toolq("servers", "lock"), 0)
    check_exit(report, "HTTP: one server of each era", toolq("servers"), 0, "(legacy)", "(modern)")
    calls = [("everything_get-sum", {"a": 2, "b": 40}), ("modern_add", {"a": 2, "b": 40})]
    result = toolq("run", "-q", "--no-log", input=call_blocks(calls))
    report.check("HTTP: run", result.stdout.count("42") == len(calls), everything_printed(result))


report = PartReport("servers")
with tempfile.TemporaryDirectory() as directory, page_server() as url:
    servers = RealServers(directory, LEGACY_SERVERS + MODERN_SERVERS, url)
    with report.guard("lock, list and call"):
        check_exit(report, "servers lock", servers.toolq("servers", "lock"), 0)
        check_eras(report, servers)
        check_calls(report, servers)
        check_serve(report, servers)
    with report.guard("drift"):
        check_drift(report, servers)
        check_failure(report, servers)
with report.guard("HTTP"), tempfile.TemporaryDirectory() as directory, http_backings(directory):
    check_http(report, directory)
report.exit()
