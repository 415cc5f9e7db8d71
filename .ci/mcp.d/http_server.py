"""`toolq serve --http` for the length of a check."""

import contextlib
import re
import subprocess
import threading

from kit import TOOLQ, environment

SERVING = re.compile(r"http://127\.0\.0\.1:\d+/mcp")


@contextlib.contextmanager
def serve_http(directory, *arguments, **variables):
    """Starts the server on a free port with these variables, yields its URL, and ends it."""
    command = [TOOLQ, "serve", "--http", "127.0.0.1:0", *arguments]
    server = subprocess.Popen(
        command,
        cwd=directory,
        env=environment(**variables),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield _read_url(server)
    finally:
        server.terminate()
        code = server.wait(timeout=30)
    if code != 143:
        raise RuntimeError(f"toolq serve ended with code {code} after SIGTERM")


def _read_url(server):
    said = []
    for line in server.stderr:
        said.append(line)
        if url := SERVING.search(line):
            # The pipe must not fill.
            threading.Thread(target=server.stderr.read, daemon=True).start()
            return url[0]
    raise RuntimeError(f"toolq serve didn't start:\n{''.join(said)}")
