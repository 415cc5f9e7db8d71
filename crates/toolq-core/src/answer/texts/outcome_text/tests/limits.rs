//! Programs that exceed limits or leave processes running.

use super::*;

/// A tool with limits, and with `leftovers: report`.
fn limited_tool() -> Tool {
    let command = CommandBacking {
        program: "search".to_owned(),
        arguments: Vec::new(),
        dashes: Vec::new(),
        stdin: StdinSource::None,
        env: Vec::new(),
        pass_env: Vec::new(),
        cwd: "/".into(),
        success_exit: vec![0],
        stderr: StderrUse::default(),
        leftovers: Leftovers::Report,
        limits: CommandLimits {
            cpu: Some(Duration::from_secs(10)),
            memory: Some(1 << 30),
            files: Some(64),
            processes: Some(32),
            file_size: Some(100 << 20),
        },
        sandbox: None,
        wrapper: None,
    };
    Tool {
        backing: Some(Backing::Command(command)),
        ..read_tool()
    }
}

/// A program that exceeds its CPU time, file size, memory or open files is told which limit it was, if the system says
/// so.
#[test]
fn limits_are_named() {
    let ends = [
        failed(CallEnding::LimitExceeded(LimitKind::Cpu), "half", ""),
        failed(CallEnding::LimitExceeded(LimitKind::Processes), "", ""),
        failed(CallEnding::ExitCode(1), "", "sort: Cannot allocate memory"),
        failed(CallEnding::ExitCode(128 + libc::SIGXFSZ), "", ""),
        failed(CallEnding::ExitCode(1), "", "cat: x: Too many open files"),
    ];
    let texts = ends.map(|outcome| answer_text(Some(&limited_tool()), &outcome));
    insta::assert_snapshot!(texts.join("\n---\n"), @"
        Killed because it exceeded a limit: limits.cpu is 10s.
        half
        Hint: it used up its CPU time. Ask for less at a time.
        ---
        Killed because it exceeded a limit: limits.processes is 32.
        Hint: it started too many processes at once. Ask for less at a time.
        ---
        Exit code 1.
        sort: Cannot allocate memory
        Hint: limits.memory is 1 GiB, and it isn't allowed to use more memory. Ask for less at a time.
        ---
        Exit code 153.
        Hint: limits.file_size is 100 MiB, and it isn't allowed to write larger files. Ask for less at a time.
        ---
        Exit code 1.
        cat: x: Too many open files
        Hint: limits.files is 64, and it isn't allowed to open more files at once. Ask for less at a time.
        ");
    let unlimited = failed(CallEnding::ExitCode(1), "", "sort: Cannot allocate memory");
    assert!(!answer_text(Some(&read_tool()), &unlimited).contains("limits"));
}

/// Processes that a program leaves behind are killed. `leftovers: report` tells the model how many.
#[test]
fn leftovers_are_reported_where_declared() {
    let ran = |text: &str, leftovers| Outcome::Succeeded {
        content: ResultContent::Text(text.to_owned()),
        captured: CaptureStats {
            killed_leftovers: leftovers,
            ..CaptureStats::default()
        },
        ending: CallEnding::ExitCode(0),
        for_clients: None,
    };
    let text = |tool: &Tool, outcome| answer_text(Some(tool), &outcome);
    let reporting_tool = limited_tool();
    assert_eq!(text(&reporting_tool, ran("done", 0)), "done");
    assert_eq!(
        text(&reporting_tool, ran("done", 1)),
        "done\n[killed 1 process that it left running]"
    );
    assert_eq!(
        text(&reporting_tool, ran("", 2)),
        "(no output)\n[killed 2 processes that it left running]"
    );
    assert_eq!(text(&read_tool(), ran("done", 2)), "done");
    for tool in [&reporting_tool, &read_tool()] {
        let mut cut_off = ran("line 1\n", 1);
        cut_off.captured_mut().unwrap().was_printing = true;
        assert_eq!(
            text(tool, cut_off),
            "line 1\n[cut off here: a process that it left running was still printing, and was killed]"
        );
    }
    let json = Tool {
        output: OutputKind::Json,
        ..reporting_tool
    };
    insta::assert_snapshot!(text(&json, ran("[1]", 1)), @r#"
        {"type":"text","text":"[1]"}
        {"type":"text","text":"[killed 1 process that it left running]"}
        "#);
}
