//! Commands: what a program is given, what is taken from it, and how it is ended.

#![expect(clippy::unwrap_used, reason = "tests may")]

mod scene;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use scene::{Scene, command, sh, text, text_of};
use toolq_core::types::{
    Captured, Content, Ending, Leftovers, Limit, Limits, Outcome, OutputKind, Piece, StdinDraft,
};

#[test]
fn input_comes_on_stdin_and_output_loses_one_line_break() {
    let ran = command(&["cat"])
        .input(r#"{"n":12345678901234567890123}"#)
        .run();
    assert_eq!(ran.text(), r#"{"n":12345678901234567890123}"#);
    assert_eq!(sh("printf 'a\n\n'", &[]).run().text(), "a\n");
    // FAULTS 77.
    assert_eq!(sh("printf '\n'", &[]).run().text(), "");
    assert_eq!(sh(":", &[]).run().text(), "");
}

/// FAULTS 34, 37: whatever a value holds, it is one argument and itself.
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
    let ran = sh("printf '%s\\0' \"$@\"", &values).run();
    let printed: Vec<&str> = ran.text().split_terminator('\0').collect();
    assert_eq!(printed, values);
}

/// FAULTS 41, 67: a child sees the declared variables and descriptors, and no others.
#[cfg(target_os = "linux")] // It looks into /proc.
#[test]
fn a_child_inherits_what_is_declared() {
    let names = "env | sed 's/=.*//' | grep -v '^_$\\|^PWD$\\|^SHLVL$\\|^OLDPWD$' | sort | tr '\n' ' '; ls /proc/self/fd";
    let ran = Scene::default()
        .env("HOME", "/home/someone")
        .env("LC_ALL", "C")
        .env("LD_PRELOAD", "/nowhere.so")
        .env("PASSED", "yes")
        .env("OTHER", "no")
        .call(
            sh(names, &[])
                .backing(|backing| backing.pass_env = vec!["PASSED".to_owned(), "UNSET".to_owned()])
                .command(|command| command.env = vec![("DECLARED".to_owned(), text("x"))]),
        )
        .run();
    let expected = "DECLARED HOME LC_ALL PASSED PATH TOOLQ_IDEMPOTENCY_KEY TOOLQ_STATUS_FD TOOLQ_TOOL_NAME \
                    TOOLQ_TOOL_USE_ID ";
    let (names, descriptors) = ran.text().split_once('0').unwrap();
    assert_eq!(names, expected);
    // The last one is the folder that `ls` reads.
    assert_eq!(
        descriptors.split_whitespace().collect::<Vec<_>>(),
        ["1", "2", "3", "4"]
    );
}

#[test]
fn the_environment_is_read_when_the_call_is_made() {
    let from_env = |default: Option<&str>| {
        sh("printf %s \"$X\"", &[]).command(|command| {
            let piece = Piece::Env {
                name: "SOURCE".to_owned(),
                default: default.map(str::to_owned),
            };
            command.env = vec![("X".to_owned(), toolq_core::types::Draft(vec![piece]))];
        })
    };
    let ran = Scene::default()
        .env("SOURCE", "set")
        .call(from_env(None))
        .run();
    assert_eq!(ran.text(), "set");
    assert_eq!(from_env(Some("else")).run().text(), "else");
    let missing = from_env(None).run();
    assert!(matches!(missing.outcome(), Outcome::MissingVariable(name) if name == "SOURCE"));
}

/// FAULTS 47: every way to end is its own value.
#[test]
fn exit_codes_and_signals() {
    let mut scene = Scene::default();
    for code in [0, 1, 2, 75, 126, 255] {
        scene = scene.call(sh("echo out; echo err >&2; exit $1", &[&code.to_string()]));
    }
    for signal in ["TERM", "KILL", "SEGV"] {
        scene = scene.call(sh("kill -$1 $$", &[signal]));
    }
    let ran = scene
        .call(sh("exit 1", &[]).backing(|backing| backing.success_exit = vec![0, 1]))
        .run();
    let endings: Vec<Option<Ending>> = ran.outcomes.values().map(Outcome::ending).collect();
    let exits = [0, 1, 2, 75, 126, 255].map(|code| Some(Ending::Exit(code)));
    assert_eq!(endings[..6], exits);
    assert_eq!(
        endings[6..9],
        [15, 9, 11].map(|signal| Some(Ending::Signal(signal)))
    );
    assert_eq!(text_of(&ran.outcomes[&9]), "");
    match &ran.outcomes[&1] {
        Outcome::Failed { output, stderr, .. } => {
            assert_eq!((&**output, &**stderr), ("out", "err"));
        }
        other => panic!("{other:?}"),
    }
}

/// FAULTS 33, 39, 40: what can't be started says why, by the system's own number.
#[test]
fn start_errors() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str, mode: u32| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let plain = file("plain", "echo x", 0o644);
    let no_shebang = file("no_shebang", "echo x", 0o755);
    let dir = folder.path().to_str().unwrap().to_owned();
    let long = "x".repeat(131_072);
    let errnos = [
        (command(&["no-such-program"]), rustix::io::Errno::NOENT),
        (command(&["./no-such-program"]), rustix::io::Errno::NOENT),
        (command(&[&plain]), rustix::io::Errno::ACCESS),
        (command(&[&no_shebang]), rustix::io::Errno::NOEXEC),
        (command(&[&dir]), rustix::io::Errno::ISDIR),
        (command(&["echo", &long]), rustix::io::Errno::TOOBIG),
        (command(&["echo", "a\0b"]), rustix::io::Errno::INVAL),
        (
            command(&["/bin/echo"])
                .backing(|backing| backing.cwd = PathBuf::from("/no/such/folder")),
            rustix::io::Errno::NOENT,
        ),
    ];
    for (asked, errno) in errnos {
        match asked.run().outcome() {
            Outcome::NotStarted(fault) => {
                assert_eq!(fault.errno, errno.raw_os_error(), "{fault:?}");
            }
            other => panic!("{other:?}"),
        }
    }
    let longest = command(&["echo", &long[1..]]).run();
    assert_eq!(longest.outcome().captured().unwrap().bytes, 131_072);
}

