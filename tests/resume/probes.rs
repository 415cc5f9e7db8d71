//! A tool that can say whether an interrupted call did its work.

use crate::stage::{Stage, message, tools};

/// A payment in the middle of which toolq is killed, and a probe that looks into the ledger, `ledger`.
fn stage(probe: &str) -> Stage {
    let pay = r#"echo "pay $1" >> effects; test -e dead || { touch dead; kill -9 "$(cat pid)"; sleep 60; }; echo "paid $1""#;
    let probe = format!(
        "effect: write\n    probe: [sh, -c, \"echo \\\"probe $1\\\" >> effects; {probe}\", sh, \"{{n}}\"]"
    );
    let stage = Stage::new(
        &tools(&[("pay", &probe, pay)]),
        &message(&[("pay", 5), ("pay", 6)]),
    );
    assert_eq!(stage.run().code, None);
    stage
}

#[test]
fn done_is_its_result() {
    let stage = stage("echo found $1; exit 0");
    let done = stage.resume().exits(0);
    assert_eq!(done.texts(), ["found 5", "paid 6"]);
    assert_eq!(stage.effects(), ["pay 5", "probe 5", "pay 6"]);
    let story = [
        "tool_call",
        "tool_start 1",
        "probe_start",
        "probe_end done",
        "tool_result ok",
    ];
    assert_eq!(stage.story("toolu_0"), story);
    assert_eq!(stage.resume().exits(0).stdout, done.stdout);
    assert_eq!(stage.effects().len(), 3, "and nobody is asked again");
    stage.log_is_in_order();
}

#[test]
fn not_done_runs_it() {
    let stage = stage("exit 1");
    assert_eq!(stage.resume().exits(0).texts(), ["paid 5", "paid 6"]);
    assert_eq!(stage.effects(), ["pay 5", "probe 5", "pay 5", "pay 6"]);
    let story = [
        "tool_call",
        "tool_start 1",
        "probe_start",
        "probe_end not_done",
        "tool_start 2",
        "tool_result ok",
    ];
    assert_eq!(stage.story("toolu_0"), story);
    stage.log_is_in_order();
}

/// Whatever else it says is no answer.
#[test]
fn anything_else_is_a_doubt() {
    for probe in ["exit 2", "kill -9 $$"] {
        let stage = stage(probe);
        let done = stage.resume().exits(3);
        assert!(
            done.texts()[0].starts_with("In doubt"),
            "{:?}",
            done.texts()
        );
        assert_eq!(stage.effects(), ["pay 5", "probe 5", "pay 6"]);
        assert_eq!(stage.resume().exits(3).stdout, done.stdout);
        assert_eq!(
            stage.effects().len(),
            3,
            "it stays so, and nobody is asked again"
        );
        stage.log_is_in_order();
    }
}

/// What a probe found to be undone stays so where toolq was killed before the start that would have followed.
#[cfg_attr(not(debug_assertions), ignore = "a release build has no failpoints")]
#[test]
fn not_done_is_remembered() {
    let stage = stage("exit 1");
    let killed = stage.with(
        &[("TOOLQ_FAILPOINT", "append.before:4:kill")],
        &["run", "--resume", "--log", "log.jsonl", "input.json"],
    );
    assert_eq!(killed.code, None);
    let undone = stage.story("toolu_0").last().cloned();
    assert_eq!(undone.as_deref(), Some("probe_end not_done"));
    let done = stage.resume().exits(0);
    assert_eq!(done.texts()[0], "paid 5");
    let effects = stage.effects();
    let asked = effects.iter().filter(|effect| *effect == "probe 5");
    assert_eq!(asked.count(), 1, "{effects:?}");
    stage.log_is_in_order();
}

/// FAULTS 119: nobody is asked before all that the killed run had started is gone; else its work could still be done.
#[test]
fn what_was_started_is_gone_before_anybody_is_asked() {
    let pay = r#"trap "" TERM HUP INT; echo $$ > runner; test -e dead && { echo "paid $1"; exit 0; }; touch dead; kill -9 "$(cat pid)"; while :; do sleep 0.01; done"#;
    let probe = "effect: write\n    probe: [sh, -c, 'kill -0 \"$(cat runner)\" 2> alive && exit 9; exit 1', sh, \"{n}\"]";
    let stage = Stage::new(&tools(&[("pay", probe, pay)]), &message(&[("pay", 5)]));
    assert_eq!(stage.run().code, None);
    assert_eq!(stage.resume().exits(0).texts(), ["paid 5"]);
    assert_eq!(
        stage.story("toolu_0")[3..],
        ["probe_end not_done", "tool_start 2", "tool_result ok"]
    );
}

/// Its values are data, like those of a command.
#[test]
fn a_probe_is_checked_like_a_command() {
    let file = tools(&[("pay", "effect: write\n    probe: [\"{n}\", x]", "true")]);
    let stage = Stage::new(&file, &message(&[("pay", 5)]));
    let refused = stage.toolq(&["check"]).exits(1).stderr;
    assert!(
        refused.contains("a value of the input cannot name a program"),
        "{refused}"
    );
    let file = tools(&[("look", "effect: read\n    probe: [\"true\"]", "true")]);
    stage.write("tools.yaml", &file);
    let warned = stage.toolq(&["check"]).exits(0).stderr;
    assert!(warned.contains("this `probe` is never asked"), "{warned}");
}
