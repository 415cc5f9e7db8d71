//! A run that is ended, stopped or used up, under a clock that is moved by hand.

use std::time::Duration;

use proptest::prelude::*;
use rustix::io::Errno;
use tokio::runtime::{self, Runtime};
use tokio::time::{Instant, sleep};

use crate::control::Control;
use crate::engine::Engine;
use crate::run_budget::Budgets;
use crate::tests::remote::{Attempts, Witness, act, budgeted, calls, engine, tool};
use toolq_core::types::{Effect, Halt, OnFailure, Outcome, RetryOn, SpawnFault, Tool};

const SECOND: Duration = Duration::from_secs(1);
const INT: Halt = Halt::Signal(2);

/// A runtime whose clock moves only when nothing else does.
fn clock() -> Runtime {
    let mut builder = runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().unwrap()
}

/// Runs one turn beside `meanwhile`, and says how long it took.
fn served<'a, F: Future>(
    runtime: &Runtime,
    (engine, attempts): &'a mut (Engine, Attempts),
    ids: &str,
    tool: &Tool,
    witness: &mut Witness,
    meanwhile: impl FnOnce(Control, &'a mut Attempts) -> F,
) -> Duration {
    let mut delivery = witness.clone();
    let control = engine.control();
    runtime.block_on(async {
        let begun = Instant::now();
        tokio::join!(
            engine.turn(0, calls(ids, tool), witness, &mut delivery),
            meanwhile(control, attempts)
        );
        begun.elapsed()
    })
}

/// The calls that were ended while they ran, in whatever order.
fn interrupted(witness: &Witness) -> Vec<String> {
    let finished = witness.of("finished");
    let ended = finished
        .iter()
        .filter_map(|end| end.strip_suffix(" interrupted 1"));
    let mut ended: Vec<String> = ended.map(str::to_owned).collect();
    ended.sort();
    ended
}

/// FAULTS 60: nothing new starts, what runs is ended, everything is answered in order, in later turns too.
#[test]
fn a_halt_answers_every_call_of_every_turn() {
    let tool = tool("t");
    let (mut engine, mut witness) = (engine(&[&tool], 2), Witness::default());
    served(
        &clock(),
        &mut engine,
        "a b c D e",
        &tool,
        &mut witness,
        async |control, attempts| {
            let _running = [attempts.recv().await, attempts.recv().await];
            control.halt(INT);
            control.halt(Halt::OutputLost);
        },
    );
    let waiting = ["c not_executed 0", "D not_executed 0", "e not_executed 0"];
    assert_eq!(witness.of("finished")[..3], waiting);
    assert_eq!(interrupted(&witness), ["a", "b"]);
    assert_eq!(witness.of("delivered"), ["a", "b", "c", "D", "e"]);
    assert_eq!(engine.0.control().halted(), Some(INT));
    let mut later = Witness::default();
    served(
        &clock(),
        &mut engine,
        "a B",
        &tool,
        &mut later,
        async |_, _| (),
    );
    assert_eq!(later.of("queued"), ["a None", "B None"]);
    assert_eq!(
        later.of("finished"),
        ["a not_executed 0", "B not_executed 0"]
    );
}

/// What doesn't heed a halt is dropped by a second one.
#[test]
fn a_second_halt_waits_for_nobody() {
    let tool = tool("deaf");
    let (mut engine, mut witness) = (engine(&[&tool], 8), Witness::default());
    let passed = served(
        &clock(),
        &mut engine,
        "a b",
        &tool,
        &mut witness,
        async |control, attempts| {
            let _running = [attempts.recv().await, attempts.recv().await];
            control.halt_now();
            control.halt(INT);
            sleep(60 * SECOND).await;
            control.halt_now();
        },
    );
    assert!(passed >= 60 * SECOND && passed < 61 * SECOND);
    assert_eq!(interrupted(&witness), ["a", "b"]);
}

/// A call that waits for its next attempt doesn't get it, and stops nobody: it is not at fault.
#[test]
fn a_halt_ends_waits_between_attempts() {
    let mut tool = tool("t");
    tool.retry.times = 9;
    tool.retry.on = vec![RetryOn::Exit(1)];
    tool.retry.backoff = 1000 * SECOND;
    tool.retry.max_backoff = 1000 * SECOND;
    tool.on_failure = OnFailure::CancelSiblings;
    let (mut engine, mut witness) = (engine(&[&tool], 8), Witness::default());
    let passed = served(
        &clock(),
        &mut engine,
        "a b",
        &tool,
        &mut witness,
        async |control, attempts| {
            act(attempts, "!a").await;
            sleep(SECOND).await;
            control.halt(INT);
        },
    );
    assert_eq!(passed, SECOND);
    assert_eq!(interrupted(&witness), ["a", "b"]);
}

