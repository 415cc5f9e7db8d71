"""Starting, ending, and what is left behind: nothing."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import warnings
from pathlib import Path

import pytest
from conftest import call, is_alive, message, reader, results, wait_for

import toolq

PACKAGE = str(Path(toolq.__file__).resolve().parents[1])


def _run(code: str, *arguments: str) -> subprocess.Popen[bytes]:
    env = {**os.environ, "PYTHONPATH": PACKAGE}
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *arguments], env=env, stdout=subprocess.PIPE, start_new_session=True
    )


def test_a_closed_toolq_says_so() -> None:
    t = reader()
    t.start()
    t.close()
    t.close()
    with pytest.raises(toolq.ClosedError):
        t.answer(message(call("look")))
    never_started = reader()
    never_started.close()
    with pytest.raises(toolq.ClosedError):
        never_started.start()


def test_close_cancels_what_is_in_flight() -> None:
    with reader() as t:
        pid = t.pid
        pending = t.submit(message(call("nap", seconds="1000")))
    assert not is_alive(pid)
    assert results(pending.result(0))[0][0]


def test_an_unexpected_end_shows_what_toolq_said_last() -> None:
    with reader(arguments=["-v"]) as t:
        pending = t.submit(message(call("nap", seconds="1000")))
        os.kill(t.pid, signal.SIGKILL)
        with pytest.raises(toolq.ProcessError, match="signal 9") as caught:
            pending.result(30)
        assert caught.value.exit_code == -9
        with pytest.raises(toolq.ProcessError, match="ended unexpectedly"):
            t.answer(message(call("look")))


def test_a_bad_tools_file_shows_where(home: Path) -> None:
    (home / "tools.yaml").write_text("version: 1\ntools:\n  a: {commnd: [x]}\n")
    with pytest.raises(toolq.StartError, match=r"tools\.yaml") as caught, reader():
        pass
    assert caught.value.exit_code == 2 and "commnd" in caught.value.stderr


def test_a_missing_binary_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(toolq.StartError, match="/nowhere"):
        toolq.Toolq("tools.yaml", binary="/nowhere/toolq").start()
    monkeypatch.setenv("TOOLQ_BINARY", "/nowhere/toolq")
    with pytest.raises(toolq.BinaryNotFoundError, match="TOOLQ_BINARY"):
        reader().start()
    monkeypatch.delenv("TOOLQ_BINARY")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(toolq.BinaryNotFoundError, match="TOOLQ_BINARY, or pass binary"):
        reader().start()


def test_a_program_that_is_no_toolq() -> None:
    with pytest.raises(toolq.StartError, match="exit code"):
        toolq.Toolq("tools.yaml", binary="/bin/false").start()


def test_a_toolq_that_nobody_has_any_more_ends() -> None:
    t = reader()
    t.start()
    pid = t.pid
    t.submit(message(call("nap", seconds="1000")))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del t
        gc.collect()
    assert [warning.category for warning in caught] == [ResourceWarning]
    wait_for(lambda: not is_alive(pid))


WITHOUT_CLOSE = """
    import sys, time, toolq
    @toolq.tool(effect="read")
    def hangs() -> str:
        print("hangs", flush=True)
        time.sleep(1000)
        return ""
    t = toolq.Toolq("tools.yaml", tools=[hangs], log=False)
    t.start()
    print(t.pid, flush=True)
    content = [{"type": "tool_use", "id": "a", "name": sys.argv[1], "input": {"seconds": "1000"} if sys.argv[1] == "nap" else {}}]
    pending = t.submit({"role": "assistant", "content": content})
"""


@pytest.mark.parametrize("name", ["nap", "hangs", "look"])
def test_an_exit_without_close_leaves_nothing(name: str) -> None:
    process = _run(WITHOUT_CLOSE, name)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert not is_alive(int(output.split()[0]))


def test_an_exception_without_close_leaves_nothing() -> None:
    process = _run(WITHOUT_CLOSE + "    raise SystemExit(5)\n", "nap")
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 5 and not is_alive(int(output.split()[0]))


def test_a_killed_program_leaves_nothing() -> None:
    code = WITHOUT_CLOSE + "    pending.result()\n"
    process = _run(code, "hangs")
    assert process.stdout
    pid = int(process.stdout.readline())
    assert process.stdout.readline() == b"hangs\n"
    process.kill()
    process.wait()
    process.stdout.close()
    wait_for(lambda: not is_alive(pid))


def test_ctrl_c_cancels_the_turn() -> None:
    # Where the tests run in the background, SIGINT is ignored, and Python leaves it so.
    code = (
        "    import signal\n    signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        + WITHOUT_CLOSE
        + """
    try:
        pending.result()
    except KeyboardInterrupt:
        print(pending.result(30)["content"][0]["is_error"], flush=True)
        print(bool(t.answer(sys.argv[2])), flush=True)
        t.close()
    """
    )
    look = '{"role":"assistant","content":[{"type":"tool_use","id":"b","name":"look","input":{}}]}'
    process = _run(code, "hangs", look)
    assert process.stdout
    pid = int(process.stdout.readline())
    assert process.stdout.readline() == b"hangs\n"
    # As a terminal does it: to the whole group.
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert output.split() == [b"True", b"True"] and not is_alive(pid)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_child_holds_nothing_open() -> None:
    t = reader()
    t.start()
    pid = t.pid
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            t.answer(message(call("look")))
        except toolq.ClosedError:
            os.write(write, b"closed")
        signal.pause()
        os._exit(0)
    try:
        assert os.read(read, 10) == b"closed"
        assert results(t.answer(message(call("look")))) == [(False, "seen")]
        t.close()
        assert not is_alive(pid)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(read)
        os.close(write)


def test_threads_that_start_together_share_a_process() -> None:
    t = reader()
    pids: list[int] = []

    def use() -> None:
        t.answer(message(call("look")))
        pids.append(t.pid)

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    t.close()
    assert len(set(pids)) == 1 and len(pids) == 8
