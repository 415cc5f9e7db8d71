//! Every text that a model reads, as it reads it.

use std::time::Duration;

use serde_json::json;

use super::answer;
use crate::model::{
    Backing, Budget, Call, Captured, CommandBacking, Content, Detail, Doubt, Effect, Ending, Halt,
    Input, Leftovers, Limit, Limits, Mask, MessageKey, NotExecuted, Outcome, OutputKind, Reason,
    Rejection, SpawnFault, Stdin, Tool, Transport, TransportPhase,
};
use crate::validate::fixture::{template, tool};

fn call(name: &str) -> Call {
    Call {
        turn: 0,
        position: 0,
        id: "toolu_1".to_owned(),
        name: name.to_owned(),
        input: Ok(Input::empty()),
        within: None,
    }
}

fn read() -> Tool {
    Tool {
        effect: Effect::Read,
        ..tool("search", json!(true))
    }
}

fn text_of(tool: Option<&Tool>, outcome: &Outcome) -> String {
    let name = tool.map_or("serch", |tool| &tool.name);
    let words = tool.map(|tool| tool.messages.clone()).unwrap_or_default();
    let answer = answer(
        &call(name),
        tool,
        outcome,
        &words,
        &Mask::new(["s3cr3t-value"]),
    );
    assert_eq!(answer.is_error, outcome.is_error());
    match answer.content {
        Content::Text(text) => text,
        Content::Blocks(blocks) => blocks
            .iter()
            .map(|block| block.get().to_owned() + "\n")
            .collect(),
    }
}

/// The texts of several outcomes of a tool that reads, with lines between.
fn texts(outcomes: &[Outcome]) -> String {
    let texts: Vec<String> = outcomes
        .iter()
        .map(|outcome| text_of(Some(&read()), outcome))
        .collect();
    texts.join("\n---\n")
}

fn failed(ending: Ending, output: &str, stderr: &str) -> Outcome {
    Outcome::Failed {
        output: output.to_owned(),
        stderr: stderr.to_owned(),
        captured: Captured::default(),
        ending,
    }
}

fn rejected(reason: Reason, details: &[(&str, &str)]) -> Outcome {
    let detail = |(path, message): &(&str, &str)| Detail {
        path: (*path).to_owned(),
        message: (*message).to_owned(),
    };
    Outcome::Rejected(Rejection {
        reason,
        details: details.iter().map(detail).collect(),
    })
}

fn transport(phase: TransportPhase, detail: &str) -> Outcome {
    Outcome::Transport(Transport {
        phase,
        origin: "http://127.0.0.1:8080".to_owned(),
        detail: detail.to_owned(),
    })
}

