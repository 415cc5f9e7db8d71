//! FAULTS 133: what a run may use.

use std::time::{Duration, Instant};

use super::started::{Marked, answer, ids};

#[test]
fn calls_over_their_budget_do_not_run() {
    let turns = ["a", "b"].map(|prefix| answer(prefix, &["echo", "nonsense", "echo"]));
    let started = Marked::new()
        .stdin(turns.join("\n"))
        .start(&["--max-calls", "3"]);
    let ended = started.end();
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert_eq!(ids(&ended.stdout).len(), 6);
    assert_eq!((ended.count("ok"), ended.count("over_budget")), (3, 1));
    assert!(
        ended
            .stdout
            .contains("Not executed: the budget of this run, 3 calls")
    );
    ended.assert_log_is_whole();
}

#[test]
fn a_budget_that_suffices_changes_nothing() {
    let flags = [
        "--max-calls=2",
        "--time-budget=1h",
        "--max-output-total=1MiB",
    ];
    let ended = Marked::new()
        .stdin(answer("a", &["echo"; 2]))
        .start(&flags)
        .end();
    assert_eq!((ended.code, ended.count("ok")), (Some(0), 2));
}

#[test]
fn time_that_is_up_ends_what_runs() {
    let begun = Instant::now();
    let turns = ["a", "b"].map(|prefix| answer(prefix, &["hang"; 4]));
    let started = Marked::new()
        .stdin(turns.join("\n"))
        .start(&["--time-budget", "300ms"]);
    let ended = started.end();
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert_eq!(ended.count("over_budget"), 8);
    let results = ended
        .log
        .iter()
        .filter(|record| record["type"] == "tool_result");
    assert_eq!(results.count(), 3);
    assert!(
        ended
            .stdout
            .contains("time budget of this run, 300ms, is used up")
    );
    assert_eq!(ids(&ended.stdout).len(), 8);
    ended.assert_log_is_whole();
}

#[test]
fn a_flood_is_ended_by_its_budget() {
    let started = Marked::new()
        .stdin(answer("a", &["echo", "flood", "echo", "echo"]))
        .start(&["--max-output-total", "5MiB", "-j", "2"]);
    let ended = started.end();
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert_eq!(ended.statuses().last(), Some(&"over_budget"));
    assert!(
        ended.stdout.contains("output budget of this run, 5 MiB"),
        "{}",
        ended.stdout
    );
    ended.assert_log_is_whole();
}