/// FAULTS 48, 50: asked to end, and answered soon after.
#[test]
fn a_timeout_ends_the_group() {
    for script in ["echo begun; sleep 1000 & wait", "echo begun; kill -STOP $$"] {
        let ran = sh(script, &[]).timeout(150, 20_000).run();
        match ran.outcome() {
            Outcome::TimedOut { output, limit, .. } => {
                assert_eq!((&**output, *limit), ("begun", Duration::from_millis(150)));
            }
            other => panic!("{other:?}"),
        }
        assert!(ran.took < Duration::from_secs(10), "{:?}", ran.took);
    }
}

/// What it said last tells why it took so long.
#[test]
fn a_timeout_keeps_what_was_said_on_stderr() {
    let ran = sh("echo begun; echo waiting for the lock >&2; sleep 1000", &[])
        .timeout(150, 50)
        .run();
    assert!(
        matches!(ran.outcome(), Outcome::TimedOut { output, stderr, .. } if output == "begun" && stderr == "waiting for the lock"),
        "{:?}",
        ran.outcome()
    );
}

/// FAULTS 49: who doesn't listen is killed.
#[test]
fn a_deaf_program_is_killed() {
    let ran = sh(
        "trap '' TERM; echo begun; while :; do sleep 1000; done",
        &[],
    )
    .timeout(150, 50)
    .run();
    assert!(matches!(ran.outcome(), Outcome::TimedOut { output, .. } if output == "begun"));
    assert!(ran.took < Duration::from_secs(10), "{:?}", ran.took);
}

/// FAULTS 51, 53: a grandchild that holds the pipes does not hold the call, and what was written before is there.
#[cfg(target_os = "linux")] // It needs the program `setsid`.
#[test]
fn a_pipe_held_by_a_grandchild_hangs_nothing() {
    for script in ["sleep 1000 & echo done", "setsid sleep 10 & echo done"] {
        let ran = sh(script, &[]).run();
        assert_eq!(ran.text(), "done");
        assert!(ran.took < Duration::from_secs(8), "{:?}", ran.took);
    }
}

/// What stays behind in the group is gone when the call is answered.
#[test]
fn the_rest_of_the_group_is_killed() {
    let ran = sh("sleep 1000 >/dev/null 2>&1 3>&1 & echo $!", &[]).run();
    wait_for_end(ran.text());
}

#[test]
fn dropping_a_turn_ends_what_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let asked = sh(
        "sleep 1000 & echo $! >$1.new; mv $1.new $1; wait",
        &[file.to_str().unwrap()],
    );
    Scene::default().call(asked).drop_at(&file);
    wait_for_end(fs::read_to_string(file).unwrap().trim());
}

/// Waits until a process has ended. It may stay a zombie of whoever adopted it.
fn wait_for_end(pid: &str) {
    let pid = rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap();
    while rustix::process::test_kill_process(pid).is_ok() && !is_zombie(pid) {
        std::thread::yield_now();
    }
}