#[test]
fn exit_codes() {
    insta::assert_snapshot!(texts(&[
        failed(Ending::Exit(1), "", "cat: notes.txt: No such file or directory\n"),
        failed(Ending::Exit(1), "", "cat: /etc/shadow: Permission denied\n"),
        failed(Ending::Exit(127), "", "sh: 1: foo: command not found\n"),
        failed(Ending::Exit(127), "", ""),
        failed(Ending::Exit(2), "3 tests passed, 1 failed\n", "warning: unused\n"),
        failed(Ending::Exit(3), "", ""),
        failed(Ending::Exit(7), "", "curl: (7) Failed to connect to localhost port 1: Connection refused"),
    ]), @"
        Exit code 1.
        cat: notes.txt: No such file or directory
        Hint: there is nothing at this path. Check its spelling, or list the folder first.
        ---
        Exit code 1.
        cat: /etc/shadow: Permission denied
        Hint: this is not permitted, and calling again won't change that. Use another path or another way, or ask the user.
        ---
        Exit code 127.
        sh: 1: foo: command not found
        Hint: a program that this needs is not installed. Use another tool, or tell the user.
        ---
        Exit code 127.
        Hint: a program that this needs is not installed. Use another tool, or tell the user.
        ---
        Exit code 2.
        stderr:
        warning: unused
        stdout:
        3 tests passed, 1 failed
        Hint: read what it wrote, and change the input before you call it again.
        ---
        Exit code 3.
        Hint: it wrote nothing about the cause. Check the input, or try another way.
        ---
        Exit code 7.
        curl: (7) Failed to connect to localhost port 1: Connection refused
        Hint: nobody listens at this address. The service may not be running: check the address, or try again later.
        ");
}

/// FAULTS 47.
#[test]
fn signals() {
    insta::assert_snapshot!(texts(&[
        failed(Ending::Signal(libc::SIGSEGV), "half", ""),
        failed(Ending::Signal(libc::SIGKILL), "", ""),
        failed(Ending::Signal(libc::SIGTERM), "", ""),
        failed(Ending::Signal(libc::SIGXFSZ), "", ""),
        failed(Ending::Signal(64), "", ""),
    ]), @"
        Ended by SIGSEGV.
        half
        Hint: the program crashed. Try another input or another tool.
        ---
        Ended by SIGKILL.
        Hint: it may have needed too much memory. Ask for less at once.
        ---
        Ended by SIGTERM.
        Hint: something from outside ended it. It may work if you call it again.
        ---
        Ended by SIGXFSZ.
        Hint: it wrote a file that is too large. Ask for less at once.
        ---
        Ended by signal 64.
        Hint: the program crashed. Try another input or another tool.
        ");
}

#[test]
fn timeouts() {
    let outcome = |output: &str, stderr: &str| Outcome::TimedOut {
        limit: Duration::from_secs(30),
        output: output.to_owned(),
        stderr: stderr.to_owned(),
        captured: Captured::default(),
    };
    let write = tool("save", json!(true));
    insta::assert_snapshot!(
        texts(&[outcome("", ""), outcome("line 1\n", ""), outcome("line 1\n", "waiting for the lock\n")])
            + "\n---\n"
            + &text_of(Some(&write), &outcome("", "")),
        @"
        search timed out after 30s and was ended.
        Hint: ask for less at once (a narrower search, a smaller range), or use another tool.
        ---
        search timed out after 30s and was ended.
        Until then it wrote:
        line 1
        Hint: ask for less at once (a narrower search, a smaller range), or use another tool.
        ---
        search timed out after 30s and was ended.
        Until then it wrote:
        stderr:
        waiting for the lock
        stdout:
        line 1
        Hint: ask for less at once (a narrower search, a smaller range), or use another tool.
        ---
        save timed out after 30s and was ended.
        Hint: it may have done a part of its work: look before you call it again, and ask for less at once.
        "
    );
}

/// FAULTS 33.
#[test]
fn programs_that_do_not_start() {
    let errnos = [
        libc::ENOENT,
        libc::EACCES,
        libc::ENOEXEC,
        libc::EISDIR,
        libc::ENOTDIR,
        libc::ELOOP,
        libc::E2BIG,
        libc::ETXTBSY,
        libc::EAGAIN,
        libc::EIO,
    ];
    let outcomes = errnos.map(|errno| {
        Outcome::NotStarted(SpawnFault {
            program: "ripgrep".to_owned(),
            folder: None,
            errno,
        })
    });
    insta::assert_snapshot!(texts(&outcomes), @"
        The program `ripgrep` was not found.
        Hint: another input won't change that. Use another tool, or tell the user.
        ---
        The program `ripgrep` may not be executed (permission denied).
        Hint: another input won't change that. Use another tool, or tell the user.
        ---
        `ripgrep` is no program of this machine, nor a script that names its interpreter.
        Hint: another input won't change that. Use another tool, or tell the user.
        ---
        `ripgrep` is a folder, no program.
        Hint: another input won't change that. Use another tool, or tell the user.
        ---
        A part of the path `ripgrep` is a file, not a folder.
        Hint: another input won't change that. Use another tool, or tell the user.
        ---
        `ripgrep` is a link that leads to itself.
        Hint: another input won't change that. Use another tool, or tell the user.
        ---
        The arguments for `ripgrep` are too long.
        Hint: nothing ran. Call it with a shorter input, or split it.
        ---
        The program `ripgrep` is being written at the moment.
        Hint: nothing ran. Call it again in a moment.
        ---
        The system has no room to start `ripgrep` at the moment.
        Hint: nothing ran. Call it again in a moment, with fewer calls at once.
        ---
        The program `ripgrep` could not be started: Input/output error (os error 5).
        Hint: another input won't change that. Use another tool, or tell the user.
        ");
}

#[test]
fn statuses() {
    let statuses = [
        302, 400, 403, 404, 405, 408, 409, 413, 418, 429, 500, 503, 600,
    ];
    let outcomes = statuses.map(|status| failed(Ending::Http(status), "{\"error\":\"x\"}", ""));
    insta::assert_snapshot!(texts(&outcomes), @r#"
        The service answered HTTP 302 (a redirect).
        {"error":"x"}
        Hint: the tool doesn't follow it. Tell the user.
        ---
        The service answered HTTP 400 (the request is wrong).
        {"error":"x"}
        Hint: check the values of the input against the tool's description, and correct them.
        ---
        The service answered HTTP 403 (not permitted).
        {"error":"x"}
        Hint: the tool's access doesn't cover this, and calling again won't change that. Tell the user.
        ---
        The service answered HTTP 404 (not found).
        {"error":"x"}
        Hint: what the input names doesn't exist there. Check names and ids.
        ---
        The service answered HTTP 405 (not offered).
        {"error":"x"}
        Hint: the service doesn't offer this. Use another tool, or tell the user.
        ---
        The service answered HTTP 408 (it took too long).
        {"error":"x"}
        Hint: ask for less at once, or try again later.
        ---
        The service answered HTTP 409 (a conflict).
        {"error":"x"}
        Hint: what the input names is in another state than expected. Look at it first.
        ---
        The service answered HTTP 413 (the request is too large).
        {"error":"x"}
        Hint: send less at once.
        ---
        The service answered HTTP 418.
        {"error":"x"}
        Hint: the service doesn't take this request. Read its answer and change the input.
        ---
        The service answered HTTP 429 (too many requests).
        {"error":"x"}
        Hint: wait before you call it again, with fewer calls at once.
        ---
        The service answered HTTP 500 (the service failed).
        {"error":"x"}
        Hint: the input may be right. Try once more later, or use another tool.
        ---
        The service answered HTTP 503 (overloaded or down).
        {"error":"x"}
        Hint: the input may be right. Try again later, or go on without it.
        ---
        The service answered HTTP 600.
        {"error":"x"}
        Hint: the answer is none that this tool takes. Try another input, or tell the user.
        "#);
}

#[test]
fn requests_without_an_answer() {
    insta::assert_snapshot!(texts(&[
        transport(TransportPhase::Build, "the URL is malformed"),
        transport(TransportPhase::Connect, "connection refused"),
        transport(TransportPhase::Connect, "the name can't be resolved"),
        transport(TransportPhase::Connect, "invalid peer certificate"),
        transport(TransportPhase::Connect, "network unreachable"),
        transport(TransportPhase::Connect, "evil.example has an address that is not public"),
        transport(TransportPhase::Connect, "operation timed out"),
        transport(TransportPhase::Response, "connection reset"),
        transport(TransportPhase::Body, "60 of 100 bytes came"),
        transport(TransportPhase::TooLarge, "more than 64 MiB"),
    ]), @"
        The request could not be built: the URL is malformed.
        Hint: nothing was sent. Check the values of the input, or tell the user.
        ---
        http://127.0.0.1:8080 could not be reached: connection refused.
        Hint: nobody listens at this address, and nothing was sent. The service may not be running: try again later, or tell the user.
        ---
        http://127.0.0.1:8080 could not be reached: the name can't be resolved.
        Hint: the host's name is unknown, and nothing was sent. Try again later, or tell the user.
        ---
        http://127.0.0.1:8080 could not be reached: invalid peer certificate.
        Hint: no safe connection can be made, and nothing was sent. Tell the user.
        ---
        http://127.0.0.1:8080 could not be reached: network unreachable.
        Hint: nothing was sent. Try again later, or use another tool.
        ---
        http://127.0.0.1:8080 could not be reached: evil.example has an address that is not public.
        Hint: this tool may ask public addresses only, and nothing was sent. Use another URL, or tell the user.
        ---
        http://127.0.0.1:8080 could not be reached: operation timed out.
        Hint: nothing was sent. Try again later, or use another tool.
        ---
        http://127.0.0.1:8080 gave no complete answer: connection reset.
        Hint: try again later, or ask for less at once.
        ---
        The answer of http://127.0.0.1:8080 broke off: 60 of 100 bytes came.
        Hint: try again later, or ask for less at once.
        ---
        The answer of http://127.0.0.1:8080 is too large: more than 64 MiB.
        Hint: ask for less at once: a narrower search, a smaller page.
        ");
    let write = tool("pay", json!(true));
    let unsure = text_of(Some(&write), &failed(Ending::Http(502), "", ""));
    assert!(unsure.contains("look before you call it again"), "{unsure}");
}

/// FAULTS 100: the model is told that nobody knows, what came of the answer, and not to try blindly.
#[test]
fn requests_in_doubt() {
    let broken = |phase| {
        Doubt::Broken(Box::new(Transport {
            phase,
            origin: "https://api.example.com".to_owned(),
            detail: "connection reset".to_owned(),
        }))
    };
    let in_doubt = |doubt, output: &str| Outcome::InDoubt {
        doubt,
        output: output.to_owned(),
        captured: Captured::default(),
    };
    insta::assert_snapshot!(texts(&[
        in_doubt(broken(TransportPhase::Response), ""),
        in_doubt(broken(TransportPhase::Body), "{\"paid\": tr"),
        in_doubt(Doubt::TimedOut(Duration::from_secs(5)), ""),
        in_doubt(Doubt::Interrupted(Halt::Signal(15)), ""),
        in_doubt(Doubt::Interrupted(Halt::OverBudget(Budget::Time(Duration::from_mins(1)))), ""),
        in_doubt(Doubt::Cancelled("bash".to_owned()), "{"),
    ]), @r#"
        In doubt: search may have done its work: https://api.example.com gave no complete answer: connection reset.
        Hint: look whether it did before you call it again, or tell the user.
        ---
        In doubt: search may have done its work: the answer of https://api.example.com broke off: connection reset.
        {"paid": tr
        Hint: look whether it did before you call it again, or tell the user.
        ---
        In doubt: search may have done its work: no complete answer came within 5s.
        Hint: look whether it did before you call it again, or tell the user.
        ---
        In doubt: search may have done its work: the run was ended from outside, and no answer had come.
        Hint: look whether it did before you call it again, or tell the user.
        ---
        In doubt: search may have done its work: the time budget of this run, 1m, is used up, and no answer had come.
        Hint: look whether it did before you call it again, or tell the user.
        ---
        In doubt: search may have done its work: the bash call beside it failed, and no answer had come.
        {
        Hint: look whether it did before you call it again, or tell the user.
        "#);
    let large = transport(TransportPhase::TooLarge, "more than 64 MiB");
    let done = text_of(Some(&tool("pay", json!(true))), &large);
    assert!(done.contains("its work is done"), "{done}");
    let mut pay = tool("pay", json!(true));
    pay.messages
        .insert(MessageKey::InDoubt, template("{tool} 状态未知 {timeout}"));
    let late = in_doubt(Doubt::TimedOut(Duration::from_secs(5)), "");
    assert_eq!(text_of(Some(&pay), &late), "pay 状态未知 5s");
}

#[test]
fn rejections() {
    let unknown = rejected(
        Reason::UnknownTool,
        &[
            ("", "no tool is called `serch`; did you mean `search`?"),
            ("", "known: read_file, search"),
        ],
    );
    insta::assert_snapshot!(text_of(None, &unknown), @"
        Unknown tool: no tool is called `serch`; did you mean `search`?
        known: read_file, search
        Hint: call one of the known tools by its exact name, or go on without.
        ");
    insta::assert_snapshot!(texts(&[
        rejected(Reason::InvalidInput, &[("/lines/start", "must be integer, not string"), ("/path", "is required")]),
        rejected(Reason::InvalidArguments, &[("", "the input is a string; an object is needed")]),
        rejected(Reason::PathOutsideRoot, &[("/path", "Path must be within working directory")]),
        rejected(Reason::DuplicateId, &[("", "another call of this turn has the same id")]),
        rejected(Reason::Truncated, &[("", "the answer ended at its token limit inside this call")]),
    ]), @"
        Invalid input for search; it was not run:
        - /lines/start: must be integer, not string
        - /path: is required
        Hint: correct this and call it again.
        ---
        Invalid input for search; it was not run:
        - the input is a string; an object is needed
        Hint: send the input as one JSON object, `{}` for no arguments.
        ---
        Invalid input for search; it was not run:
        - /path: Path must be within working directory
        Hint: use a relative path below the working directory.
        ---
        Not executed: another call of this turn has the same id.
        Hint: call it again; each call needs an id of its own.
        ---
        Not executed: the answer ended at its token limit inside this call, so its input may be incomplete.
        Hint: call it again with a shorter input, or in several smaller calls.
        ");
}

#[test]
fn calls_that_were_not_run_or_not_to_their_end() {
    let by = "bash".to_owned();
    let cancelled = |output: &str, stderr: &str| Outcome::Cancelled {
        by: by.clone(),
        output: output.to_owned(),
        stderr: stderr.to_owned(),
        captured: Captured::default(),
    };
    insta::assert_snapshot!(texts(&[
        Outcome::NotExecuted(NotExecuted::Preceding { tool: by.clone() }),
        Outcome::NotExecuted(NotExecuted::Sibling { tool: by.clone() }),
        cancelled("half", ""),
        Outcome::Paused { failures: 3 },
        Outcome::MissingVariable("RATES_TOKEN".to_owned()),
        Outcome::NoBacking,
        Outcome::LogRefused("the session log can't be written: the disk is full".to_owned()),
        Outcome::Broken("index out of bounds".to_owned()),
        Outcome::BadOutput {
            problem: "no JSON: expected value at line 1 column 2".to_owned(),
            output: "<html>".to_owned(),
            stderr: "the session is over".to_owned(),
            captured: Captured::default(),
            ending: Ending::Exit(0),
        },
    ]), @"
        Not executed: the preceding bash call failed.
        Hint: see to that failure first, then call this again if it is still needed.
        ---
        Not executed: the bash call beside it failed.
        Hint: see to that failure first, then call this again if it is still needed.
        ---
        Cancelled while it ran: the bash call beside it failed.
        Until then it wrote:
        half
        Hint: see to that failure first, then call this again if it is still needed.
        ---
        Paused: search failed 3 times in a row, so this call was not run.
        Hint: don't call it again for now. Use another tool, or tell the user what went wrong.
        ---
        search can't run: the environment variable RATES_TOKEN is not set or empty.
        Hint: another input won't change that. Use another tool, or tell the user.
        ---
        search can't run: it has no backing.
        Hint: another input won't change that. Use another tool, or tell the user.
        ---
        Not executed: the session log can't be written: the disk is full.
        Hint: another input won't change that. Use another tool, or tell the user.
        ---
        search failed by a fault of toolq itself: index out of bounds.
        Hint: another input won't change that. Use another tool, or tell the user.
        ---
        search ran, but its output is not what it declares: no JSON: expected value at line 1 column 2.
        stderr:
        the session is over
        stdout:
        <html>
        Hint: this is the tool's fault. Try another input or another tool, and tell the user of it.
        ");
    insta::assert_snapshot!(text_of(Some(&tool("save", json!(true))), &cancelled("", "cleaning up")), @"
        Cancelled while it ran: the bash call beside it failed.
        Until then it wrote:
        cleaning up
        Hint: it may have done a part of its work: see to that failure first, and look before you call this again.
        ");
}

/// FAULTS 60, 133: who ended the run, what was written, and what to make of it.
#[test]
fn calls_of_a_run_that_was_ended() {
    let ended = |by, output: &str| Outcome::Interrupted {
        by,
        output: output.to_owned(),
        stderr: String::new(),
        captured: Captured::default(),
    };
    let waiting = |by| Outcome::NotExecuted(NotExecuted::Halted(by));
    let over = |budget| waiting(Halt::OverBudget(budget));
    let minute = Duration::from_mins(1);
    insta::assert_snapshot!(texts(&[
        ended(Halt::Signal(2), "half"),
        waiting(Halt::Signal(2)),
        ended(Halt::OverBudget(Budget::Time(minute)), ""),
        over(Budget::Calls(1)),
        over(Budget::Calls(20)),
        over(Budget::Output(1 << 20)),
    ]), @"
        Interrupted while it ran: the run was ended from outside.
        Until then it wrote:
        half
        Hint: nothing is wrong with this call. Call it again if it is still needed.
        ---
        Not executed: the run was ended from outside.
        Hint: nothing is wrong with this call. Call it again if it is still needed.
        ---
        Interrupted while it ran: the time budget of this run, 1m, is used up.
        Hint: this limit is the user's. Go on with what there is, or tell the user what is missing.
        ---
        Not executed: the budget of this run, 1 call, is used up.
        Hint: this limit is the user's. Go on with what there is, or tell the user what is missing.
        ---
        Not executed: the budget of this run, 20 calls, is used up.
        Hint: this limit is the user's. Go on with what there is, or tell the user what is missing.
        ---
        Not executed: the output budget of this run, 1 MiB, is used up.
        Hint: this limit is the user's. Go on with what there is, or tell the user what is missing.
        ");
    let write = tool("save", json!(true));
    insta::assert_snapshot!(text_of(Some(&write), &ended(Halt::OutputLost, "")), @"
        Interrupted while it ran: the run was ended from outside.
        Hint: it may have done a part of its work. Look before you call it again.
        ");
}

fn succeeded(content: Content, captured: Captured) -> Outcome {
    Outcome::Succeeded {
        content,
        captured,
        ending: Ending::Exit(0),
    }
}

fn cut(saved: Option<&str>, bytes: u64) -> Captured {
    Captured {
        bytes,
        cut: 1_234_567,
        cut_at: 5,
        saved: saved.map(Into::into),
        lossy: false,
        leftovers: 0,
    }
}

/// FAULTS 75, 77.
#[test]
fn results_come_as_they_are_and_say_what_was_cut() {
    for whole in ["", "\n", "text\n\n", "\u{0}\u{fffd}"] {
        let outcome = succeeded(Content::Text(whole.to_owned()), Captured::default());
        assert_eq!(text_of(Some(&read()), &outcome), whole);
    }
    let text = || Content::Text("head\ntail".to_owned());
    let block = serde_json::value::to_raw_value(&json!({"type": "image"})).unwrap();
    let failed = Outcome::Failed {
        output: "12é45".to_owned(),
        stderr: String::new(),
        captured: Captured {
            cut_at: 3,
            ..cut(None, 2_000_000)
        },
        ending: Ending::Exit(1),
    };
    insta::assert_snapshot!(texts(&[
        succeeded(text(), cut(Some("/log/1.out"), 2_000_000)),
        succeeded(text(), cut(Some("/log/1.out"), 80 << 20)),
        succeeded(text(), cut(None, 2_000_000)),
        succeeded(Content::Blocks(vec![block]), cut(None, 2_000_000)),
        failed,
    ]), @r#"
    head
    [… 1,234,567 bytes cut; the whole output is in /log/1.out …]
    tail
    ---
    head
    [… 1,234,567 bytes cut; the first 64 MiB of the output are in /log/1.out …]
    tail
    ---
    head
    [… 1,234,567 bytes cut; the whole output was not kept …]
    tail
    ---
    {"type":"image"}
    {"type":"text","text":"[… 1,234,567 bytes cut; the whole output was not kept …]"}

    ---
    Exit code 1.
    12
    [… 1,234,567 bytes cut; the whole output was not kept …]
    é45
    Hint: read what it wrote, and change the input before you call it again.
    "#);
}

/// FAULTS 38, 131: values are put in once, and secrets never.
#[test]
fn the_authors_words_take_the_place_of_ours() {
    let mut tool = read();
    tool.messages
        .insert(MessageKey::Timeout, template("工具 {tool} 超时({timeout})"));
    tool.messages
        .insert(MessageKey::Failed, template("{error}|{details}"));
    tool.messages
        .insert(MessageKey::InvalidInput, template("输入无效:\n{details}"));
    let late = Outcome::TimedOut {
        limit: Duration::from_millis(1_500),
        output: String::new(),
        stderr: String::new(),
        captured: Captured::default(),
    };
    let texts = [
        late,
        failed(Ending::Exit(1), "{tool} s3cr3t-value", ""),
        rejected(
            Reason::InvalidInput,
            &[("/a", "is required"), ("", "must be object")],
        ),
    ]
    .map(|outcome| text_of(Some(&tool), &outcome));
    insta::assert_snapshot!(texts.join("\n---\n"), @"
        工具 search 超时(1.5s)
        ---
        Exit code 1.|{tool} [masked]
        ---
        输入无效:
        - /a: is required
        - must be object
        ");
}

/// A tool whose commands are limited, and that tells of what they leave running.
fn limited() -> Tool {
    let command = CommandBacking {
        program: "search".to_owned(),
        arguments: Vec::new(),
        stdin: Stdin::None,
        env: Vec::new(),
        pass_env: Vec::new(),
        cwd: "/".into(),
        success_exit: vec![0],
        leftovers: Leftovers::Report,
        limits: Limits {
            cpu: Some(Duration::from_secs(10)),
            memory: Some(1 << 30),
            files: Some(64),
            processes: Some(32),
            file_size: Some(100 << 20),
        },
    };
    Tool {
        backing: Some(Backing::Command(command)),
        ..read()
    }
}

#[test]
fn limits_are_named() {
    let ends = [
        failed(Ending::Limit(Limit::Cpu), "half", ""),
        failed(Ending::Limit(Limit::Processes), "", ""),
        failed(Ending::Exit(1), "", "sort: Cannot allocate memory"),
        failed(Ending::Exit(128 + libc::SIGXFSZ), "", ""),
        failed(Ending::Exit(1), "", "cat: x: Too many open files"),
    ];
    let texts = ends.map(|outcome| text_of(Some(&limited()), &outcome));
    insta::assert_snapshot!(texts.join("\n---\n"), @"
        Ended because it exceeded a limit: limits.cpu is 10s.
        half
        Hint: it used up its processor time. Ask for less at once.
        ---
        Ended because it exceeded a limit: limits.processes is 32.
        Hint: it started too many processes at a time. Ask for less at once.
        ---
        Exit code 1.
        sort: Cannot allocate memory
        Hint: limits.memory is 1 GiB, and it may not use more memory. Ask for less at once.
        ---
        Exit code 153.
        Hint: limits.file_size is 100 MiB, and it may not write larger files. Ask for less at once.
        ---
        Exit code 1.
        cat: x: Too many open files
        Hint: limits.files is 64, and it may not open more files at a time. Ask for less at once.
        ");
    let unlimited = failed(Ending::Exit(1), "", "sort: Cannot allocate memory");
    assert!(!text_of(Some(&read()), &unlimited).contains("limits"));
}

#[test]
fn leftovers_are_told_where_that_is_declared() {
    let ran = |text: &str, leftovers| Outcome::Succeeded {
        content: Content::Text(text.to_owned()),
        captured: Captured {
            leftovers,
            ..Captured::default()
        },
        ending: Ending::Exit(0),
    };
    let text = |tool: &Tool, outcome| text_of(Some(tool), &outcome);
    let told = limited();
    assert_eq!(text(&told, ran("done", 0)), "done");
    assert_eq!(
        text(&told, ran("done", 1)),
        "done\n[a process that it had left running was ended]"
    );
    assert_eq!(
        text(&told, ran("", 2)),
        "[2 processes that it had left running were ended]"
    );
    assert_eq!(text(&read(), ran("done", 2)), "done");
    let json = Tool {
        output: OutputKind::Json,
        ..told
    };
    insta::assert_snapshot!(text(&json, ran("[1]", 1)), @r#"
        {"type":"text","text":"[1]"}
        {"type":"text","text":"[a process that it had left running was ended]"}
        "#);
}
