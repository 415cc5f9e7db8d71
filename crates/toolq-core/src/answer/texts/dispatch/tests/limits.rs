//! What limits ended, and what was left running.

use super::*;

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
