"""`toolq serve --http` against the official conformance suite: everything that a revision asks of a server of tools.

The baselines in ../shared/mcp say what a server of tools alone doesn't have.
"""

import re
import shutil
import tempfile
from pathlib import Path

from http_server import serve_http
from kit import CONFORMANCE, LEGACY, MODERN, SHARED, everything_printed, run
from part_report import PartReport

# In a baseline for servers without session ids. toolq has them, and the suite refuses an entry that passes.
PASSES = "  - server-sse-multiple-streams\n"


def write_baseline(directory, revision):
    baseline = (SHARED / f"baseline-{revision}.yml").read_text()
    path = Path(directory, f"baseline-{revision}.yml")
    path.write_text(baseline.replace(PASSES, ""))
    return path


def check_requirements(report, revision, url, baseline):
    with report.guard(revision):
        command = [*CONFORMANCE, "server", "--url", url, "--requirements", revision]
        command += ["--expected-failures", baseline]
        result = run(command, timeout=300)
        summary = re.search(r"Total: .*", result.stdout)
        report.check(f"requirements of {revision}", result.returncode == 0, everything_printed(result), summary and summary[0])


report = PartReport("server")
with tempfile.TemporaryDirectory() as directory:
    shutil.copy(SHARED / "conformance.tools.yaml", Path(directory, "tools.yaml"))
    for revision in (MODERN, LEGACY):
        with report.guard("serve"), serve_http(directory) as url:
            check_requirements(report, revision, url, write_baseline(directory, revision))
report.exit()
