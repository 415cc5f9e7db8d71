"""Tools that tests call in other processes: those find them by this module."""

from __future__ import annotations

import os
import subprocess
import time

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
def dies() -> None:
    """End without a result."""
    os._exit(7)


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
