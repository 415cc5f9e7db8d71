//! What a program receives: stdin, arguments, environment, limits. Programs that can't start.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use toolq_core::types::{CallEnding, CommandLimits, LimitKind, Outcome, Segment, StdinContent};

use crate::support::engine_turn::{
    TestTurn, command_call, shell_call, success_text, text_template,
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

/// A value is passed verbatim as a single argument, regardless of the characters it contains.
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
                    command.env = [("DECLARED".to_owned(), text_template("x"))].into();
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
            command.env = [(
                "X".to_owned(),
                toolq_core::types::PartialTemplate(vec![segment]),
            )]
            .into();
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
        .command_invocation(|command| command.stdin = StdinContent::Text("a\nb".into()))
        .run();
    assert_eq!(ran.text(), "a\nb");
    let ran = shell_call("cat", &[])
        .command_invocation(|command| command.stdin = StdinContent::None)
        .run();
    assert_eq!(ran.text(), "");
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
