//! Runs that are halted, paused or over budget, under a simulated clock.

use std::time::Duration;

use proptest::prelude::*;
use rustix::io::Errno;
use tokio::runtime::Runtime;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};

use crate::control::RunControl;
use crate::engine::Engine;
use crate::run_budget::BudgetLimits;
use crate::tests::scripted_runner::{
    EventRecorder, PendingAttempts, calls, engine, engine_with_budgets, paused_runtime,
    play_script, tool,
};
use toolq_core::types::{Effect, HaltCause, OnFailure, Outcome, RetryCondition, SpawnError, Tool};

const SECOND: Duration = Duration::from_secs(1);
const SIGINT_HALT: HaltCause = HaltCause::Signal(2);

/// Runs one turn concurrently with `meanwhile`, and returns how long it took.
fn run_turn_while<'a, F: Future>(
    runtime: &Runtime,
    (engine, attempts): &'a mut (Engine, PendingAttempts),
    ids: &str,
    tool: &Tool,
    recorder: &mut EventRecorder,
    meanwhile: impl FnOnce(RunControl, &'a mut PendingAttempts) -> F,
) -> Duration {
    let mut delivery = recorder.clone();
    let control = engine.control();
    runtime.block_on(async {
        let started_at = Instant::now();
        tokio::join!(
            engine.run_turn(0, calls(ids, tool), recorder, &mut delivery),
            meanwhile(control, attempts)
        );
        started_at.elapsed()
    })
}

/// Returns the calls that were interrupted while they ran, sorted by id.
fn interrupted_ids(recorder: &EventRecorder) -> Vec<String> {
    let finished = recorder.lines_for("finished");
    let interrupted = finished
        .iter()
        .filter_map(|line| line.strip_suffix(" interrupted 1"));
    let mut interrupted: Vec<String> = interrupted.map(str::to_owned).collect();
    interrupted.sort();
    interrupted
}

/// Nothing new starts, running calls are interrupted, and all calls are answered in order, in later turns too.
#[test]
fn a_halt_answers_every_call_of_every_turn() {
    let tool = tool("t");
    let (mut engine, mut recorder) = (engine(&[&tool], 2), EventRecorder::default());
    run_turn_while(
        &paused_runtime(),
        &mut engine,
        "a b c D e",
        &tool,
        &mut recorder,
        async |control, attempts| {
            let _running = [attempts.recv().await, attempts.recv().await];
            control.halt(SIGINT_HALT);
            control.halt(HaltCause::OutputLost);
        },
    );
    let waiting = ["c not_executed 0", "D not_executed 0", "e not_executed 0"];
    assert_eq!(recorder.lines_for("finished")[..3], waiting);
    assert_eq!(interrupted_ids(&recorder), ["a", "b"]);
    assert_eq!(recorder.lines_for("delivered"), ["a", "b", "c", "D", "e"]);
    assert_eq!(engine.0.control().halt_cause(), Some(SIGINT_HALT));
    let mut later = EventRecorder::default();
    run_turn_while(
        &paused_runtime(),
        &mut engine,
        "a B",
        &tool,
        &mut later,
        async |_, _| (),
    );
    assert_eq!(later.lines_for("queued"), ["a None", "B None"]);
    assert_eq!(
        later.lines_for("finished"),
        ["a not_executed 0", "B not_executed 0"]
    );
}

/// An attempt that ignores its cancellation is dropped by a kill. A kill without a halt has no effect.
#[test]
fn a_kill_drops_attempts_that_ignore_a_halt() {
    let tool = tool("ignores_cancel");
    let (mut engine, mut recorder) = (engine(&[&tool], 8), EventRecorder::default());
    let elapsed = run_turn_while(
        &paused_runtime(),
        &mut engine,
        "a b",
        &tool,
        &mut recorder,
        async |control, attempts| {
            let _running = [attempts.recv().await, attempts.recv().await];
            control.kill();
            control.halt(SIGINT_HALT);
            sleep(60 * SECOND).await;
            control.kill();
        },
    );
    assert!(elapsed >= 60 * SECOND && elapsed < 61 * SECOND);
    assert_eq!(interrupted_ids(&recorder), ["a", "b"]);
}

/// A call in its backoff gets no further attempt. It doesn't cancel its siblings either, since it isn't at fault.
#[test]
fn a_halt_ends_waits_between_attempts() {
    let mut tool = tool("t");
    tool.retry.max_retries = 9;
    tool.retry.conditions = vec![RetryCondition::Exit(1)];
    tool.retry.initial_backoff = 1000 * SECOND;
    tool.retry.max_backoff = 1000 * SECOND;
    tool.on_failure = OnFailure::CancelSiblings;
    let (mut engine, mut recorder) = (engine(&[&tool], 8), EventRecorder::default());
    let elapsed = run_turn_while(
        &paused_runtime(),
        &mut engine,
        "a b",
        &tool,
        &mut recorder,
        async |control, attempts| {
            play_script(attempts, "!a").await;
            sleep(SECOND).await;
            control.halt(SIGINT_HALT);
        },
    );
    assert_eq!(elapsed, SECOND);
    assert_eq!(interrupted_ids(&recorder), ["a", "b"]);
}

