"""Tools that tests call in other processes: those find them by this module."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import toolq


@toolq.tool(process=True, effect="read")
def own_pid() -> int:
    """Return the id of the process."""
    return os.getpid()


@toolq.tool(process=True, effect="read", timeout=1)
def never_ends(pid_file: str) -> str:
    """Start a program, and wait for ever."""
    program = subprocess.Popen(["sleep", "1000"])
    with open(pid_file + ".new", "w") as file:
        file.write(f"{os.getpid()} {program.pid}")
    os.rename(pid_file + ".new", pid_file)
    time.sleep(1000)
    return ""


@toolq.tool(process=True, effect="read")
def leaves_sessions(pid_file: str, seconds: float) -> str:
    """Start a program in a session of its own, and one that a parent leaves behind; then take some seconds."""
    escapes = "echo $$ >> {0}; setsid sh -c 'echo $$ >> {0}; exec sleep 1000' & exec setsid sleep 1000"
    subprocess.Popen(["setsid", "sh", "-c", escapes.format(pid_file)])
    pids = Path(pid_file)
    while not pids.exists() or len(pids.read_text().split()) < 2:
        time.sleep(0.01)
    time.sleep(seconds)
    return "left"


@toolq.tool(process=True, effect="read")
def dies() -> None:
    """End without a result."""
    os._exit(7)


@toolq.tool(process=True, effect="read")
def kills_itself() -> None:
    """End by a signal."""
    os.kill(os.getpid(), signal.SIGUSR1)


@toolq.tool(process=True, effect="read")
def raises(text: str) -> str:
    """Raise an exception."""
    secret = text * 2
    raise KeyError(text if secret else "")


@toolq.tool(process=True, effect="read")
def leaves_a_program(pid_file: str) -> str:
    """Start a program and return, without waiting for it."""
    program = subprocess.Popen(["sleep", "1000"])
    with open(pid_file, "w") as file:
        file.write(str(program.pid))
    return "x" * 300_000