/// What writes waits for another attempt only where nothing was done: nothing is left to be interrupted.
#[test]
fn a_halt_while_a_write_waits_leaves_it_undone() {
    let mut tool = tool("t");
    tool.effect = Effect::Write;
    tool.retry.times = 1;
    tool.retry.on = vec![RetryOn::RateLimited];
    tool.retry.backoff = 1000 * SECOND;
    tool.retry.max_backoff = 1000 * SECOND;
    let (mut engine, mut witness) = (engine(&[&tool], 8), Witness::default());
    let busy = Outcome::NotStarted(SpawnFault {
        program: "t".to_owned(),
        folder: None,
        errno: Errno::AGAIN.raw_os_error(),
    });
    served(
        &clock(),
        &mut engine,
        "A",
        &tool,
        &mut witness,
        async |control, attempts| {
            let (_, end) = attempts.recv().await.unwrap();
            end.send(busy).unwrap();
            sleep(SECOND).await;
            control.halt(INT);
        },
    );
    assert_eq!(witness.of("finished"), ["A not_executed 1"]);
}

/// FAULTS 133: the time of a run is over in the middle of a call; pauses don't count.
#[test]
fn a_time_budget_ends_what_runs() {
    let (clock, tool) = (clock(), tool("t"));
    let budgets = Budgets {
        time: Some(10 * SECOND),
        ..Budgets::default()
    };
    let (mut engine, mut first) = (budgeted(&[&tool], 8, budgets), Witness::default());
    served(
        &clock,
        &mut engine,
        "a",
        &tool,
        &mut first,
        async |_, attempts| {
            sleep(4 * SECOND).await;
            act(attempts, "a").await;
        },
    );
    assert_eq!(first.of("finished"), ["a ok 1"]);
    let mut second = Witness::default();
    let passed = served(
        &clock,
        &mut engine,
        "a b C",
        &tool,
        &mut second,
        async |control, attempts| {
            act(attempts, "a").await;
            control.pause();
            sleep(3600 * SECOND).await;
            control.resume();
        },
    );
    let ends = ["a ok 1", "C over_budget 0", "b over_budget 1"];
    assert_eq!(second.of("finished"), ends);
    assert_eq!(passed.as_secs(), 3606);
}

/// In call order, attempts of one call counted once, calls that don't run not at all.
#[test]
fn a_budget_of_calls_counts_what_starts() {
    let mut tool = tool("t");
    tool.retry.times = 1;
    tool.retry.on = vec![RetryOn::Exit(1)];
    tool.effect = Effect::Idempotent;
    let budgets = Budgets {
        calls: Some(2),
        ..Budgets::default()
    };
    let (mut engine, mut witness) = (budgeted(&[&tool], 8, budgets), Witness::default());
    served(
        &clock(),
        &mut engine,
        "a B c D",
        &tool,
        &mut witness,
        async |_, attempts| {
            act(attempts, "!a a B").await;
        },
    );
    let ends = ["a ok 2", "B ok 1", "c over_budget 0", "D over_budget 0"];
    assert_eq!(witness.of("finished"), ends);
    assert_eq!(engine.0.control().halted(), None);
}

proptest! {
    /// Whatever was started and over when the run is halted: each call is answered once, in order, and none starts after.
    #[test]
    fn a_halt_at_any_moment(
        turn in prop::collection::vec(any::<bool>(), 1..9),
        jobs in 1_usize..4,
        over in 0_usize..9,
        now in any::<bool>(),
    ) {
        let tool = tool(if now { "deaf" } else { "t" });
        let letters = turn.iter().zip(b'a'..).map(|(safe, letter)| {
            let letter = char::from(letter);
            if *safe { letter } else { letter.to_ascii_uppercase() }
        });
        let ids: Vec<String> = letters.map(String::from).collect();
        let (mut engine, mut witness) = (engine(&[&tool], jobs), Witness::default());
        let over = over.min(ids.len() - 1);
        served(&clock(), &mut engine, &ids.join(" "), &tool, &mut witness, async |control, attempts| {
            act(attempts, &ids[..over].join(" ")).await;
            control.halt(INT);
            if now {
                control.halt_now();
            }
        });
        prop_assert_eq!(witness.of("delivered"), ids.clone());
        let finished = witness.of("finished");
        prop_assert_eq!(finished.len(), ids.len());
        let ok = finished.iter().filter(|end| end.contains(" ok ")).count();
        prop_assert!(ok <= over);
        prop_assert!(witness.lines().ends_with(&["drained".to_owned()]));
    }
}
