//! A session log as the input of another run.

use crate::stage::{Stage, callees, message};

/// What started and has no result is not repeated there either.
#[test]
fn what_had_started_is_not_repeated_by_another_run() {
    let stage = Stage::new(
        &callees(),
        &message(&[("look", 1), ("fatal", 2), ("pay", 3)]),
    );
    assert_eq!(stage.run().code, None);
    let done = stage
        .toolq(&["run", "--log", "other.jsonl", "log.jsonl"])
        .exits(3);
    assert!(!done.stdout.contains("toolu_0"), "it has its result");
    assert!(done.stdout.contains("In doubt: fatal") && done.stdout.contains("paid 3"));
    assert_eq!(stage.effects().len(), 3);
    let again = stage
        .toolq(&["run", "--resume", "--log", "other.jsonl", "log.jsonl"])
        .exits(3);
    assert_eq!(again.stdout, done.stdout);
    assert_eq!(stage.effects().len(), 3);
}

/// FAULTS 114, 115, 120: what a log says of its calls decides what runs, so one that is damaged, newer or still written says
/// nothing, and nothing runs.
#[test]
fn a_log_that_can_not_be_trusted_runs_nothing() {
    let stage = Stage::new(
        &callees(),
        &message(&[("look", 1), ("fatal", 2), ("pay", 3)]),
    );
    assert_eq!(stage.run().code, None);
    let (whole, effects) = (stage.read("log.jsonl"), stage.effects());
    let refused = |why: &str| {
        for verb in ["run", "plan"] {
            let refused = stage.toolq(&[verb, "log.jsonl"]).exits(4);
            assert!(refused.stderr.contains(why), "{}", refused.stderr);
            assert!(refused.stdout.is_empty());
        }
        assert_eq!(stage.effects(), effects);
    };
    stage.write("log.jsonl", &whole.replace("tool_start", "tool_strat"));
    refused("is damaged");
    let without_start = |line: &&str| !line.contains("tool_start");
    let rest: Vec<&str> = whole.lines().filter(without_start).collect();
    stage.write("log.jsonl", &(rest.join("\n") + "\n"));
    refused("is damaged");
    stage.write("log.jsonl", &whole);
    let writer = std::fs::File::open(stage.log_path()).unwrap();
    writer.lock().unwrap();
    refused("is in use");
    drop(writer);
    let planned = stage.toolq(&["plan", "log.jsonl"]).exits(0);
    assert!(
        planned
            .stderr
            .contains("started before, without a result: toolu_1"),
        "{}",
        planned.stderr
    );
    // An end that was torn is no damage.
    stage.write("log.jsonl", whole.trim_end());
    stage.toolq(&["run", "--no-log", "log.jsonl"]).exits(3);
}

/// Somebody found out: then it is as that one says.
#[test]
fn what_was_resolved_counts() {
    for (verdict, text) in [
        (vec!["--done", "--result", "by hand"], None),
        (vec!["--not-done"], Some("done 2")),
    ] {
        let stage = Stage::new(&callees(), &message(&[("look", 1), ("fatal", 2)]));
        assert_eq!(stage.run().code, None);
        let resolve = ["log", "resolve", "toolu_1", "log.jsonl"];
        stage.toolq(&[&resolve[..], &verdict].concat()).exits(0);
        let done = stage.toolq(&["run", "--no-log", "log.jsonl"]);
        match text {
            Some(text) => assert!(done.exits(0).stdout.contains(text)),
            None => assert!(done.exits(5).stdout.is_empty()),
        }
    }
}

/// Inputs that are too large for a record stand beside the log, and are read from there, wherever toolq runs. Where one is
/// missing, nothing runs, not even what stands before it.
#[test]
fn large_inputs_stand_beside_the_log() {
    let tools = "version: 1\ntools:\n  size:\n    input_schema: {type: object, properties: {t: {type: string}}, required: [t]}\n    command: {argv: [sh, -c, 'wc -c; echo ran >> effects'], stdin: \"{t}\"}\n";
    let turn = |letter: &str| {
        let input = serde_json::json!({"t": letter.repeat(100_000)});
        serde_json::json!([{"type": "tool_use", "id": letter, "name": "size", "input": input}])
            .to_string()
    };
    let stage = Stage::new(tools, &[turn("x"), turn("y")].join("\n"));
    stage.run().exits(0);
    std::fs::create_dir(stage.path().join("a")).unwrap();
    for file in ["log.jsonl", "log.jsonl.d"] {
        std::fs::rename(stage.path().join(file), stage.path().join("a").join(file)).unwrap();
    }
    let run = ["run", "--all", "--no-log", "a/log.jsonl"];
    let plan = ["plan", "--all", "--format", "json", "a/log.jsonl"];
    let done = stage.toolq(&run).exits(0);
    assert_eq!(done.stdout.matches("100000").count(), 2, "{}", done.stdout);
    let planned = stage.toolq(&plan).exits(0).stdout;
    assert_eq!(planned.matches(r#""rejected":[]"#).count(), 2, "{planned}");
    assert_eq!(stage.effects().len(), 4);
    let text = std::fs::read_to_string(stage.path().join("a/log.jsonl")).unwrap();
    let last = crate::support::json_lines(&text)
        .into_iter()
        .rfind(|record| record["type"] == "tool_call");
    let body = last.unwrap()["content"]["$file"]
        .as_str()
        .unwrap()
        .to_owned();
    std::fs::remove_file(stage.path().join("a/log.jsonl.d").join(&body)).unwrap();
    let why = format!(
        "a/log.jsonl:7:1: the file {body} in a/log.jsonl.d that the session log names can't be read: No such file"
    );
    for arguments in [&run[..], &plan] {
        let refused = stage.toolq(arguments).exits(2);
        assert!(refused.stderr.contains(&why), "{}", refused.stderr);
        assert!(refused.stdout.is_empty(), "{}", refused.stdout);
    }
    assert_eq!(stage.effects().len(), 4);
    let piped = crate::support::Toolq::new().tools(tools).stdin(text);
    let refused = piped.run(&run[..3]).exits(2).stderr;
    assert!(
        refused.contains("name the log, `toolq run LOG`, instead of piping it"),
        "{refused}"
    );
}
