//! An input or a tools.yaml that is not as it was.

use crate::stage::{Stage, callees, message, tools};

/// FAULTS 116: another input or tool in a call's place. Nothing runs, not even what is missing.
#[test]
fn another_call_in_its_place_is_a_conflict() {
    let stage = Stage::new(
        &callees(),
        &message(&[("look", 1), ("pay", 2), ("fatal", 3)]),
    );
    assert_eq!(stage.run().code, None);
    let before = stage.read("log.jsonl");
    for (calls, words) in [
        (
            [("look", 1), ("pay", 20), ("fatal", 3), ("look", 4)],
            r#"turn 0, call 1: the session log has pay {"n":2}, the input has pay {"n":20}"#,
        ),
        (
            [("look", 1), ("keep", 2), ("fatal", 3), ("look", 4)],
            r#"the session log has pay {"n":2}, the input has keep {"n":2}"#,
        ),
        (
            [("pay", 2), ("look", 1), ("fatal", 3), ("look", 4)],
            r#"turn 0, call 0: the session log has look {"n":1}, the input has pay {"n":2}"#,
        ),
    ] {
        stage.write("input.json", &message(&calls));
        let refused = stage.resume().exits(2);
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
        assert!(refused.stdout.is_empty());
    }
    assert_eq!(stage.read("log.jsonl"), before, "and nothing was written");
    assert_eq!(stage.effects().len(), 3);
}

/// FAULTS 128: fewer calls and more; an id is no part of what a call is known by.
#[test]
fn fewer_and_more_calls() {
    let stage = Stage::new(&callees(), &message(&[("look", 1), ("pay", 2)]));
    stage.run().exits(0);
    let more = message(&[("look", 1), ("pay", 2), ("pay", 3)]).replace("toolu_", "other_");
    stage.write("input.json", &more);
    let done = stage.resume().exits(0);
    assert_eq!(done.texts(), ["looked 1", "paid 2", "paid 3"]);
    assert!(done.stdout.contains("other_0"));
    assert_eq!(stage.effects(), ["look 1", "pay 2", "pay 3"]);
    stage.write("input.json", &message(&[("look", 1)]));
    let arguments = ["run", "-v", "--resume", "--log", "log.jsonl", "input.json"];
    let fewer = stage.toolq(&arguments).exits(0);
    assert_eq!(fewer.texts(), ["looked 1"]);
    assert!(
        fewer
            .stderr
            .contains("2 calls of the log are not in this input"),
        "{}",
        fewer.stderr
    );
    stage.log_is_in_order();
}

/// Turn by turn: a resumed run goes on at the first call that has no answer.
#[test]
fn lines_go_on_where_they_were_left() {
    let turns: Vec<String> = (0..6)
        .map(|turn| match turn {
            3 => message(&[("look", 30), ("fatal", 31)]),
            turn => message(&[("pay", turn)]),
        })
        .collect();
    let stage = Stage::new(&callees(), &turns.join("\n"));
    let first = stage.run();
    assert_eq!((first.code, first.stdout.lines().count()), (None, 3));
    let done = stage.resume().exits(3);
    let lines: Vec<&str> = done.stdout.lines().collect();
    assert_eq!(lines.len(), 6);
    assert_eq!(lines[..3].join("\n"), first.stdout.trim_end());
    assert!(lines[3].contains("looked 30") && lines[3].contains("In doubt"));
    let pays: Vec<String> = [0, 1, 2, 4, 5].map(|n| format!("pay {n}")).into();
    let mut effects = stage.effects();
    effects.retain(|line| line.starts_with("pay"));
    assert_eq!(effects, pays);
    stage.log_is_in_order();
}

/// FAULTS 31: what has its result keeps it; what has none runs by tools that somebody accepted.
#[test]
fn changed_tools_run_nothing_unasked() {
    let stage = Stage::new(
        &callees(),
        &message(&[("look", 1), ("fatal", 2), ("pay", 3)]),
    );
    assert_eq!(stage.run().code, None);
    stage.resume().exits(3);
    let changed = callees()
        .replace("looked", "seen")
        .replace("paid", "settled");
    stage.write("tools.yaml", &changed);
    let finished = stage.resume().exits(3);
    assert_eq!(
        [&finished.texts()[0], &finished.texts()[2]],
        ["looked 1", "paid 3"]
    );
    stage.write(
        "input.json",
        &message(&[("look", 1), ("fatal", 2), ("pay", 3), ("pay", 4)]),
    );
    let refused = stage.resume().exits(2);
    assert!(
        refused
            .stderr
            .contains("still to run (pay); changed: look, pay")
            && refused.stderr.contains("--accept-changes"),
        "{}",
        refused.stderr
    );
    assert_eq!(stage.effects().len(), 3);
    let arguments = [
        "run",
        "--resume",
        "--accept-changes",
        "--log",
        "log.jsonl",
        "input.json",
    ];
    let accepted = stage.toolq(&arguments).exits(3);
    let texts = accepted.texts();
    assert_eq!(
        [&texts[0], &texts[2], &texts[3]],
        ["looked 1", "paid 3", "settled 4"]
    );
    stage.log_is_in_order();
}

