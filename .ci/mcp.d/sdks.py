"""The official SDKs as clients of `toolq serve`: lists, calls, errors, progress and cancellation, over stdio and HTTP."""

import json
import shutil
import tempfile
from pathlib import Path

from http_server import serve_http
from kit import HERE, MODERN, NODE, PYTHON_1, PYTHON_2, TOOLQ, everything_printed, run
from part_report import PartReport

# The last check of each client.
LAST = "disconnect"
CLIENTS = {
    "Python 1.30.0": ([PYTHON_1 / "python", HERE / "python_sdk_client.py"], ["legacy"]),
    "Python 2.3.0": ([PYTHON_2 / "python", HERE / "python_sdk_client.py"], ["legacy", "auto", MODERN]),
    "TypeScript 2.4.0": ([NODE, HERE / "typescript_sdk_client.mjs"], ["legacy", "auto", MODERN]),
}


def check_client(report, name, command, directory):
    with report.guard(name):
        result = run(command, cwd=directory, timeout=300)
        checks = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
        failed = [f"{check['name']}: {check['detail']}" for check in checks if not check["passed"]]
        is_complete = bool(checks) and checks[-1]["name"] == LAST and result.returncode == 0
        problem = "\n".join([everything_printed(result), *failed])
        report.check(name, is_complete and not failed, problem, f"{len(checks)} checks")


def check_clients(report, transport, directory, target):
    for name, (command, eras) in CLIENTS.items():
        for era in eras:
            check_client(report, f"{transport}, {name}, {era}", [*command, era, *target], directory)


report = PartReport("sdks")
with tempfile.TemporaryDirectory() as directory:
    shutil.copy(HERE / "sdk.tools.yaml", Path(directory, "tools.yaml"))
    check_clients(report, "stdio", directory, [TOOLQ, "serve", "-q"])
    with report.guard("HTTP"), serve_http(directory) as url:
        check_clients(report, "HTTP", directory, [url])
report.exit()
