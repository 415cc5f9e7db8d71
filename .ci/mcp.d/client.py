"""toolq as a client of the servers in the official conformance suite."""

import re
import shlex
import sys

from kit import CONFORMANCE, HERE, LEGACY, MODERN, SHARED, everything_printed, run
from part_report import PartReport

# Scenarios about tools, and the revisions that have them. `auth/*` is about OAuth, which toolq doesn't speak.
SCENARIOS = {
    "tools_call": [LEGACY, MODERN],
    "initialize": [LEGACY],
    "request-metadata": [MODERN],
    "json-schema-ref-no-deref": [MODERN],
    "http-standard-headers": [MODERN],
    "http-custom-headers": [MODERN],
    "http-invalid-tool-headers": [MODERN],
    "json-schema-2020-12-preservation": [LEGACY, MODERN],
    "sse-retry": [LEGACY],
    "sep-2322-client-request-state": [MODERN],
}
# What runs toolq where a tools.yaml with nothing but the server doesn't do.
OWN_CLIENTS = {"http-custom-headers": [sys.executable, str(HERE / "conformance_client.py")]}


def check_scenario(report, scenario, revision):
    name = f"{scenario}, {revision}"
    with report.guard(name):
        # The suite passes it to a shell.
        client = shlex.join(OWN_CLIENTS.get(scenario, ["bash", str(SHARED / "conformance-client.sh")]))
        command = [*CONFORMANCE, "client", "--command", client]
        command += ["--scenario", scenario, "--spec-version", revision]
        command += ["--expected-failures", HERE / "client_baseline.yml"]
        result = run(command)
        counts = re.search(r"Passed: (\d+)/(\d+), \d+ failed, \d+ warnings", result.stdout + result.stderr)
        # The suite calls it a success if nothing was checked.
        passed = result.returncode == 0 and counts is not None and counts[1] != "0"
        report.check(name, passed, everything_printed(result), counts and counts[0])


report = PartReport("client")
for scenario, revisions in SCENARIOS.items():
    for revision in revisions:
        check_scenario(report, scenario, revision)
report.exit()
