"""Tools that are Python functions."""

from __future__ import annotations

import asyncio
import contextvars
import datetime
import decimal
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import functions
import pytest
from conftest import call, is_alive, message, reader, results, wait_for

import toolq
from toolq._tool import render_result


@toolq.tool(effect="read")
def double(n: int) -> int:
    """Double a number."""
    return 2 * n


def test_a_function_is_declared_checked_and_called(home: Path) -> None:
    assert double(4) == 8
    with toolq.Toolq("tools.yaml", tools=[double], log=home / "log.jsonl") as t:
        declaration = next(tool for tool in t.tools() if tool["name"] == "double")
        assert declaration["description"] == "Double a number."
        assert declaration["input_schema"]["properties"] == {"n": {"type": "integer"}}
        answer = t.answer(message(call("double", n=21), call("double", "toolu_2", m=1), call("look", "toolu_3")))
        (is_error, text), (is_invalid, why), (_, seen) = results(answer)
        assert (is_error, text, is_invalid, seen) == (False, "42", True, "seen")
        assert "/m" in why
    records = [json.loads(line) for line in (home / "log.jsonl").read_text().splitlines()]
    assert [record["type"] for record in records].count("tool_start") == 2
    assert [record["type"] for record in records].count("tool_result") == 3


@toolq.tool(effect="read")
def days_until(end: datetime.date) -> int:
    """Count the days until a date."""
    return (end - datetime.date(2026, 1, 1)).days


def test_what_is_no_date_is_refused_by_its_name() -> None:
    with toolq.Toolq("tools.yaml", tools=[days_until], log=False) as t:
        answer = t.answer(message(call("days_until", end="2026-01-03"), call("days_until", "toolu_2", end="2026-02-30")))
        (_, days), (is_error, why) = results(answer)
    assert (days, is_error) == ("2", True)
    assert "/end: '2026-02-30' is no date, such as 2026-01-31" in why


@toolq.tool(effect="read")
def ratio(a: float, b: float) -> dict[str, float]:
    """Divide, as some libraries do."""
    return {"ratio": a / b if b else math.nan}


def test_what_json_has_no_number_for_is_an_error() -> None:
    with toolq.Toolq("tools.yaml", tools=[ratio], log=False) as t:
        answer = t.answer(message(call("ratio", a=1, b=4), call("ratio", "toolu_2", a=1, b=0)))
        (_, quarter), (is_error, why) = results(answer)
    assert (json.loads(quarter), is_error) == ({"ratio": 0.25}, True)
    assert "the tool returned what is not JSON" in why


def test_the_memory_answers_what_ran_before() -> None:
    """Each process answers the same messages, as a program does that was started again."""
    paid: list[int] = []

    @toolq.tool
    def pay_bill(n: int) -> str:
        """Pay a bill."""
        paid.append(n)
        return f"paid {n}"

    bills = [message(call("pay_bill", "toolu_1", n=1)), message(call("pay_bill", "toolu_2", n=2))]
    for known in (1, 2):
        with toolq.Toolq("tools.yaml", tools=[pay_bill], log="bills.jsonl") as t:
            answers = [results(t.answer(bill)) for bill in bills[:known]]
        assert answers == [[(False, "paid 1")], [(False, "paid 2")]][:known]
    assert paid == [1, 2]


def test_functions_need_no_tools_file(home: Path) -> None:
    (home / "tools.yaml").unlink()
    with toolq.Toolq(tools=[double], log=False) as t:
        assert results(t.answer(message(call("double", n=1)))) == [(False, "2")]


def test_reads_run_together_and_a_write_alone() -> None:
    lock, running, most = threading.Lock(), [0], {"read": 0, "write": 0}
    together = threading.Barrier(2)

    def enter(kind: str) -> None:
        with lock:
            running[0] += 1
            most[kind] = max(most[kind], running[0])

    @toolq.tool(effect="read")
    def read() -> None:
        enter("read")
        together.wait(30)
        with lock:
            running[0] -= 1

    @toolq.tool
    def write() -> None:
        enter("write")
        with lock:
            running[0] -= 1

    with reader(tools=[read, write], jobs=4) as t:
        calls = [call(name, f"toolu_{at}") for at, name in enumerate(["read", "read", "write", "write"])]
        assert not any(is_error for is_error, _ in results(t.answer(message(*calls))))
    assert most == {"read": 2, "write": 1}


def test_an_exception_is_a_result_without_a_traceback() -> None:
    @toolq.tool(effect="read")
    def fails(password: str) -> str:
        raise ValueError("no such city")

    @toolq.tool(effect="read")
    def refuses() -> str:
        raise toolq.ToolError("Ask for a city in Europe.")

    @toolq.tool(effect="read")
    def exits() -> str:
        raise SystemExit(3)

    @toolq.tool(effect="read")
    def no_json() -> Any:
        return object()

    with reader(tools=[fails, refuses, exits, no_json]) as t:
        names = ["fails", "refuses", "exits", "no_json"]
        calls = [call(name, f"toolu_{name}") for name in names]
        calls[0]["input"] = {"password": "hunter2"}
        answers = results(t.answer(message(*calls)))
    assert all(is_error for is_error, _ in answers)
    texts = [text for _, text in answers]
    assert "ValueError: no such city" in texts[0]
    assert "hunter2" not in texts[0] and "Traceback" not in texts[0] and "File" not in texts[0]
    assert "Ask for a city in Europe." in texts[1] and "ToolError" not in texts[1]
    assert "SystemExit: 3" in texts[2]
    assert "object" in texts[3] and "not JSON" in texts[3]


