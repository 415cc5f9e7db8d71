"""Servers that others have written, of both eras of the protocol, as backings in one tools.yaml."""

import contextlib
import http.server
import json
import os
import threading
import time
import uuid
from pathlib import Path

from kit import NPM_SERVERS, PYTHON_1, PYTHON_2, TOOLQ, run

# The environment variable by which the processes of a run's servers are found.
MARK = "MCP_CHECK_MARK"
# How long processes may take to disappear after toolq was killed.
LEAVE_SECONDS = 5
PAGE = "The page that the fetch server reads."


class RealServers:
    """A directory with a tools.yaml of real servers, and what a call of each answers."""

    def __init__(self, directory, names, url=""):
        self.directory = Path(directory)
        self.mark = uuid.uuid4().hex
        self.names = names
        self.url = url
        self._prepare_data()
        self.write_tools(self.commands())

    def _prepare_data(self):
        files = self.directory / "files"
        files.mkdir()
        (files / "note.txt").write_text("a note on disk")
        repository = self.directory / "repository"
        git = ["git", "-C", repository, "-c", "user.name=A", "-c", "user.email=a@example.com"]
        for command in (["git", "init", "-q", repository], [*git, "commit", "-q", "--allow-empty", "-m", "The first commit"]):
            run(command).check_returncode()

    def commands(self):
        """The command of each server."""
        commands = {
            "everything": [NPM_SERVERS / "mcp-server-everything"],
            "filesystem": [NPM_SERVERS / "mcp-server-filesystem", self.directory / "files"],
            "memory": [NPM_SERVERS / "mcp-server-memory"],
            "thinking": [NPM_SERVERS / "mcp-server-sequential-thinking"],
            "time": [PYTHON_2 / "mcp-server-time", "--local-timezone", "UTC"],
            "time_2025": [PYTHON_1 / "mcp-server-time", "--local-timezone", "UTC"],
            "git": [PYTHON_2 / "mcp-server-git", "--repository", self.directory / "repository"],
            "fetch": [PYTHON_2 / "mcp-server-fetch", "--ignore-robots-txt", "--allow-private-ips"],
            "sqlite": [PYTHON_1 / "mcp-server-sqlite", "--db-path", self.directory / "notes.db"],
        }
        return {name: [str(word) for word in commands[name]] for name in self.names}

    def write_tools(self, commands):
        environment = {MARK: self.mark, "MEMORY_FILE_PATH": str(self.directory / "memory.json")}
        servers = {
            name: {"command": {"argv": argv, "env": environment}, "startup": "120s", "hints": "trust"}
            for name, argv in commands.items()
        }
        # JSON is YAML.
        tools = {"version": 1, "defaults": {"timeout": "120s"}, "servers": servers}
        (self.directory / "tools.yaml").write_text(json.dumps(tools))

    def calls(self):
        """A call per server, and a text that its answer has."""
        thought = {"thought": "one", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}
        noon = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        calls = {
            "everything": ("everything_get-sum", {"a": 2, "b": 40}, "42"),
            "filesystem": ("filesystem_read_text_file", {"path": str(self.directory / "files/note.txt")}, "a note on disk"),
            "memory": ("memory_read_graph", {}, "entities"),
            "thinking": ("thinking_sequentialthinking", thought, "thoughtHistoryLength"),
            "time": ("time_convert_time", noon, "T21:00:00+09:00"),
            "time_2025": ("time_2025_convert_time", noon, "T21:00:00+09:00"),
            "git": ("git_git_log", {"repo_path": str(self.directory / "repository")}, "The first commit"),
            "fetch": ("fetch_fetch", {"url": self.url}, PAGE),
            "sqlite": ("sqlite_list_tables", {}, "[]"),
        }
        return {name: calls[name] for name in self.names}

    def toolq(self, *arguments, **options):
        return run([TOOLQ, *arguments], cwd=self.directory, timeout=300, **options)

    def processes(self):
        """The processes that a server of this directory has started, or is."""
        mark = f"{MARK}={self.mark}".encode()
        return [pid for pid in os.listdir("/proc") if pid.isdigit() and mark in _environment_of(pid)]

    def processes_left(self):
        """The processes that are still there after the time in which they may leave."""
        deadline = time.monotonic() + LEAVE_SECONDS
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.02)
        return left


def _environment_of(pid):
    with contextlib.suppress(OSError):
        return Path("/proc", pid, "environ").read_bytes()
    return b""


def call_blocks(calls):
    """The calls as a model writes them."""
    blocks = [
        {"type": "tool_use", "id": f"toolu_{index}", "name": tool, "input": arguments}
        for index, (tool, arguments) in enumerate(calls)
    ]
    return json.dumps(blocks)


@contextlib.contextmanager
def page_server():
    """Serves one page on loopback, and yields its URL."""

    class PageHandler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-type", "text/plain")
            self.end_headers()
            self.wfile.write(PAGE.encode())

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), PageHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/page"
    finally:
        server.shutdown()