/// A halt may come just when a backoff has elapsed. Whatever has started by then is canceled, and nothing starts after it.
#[test]
fn a_halt_at_the_end_of_a_backoff_leaves_no_attempt_running() {
    let mut tool = tool("t");
    tool.retry.max_retries = 1;
    tool.retry.conditions = vec![RetryCondition::Exit(1)];
    tool.retry.max_backoff = Duration::ZERO;
    for polls_before in 0..10 {
        let (mut engine, mut recorder) = (engine(&[&tool], 8), EventRecorder::default());
        let ends = recorder.clone();
        run_turn_while(
            &paused_runtime(),
            &mut engine,
            "a",
            &tool,
            &mut recorder,
            async |control, attempts| {
                play_script(attempts, "!a").await;
                for _ in 0..polls_before {
                    yield_now().await;
                }
                control.halt(SIGINT_HALT);
                sleep(SECOND).await;
                assert_eq!(ends.lines_for("finished").len(), 1, "{polls_before}");
                control.kill();
            },
        );
        assert_eq!(recorder.lines_for("delivered"), ["a"]);
    }
}

/// A write is retried only if nothing was done. So a write that is halted during its backoff counts as not executed.
#[test]
fn a_halt_while_a_write_waits_leaves_it_undone() {
    let mut tool = tool("t");
    tool.effect = Effect::Write;
    tool.retry.max_retries = 1;
    tool.retry.conditions = vec![RetryCondition::RateLimited];
    tool.retry.initial_backoff = 1000 * SECOND;
    tool.retry.max_backoff = 1000 * SECOND;
    let (mut engine, mut recorder) = (engine(&[&tool], 8), EventRecorder::default());
    let busy = Outcome::NotStarted(SpawnError {
        program: "t".to_owned(),
        directory: None,
        confinement: None,
        interpreter: None,
        errno: Errno::AGAIN.raw_os_error(),
    });
    run_turn_while(
        &paused_runtime(),
        &mut engine,
        "A",
        &tool,
        &mut recorder,
        async |control, attempts| {
            let (_, end) = attempts.recv().await.unwrap();
            end.send(busy).unwrap();
            sleep(SECOND).await;
            control.halt(SIGINT_HALT);
        },
    );
    assert_eq!(recorder.lines_for("finished"), ["A not_executed 1"]);
}

/// A time budget can run out in the middle of a call. Pauses don't count.
#[test]
fn an_exhausted_time_budget_ends_running_calls() {
    let (runtime, tool) = (paused_runtime(), tool("t"));
    let budgets = BudgetLimits {
        time: Some(10 * SECOND),
        ..BudgetLimits::default()
    };
    let (mut engine, mut first) = (
        engine_with_budgets(&[&tool], 8, budgets),
        EventRecorder::default(),
    );
    run_turn_while(
        &runtime,
        &mut engine,
        "a",
        &tool,
        &mut first,
        async |_, attempts| {
            sleep(4 * SECOND).await;
            play_script(attempts, "a").await;
        },
    );
    assert_eq!(first.lines_for("finished"), ["a ok 1"]);
    let mut second = EventRecorder::default();
    let elapsed = run_turn_while(
        &runtime,
        &mut engine,
        "a b C",
        &tool,
        &mut second,
        async |control, attempts| {
            play_script(attempts, "a").await;
            control.pause();
            sleep(3600 * SECOND).await;
            control.resume();
        },
    );
    let ends = ["a ok 1", "C over_budget 0", "b over_budget 1"];
    assert_eq!(second.lines_for("finished"), ends);
    assert_eq!(elapsed.as_secs(), 3606);
}

/// Calls are counted in call order: once regardless of retries, and only if they run.
#[test]
fn a_budget_of_calls_counts_started_calls() {
    let mut tool = tool("t");
    tool.retry.max_retries = 1;
    tool.retry.conditions = vec![RetryCondition::Exit(1)];
    tool.effect = Effect::Idempotent;
    let budgets = BudgetLimits {
        calls: Some(2),
        ..BudgetLimits::default()
    };
    let (mut engine, mut recorder) = (
        engine_with_budgets(&[&tool], 8, budgets),
        EventRecorder::default(),
    );
    run_turn_while(
        &paused_runtime(),
        &mut engine,
        "a B c D",
        &tool,
        &mut recorder,
        async |_, attempts| {
            play_script(attempts, "!a a B").await;
        },
    );
    let ends = ["a ok 2", "B ok 1", "c over_budget 0", "D over_budget 0"];
    assert_eq!(recorder.lines_for("finished"), ends);
    assert_eq!(engine.0.control().halt_cause(), None);
}

proptest! {
    /// However many calls have started and finished when the run is halted, each call is answered once, in order, and
    /// no call starts afterwards.
    #[test]
    fn a_halt_at_any_moment_answers_each_call_once(
        turn in prop::collection::vec(any::<bool>(), 1..9),
        jobs in 1_usize..4,
        finished_calls in 0_usize..9,
        kill in any::<bool>(),
    ) {
        let tool = tool(if kill { "ignores_cancel" } else { "t" });
        let letters = turn.iter().zip(b'a'..).map(|(safe, letter)| {
            let letter = char::from(letter);
            if *safe { letter } else { letter.to_ascii_uppercase() }
        });
        let ids: Vec<String> = letters.map(String::from).collect();
        let (mut engine, mut recorder) = (engine(&[&tool], jobs), EventRecorder::default());
        let finished_calls = finished_calls.min(ids.len() - 1);
        run_turn_while(&paused_runtime(), &mut engine, &ids.join(" "), &tool, &mut recorder, async |control, attempts| {
            play_script(attempts, &ids[..finished_calls].join(" ")).await;
            control.halt(SIGINT_HALT);
            if kill {
                control.kill();
            }
        });
        prop_assert_eq!(recorder.lines_for("delivered"), ids.clone());
        let finished = recorder.lines_for("finished");
        prop_assert_eq!(finished.len(), ids.len());
        let ok = finished.iter().filter(|end| end.contains(" ok ")).count();
        prop_assert!(ok <= finished_calls);
        prop_assert!(recorder.lines().ends_with(&["drained".to_owned()]));
    }
}
