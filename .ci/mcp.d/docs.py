"""The sessions in docs/mcp.md that need programs of others: each `text` block that begins with `$` is run and compared.

With README=update in the environment, their output is updated instead.
"""

import os
import re
import shlex
import tempfile
from pathlib import Path

from kit import INSPECTOR, PYTHON_2, REPOSITORY, environment, run
from part_report import PartReport

PAGE = REPOSITORY / "docs/mcp.md"
SESSION = re.compile(r"```text\n\$ (?P<command>.*)\n(?P<output>[^`]*)```")


def make_commands(directory):
    """Puts what a reader would have in PATH into a directory: npx, which runs the kit's Inspector, and python3."""
    inspector = shlex.join(INSPECTOR[:-1])
    npx = Path(directory, "npx")
    npx.write_text(f'#!/bin/sh\n[ "$1 $2" = "-y @modelcontextprotocol/inspector@2.12.0" ] || exit 1\nshift 2\nexec {inspector} "$@"\n')
    npx.chmod(0o755)
    # Not a link: Python finds its packages by the path by which it was started.
    python = Path(directory, "python3")
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(str(PYTHON_2 / "python"))} "$@"\n')
    python.chmod(0o755)


def printed_by(command, directory):
    variables = environment()
    variables["PATH"] = os.pathsep.join([directory, variables["PATH"]])
    result = run(["sh", "-c", command], cwd=REPOSITORY, env=variables)
    return result.stdout + result.stderr


def main(report):
    page = PAGE.read_text()
    with tempfile.TemporaryDirectory() as directory:
        make_commands(directory)
        for session in SESSION.finditer(page):
            command, output = session["command"], session["output"]
            printed = printed_by(command, directory).rstrip("\n") + "\n"
            report.check(command, printed == output or os.environ.get("README") == "update", printed)
            page = page.replace(session[0], f"```text\n$ {command}\n{printed}```")
    if os.environ.get("README") == "update":
        PAGE.write_text(page)


report = PartReport("docs")
with report.guard("docs/mcp.md"):
    main(report)
report.exit()