def test_blocks_are_content() -> None:
    @toolq.tool(effect="read")
    def picture() -> toolq.Blocks:
        source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
        return toolq.Blocks([{"type": "text", "text": "a picture"}, {"type": "image", "source": source}])

    with reader(tools=[picture]) as t:
        content = t.answer(message(call("picture")))["content"][0]["content"]
    assert [block["type"] for block in content] == ["text", "image"]


def test_a_function_that_goes_on_after_its_timeout_has_no_result() -> None:
    may_end = threading.Event()

    @toolq.tool(effect="read", timeout=0.2)
    def hangs() -> str:
        may_end.wait(60)
        return "late"

    @toolq.tool(timeout=0.2)
    def hangs_writing() -> str:
        may_end.wait(60)
        return "late"

    with reader(tools=[hangs, hangs_writing]) as t:
        (is_error, text), (is_doubt, doubt) = results(t.answer(message(call("hangs"), call("hangs_writing", "toolu_2"))))
        assert is_error and "timed out" in text
        assert is_doubt and "In doubt" in doubt
        may_end.set()
        assert results(t.answer(message(call("look")))) == [(False, "seen")]


def test_context_variables_of_the_caller_are_seen() -> None:
    user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")

    @toolq.tool(effect="read")
    def who() -> str:
        return user.get()

    with reader(tools=[who]) as t:
        user.set("ada")
        assert results(t.answer(message(call("who")))) == [(False, "ada")]


def test_an_async_function_runs_on_the_callers_loop() -> None:
    loops: list[Any] = []

    @toolq.tool(effect="read")
    async def where() -> str:
        await asyncio.sleep(0)
        loops.append(asyncio.get_running_loop())
        return threading.current_thread().name

    async def main() -> None:
        async with reader(tools=[where]) as t:
            assert results(await t.answer_async(message(call("where")))) == [(False, threading.current_thread().name)]
            assert loops == [asyncio.get_running_loop()]

    asyncio.run(main())
    with reader(tools=[where]) as t:
        assert results(t.answer(message(call("where")))) == [(False, "toolq-loop")]


def test_an_async_function_is_canceled_with_its_call() -> None:
    ended: list[str] = []

    @toolq.tool(effect="read", timeout=0.2)
    async def hangs(seconds: float) -> str:
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            ended.append("canceled")
            raise
        return "slept"

    with reader(tools=[hangs]) as t:
        assert results(t.answer(message(call("hangs", seconds=0)))) == [(False, "slept")]
        [(is_error, text)] = results(t.answer(message(call("hangs", seconds=1000))))
        assert is_error and "timed out" in text
        wait_for(lambda: ended == ["canceled"])


def test_a_function_has_a_process_of_its_own() -> None:
    tools = [functions.own_pid, functions.dies, functions.raises, functions.kills_itself]
    with reader(tools=tools) as t:
        raises = call("raises", "toolu_3", text="x")
        answers = results(t.answer(message(call("own_pid"), call("dies", "toolu_2"), raises, call("kills_itself", "toolu_4"))))
    assert not answers[0][0] and not is_alive(int(answers[0][1]))
    assert answers[1][0] and "exit code 7" in answers[1][1]
    assert answers[2][0] and "KeyError: 'x'" in answers[2][1] and "secret" not in answers[2][1]
    assert answers[3][0] and f"signal {int(signal.SIGUSR1)}" in answers[3][1]


def test_a_process_is_ended_with_all_that_it_started(home: Path) -> None:
    pid_file = home / "pids"
    with reader(tools=[functions.never_ends]) as t:
        [(is_error, text)] = results(t.answer(message(call("never_ends", pid_file=str(pid_file)))))
        assert is_error and "timed out" in text
        wait_for(lambda: not any(map(is_alive, map(int, pid_file.read_text().split()))))


def test_what_a_process_leaves_is_ended(home: Path) -> None:
    with reader(tools=[functions.leaves_a_program]) as t:
        [(is_error, _)] = results(t.answer(message(call("leaves_a_program", pid_file=str(home / "pid")))))
    assert not is_error
    wait_for(lambda: not is_alive(int((home / "pid").read_text())))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, no program is told of what leaves its process group")
@pytest.mark.parametrize("seconds", [0, 1000])
def test_what_leaves_the_process_group_is_ended_too(home: Path, seconds: float) -> None:
    pid_file = home / "pids"
    escapes = toolq.tool(process=True, timeout=5, effect="read")(functions.leaves_sessions.function)
    with reader(tools=[escapes]) as t:
        [(is_error, text)] = results(t.answer(message(call("leaves_sessions", pid_file=str(pid_file), seconds=seconds))))
    assert (is_error, "timed out" in text) == ((True, True) if seconds else (False, False)), text
    wait_for(lambda: not any(map(is_alive, map(int, pid_file.read_text().split()))))


