//! Budgets of a run: calls, time and output.

use std::time::{Duration, Instant};

use super::marked_run::{MarkedSandbox, response_with_calls, result_ids};

/// Each gets a result that names `--max-calls`.
#[test]
fn calls_over_their_budget_do_not_run() {
    let turns =
        ["a", "b"].map(|prefix| response_with_calls(prefix, &["echo", "no_such_tool", "echo"]));
    let run = MarkedSandbox::new()
        .stdin(turns.join("\n"))
        .start(&["--max-calls", "3"]);
    let output = run.wait_for_output();
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    assert_eq!(result_ids(&output.stdout).len(), 6);
    assert_eq!(
        (
            output.count_status("ok"),
            output.count_status("over_budget")
        ),
        (3, 1)
    );
    assert!(
        output
            .stdout
            .contains("Not executed: this run's budget of 3 calls")
    );
    output.assert_log_complete();
}

#[test]
fn a_budget_that_is_not_exceeded_changes_nothing() {
    let flags = [
        "--max-calls=2",
        "--time-budget=1h",
        "--max-output-total=1MiB",
    ];
    let output = MarkedSandbox::new()
        .stdin(response_with_calls("a", &["echo"; 2]))
        .start(&flags)
        .wait_for_output();
    assert_eq!((output.code, output.count_status("ok")), (Some(0), 2));
}

/// `--time-budget` ends a run that takes too long.
#[test]
fn an_exhausted_time_budget_ends_running_calls() {
    let started_at = Instant::now();
    let turns = ["a", "b"].map(|prefix| response_with_calls(prefix, &["hang"; 4]));
    let run = MarkedSandbox::new()
        .stdin(turns.join("\n"))
        .start(&["--time-budget", "300ms"]);
    let output = run.wait_for_output();
    assert!(started_at.elapsed() < Duration::from_secs(10));
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    assert_eq!(output.count_status("over_budget"), 8);
    let results = output
        .log
        .iter()
        .filter(|record| record["type"] == "tool_result");
    assert_eq!(results.count(), 3);
    assert!(
        output
            .stdout
            .contains("this run's time budget of 300ms is used up")
    );
    assert_eq!(result_ids(&output.stdout).len(), 8);
    output.assert_log_complete();
}

/// `--max-output-total` ends a run that produces too much.
#[test]
fn a_flood_is_ended_by_the_output_budget() {
    let run = MarkedSandbox::new()
        .stdin(response_with_calls("a", &["echo", "flood", "echo", "echo"]))
        .start(&["--max-output-total", "5MiB", "-j", "2"]);
    let output = run.wait_for_output();
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    assert_eq!(output.statuses().last(), Some(&"over_budget"));
    assert!(
        output.stdout.contains("this run's output budget of 5 MiB"),
        "{}",
        output.stdout
    );
    output.assert_log_complete();
}

/// What a program writes to stderr counts, too.
#[test]
fn a_flood_of_stderr_is_ended_by_the_output_budget() {
    let run = MarkedSandbox::new()
        .stdin(response_with_calls("a", &["flood_stderr"]))
        .start(&["--max-output-total", "5MiB"]);
    let output = run.wait_for_output();
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    assert!(
        output.stdout.contains("this run's output budget of 5 MiB"),
        "{}",
        output.stdout
    );
    output.assert_log_complete();
}