fn is_zombie(pid: rustix::process::Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.is_ok_and(|stat| stat.contains(") Z "))
}

/// FAULTS 57, 58: nobody has to read or write anything, or keep a pipe open.
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
            sh(script, &[]).input(&large).run().text(),
            "fine",
            "{script}"
        );
    }
    assert_eq!(
        sh("wc -c", &[]).input(&large).run().text().trim(),
        large.len().to_string()
    );
    let deaf = sh("sleep 1000", &[])
        .input(&large)
        .timeout(100, 20_000)
        .run();
    assert!(matches!(deaf.outcome(), Outcome::TimedOut { .. }));
}

/// FAULTS 55, 56: floods are drained, kept in part, and counted.
#[test]
fn floods_are_cut_and_counted() {
    let script = "yes 0123456789 | head -c 3000000; yes error | head -c 300000 >&2; exit 3";
    let ran = sh(script, &[]).tool(|tool| tool.max_output = 1000).run();
    match ran.outcome() {
        Outcome::Failed {
            output,
            stderr,
            captured,
            ..
        } => {
            assert_eq!(output.len(), 1000);
            assert!(output.starts_with("0123456789\n0123"));
            assert_eq!(
                (captured.bytes, captured.cut, captured.cut_at),
                (3_000_000, 2_999_000, 500)
            );
            assert_eq!(captured.saved, None);
            assert!(stderr.len() <= 4096 && stderr.ends_with("error"));
        }
        other => panic!("{other:?}"),
    }
}