def test_a_program_that_is_read_for_its_function_starts_nothing(home: Path) -> None:
    declare = "import toolq\n@toolq.tool(process=True)\ndef own_name() -> str:\n    return __name__\n"
    ask = """with toolq.Toolq(tools=[own_name], log=False) as t:
    call = {"type": "tool_use", "id": "toolu_1", "name": "own_name", "input": {}}
    print(t.answer({"role": "assistant", "content": [call]})["content"][0]["content"])
"""
    guarded = 'if __name__ == "__main__":\n' + "".join(f"    {line}\n" for line in ask.splitlines())
    path = {**os.environ, "PYTHONPATH": str(Path(toolq.__file__).parents[1])}
    for text, expected in ((declare + guarded, "__toolq_main__\n"), (declare + ask, 'if __name__ == "__main__":')):
        (home / "agent.py").write_text(text)
        ran = subprocess.run([sys.executable, "agent.py"], env=path, capture_output=True, text=True, timeout=60)
        assert expected in ran.stdout and ran.stdout.count("\n") < 5, (ran.stdout, ran.stderr)


def test_a_process_ends_with_the_program_that_called_it(home: Path) -> None:
    program = f"""
import functions, toolq
from conftest import call, message
t = toolq.Toolq("tools.yaml", tools=[toolq.tool(process=True, timeout=1000)(functions.never_ends.function)], log=False)
t.answer(message(call("never_ends", pid_file={str(home / "pids")!r})))
"""
    path = os.pathsep.join([str(Path(toolq.__file__).parents[1]), str(Path(functions.__file__).parent)])
    caller = subprocess.Popen([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": path})
    wait_for((home / "pids").exists)
    caller.kill()
    caller.wait()
    wait_for(lambda: not any(map(is_alive, map(int, (home / "pids").read_text().split()))))


def test_a_process_ends_with_close(home: Path) -> None:
    pid_file = home / "pids"
    slow = toolq.tool(process=True, timeout=1000, effect="read")(functions.never_ends.function)
    with reader(tools=[slow]) as t:
        pending = t.submit(message(call("never_ends", pid_file=str(pid_file))))
        wait_for(pid_file.exists)
    assert [is_error for is_error, _ in results(pending.result(0))] == [True]
    wait_for(lambda: not any(map(is_alive, map(int, pid_file.read_text().split()))))


def test_what_no_process_finds_is_refused() -> None:
    def local() -> str:
        return ""

    with pytest.raises(toolq.DeclarationError, match="top of a module"):
        toolq.tool(process=True)(local)
    with pytest.raises(toolq.DeclarationError, match="called double"):
        toolq.Toolq(tools=[double, double])


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(TypeError, match="no `efect`, only approve, .*effect"):
        toolq.tool(efect="read")(double.function)  # type: ignore[call-overload]


def test_what_stands_in_the_place_of_a_function_or_a_list_is_refused() -> None:
    with pytest.raises(toolq.DeclarationError, match="keywords such as effect="):
        toolq.tool("read")  # type: ignore[call-overload]
    with pytest.raises(toolq.DeclarationError, match="into brackets"):
        toolq.Toolq(tools=double)  # type: ignore[arg-type]


def test_results_are_json_where_python_has_more() -> None:
    values = {
        "at": datetime.datetime(2026, 2, 1, 10, tzinfo=datetime.timezone.utc),
        "on": datetime.date(2026, 2, 1),
        "price": decimal.Decimal("1.50"),
        "key": uuid.UUID(int=1),
        "where": Path("a/b"),
        "all": {2, 1},
    }
    assert json.loads(str(render_result(values))) == {
        "at": "2026-02-01T10:00:00+00:00",
        "on": "2026-02-01",
        "price": "1.50",
        "key": "00000000-0000-0000-0000-000000000001",
        "where": "a/b",
        "all": [1, 2],
    }
    with pytest.raises(TypeError, match="returned a bytes"):
        render_result(b"a")


def test_further_keys_are_kept_beside_settings() -> None:
    kept = toolq.tool(keys={"effect": "read", "locks": ["a"]}, timeout=2, paths=("p",), description=None)(double.function)
    declared = kept.declaration
    assert [declared[key] for key in ("effect", "locks", "timeout", "paths")] == ["read", ["a"], "2000ms", ["p"]]
    assert declared["description"] == "Double a number."


def test_what_toolq_refuses_names_the_tool() -> None:
    wrong = toolq.tool(name="look", keys={"locks": 7})(double.function)
    with pytest.raises(toolq.StartError, match="look"):
        reader(tools=[wrong]).start()
    begin = time.monotonic()
    with pytest.raises(toolq.StartError, match="missing.yaml"):
        toolq.Toolq("missing.yaml").start()
    assert time.monotonic() - begin < 30
