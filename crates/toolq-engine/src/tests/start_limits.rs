//! `max_parallel` and `rate`: when calls start that wait for their limits.

use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use tokio::time::Instant;

use crate::control::RunControl;
use crate::tests::scripted_runner::{
    EventRecorder, call, calls, engine, failure_outcome, paused_runtime, run_and_record,
    success_outcome, tool,
};
use toolq_core::types::{
    CheckedCall, HaltCause, OnFailure, RatePeriod, RetryCondition, StartLimits, StartRate, Tool,
};

const SECOND: Duration = Duration::from_secs(1);

fn limited(name: &str, max_parallel: usize, rate: Option<u32>) -> Tool {
    let rate = rate.map(|starts| StartRate {
        starts: NonZeroU32::new(starts).unwrap(),
        period: RatePeriod::Second,
    });
    Tool {
        start_limits: StartLimits {
            max_parallel: NonZeroUsize::new(max_parallel),
            rate,
        },
        ..tool(name)
    }
}

/// When calls started, and what was emitted.
struct TimedRun {
    starts: Vec<(String, Duration)>,
    recorder: EventRecorder,
    took: Duration,
}

/// Runs calls in mock time. Each attempt takes `takes`, and fails if the call's id begins with `f`.
fn run_timed(
    tools: &[&Tool],
    jobs: usize,
    calls: Vec<CheckedCall>,
    takes: Duration,
    halt_after: Option<Duration>,
) -> TimedRun {
    let (mut engine, mut attempts) = engine(tools, jobs);
    let (mut recorder, mut delivery) = (EventRecorder::default(), EventRecorder::default());
    let control: RunControl = engine.control();
    let mut starts = Vec::new();
    let took = paused_runtime().block_on(async {
        let began = Instant::now();
        let answer = async {
            while let Some((id, end)) = attempts.recv().await {
                let outcome = if id.starts_with('f') {
                    failure_outcome()
                } else {
                    success_outcome()
                };
                starts.push((id, began.elapsed()));
                tokio::spawn(async move {
                    tokio::time::sleep(takes).await;
                    let _ = end.send(outcome);
                });
            }
        };
        let halt = async {
            if let Some(after) = halt_after {
                tokio::time::sleep(after).await;
                control.halt(HaltCause::Signal(15));
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = engine.run_turn(0, calls, &mut recorder, &mut delivery) => {}
            () = answer => {}
            () = halt => {}
        }
        began.elapsed()
    });
    TimedRun {
        starts,
        recorder,
        took,
    }
}

/// A call that waits for its limits keeps its place: safe calls of other tools pass it, an unsafe one waits for it.
#[test]
fn calls_of_other_tools_pass_one_that_waits_for_its_turn() {
    let (one, other) = (limited("one", 1, None), tool("other"));
    let turn = vec![
        call(0, "a", &one),
        call(1, "b", &one),
        call(2, "c", &other),
        call(3, "D", &other),
        call(4, "e", &one),
    ];
    let recorder = run_and_record(&[&one, &other], 8, turn, "c a b D e");
    insta::assert_snapshot!(recorder.lines().join("\n"), @r"
    turn 0
    queued a Some(0)
    queued b Some(0)
    queued c Some(0)
    queued D Some(1)
    queued e Some(2)
    throttled b max_parallel of one
    batch 0 [a b c] + started a 1 + started c 1
    finished c ok 1
    finished a ok 1
    delivered a
    started b 1
    finished b ok 1
    delivered b
    delivered c
    batch 1 [D] + started D 1
    finished D ok 1
    delivered D
    batch 2 [e] + started e 1
    finished e ok 1
    delivered e
    drained
    ");
}

#[test]
fn one_job_runs_calls_in_order_whatever_limits_them() {
    let (one, other) = (limited("one", 1, Some(10)), tool("other"));
    let turn = vec![
        call(0, "a", &one),
        call(1, "b", &one),
        call(2, "c", &other),
        call(3, "d", &one),
    ];
    let run = run_timed(&[&one, &other], 1, turn, Duration::ZERO, None);
    let order: Vec<&str> = run.starts.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(order, ["a", "b", "c", "d"]);
}

/// Over ten seconds, the rate holds within 2 %, and no two starts are closer than 98 % of its interval.
#[test]
fn a_rate_holds_over_ten_seconds() {
    let tool = limited("t", 0, Some(10));
    let ids: Vec<String> = (0..101).map(|index| format!("a{index}")).collect();
    let run = run_timed(&[&tool], 8, calls(&ids.join(" "), &tool), SECOND / 2, None);
    let starts: Vec<Duration> = run.starts.iter().map(|(_, at)| *at).collect();
    assert_eq!(starts.len(), 101);
    let took = starts[100].saturating_sub(starts[0]);
    assert!((9_900..=10_200).contains(&took.as_millis()), "{took:?}");
    let gaps = starts
        .windows(2)
        .map(|pair| pair[1].saturating_sub(pair[0]));
    let closest = gaps.min();
    assert!(closest.unwrap() >= Duration::from_millis(98), "{closest:?}");
    assert_eq!(run.recorder.lines_for("throttled").len(), 100);
}

/// Retries wait for their limits as first starts do, and come before them. With one job, the retry has what a later call needs.
#[test]
fn retries_count_as_starts_and_come_first() {
    let mut tool = limited("t", 0, Some(1));
    tool.retry.max_retries = 1;
    tool.retry.conditions = vec![RetryCondition::Exit(1)];
    for jobs in [1, 8] {
        let run = run_timed(&[&tool], jobs, calls("f a b", &tool), Duration::ZERO, None);
        let seconds: Vec<(&str, u64)> = run
            .starts
            .iter()
            .map(|(id, at)| (id.as_str(), at.as_secs()))
            .collect();
        assert_eq!(seconds, [("f", 0), ("f", 1), ("a", 2), ("b", 3)], "{jobs}");
        let ends = ["f failed 2", "a ok 1", "b ok 1"];
        assert_eq!(run.recorder.lines_for("finished"), ends, "{jobs}");
    }
}

/// A retry waits for its limits within `timeout.total`; the first start of a call waits as long as it takes.
#[test]
fn a_retry_that_has_no_turn_in_time_ends_with_its_last_outcome() {
    let mut tool = limited("t", 0, Some(1));
    tool.start_limits.rate.as_mut().unwrap().period = RatePeriod::Minute;
    tool.retry.max_retries = 1;
    tool.retry.conditions = vec![RetryCondition::Exit(1)];
    tool.timeout.total = Some(5 * SECOND);
    let run = run_timed(&[&tool], 8, calls("f a", &tool), Duration::ZERO, None);
    assert_eq!(run.recorder.lines_for("finished"), ["f failed 1", "a ok 1"]);
    assert_eq!(run.starts[1].1.as_secs(), 60);
}

#[test]
fn a_halt_ends_calls_that_wait_for_their_turn() {
    let mut tool = limited("t", 0, Some(1));
    tool.start_limits.rate.as_mut().unwrap().period = RatePeriod::Hour;
    tool.retry.max_retries = 1;
    tool.retry.conditions = vec![RetryCondition::Exit(1)];
    let turn = calls("f a b C", &tool);
    let run = run_timed(&[&tool], 8, turn, Duration::ZERO, Some(3 * SECOND));
    assert_eq!(run.took, 3 * SECOND);
    let ends = [
        "f interrupted 1",
        "a not_executed 0",
        "b not_executed 0",
        "C not_executed 0",
    ];
    assert_eq!(run.recorder.lines_for("finished"), ends);
}

#[test]
fn a_failure_cancels_siblings_that_wait_for_their_turn() {
    let one = Tool {
        on_failure: OnFailure::CancelSiblings,
        ..limited("one", 1, None)
    };
    let recorder = run_and_record(&[&one], 8, calls("a b C d", &one), "!a C d");
    let ends = ["a failed 1", "b not_executed 0", "C ok 1", "d ok 1"];
    assert_eq!(recorder.lines_for("finished"), ends);
    let stop = Tool {
        on_failure: OnFailure::Stop,
        ..limited("one", 1, None)
    };
    let recorder = run_and_record(&[&stop], 8, calls("a b C", &stop), "!a");
    let ends = ["a failed 1", "b not_executed 0", "C not_executed 0"];
    assert_eq!(recorder.lines_for("finished"), ends);
}

#[test]
fn thousands_of_calls_wait_for_their_turns() {
    let tool = limited("t", 3, None);
    let ids: Vec<String> = (0..10_000).map(|index| format!("a{index}")).collect();
    let run = run_timed(&[&tool], 8, calls(&ids.join(" "), &tool), SECOND, None);
    assert_eq!(run.starts.len(), 10_000);
    assert_eq!(run.took, 3_334 * SECOND);
}
