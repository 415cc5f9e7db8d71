//! Commands: what a program receives, how its output is captured, and how it is terminated.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod engine_turn;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use engine_turn::{TestTurn, command_call, shell_call, success_text, text_template};
use toolq_core::types::{
    CallEnding, CallOutput, CaptureStats, CommandLimits, DoubtCause, Effect, Leftovers, LimitKind,
    Outcome, OutputKind, ResultContent, Segment, StdinContent,
};

#[test]
fn input_is_on_stdin_and_output_loses_one_trailing_newline() {
    let ran = command_call(&["cat"])
        .input(r#"{"n":12345678901234567890123}"#)
        .run();
    assert_eq!(ran.text(), r#"{"n":12345678901234567890123}"#);
    assert_eq!(shell_call("printf 'a\n\n'", &[]).run().text(), "a\n");
    assert_eq!(shell_call("printf '\n'", &[]).run().text(), "");
    assert_eq!(shell_call(":", &[]).run().text(), "");
}

/// A value is passed verbatim as a single argument, whatever characters it contains.
#[test]
fn arguments_are_literal() {
    let values = [
        "a b",
        "$(touch x)",
        "`x`",
        "*",
        "~",
        "'\"",
        ";|&<>\n",
        "{x}",
        "${HOME}",
        "%s",
        "\u{202e}é",
        "",
    ];
    let ran = shell_call("printf '%s\\0' \"$@\"", &values).run();
    let printed: Vec<&str> = ran.text().split_terminator('\0').collect();
    assert_eq!(printed, values);
}

/// A child inherits only the declared environment variables and file descriptors.
#[cfg(target_os = "linux")] // It reads /proc.
#[test]
fn a_child_inherits_what_is_declared() {
    let names = "env | sed 's/=.*//' | grep -v '^_$\\|^PWD$\\|^SHLVL$\\|^OLDPWD$' | sort | tr '\n' ' '; ls /proc/self/fd";
    let ran = TestTurn::default()
        .env("HOME", "/home/someone")
        .env("LC_ALL", "C")
        .env("LD_PRELOAD", "/nowhere.so")
        .env("PASSED", "yes")
        .env("OTHER", "no")
        .call(
            shell_call(names, &[])
                .command_backing(|backing| {
                    backing.pass_env = vec!["PASSED".to_owned(), "UNSET".to_owned()];
                })
                .command_invocation(|command| {
                    command.env = vec![("DECLARED".to_owned(), text_template("x"))];
                }),
        )
        .run();
    let expected = "DECLARED HOME LC_ALL PASSED PATH TOOLQ_ATTEMPT TOOLQ_IDEMPOTENCY_KEY TOOLQ_STATUS_FD \
                    TOOLQ_TOOL_NAME TOOLQ_TOOL_USE_ID TOOLQ_TURN ";
    let (names, descriptors) = ran.text().split_once('0').unwrap();
    assert_eq!(names, expected);
    // The last one is the directory that `ls` reads.
    assert_eq!(
        descriptors.split_whitespace().collect::<Vec<_>>(),
        ["1", "2", "3", "4"]
    );
}

#[test]
fn the_environment_is_read_when_the_call_is_made() {
    let from_env = |default: Option<&str>| {
        shell_call("printf %s \"$X\"", &[]).command_invocation(|command| {
            let segment = Segment::Env {
                name: "SOURCE".to_owned(),
                default: default.map(str::to_owned),
            };
            command.env = vec![(
                "X".to_owned(),
                toolq_core::types::PartialTemplate(vec![segment]),
            )];
        })
    };
    let ran = TestTurn::default()
        .env("SOURCE", "set")
        .call(from_env(None))
        .run();
    assert_eq!(ran.text(), "set");
    assert_eq!(from_env(Some("else")).run().text(), "else");
    let missing = from_env(None).run();
    assert!(matches!(missing.outcome(), Outcome::MissingVariable(name) if name == "SOURCE"));
}

/// Exit codes and signals are reported as distinct endings.
#[test]
fn exit_codes_and_signals() {
    let mut turn = TestTurn::default();
    for code in [0, 1, 2, 75, 126, 255] {
        turn = turn.call(shell_call(
            "echo out; echo err >&2; exit $1",
            &[&code.to_string()],
        ));
    }
    for signal in ["TERM", "KILL", "SEGV"] {
        turn = turn.call(shell_call("kill -$1 $$", &[signal]));
    }
    let ran = turn
        .call(
            shell_call("exit 1", &[]).command_backing(|backing| backing.success_exit = vec![0, 1]),
        )
        .run();
    let endings: Vec<Option<CallEnding>> = ran.outcomes.values().map(Outcome::ending).collect();
    let exits = [0, 1, 2, 75, 126, 255].map(|code| Some(CallEnding::ExitCode(code)));
    assert_eq!(endings[..6], exits);
    assert_eq!(
        endings[6..9],
        [15, 9, 11].map(|signal| Some(CallEnding::Signal(signal)))
    );
    assert_eq!(success_text(&ran.outcomes[&9]), "");
    match &ran.outcomes[&1] {
        Outcome::Failed { output, .. } => {
            assert_eq!((&*output.text, &*output.stderr), ("out", "err"));
        }
        other => panic!("{other:?}"),
    }
}

/// A program that can't be started reports the operating system's error number.
#[test]
fn start_errors() {
    let temp_dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str, mode: u32| {
        let path = temp_dir.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let plain = file("plain", "echo x", 0o644);
    let no_shebang = file("no_shebang", "echo x", 0o755);
    let dir = temp_dir.path().to_str().unwrap().to_owned();
    let long = "x".repeat(131_072);
    let errnos = [
        (command_call(&["no-such-program"]), rustix::io::Errno::NOENT),
        (
            command_call(&["./no-such-program"]),
            rustix::io::Errno::NOENT,
        ),
        (command_call(&[&plain]), rustix::io::Errno::ACCESS),
        (command_call(&[&no_shebang]), rustix::io::Errno::NOEXEC),
        (command_call(&[&dir]), rustix::io::Errno::ISDIR),
        (command_call(&["echo", &long]), rustix::io::Errno::TOOBIG),
        (command_call(&["echo", "a\0b"]), rustix::io::Errno::INVAL),
        (
            command_call(&["/bin/echo"])
                .command_backing(|backing| backing.cwd = PathBuf::from("/no/such/directory")),
            rustix::io::Errno::NOENT,
        ),
    ];
    for (call, errno) in errnos {
        match call.run().outcome() {
            Outcome::NotStarted(error) => {
                assert_eq!(error.errno, errno.raw_os_error(), "{error:?}");
            }
            other => panic!("{other:?}"),
        }
    }
    let longest = command_call(&["echo", &long[1..]]).run();
    assert_eq!(longest.outcome().captured().unwrap().total_bytes, 131_072);
}

/// The programs get a SIGTERM, so the call ends long before its grace period does. A stopped program is terminated too.
#[test]
fn a_timeout_terminates_the_process_group() {
    for script in ["echo begun; sleep 1000 & wait", "echo begun; kill -STOP $$"] {
        let ran = shell_call(script, &[]).timeout(150, 20_000).run();
        match ran.outcome() {
            Outcome::TimedOut { output, limit, .. } => {
                assert_eq!(
                    (&*output.text, *limit),
                    ("begun", Duration::from_millis(150))
                );
            }
            other => panic!("{other:?}"),
        }
        assert!(ran.elapsed < Duration::from_secs(10), "{:?}", ran.elapsed);
    }
}

/// The last lines of stderr often explain why a call took so long.
#[test]
fn a_timeout_keeps_stderr() {
    let ran = shell_call("echo begun; echo waiting for the lock >&2; sleep 1000", &[])
        .timeout(150, 50)
        .run();
    assert!(
        matches!(ran.outcome(), Outcome::TimedOut { output, .. } if output.text == "begun" && output.stderr == "waiting for the lock"),
        "{:?}",
        ran.outcome()
    );
}

#[test]
fn a_program_that_ignores_term_is_killed() {
    let ran = shell_call(
        "trap '' TERM; echo begun; while :; do sleep 1000; done",
        &[],
    )
    .timeout(150, 50)
    .run();
    assert!(matches!(ran.outcome(), Outcome::TimedOut { output, .. } if output.text == "begun"));
    assert!(ran.elapsed < Duration::from_secs(10), "{:?}", ran.elapsed);
}

/// A grandchild that keeps the pipes open doesn't block the call, and output written before the exit is kept.
#[cfg(target_os = "linux")] // It needs the program `setsid`.
#[test]
fn a_pipe_held_by_a_grandchild_does_not_block_the_call() {
    for script in ["sleep 1000 & echo done", "setsid sleep 10 & echo done"] {
        let ran = shell_call(script, &[]).run();
        assert_eq!(ran.text(), "done");
        assert!(ran.elapsed < Duration::from_secs(8), "{:?}", ran.elapsed);
    }
}

/// Processes that are left in the process group are killed before the call ends.
#[test]
fn the_rest_of_the_process_group_is_killed() {
    let ran = shell_call("sleep 1000 >/dev/null 2>&1 3>&1 & echo $!", &[]).run();
    wait_until_exited(ran.text());
}

#[test]
fn dropping_a_turn_kills_its_programs() {
    let temp_dir = tempfile::tempdir().unwrap();
    let file = temp_dir.path().join("pid");
    let call = shell_call(
        "sleep 1000 & echo $! >$1.new; mv $1.new $1; wait",
        &[file.to_str().unwrap()],
    );
    TestTurn::default().call(call).drop_when_exists(&file);
    wait_until_exited(fs::read_to_string(file).unwrap().trim());
}

/// Waits until a process has exited. It may remain a zombie of the process that adopted it.
fn wait_until_exited(pid: &str) {
    let pid = rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap();
    while rustix::process::test_kill_process(pid).is_ok() && !is_zombie(pid) {
        std::thread::yield_now();
    }
}

fn is_zombie(pid: rustix::process::Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.is_ok_and(|stat| stat.contains(") Z "))
}

/// A program doesn't have to read its stdin, write anything, or keep its pipes open.
#[test]
fn pipes_may_be_ignored_and_closed() {
    let large = format!(r#"{{"x":"{}"}}"#, "x".repeat(1 << 20));
    for script in [
        "echo fine",
        "exec <&-; echo fine",
        "echo fine; exec >&-; sleep 0.05",
        "echo fine; exec >&- 2>&- 3>&-; sleep 0.05",
    ] {
        assert_eq!(
            shell_call(script, &[]).input(&large).run().text(),
            "fine",
            "{script}"
        );
    }
    assert_eq!(
        shell_call("wc -c", &[]).input(&large).run().text().trim(),
        large.len().to_string()
    );
    let ignores_stdin = shell_call("sleep 1000", &[])
        .input(&large)
        .timeout(100, 20_000)
        .run();
    assert!(matches!(ignores_stdin.outcome(), Outcome::TimedOut { .. }));
}

/// A flood of output is drained and counted. Only its head and tail are kept.
#[test]
fn large_outputs_are_truncated_and_counted() {
    let script = "yes 0123456789 | head -c 3000000; yes error | head -c 300000 >&2; exit 3";
    let ran = shell_call(script, &[])
        .tool(|tool| tool.max_output = 1000)
        .run();
    match ran.outcome() {
        Outcome::Failed { output, .. } => {
            let CallOutput {
                text,
                stderr,
                captured,
            } = output;
            assert_eq!(text.len(), 1000);
            assert!(text.starts_with("0123456789\n0123"));
            assert_eq!(
                (
                    captured.total_bytes,
                    captured.cut_bytes,
                    captured.cut_offset
                ),
                (3_000_000, 2_999_000, 500)
            );
            assert_eq!(captured.saved_path, None);
            assert!(stderr.len() <= 4096 && stderr.ends_with("error"));
        }
        other => panic!("{other:?}"),
    }
}

/// The full text of truncated output is saved in a file that only its owner can read.
#[test]
fn truncated_output_is_saved_in_full() {
    let temp_dir = tempfile::tempdir().unwrap();
    let outputs = temp_dir.path().join("new").join("outputs");
    let saved = |bytes: usize, max_saved: u64| {
        let script = format!("head -c {bytes} /dev/zero | tr '\\0' x");
        let call = shell_call(&script, &[]).tool(|tool| {
            tool.max_output = 100;
            tool.max_saved = max_saved;
        });
        let ran = TestTurn::default()
            .outputs(outputs.clone())
            .call(call)
            .run();
        ran.outcome().captured().cloned().unwrap()
    };
    for bytes in [99, 100] {
        assert_eq!(
            saved(bytes, 1 << 20),
            CaptureStats {
                total_bytes: bytes as u64,
                cut_offset: bytes,
                ..CaptureStats::default()
            }
        );
    }
    assert!(!outputs.exists());
    for (bytes, max_saved, kept) in [
        (101, 1 << 20, 101),
        (100_000, 1 << 20, 100_000),
        (100_000, 5_000, 5_000),
    ] {
        let captured = saved(bytes, max_saved);
        assert_eq!(captured.cut_bytes, bytes as u64 - 100);
        let path = *captured.saved_path.unwrap();
        assert_eq!(fs::read(&path).unwrap(), "x".repeat(kept).as_bytes());
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
    assert_eq!(
        fs::metadata(&outputs).unwrap().permissions().mode() & 0o777,
        0o700
    );
    assert_eq!(fs::read_dir(&outputs).unwrap().count(), 3);
}

#[test]
fn invalid_utf8_is_replaced_and_marked_lossy() {
    let ran = shell_call("printf 'a\\377b\\000c'", &[]).run();
    assert_eq!(ran.text(), "a\u{FFFD}b\0c");
    assert!(ran.outcome().captured().unwrap().lossy);
}

#[test]
fn json_is_compact_and_checked() {
    let json = |script: &str| {
        shell_call(script, &[])
            .tool(|tool| tool.output = OutputKind::Json)
            .run()
    };
    let good =
        json("printf '{ \"a b\": [1.00, 12345678901234567890123 ],\\n \"c\": \"x\\\\\" y\"}\\n'");
    assert_eq!(
        good.text(),
        r#"{"a b":[1.00,12345678901234567890123],"c":"x\" y"}"#
    );
    for script in [
        "echo '{'",
        "echo '{} {}'",
        "printf ''",
        "printf '\"\\377\"'",
    ] {
        assert!(
            matches!(json(script).outcome(), Outcome::BadOutput { .. }),
            "{script}"
        );
    }
}

#[test]
fn an_empty_output_is_the_json_that_the_tool_declares() {
    let json = |script: &str, empty: Option<&str>| {
        shell_call(script, &[])
            .tool(|tool| {
                tool.output = OutputKind::Json;
                tool.empty_output = empty.map(str::to_owned);
            })
            .run()
    };
    assert_eq!(json(":", Some("[ ]")).text(), "[]");
    assert_eq!(json("echo", Some("[]")).text(), "[]");
    assert_eq!(json("echo '[1]'", Some("[]")).text(), "[1]");
    match json(":", None).outcome() {
        Outcome::BadOutput { problem, .. } => assert_eq!(problem, "the output is empty"),
        other => panic!("{other:?}"),
    }
}

/// Output that should have been JSON usually explains what went wrong, so its head and tail are kept.
#[test]
fn output_that_is_not_json_is_kept_for_diagnosis() {
    let script = "echo 'token expired' >&2; echo '<html>'; head -c 100000 /dev/zero | tr '\\0' x; echo '</html>'";
    let ran = shell_call(script, &[])
        .tool(|tool| tool.output = OutputKind::Json)
        .run();
    match ran.outcome() {
        Outcome::BadOutput { output, .. } => {
            let CallOutput {
                text,
                stderr,
                captured,
            } = output;
            assert_eq!(stderr, "token expired");
            assert!(text.starts_with("<html>\nx") && text.ends_with("x</html>"));
            assert_eq!((captured.total_bytes, text.len()), (100_015, 4_096));
            // The trailing newline is removed, which doesn't count as truncation.
            assert_eq!(captured.cut_bytes, 100_014 - 4_096);
        }
        other => panic!("{other:?}"),
    }
}

/// Content blocks are passed on verbatim, so they must be valid for every consumer of the results.
#[test]
fn content_blocks_are_checked() {
    let blocks = |json: &str| {
        shell_call("printf %s \"$1\"", &[json])
            .tool(|tool| tool.output = OutputKind::Content)
            .run()
    };
    let good = r#"[{"type":"text","text":"x"},{"type":"image","source":{"type":"base64"}}]"#;
    match blocks(good).outcome() {
        Outcome::Succeeded {
            content: ResultContent::Blocks(blocks),
            ..
        } => assert_eq!(blocks.len(), 2),
        other => panic!("{other:?}"),
    }
    let of_mcp = r#"[{"type":"image","mimeType":"image/png","data":"AA=="},{"type":"audio","mimeType":"audio/wav","data":"AA=="},{"type":"resource","resource":{"uri":"a:b","text":"c"}},{"type":"resource_link","uri":"a:b","name":"c"}]"#;
    match blocks(of_mcp).outcome() {
        Outcome::Succeeded {
            content: ResultContent::Blocks(blocks),
            ..
        } => assert_eq!(
            (blocks.len(), blocks[0].get()),
            (
                4,
                r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}"#
            )
        ),
        other => panic!("{other:?}"),
    }
    for bad in [
        "{}",
        "[1]",
        r#"[{"type":"tool_use"}]"#,
        r#"[{"type":"audio","source":{}}]"#,
        r#"[{"type":"resource","resource":{"uri":"a:b"}}]"#,
        r#"[{"type":"resource_link","uri":"a:b"}]"#,
        r#"[{"type":"text"}]"#,
        r#"[{"type":"text","text":1}]"#,
        r#"[{"type":"text","text":"\ud800"}]"#,
        r#"[{"type":"text","text":"a","text":"b"}]"#,
        r#"[{"type":"text","text":"a","n":1e400}]"#,
        &format!(
            r#"[{{"type":"text","text":"a","n":{}{}}}]"#,
            "[".repeat(100),
            "]".repeat(100)
        ),
    ] {
        assert!(
            matches!(blocks(bad).outcome(), Outcome::BadOutput { .. }),
            "{bad}"
        );
    }
}

/// Secrets that a tool prints are masked everywhere, even if truncation would split one.
#[test]
fn secrets_are_masked_at_the_source() {
    let temp_dir = tempfile::tempdir().unwrap();
    let script = "printf '{\"tip\":\"hunter-22\"}\\n' >&3; printf 'xxxxxxxxxxhunter-22xxxxxxxxxxhunter-22'; \
                  printf 'hunter-22' >&2; exit 1";
    let call = shell_call(script, &[]).tool(|tool| tool.max_output = 20);
    let ran = TestTurn::default()
        .secret("hunter-22")
        .outputs(temp_dir.path().to_owned())
        .call(call)
        .run();
    match ran.outcome() {
        Outcome::Failed { output, .. } => {
            let streams = (&*output.text, &*output.stderr);
            assert_eq!(streams, ("xxxxxxxxxxxx[masked]", "[masked]"));
            let full_output =
                fs::read_to_string(output.captured.saved_path.as_deref().unwrap()).unwrap();
            assert_eq!(full_output, "xxxxxxxxxx[masked]xxxxxxxxxx[masked]");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(ran.statuses, [(Some("[masked]".to_owned()), None)]);
}

#[test]
fn status_lines_are_not_part_of_the_result() {
    let script = "echo '{\"tip\":\"halfway\",\"progress\":0.5}' >&$TOOLQ_STATUS_FD; cat >/dev/null; echo result";
    let ran = shell_call(script, &[]).run();
    assert_eq!(ran.text(), "result");
    assert_eq!(ran.statuses, [(Some("halfway".to_owned()), Some(0.5))]);
    let flood = shell_call(
        "yes '{\"tip\":\"x\"}' | head -c 5000000 >&3; head -c 5000000 /dev/zero >&3; echo fine",
        &[],
    );
    assert_eq!(flood.run().text(), "fine");
}

#[test]
fn a_slow_call_reports_that_it_is_still_running() {
    let temp_dir = tempfile::tempdir().unwrap();
    let status_marker = temp_dir.path().join("status-seen");
    let script = "while ! [ -e $1 ]; do sleep 0.01; done";
    let slow = shell_call(script, &[status_marker.to_str().unwrap()])
        .tool(|tool| tool.timeout.slow_after = Some(Duration::from_millis(10)));
    let ran = TestTurn::default()
        .call(slow)
        .touch_on_status(status_marker)
        .run();
    assert_eq!(
        ran.statuses,
        [(Some("still running after 10ms".to_owned()), None)]
    );
}

/// An unsafe call runs alone, and safe calls respect the concurrency limit.
#[test]
fn nothing_overlaps_an_unsafe_call() {
    let temp_dir = tempfile::tempdir().unwrap();
    let dir = temp_dir.path().to_str().unwrap();
    let safe = "mkdir $1/$2; ls $1; sleep 0.02; rmdir $1/$2";
    let alone = "mkdir $1/alone; ls $1; sleep 0.02; rmdir $1/alone";
    let mut turn = TestTurn::default().jobs(3);
    for position in 0..24 {
        turn = turn.call(if position % 6 == 5 {
            shell_call(alone, &[dir]).not_concurrency_safe()
        } else {
            shell_call(safe, &[dir, &format!("safe-{position}")])
        });
    }
    let ran = turn.run();
    for (position, outcome) in &ran.outcomes {
        let concurrent: Vec<&str> = success_text(outcome).lines().collect();
        match position % 6 {
            5 => assert_eq!(concurrent, ["alone"]),
            _ => assert!(
                concurrent.len() <= 3 && !concurrent.contains(&"alone"),
                "{concurrent:?}"
            ),
        }
    }
    assert_eq!(ran.delivery_order, (0..24).collect::<Vec<_>>());
}

#[test]
fn a_template_on_stdin() {
    let ran = shell_call("cat", &[])
        .command_invocation(|command| command.stdin = StdinContent::Text("a\nb".to_owned()))
        .run();
    assert_eq!(ran.text(), "a\nb");
    let ran = shell_call("cat", &[])
        .command_invocation(|command| command.stdin = StdinContent::None)
        .run();
    assert_eq!(ran.text(), "");
}

#[test]
fn no_zombies_are_left() {
    let calls = (0..50).map(|_| shell_call(":", &[]));
    calls.fold(TestTurn::default(), TestTurn::call).run();
    // Concurrent tests have short-lived zombies of their own. None of those seen now may remain.
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut seen = zombie_children();
    while !seen.is_empty() {
        assert!(Instant::now() < deadline, "{seen:?}");
        let now = zombie_children();
        seen.retain(|pid| now.contains(pid));
    }
}

/// Returns the process IDs of our own children that have exited but haven't been reaped.
fn zombie_children() -> Vec<String> {
    let ours = format!(") Z {} ", std::process::id());
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter(|process| {
        let stat = fs::read_to_string(process.path().join("stat"));
        stat.is_ok_and(|stat| stat.contains(&ours))
    });
    pids.map(|process| process.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Each limit is enforced. The outcome names the limit if the operating system reports which one was hit.
#[cfg(target_os = "linux")]
#[test]
fn limits_are_enforced_and_named() {
    let limited = |script: &str, change: fn(&mut CommandLimits)| {
        let ran = shell_call(script, &[]).command_backing(|backing| change(&mut backing.limits));
        ran.run().outcome().clone()
    };
    let ending = |script: &str, change| limited(script, change).ending().unwrap();
    let cpu_exceeded = ending("exec sh -c 'while :; do :; done'", |limits| {
        limits.cpu = Some(Duration::from_secs(1));
    });
    assert_eq!(cpu_exceeded, CallEnding::LimitExceeded(LimitKind::Cpu));
    let ignores_xcpu = ending("trap '' XCPU; while :; do :; done", |limits| {
        limits.cpu = Some(Duration::from_secs(1));
    });
    assert_eq!(ignores_xcpu, CallEnding::LimitExceeded(LimitKind::Cpu));
    let file_size_exceeded = ending("f=$(mktemp); rm $f; exec yes 1<>$f 2>&1", |limits| {
        limits.file_size = Some(10_000);
    });
    assert_eq!(
        file_size_exceeded,
        CallEnding::LimitExceeded(LimitKind::FileSize)
    );
    let processes_exceeded = ending(
        "for i in 1 2 3 4 5 6 7 8; do sleep 100 & done; wait",
        |limits| {
            limits.processes = Some(4);
        },
    );
    assert_eq!(
        processes_exceeded,
        CallEnding::LimitExceeded(LimitKind::Processes)
    );
    let memory_exceeded = limited("x=x; while :; do x=$x$x; done", |limits| {
        limits.memory = Some(64 << 20);
    });
    assert!(memory_exceeded.is_error(), "{memory_exceeded:?}");
    let files_exceeded = limited("exec 4</dev/null 5</dev/null", |limits| {
        limits.files = Some(5);
    });
    assert!(
        matches!(&files_exceeded, Outcome::Failed { output, .. } if output.stderr.contains("open files")),
        "{files_exceeded:?}"
    );
    let ulimits = limited("ulimit -n; ulimit -c; ulimit -f", |limits| {
        limits.files = Some(50);
        limits.file_size = Some(1 << 20);
    });
    assert!(success_text(&ulimits).starts_with("50\n0\n"), "{ulimits:?}");
}

/// Processes left running after the program exits are killed and counted, or released with `leftovers: allow`.
#[cfg(target_os = "linux")]
#[test]
fn leftovers_are_killed_and_counted_or_allowed() {
    let script = "for i in 1 2; do setsid sleep 1000 >/dev/null 2>&1 3>&1 & echo $!; done";
    let ran = shell_call(script, &[]).run();
    assert_eq!(ran.outcome().captured().unwrap().killed_leftovers, 2);
    ran.text().lines().for_each(wait_until_exited);
    let ran = shell_call("sleep 0.01 & wait", &[]).run();
    assert_eq!(ran.outcome().captured().unwrap().killed_leftovers, 0);
    let call =
        shell_call(script, &[]).command_backing(|backing| backing.leftovers = Leftovers::Allow);
    let ran = call.run();
    assert_eq!(ran.outcome().captured().unwrap().killed_leftovers, 0);
    for pid in ran.text().lines() {
        let pid = rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
}

/// If an idle reaper is killed, no call is lost: the next call gets a new reaper.
#[cfg(target_os = "linux")]
#[test]
fn an_idle_reaper_that_is_killed_is_replaced() {
    let temp_dir = tempfile::tempdir().unwrap();
    let temp_dir = temp_dir.path().to_str().unwrap();
    // Each waits for the other, so that there are two reapers.
    let meet = r#"touch "$1/$2"; while [ ! -e "$1/$3" ]; do sleep 0.01; done; echo met"#;
    let kill = r"supervisor=$(sed -n 's/^PPid:\s*//p' /proc/$PPID/status)
        for reaper in $(cat /proc/$supervisor/task/$supervisor/children); do
            [ $reaper = $PPID ] && continue
            kill -9 $reaper && echo killed
            while [ -e /proc/$reaper ]; do sleep 0.01; done
        done";
    let ran = TestTurn::default()
        .call(shell_call(meet, &[temp_dir, "a", "b"]))
        .call(shell_call(meet, &[temp_dir, "b", "a"]))
        .call(shell_call(kill, &[]).not_concurrency_safe())
        .call(shell_call(meet, &[temp_dir, "c", "d"]))
        .call(shell_call(meet, &[temp_dir, "d", "c"]))
        .run();
    let texts: Vec<&str> = ran.outcomes.values().map(success_text).collect();
    assert_eq!(texts, ["met", "met", "killed", "met", "met"]);
}

/// It may have had its effect before somebody killed all processes of toolq that aren't its host.
#[cfg(target_os = "linux")]
#[test]
fn a_write_whose_reaper_is_killed_is_in_doubt() {
    let kill = "echo paid; kill -9 $PPID; sleep 60";
    let run = |effect| {
        shell_call(kill, &[])
            .tool(|tool| tool.effect = effect)
            .run()
    };
    let written = run(Effect::Write);
    assert!(
        matches!(
            written.outcome(),
            Outcome::InDoubt {
                cause: DoubtCause::ReaperKilled,
                ..
            }
        ),
        "{:?}",
        written.outcome()
    );
    let read = run(Effect::Read);
    assert!(
        matches!(read.outcome(), Outcome::InternalError(_)),
        "{:?}",
        read.outcome()
    );
}