/// By the same tools.yaml, commands and probes look at other files in another folder.
#[test]
fn another_folder_runs_nothing_unasked() {
    let stage = Stage::new(&callees(), &message(&[("fatal", 1), ("pay", 2)]));
    assert_eq!(stage.run().code, None);
    std::fs::create_dir(stage.path().join("elsewhere")).unwrap();
    let resume = |more: &[&str]| {
        let arguments = [
            "run",
            "--resume",
            "--log",
            "../log.jsonl",
            "-c",
            "../tools.yaml",
        ];
        let arguments = [&arguments[..], more, &["../input.json"]].concat();
        stage.toolq_in("elsewhere", &arguments)
    };
    let refused = resume(&[]).exits(2);
    assert!(
        refused.stderr.contains("calls are still to run (pay)")
            && refused.stderr.contains("elsewhere")
            && refused.stderr.contains("hint: `cd "),
        "{}",
        refused.stderr
    );
    assert_eq!(stage.effects().len(), 1);
    resume(&["--accept-changes"]).exits(3);
    assert_eq!(stage.read("elsewhere/effects"), "pay 2\n");
    // What is there is printed anywhere.
    assert_eq!(stage.resume().exits(3).texts()[1], "paid 2");
    stage.log_is_in_order();
}

/// A tool that is gone, or takes the input no more, takes no result away.
#[test]
fn a_tool_that_is_gone_keeps_its_results() {
    let stage = Stage::new(&callees(), &message(&[("look", 1), ("fatal", 2)]));
    assert_eq!(stage.run().code, None);
    let first = stage.resume().exits(3);
    stage.write("tools.yaml", &tools(&[("other", "effect: read", "echo x")]));
    let again = stage.resume().exits(3);
    assert_eq!(again.stdout, first.stdout);
}

/// A call that had started is rejected by other tools, then taken back: its attempts are counted on, its key is the same,
/// and it runs again only if it may.
#[test]
fn a_rejection_in_between_forgets_nothing() {
    let resolve = ["log", "resolve", "toolu_0", "log.jsonl", "--not-done"];
    for (signal, before, then, code, text) in [
        ("KILL", "read", "read", 0, "done 1"),
        ("KILL", "read", "write", 3, "In doubt"),
        ("KILL", "write", "write", 0, "done 1"),
        ("INT", "read", "read", 0, "done 1"),
    ] {
        let script = format!(
            r#"echo "fatal $TOOLQ_IDEMPOTENCY_KEY" >> effects; test -e dead || {{ touch dead; kill -{signal} "$(cat pid)"; sleep 60; }}; echo "done $1""#
        );
        let fatal = |effect: &str| tools(&[("fatal", &format!("effect: {effect}"), &script)]);
        let stage = Stage::new(&fatal(before), &message(&[("fatal", 1)]));
        let arguments = ["run", "--resume", "--log", "log.jsonl", "input.json"];
        let accept = [&arguments[..], &["--accept-changes"]].concat();
        stage.run();
        let mut story = stage.story("toolu_0");
        if before == "write" {
            stage.toolq(&resolve).exits(0);
            story.push("resolve".to_owned());
        }
        stage.write("tools.yaml", &tools(&[("other", "effect: read", "echo x")]));
        for arguments in [&accept[..], &accept, &arguments] {
            let rejected = stage.toolq(arguments).exits(0);
            assert!(rejected.texts()[0].starts_with("Unknown tool"));
        }
        stage.write("tools.yaml", &fatal(then));
        let done = stage.toolq(&accept).exits(code);
        assert!(done.texts()[0].starts_with(text), "{:?}", done.texts());
        story.push("tool_result unknown_tool".to_owned());
        story.extend(match code {
            0 => vec!["tool_start 2".to_owned(), "tool_result ok".to_owned()],
            _ => vec!["tool_in_doubt in_doubt".to_owned()],
        });
        assert_eq!(stage.story("toolu_0"), story, "{signal} {before} {then}");
        stage.log_is_in_order();
        let effects = stage.effects();
        assert_eq!(effects.len(), if code == 0 { 2 } else { 1 });
        assert_eq!(effects.first(), effects.last(), "the same key");
    }
}

/// Ctrl-C: what a tool that writes came to is its result; what one that reads would have come to is wanted still.
#[test]
fn what_ended_with_its_run() {
    let script = |name: &str| {
        format!(
            r#"echo "{name} $1" >> effects; test -e ended || {{ touch ended; kill -INT "$(cat pid)"; sleep 60; }}; echo "done $1""#
        )
    };
    let (look, pay) = (script("look"), script("pay"));
    let file = tools(&[
        ("look", "effect: read", &look),
        ("pay", "effect: write", &pay),
    ]);
    for (name, then) in [("look", "done 1"), ("pay", "Interrupted while it ran")] {
        let stage = Stage::new(&file, &message(&[(name, 1), ("pay", 2)]));
        let ended = stage.run().exits(130);
        assert!(ended.texts()[0].starts_with("Interrupted while it ran"));
        assert!(ended.texts()[1].starts_with("Not executed"));
        let done = stage.resume().exits(0);
        assert!(done.texts()[0].starts_with(then), "{:?}", done.texts());
        assert_eq!(done.texts()[1], "done 2", "what was skipped runs");
        stage.log_is_in_order();
    }
}

#[test]
fn flags_that_make_no_sense_together() {
    let stage = Stage::new(&callees(), &message(&[("look", 1)]));
    for flags in [
        ["--resume", "--new"],
        ["--resume", "--no-log"],
        ["--new", "--no-log"],
        ["--accept-changes", "--new"],
    ] {
        stage
            .toolq(&["run", flags[0], flags[1], "input.json"])
            .exits(2);
    }
    assert!(stage.effects().is_empty());
}
