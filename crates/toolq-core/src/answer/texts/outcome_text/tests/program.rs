//! Programs that fail, time out, or don't start.

use super::*;

/// For `--to results`, whose `error` people and programs read.
#[test]
fn the_error_of_a_call_without_words_of_its_own_says_how_it_ended() {
    let error = |outcome: &Outcome| answer(Some(&read_tool()), outcome).report.error;
    let ended = |ending| error(&failed(ending, "", "")).unwrap();
    assert_eq!(ended(CallEnding::ExitCode(2)), "Exit code 2");
    assert_eq!(ended(CallEnding::Signal(9)), "Killed by SIGKILL");
    let with_words = failed(CallEnding::ExitCode(2), "", "no such user\n");
    assert_eq!(error(&with_words).unwrap(), "no such user");
    let not_executed = Outcome::NotExecuted(NotExecutedCause::StreamAborted);
    let not_executed = error(&not_executed).unwrap();
    assert!(not_executed.starts_with("Not executed"), "{not_executed}");
}

/// A program that fails leaves its exit code and its output.
#[test]
fn exit_codes_come_with_output_and_hint() {
    insta::assert_snapshot!(answer_texts(&[
        failed(CallEnding::ExitCode(1), "", "cat: notes.txt: No such file or directory\n"),
        failed(CallEnding::ExitCode(1), "", "cat: /etc/shadow: Permission denied\n"),
        failed(CallEnding::ExitCode(127), "", "sh: 1: foo: command not found\n"),
        failed(CallEnding::ExitCode(127), "", ""),
        failed(CallEnding::ExitCode(2), "3 tests passed, 1 failed\n", "warning: unused\n"),
        failed(CallEnding::ExitCode(3), "", ""),
        failed(CallEnding::ExitCode(7), "", "curl: (7) Failed to connect to localhost port 1: Connection refused"),
    ]), @"
        Exit code 1.
        cat: notes.txt: No such file or directory
        Hint: nothing exists at this path. Check the spelling, or list the directory first.
        ---
        Exit code 1.
        cat: /etc/shadow: Permission denied
        Hint: this isn't permitted, and calling again won't change that. Use another path or another approach, or ask the user.
        ---
        Exit code 127.
        sh: 1: foo: command not found
        Hint: a program that it needs isn't installed. Use another tool, or tell the user.
        ---
        Exit code 127.
        Hint: a program that it needs isn't installed. Use another tool, or tell the user.
        ---
        Exit code 2.
        stderr:
        warning: unused
        stdout:
        3 tests passed, 1 failed
        Hint: read its output, and change the input before calling it again.
        ---
        Exit code 3.
        Hint: it didn't say why. Check the input, or try another approach.
        ---
        Exit code 7.
        curl: (7) Failed to connect to localhost port 1: Connection refused
        Hint: nothing is listening at this address. The service may not be running: check the address, or try again later.
        ");
}

/// A sandbox is a cause of its own, and the last cause is the one that ended the program.
#[test]
fn a_hint_is_about_the_last_cause_and_the_sandbox() {
    let tools = r"
tools:
  search:
    input_schema: {type: object}
    sandbox: {write: [src]}
    command: [cat]
";
    let root = Path::new("/");
    let tools = parse_tools_file(tools, root, root).tools.unwrap();
    let refused = failed(
        CallEnding::ExitCode(1),
        "",
        "cat: a: No such file or directory\nsh: b: Permission denied\n",
    );
    let unknown = failed(
        CallEnding::ExitCode(6),
        "",
        "sh: b: Permission denied\ncurl: (6) Could not resolve host: example.org\n",
    );
    for (outcome, confined, free) in [
        (
            &refused,
            "`write` and `read` of its `sandbox`",
            "this isn't permitted",
        ),
        (
            &unknown,
            "`network` of its `sandbox`",
            "this host name is unknown. ",
        ),
    ] {
        for (tool, expected) in [(&*tools.tools[0], confined), (&read_tool(), free)] {
            let text = answer_text(Some(tool), outcome);
            let (_, hint) = text.split_once("Hint: ").unwrap();
            assert!(hint.contains(expected), "{text}");
        }
    }
}

/// A program that a signal killed leaves the name of the signal and its output.
#[test]
fn signals_are_named() {
    insta::assert_snapshot!(answer_texts(&[
        failed(CallEnding::Signal(libc::SIGSEGV), "half", ""),
        failed(CallEnding::Signal(libc::SIGKILL), "", ""),
        failed(CallEnding::Signal(libc::SIGTERM), "", ""),
        failed(CallEnding::Signal(libc::SIGXFSZ), "", ""),
        failed(CallEnding::Signal(64), "", ""),
    ]), @"
        Killed by SIGSEGV.
        half
        Hint: the program crashed. Try another input or another tool.
        ---
        Killed by SIGKILL.
        Hint: it may have used too much memory. Ask for less at a time.
        ---
        Killed by SIGTERM.
        Hint: something outside of toolq terminated it. It may work if you call it again.
        ---
        Killed by SIGXFSZ.
        Hint: it wrote a file that is too large. Ask for less at a time.
        ---
        Killed by signal 64.
        Hint: the program crashed. Try another input or another tool.
        ");
}

#[test]
fn timeouts_come_with_partial_output() {
    let outcome = |output: &str, stderr: &str| Outcome::TimedOut {
        no_calls_started: false,
        limit: Duration::from_secs(30),
        output: CallOutput {
            text: output.to_owned(),
            stderr: stderr.to_owned(),
            ..CallOutput::default()
        },
    };
    let write = tool_with_schema("save", json!(true));
    insta::assert_snapshot!(
        answer_texts(&[outcome("", ""), outcome("line 1\n", ""), outcome("line 1\n", "waiting for the lock\n")])
            + "\n---\n"
            + &answer_text(Some(&write), &outcome("", "")),
        @"
        search timed out after 30s and was stopped.
        Hint: ask for less at a time (a narrower search, a smaller range), or use another tool.
        ---
        search timed out after 30s and was stopped.
        Output until then:
        line 1
        Hint: ask for less at a time (a narrower search, a smaller range), or use another tool.
        ---
        search timed out after 30s and was stopped.
        Output until then:
        stderr:
        waiting for the lock
        stdout:
        line 1
        Hint: ask for less at a time (a narrower search, a smaller range), or use another tool.
        ---
        save timed out after 30s and was stopped.
        Hint: it may have done part of its work: check before calling it again.
        "
    );
}

/// The text names what is missing: the program, its permission, its `#!` line, its directory, or a variable.
#[test]
fn spawn_errors_are_explained() {
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
        Outcome::NotStarted(SpawnError {
            program: "ripgrep".to_owned(),
            directory: None,
            confinement: None,
            interpreter: None,
            errno,
        })
    });
    insta::assert_snapshot!(answer_texts(&outcomes), @"
        The program `ripgrep` was not found.
        Hint: a different input won't change that. Use another tool, or tell the user.
        ---
        The program `ripgrep` can't be executed (permission denied).
        Hint: a different input won't change that. Use another tool, or tell the user.
        ---
        `ripgrep` isn't an executable for this machine, nor a script with a `#!` line.
        Hint: a different input won't change that. Use another tool, or tell the user.
        ---
        `ripgrep` is a directory, not a program.
        Hint: a different input won't change that. Use another tool, or tell the user.
        ---
        Part of the path `ripgrep` is a file, not a directory.
        Hint: a different input won't change that. Use another tool, or tell the user.
        ---
        `ripgrep` is a symlink that points to itself.
        Hint: a different input won't change that. Use another tool, or tell the user.
        ---
        The arguments for `ripgrep` are too long.
        Hint: nothing ran. Call it with a shorter input, or split it.
        ---
        The program `ripgrep` is being written to right now.
        Hint: nothing ran. Call it again in a moment.
        ---
        The system doesn't have the resources to start `ripgrep` right now.
        Hint: nothing ran. Call it again in a moment, with fewer calls at once.
        ---
        The program `ripgrep` could not be started: Input/output error (os error 5).
        Hint: a different input won't change that. Use another tool, or tell the user.
        ");
}

/// A person can raise this limit, unlike others of the system.
#[test]
fn too_few_descriptors_name_the_limit_and_its_cure() {
    let outcomes = [libc::EMFILE, libc::ENFILE].map(|errno| {
        Outcome::NotStarted(SpawnError {
            program: "ripgrep".to_owned(),
            directory: None,
            confinement: None,
            interpreter: None,
            errno,
        })
    });
    insta::assert_snapshot!(answer_texts(&outcomes), @"
        The program `ripgrep` could not be started: toolq has as many files open as its limit (`ulimit -n`) allows.
        Hint: nothing ran. Call it again with fewer calls at once. If that fails, too, tell the user to raise the limit with `ulimit -n`.
        ---
        The system doesn't have the resources to start `ripgrep` right now.
        Hint: nothing ran. Call it again in a moment, with fewer calls at once.
        ");
}

/// An empty result could be a failure of the API, so it says that it is empty.
#[test]
fn an_empty_text_says_that_there_was_no_output() {
    let succeeded = |text: &str| Outcome::Succeeded {
        content: ResultContent::Text(text.to_owned()),
        captured: CaptureStats::default(),
        ending: CallEnding::ExitCode(0),
        for_clients: None,
    };
    assert_eq!(
        answer_text(Some(&read_tool()), &succeeded("")),
        "(no output)"
    );
    assert_eq!(answer_text(Some(&read_tool()), &succeeded(" ")), " ");
    let worded = Tool {
        messages: [(
            MessageKey::EmptyOutput,
            sample_template("{tool} 没有输出{error}{details}"),
        )]
        .into(),
        ..read_tool()
    };
    assert_eq!(
        answer_text(Some(&worded), &succeeded("")),
        "search 没有输出"
    );
    assert_eq!(answer_text(Some(&worded), &succeeded("x")), "x");
}

/// Something that it ran was stopped in the middle, or its work is done: nobody should call it again just so.
#[test]
fn no_hint_invites_to_repeat_a_write_whose_effect_may_be_there() {
    let save = tool_with_schema("save", json!(true));
    for (code, stderr) in [
        (130, ""),
        (137, ""),
        (139, ""),
        (143, ""),
        (28, "curl: (28) Operation timed out after 5000 ms"),
    ] {
        let text = answer_text(Some(&save), &failed(CallEnding::ExitCode(code), "", stderr));
        let hint = "Hint: it may have done part of its work: check before calling it again.";
        assert!(text.ends_with(hint), "{text}");
    }
    let refused = failed(CallEnding::ExitCode(1), "", "no such account");
    let text = answer_text(Some(&save), &refused);
    assert!(text.contains("change the input before calling"), "{text}");
    let outcome = Outcome::BadOutput {
        problem: "no JSON".to_owned(),
        output: CallOutput::default(),
        ending: CallEnding::ExitCode(0),
    };
    let text = answer_text(Some(&save), &outcome);
    assert!(text.contains("Hint: its work is done"), "{text}");
}
