"""Servers that others have written, which toolq reaches over HTTP."""

import contextlib
import json
import socket
import subprocess
import time
from pathlib import Path

from kit import HERE, NPM_SERVERS, PYTHON_2, environment

PATIENCE_SECONDS = 120


@contextlib.contextmanager
def http_backings(directory):
    """Starts a server of each era, writes a tools.yaml that names them, and ends them."""
    ports = {"everything": free_port(), "modern": free_port()}
    commands = {
        "everything": [NPM_SERVERS / "mcp-server-everything", "streamableHttp"],
        "modern": [PYTHON_2 / "python", HERE / "modern_http_server.py", str(ports["modern"])],
    }
    servers = {name: {"url": f"http://127.0.0.1:{port}/mcp", "hints": "trust"} for name, port in ports.items()}
    Path(directory, "tools.yaml").write_text(json.dumps({"version": 1, "servers": servers}))
    with contextlib.ExitStack() as running:
        for name, command in commands.items():
            running.enter_context(http_backing(command, ports[name]))
        yield


@contextlib.contextmanager
def http_backing(command, port):
    variables = environment(PORT=str(port))
    process = subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until_reached(port)
        yield
    finally:
        process.kill()
        process.wait()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until_reached(port):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