/// FAULTS 75, 132: the whole of what was cut is in a file that only its owner reads.
#[test]
fn the_whole_output_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let outputs = folder.path().join("new").join("outputs");
    let saved = |bytes: usize, max_saved: u64| {
        let script = format!("head -c {bytes} /dev/zero | tr '\\0' x");
        let asked = sh(&script, &[]).tool(|tool| {
            tool.max_output = 100;
            tool.max_saved = max_saved;
        });
        let ran = Scene::default().outputs(outputs.clone()).call(asked).run();
        ran.outcome().captured().cloned().unwrap()
    };
    for bytes in [99, 100] {
        assert_eq!(
            saved(bytes, 1 << 20),
            Captured {
                bytes: bytes as u64,
                cut_at: bytes,
                ..Captured::default()
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
        assert_eq!(captured.cut, bytes as u64 - 100);
        let path = captured.saved.unwrap();
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

/// FAULTS 74: bytes that are no text.
#[test]
fn broken_text_is_mended_and_said() {
    let ran = sh("printf 'a\\377b\\000c'", &[]).run();
    assert_eq!(ran.text(), "a\u{FFFD}b\0c");
    assert!(ran.outcome().captured().unwrap().lossy);
}

#[test]
fn json_is_compact_and_checked() {
    let json = |script: &str| {
        sh(script, &[])
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

/// The cause stands in what it wrote instead of JSON; of much, head and tail are kept, without secrets.
#[test]
fn what_is_no_json_is_kept_for_its_cause() {
    let script = "echo 'token expired' >&2; echo '<html>'; head -c 100000 /dev/zero | tr '\\0' x; echo '</html>'";
    let ran = sh(script, &[])
        .tool(|tool| tool.output = OutputKind::Json)
        .run();
    match ran.outcome() {
        Outcome::BadOutput {
            output,
            stderr,
            captured,
            ..
        } => {
            assert_eq!(stderr, "token expired");
            assert!(output.starts_with("<html>\nx") && output.ends_with("x</html>"));
            assert_eq!((captured.bytes, output.len()), (100_015, 4_096));
            // The last line break is taken off, which is no cut.
            assert_eq!(captured.cut, 100_014 - 4_096);
        }
        other => panic!("{other:?}"),
    }
}

/// FAULTS 79: a block is passed on as it is, and so must be what every reader of the results can read.
#[test]
fn content_blocks_are_checked() {
    let blocks = |json: &str| {
        sh("printf %s \"$1\"", &[json])
            .tool(|tool| tool.output = OutputKind::Content)
            .run()
    };
    let good = r#"[{"type":"text","text":"x"},{"type":"image","source":{"type":"base64"}}]"#;
    match blocks(good).outcome() {
        Outcome::Succeeded {
            content: Content::Blocks(blocks),
            ..
        } => assert_eq!(blocks.len(), 2),
        other => panic!("{other:?}"),
    }
    for bad in [
        "{}",
        "[1]",
        r#"[{"type":"tool_use"}]"#,
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

/// FAULTS 131: a secret that a tool prints goes nowhere, also where it is cut.
#[test]
fn secrets_are_masked_at_the_source() {
    let folder = tempfile::tempdir().unwrap();
    let script = "printf '{\"tip\":\"hunter-22\"}\\n' >&3; printf 'xxxxxxxxxxhunter-22xxxxxxxxxxhunter-22'; \
                  printf 'hunter-22' >&2; exit 1";
    let asked = sh(script, &[]).tool(|tool| tool.max_output = 20);
    let ran = Scene::default()
        .secret("hunter-22")
        .outputs(folder.path().to_owned())
        .call(asked)
        .run();
    match ran.outcome() {
        Outcome::Failed {
            output,
            stderr,
            captured,
            ..
        } => {
            assert_eq!((&**output, &**stderr), ("xxxxxxxxxxxx[masked]", "[masked]"));
            let whole = fs::read_to_string(captured.saved.as_ref().unwrap()).unwrap();
            assert_eq!(whole, "xxxxxxxxxx[masked]xxxxxxxxxx[masked]");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(ran.statuses, [(Some("[masked]".to_owned()), None)]);
}

#[test]
fn status_lines_are_for_people() {
    let script = "echo '{\"tip\":\"half way\",\"progress\":0.5}' >&$TOOLQ_STATUS_FD; cat >/dev/null; echo result";
    let ran = sh(script, &[]).run();
    assert_eq!(ran.text(), "result");
    assert_eq!(ran.statuses, [(Some("half way".to_owned()), Some(0.5))]);
    let flood = sh(
        "yes '{\"tip\":\"x\"}' | head -c 5000000 >&3; head -c 5000000 /dev/zero >&3; echo fine",
        &[],
    );
    assert_eq!(flood.run().text(), "fine");
}

#[test]
fn a_slow_call_is_said_to_be_slow() {
    let folder = tempfile::tempdir().unwrap();
    let said = folder.path().join("said");
    let script = "while ! [ -e $1 ]; do sleep 0.01; done";
    let slow = sh(script, &[said.to_str().unwrap()])
        .tool(|tool| tool.timeout.slow = Some(Duration::from_millis(10)));
    let ran = Scene::default().call(slow).touch_at_status(said).run();
    assert_eq!(
        ran.statuses,
        [(Some("still running after 10ms".to_owned()), None)]
    );
}

/// FAULTS 72: an unsafe call overlaps nothing, and the limit holds.
#[test]
fn nothing_overlaps_an_unsafe_call() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().to_str().unwrap();
    let safe = "mkdir $1/$2; ls $1; sleep 0.02; rmdir $1/$2";
    let alone = "mkdir $1/alone; ls $1; sleep 0.02; rmdir $1/alone";
    let mut scene = Scene::default().jobs(3);
    for position in 0..24 {
        scene = scene.call(if position % 6 == 5 {
            sh(alone, &[dir]).unsafely()
        } else {
            sh(safe, &[dir, &format!("safe-{position}")])
        });
    }
    let ran = scene.run();
    for (position, outcome) in &ran.outcomes {
        let beside: Vec<&str> = text_of(outcome).lines().collect();
        match position % 6 {
            5 => assert_eq!(beside, ["alone"]),
            _ => assert!(
                beside.len() <= 3 && !beside.contains(&"alone"),
                "{beside:?}"
            ),
        }
    }
    assert_eq!(ran.delivered, (0..24).collect::<Vec<_>>());
}

#[test]
fn a_template_on_stdin() {
    let ran = sh("cat", &[])
        .command(|command| command.stdin = StdinDraft::Text("a\nb".to_owned()))
        .run();
    assert_eq!(ran.text(), "a\nb");
    let ran = sh("cat", &[])
        .command(|command| command.stdin = StdinDraft::None)
        .run();
    assert_eq!(ran.text(), "");
}

/// FAULTS 59: nobody is left as a zombie.
#[test]
fn no_zombies() {
    let calls = (0..50).map(|_| sh(":", &[]));
    calls.fold(Scene::default(), Scene::call).run();
    // Tests beside this one have short-lived zombies of their own; none of those seen now may stay.
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut seen = zombies();
    while !seen.is_empty() {
        assert!(Instant::now() < deadline, "{seen:?}");
        let now = zombies();
        seen.retain(|pid| now.contains(pid));
    }
}

/// Our own children that have ended and were not waited for.
fn zombies() -> Vec<String> {
    let ours = format!(") Z {} ", std::process::id());
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter(|process| {
        let stat = fs::read_to_string(process.path().join("stat"));
        stat.is_ok_and(|stat| stat.contains(&ours))
    });
    pids.map(|process| process.file_name().to_string_lossy().into_owned())
        .collect()
}

/// FAULTS 69: each limit holds, and the outcome names it where the system says which it was.
#[cfg(target_os = "linux")]
#[test]
fn limits_strike_and_are_named() {
    let limited = |script: &str, change: fn(&mut Limits)| {
        let ran = sh(script, &[]).backing(|backing| change(&mut backing.limits));
        ran.run().outcome().clone()
    };
    let ending = |script: &str, change| limited(script, change).ending().unwrap();
    let spins = ending("exec sh -c 'while :; do :; done'", |limits| {
        limits.cpu = Some(Duration::from_secs(1));
    });
    assert_eq!(spins, Ending::Limit(Limit::Cpu));
    let deaf = ending("trap '' XCPU; while :; do :; done", |limits| {
        limits.cpu = Some(Duration::from_secs(1));
    });
    assert_eq!(deaf, Ending::Limit(Limit::Cpu));
    let writes = ending("f=$(mktemp); rm $f; exec yes 1<>$f 2>&1", |limits| {
        limits.file_size = Some(10_000);
    });
    assert_eq!(writes, Ending::Limit(Limit::FileSize));
    let forks = ending(
        "for i in 1 2 3 4 5 6 7 8; do sleep 100 & done; wait",
        |limits| {
            limits.processes = Some(4);
        },
    );
    assert_eq!(forks, Ending::Limit(Limit::Processes));
    let allocates = limited("x=x; while :; do x=$x$x; done", |limits| {
        limits.memory = Some(64 << 20);
    });
    assert!(allocates.is_error(), "{allocates:?}");
    let opens = limited("exec 4</dev/null 5</dev/null", |limits| {
        limits.files = Some(5);
    });
    assert!(
        matches!(&opens, Outcome::Failed { stderr, .. } if stderr.contains("open files")),
        "{opens:?}"
    );
    let told = limited("ulimit -n; ulimit -c; ulimit -f", |limits| {
        limits.files = Some(50);
        limits.file_size = Some(1 << 20);
    });
    assert!(text_of(&told).starts_with("50\n0\n"), "{told:?}");
}

/// FAULTS 53: what is left running is ended and counted, or let go where the tool says so.
#[cfg(target_os = "linux")]
#[test]
fn leftovers_are_ended_and_counted_or_let_go() {
    let script = "for i in 1 2; do setsid sleep 1000 >/dev/null 2>&1 3>&1 & echo $!; done";
    let ran = sh(script, &[]).run();
    assert_eq!(ran.outcome().captured().unwrap().leftovers, 2);
    ran.text().lines().for_each(wait_for_end);
    let none = sh("sleep 0.01 & wait", &[]).run();
    assert_eq!(none.outcome().captured().unwrap().leftovers, 0);
    let asked = sh(script, &[]).backing(|backing| backing.leftovers = Leftovers::Allow);
    let ran = asked.run();
    assert_eq!(ran.outcome().captured().unwrap().leftovers, 0);
    for pid in ran.text().lines() {
        let pid = rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
}

/// FAULTS 66: a keeper that is killed while it waits for a call takes none with it: the next call gets another.
#[cfg(target_os = "linux")]
#[test]
fn a_keeper_that_is_killed_while_it_waits_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    // Each waits for the other, so that there are two keepers.
    let meet = r#"touch "$1/$2"; while [ ! -e "$1/$3" ]; do sleep 0.01; done; echo met"#;
    let kill = r"root=$(sed -n 's/^PPid:\s*//p' /proc/$PPID/status)
        for keeper in $(cat /proc/$root/task/$root/children); do
            [ $keeper = $PPID ] && continue
            kill -9 $keeper && echo killed
            while [ -e /proc/$keeper ]; do sleep 0.01; done
        done";
    let ran = Scene::default()
        .call(sh(meet, &[folder, "a", "b"]))
        .call(sh(meet, &[folder, "b", "a"]))
        .call(sh(kill, &[]).unsafely())
        .call(sh(meet, &[folder, "c", "d"]))
        .call(sh(meet, &[folder, "d", "c"]))
        .run();
    let texts: Vec<&str> = ran.outcomes.values().map(text_of).collect();
    assert_eq!(texts, ["met", "met", "killed", "met", "met"]);
}
