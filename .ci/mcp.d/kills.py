"""kill -9 of toolq at random moments of a run with six real servers: no process of any of them may be left.

MCP_KILLS says how often (default 200).
"""

import collections
import concurrent.futures
import json
import os
import random
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from kit import TOOLQ, environment
from part_report import PartReport
from real_servers import MARK, RealServers, call_blocks

SERVERS = ["everything", "filesystem", "memory", "thinking", "time_2025", "git"]
# A call that is under way for most of the run.
LONG_CALL = ("everything_trigger-long-running-operation", {"duration": 4, "steps": 4})
KILLS = int(os.environ.get("MCP_KILLS", "200"))
LANES = 3

# What a kill left: processes, and how far the run had come by its log.
Kill = collections.namedtuple("Kill", "left open_calls ready_servers is_log_intact")


class KilledRuns:
    """Runs in a directory of their own, which are killed one after the other."""

    def __init__(self, directory):
        self.servers = RealServers(directory, SERVERS)
        self.log = Path(directory, "session.jsonl")
        calls = [LONG_CALL, *((tool, arguments) for tool, arguments, _ in self.servers.calls().values())]
        self.blocks = call_blocks(calls)
        self.servers.toolq("servers", "lock", "-q").check_returncode()
        self.seconds = self._measure()

    def _start(self):
        self.log.unlink(missing_ok=True)
        toolq = subprocess.Popen(
            [TOOLQ, "run", "-q", "--log", self.log],
            cwd=self.servers.directory,
            # toolq's own processes have the mark, too.
            env=environment(**{MARK: self.servers.mark}),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        toolq.stdin.write(self.blocks)
        toolq.stdin.close()
        return toolq

    def _measure(self):
        """How long a run takes that isn't killed."""
        begin = time.monotonic()
        if (code := self._start().wait()) != 0:
            raise RuntimeError(f"a run without a kill ended with code {code}")
        return time.monotonic() - begin

    def kill_one(self):
        toolq = self._start()
        time.sleep(random.uniform(0, self.seconds))
        toolq.send_signal(signal.SIGKILL)
        toolq.wait()
        left = self.servers.processes_left()
        for pid in left:
            os.kill(int(pid), signal.SIGKILL)
        verified = self.servers.toolq("log", "verify", "-q", self.log) if self.log.exists() else None
        return Kill(left, *self._progress(), verified is None or verified.returncode == 0)

    def _progress(self):
        """The calls that had started and not ended, and the servers that were ready, when the run was killed."""
        started, ready = set(), 0
        for line in self.log.read_text().splitlines() if self.log.exists() else []:
            record = json.loads(line)
            match record["type"]:
                case "tool_start":
                    started.add(record["metadata"]["tool_use_id"])
                case "tool_result":
                    started.discard(record["metadata"]["tool_use_id"])
                case "server_start":
                    ready += 1
        return len(started), ready


def kill_often(times):
    with tempfile.TemporaryDirectory() as directory:
        runs = KilledRuns(directory)
        return [runs.kill_one() for _ in range(times)]


def main(report):
    with concurrent.futures.ThreadPoolExecutor(LANES) as lanes:
        shares = [len(range(lane, KILLS, LANES)) for lane in range(LANES)]
        kills = [kill for share in lanes.map(kill_often, shares) for kill in share]
    left = [kill for kill in kills if kill.left]
    report.check(f"{len(kills)} kills: no process is left", len(kills) == KILLS and not left, left)
    under_way = [kill for kill in kills if kill.open_calls]
    with_servers = [kill for kill in under_way if kill.ready_servers]
    measured = f"{len(under_way)} kills, {len(with_servers)} of them with at least one server ready"
    report.check("at least half of them with a call under way", len(with_servers) * 2 >= KILLS, measured, measured)
    torn = [kill for kill in kills if not kill.is_log_intact]
    report.check("every log is intact", not torn, torn)


report = PartReport("kills")
with report.guard("kills"):
    main(report)
report.exit()
