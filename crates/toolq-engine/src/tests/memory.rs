//! Calls that the memory is asked about: what it says decides, and nothing that writes starts without a claim.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;
use std::{fmt, thread};

use tokio::sync::mpsc;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use crate::engine::Engine;
use crate::settings::EngineSettings;
use crate::tests::scripted_runner::{
    EventRecorder, PendingAttempts, ScriptedRunner, block_on, calls, engine_settings,
    failure_outcome, paused_runtime, play_script, run_turn_with, success_outcome, tool,
};
use toolq_core::types::{
    CallClaim, CallEnding, CallHistory, CallKey, CallMemory, CallOutput, CallRef, CommitDone,
    DoubtCause, EarlierRun, Effect, EmitError, Event, EventSink, HaltCause, MemoryVerdict, Outcome,
    RecalledCall, Recollection, RestoredResult, ResultContent, Status, Tool,
};

/// A memory that says what a test tells it to, one answer a question, and notes what it is told.
#[derive(Default)]
struct ScriptedMemory {
    verdicts: Mutex<HashMap<String, VecDeque<MemoryVerdict>>>,
    /// Whether each claim is ours, in their order. All others are.
    claimed: Mutex<VecDeque<Result<bool, EmitError>>>,
    told: Mutex<Vec<String>>,
    /// Where the memory meets the test while it is asked about `b`. `None` if it is at hand.
    meeting: Option<Barrier>,
    /// Commits that take as long as the test wants. `None` if they are done at once.
    held: Option<Mutex<Vec<CommitDone>>>,
}

impl fmt::Debug for ScriptedMemory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ScriptedMemory")
    }
}

impl ScriptedMemory {
    fn says(self, id: &str, verdicts: impl IntoIterator<Item = MemoryVerdict>) -> Self {
        let verdicts = verdicts.into_iter().collect();
        self.verdicts
            .lock()
            .unwrap()
            .insert(id.to_owned(), verdicts);
        self
    }

    fn tell(&self, what: String) {
        self.told.lock().unwrap().push(what);
    }

    fn told(&self) -> Vec<String> {
        self.told.lock().unwrap().clone()
    }
}

impl CallHistory for ScriptedMemory {
    fn recall(&self, request: &RecalledCall<'_>) -> Result<Recollection, EmitError> {
        if let (Some(meeting), "b") = (&self.meeting, &*request.call.id) {
            meeting.wait();
        }
        let mut verdicts = self.verdicts.lock().unwrap();
        let next = verdicts
            .get_mut(&request.call.id)
            .and_then(VecDeque::pop_front);
        Ok(Recollection {
            verdict: next.unwrap_or_else(|| MemoryVerdict::Run(claim(&request.call.id))),
            approval: None,
            run: None,
        })
    }

    fn find_run(&self, _: &RecalledCall<'_>) -> Result<Option<EarlierRun>, EmitError> {
        Ok(None)
    }

    fn recall_read(
        &self,
        _: &RecalledCall<'_>,
        _: Option<&EarlierRun>,
    ) -> Result<Option<RestoredResult>, EmitError> {
        Ok(None)
    }

    fn resumes_reads(&self) -> bool {
        false
    }

    fn remembers_ids(&self) -> bool {
        true
    }

    fn is_at_hand(&self) -> bool {
        self.meeting.is_none()
    }
}

impl CallMemory for ScriptedMemory {
    fn history(&self) -> &dyn CallHistory {
        self
    }

    fn commit(&self, claims: Vec<(CallKey, CallClaim)>, done: CommitDone) {
        let mut claimed = self.claimed.lock().unwrap();
        let mut ours = Vec::new();
        for (_, claim) in &claims {
            self.tell(format!("claim {}", claim.name));
            match claimed.pop_front().unwrap_or(Ok(true)) {
                Ok(is_ours) => ours.push(is_ours),
                Err(error) => return done(Err(error)),
            }
        }
        if let (Some(held), false) = (&self.held, ours.is_empty()) {
            return held.lock().unwrap().push(done);
        }
        done(Ok(ours));
    }

    fn settle(
        &self,
        _: &CallRef,
        claim: &CallClaim,
        done: Option<&RestoredResult>,
    ) -> Result<(), EmitError> {
        let what = if done.is_some() { "done" } else { "not done" };
        self.tell(format!("settle {} {what}", claim.name));
        Ok(())
    }

    fn ask(&self, _: &RecalledCall<'_>) -> Result<(), EmitError> {
        Ok(())
    }
}

fn claim(name: &str) -> CallClaim {
    CallClaim {
        name: name.to_owned(),
        attempt: 1,
        generation: 1,
        again: None,
        idempotency_key: "key".to_owned(),
        settle_id: name.to_owned(),
    }
}

fn in_doubt() -> MemoryVerdict {
    MemoryVerdict::Known(doubt())
}

fn doubt() -> Box<Outcome> {
    Box::new(Outcome::InDoubt {
        cause: DoubtCause::EndNotLogged(None),
        output: CallOutput::default(),
    })
}

fn answered() -> MemoryVerdict {
    MemoryVerdict::Known(Box::new(Outcome::Restored(RestoredResult {
        status: Status::from("ok"),
        is_error: false,
        content: ResultContent::Text("from the log".to_owned()),
        cut_output: None,
        agent_usage: None,
        source: None,
    })))
}

fn writing_tool() -> Tool {
    Tool {
        effect: Effect::Write,
        ..tool("t")
    }
}

fn engine(memory: &Arc<ScriptedMemory>) -> (Engine, PendingAttempts) {
    engine_with_jobs(memory, 8)
}

fn engine_with_jobs(memory: &Arc<ScriptedMemory>, jobs: usize) -> (Engine, PendingAttempts) {
    let (send, attempts) = mpsc::unbounded_channel();
    let settings = EngineSettings {
        memory: Some(Arc::clone(memory) as Arc<dyn CallMemory>),
        ..engine_settings(&[&writing_tool()], jobs)
    };
    let engine = Engine::with_runner(settings, Arc::new(ScriptedRunner(send)));
    (engine, attempts)
}

/// Runs the call `A`.
fn run(memory: ScriptedMemory, script: &str) -> (Arc<ScriptedMemory>, EventRecorder) {
    let memory = Arc::new(memory);
    let (mut engine, mut attempts) = engine(&memory);
    let mut recorder = EventRecorder::default();
    let calls = calls("A", &writing_tool());
    let script = play_script(&mut attempts, script);
    run_turn_with(&mut engine, calls, &mut recorder, script);
    (memory, recorder)
}

#[test]
fn a_call_that_writes_starts_once_it_is_claimed() {
    let (memory, recorder) = run(ScriptedMemory::default(), "A");
    assert_eq!(memory.told(), ["claim A"]);
    assert_eq!(recorder.lines_for("finished"), ["A ok 1"]);
}

/// The memory is asked once the call has its place. What it says then counts, although the call had been let in.
#[test]
fn a_call_that_is_known_when_its_place_comes_does_not_start() {
    for (verdict, status) in [(answered(), "ok"), (in_doubt(), "in_doubt")] {
        let (memory, recorder) = run(ScriptedMemory::default().says("A", [verdict]), "");
        assert!(memory.told().is_empty());
        assert_eq!(recorder.lines_for("finished"), [format!("A {status} 0")]);
    }
}

/// Another run has claimed it first: the memory is asked again, and says what has become of it.
#[test]
fn a_call_that_another_run_claims_first_does_not_start() {
    let first = ScriptedMemory::default().says("A", [MemoryVerdict::Run(claim("A")), answered()]);
    first.claimed.lock().unwrap().push_back(Ok(false));
    let (memory, recorder) = run(first, "");
    assert_eq!(memory.told(), ["claim A"]);
    assert!(recorder.lines_for("finished")[0].starts_with("A ok"));
}

#[test]
fn a_call_that_cannot_be_claimed_does_not_start() {
    let full = ScriptedMemory::default();
    let refused = Err(EmitError("full".to_owned()));
    full.claimed.lock().unwrap().push_back(refused);
    let (_, recorder) = run(full, "");
    assert!(recorder.lines_for("finished")[0].starts_with("A log_refused"));
}

/// Another run is at it, and gives it up. Its permit is free meanwhile, so it needs one again.
#[test]
fn a_call_that_another_run_gives_up_starts_once_it_has_a_permit_again() {
    let elsewhere = [MemoryVerdict::RunsElsewhere, MemoryVerdict::RunsElsewhere];
    let memory = Arc::new(ScriptedMemory::default().says("a", elsewhere));
    let (mut engine, mut attempts) = engine_with_jobs(&memory, 2);
    let mut recorder = EventRecorder::default();
    let mut delivery = recorder.clone();
    let turn = engine.run_turn(
        0,
        calls("a b c", &writing_tool()),
        &mut recorder,
        &mut delivery,
    );
    paused_runtime().block_on(async {
        tokio::join!(turn, async {
            let (first, end) = attempts.recv().await.unwrap();
            let (second, running) = attempts.recv().await.unwrap();
            assert_eq!([first, second], ["b", "c"]);
            sleep(Duration::from_mins(1)).await;
            assert!(attempts.try_recv().is_err());
            end.send(success_outcome()).unwrap();
            let (third, end) = attempts.recv().await.unwrap();
            assert_eq!(third, "a");
            end.send(success_outcome()).unwrap();
            running.send(success_outcome()).unwrap();
        })
    });
    assert_eq!(memory.told(), ["claim b", "claim c", "claim a"]);
    assert_eq!(recorder.lines_for("delivered"), ["a", "b", "c"]);
}

/// Lets the memory answer a question about `b` just when the start of `a` has been emitted.
struct MeetingSink(EventRecorder, Arc<ScriptedMemory>);

impl EventSink for MeetingSink {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        self.0.emit(events)?;
        let is_start = |event: &Event<'_>| matches!(event, Event::Started { call, .. } if call.tool_use_id == "a");
        if let (true, Some(meeting)) = (events.iter().any(is_start), &self.1.meeting) {
            meeting.wait();
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn emit_later(&mut self, event: &Event<'_>) -> Result<(), EmitError> {
        self.0.emit_later(event)
    }
}

/// The memory may answer at any moment, also between the emission of other starts and their effect.
#[test]
fn a_call_starts_whenever_the_memory_answers() {
    let memory = Arc::new(ScriptedMemory {
        meeting: Some(Barrier::new(2)),
        ..ScriptedMemory::default()
    });
    let (mut engine, mut attempts) = engine(&memory);
    let mut delivery = EventRecorder::default();
    let mut sink = MeetingSink(delivery.clone(), Arc::clone(&memory));
    let turn = engine.run_turn(0, calls("a b", &writing_tool()), &mut sink, &mut delivery);
    block_on(async {
        let both = async { tokio::join!(turn, play_script(&mut attempts, "b a")) };
        timeout(Duration::from_secs(20), both).await.unwrap();
    });
    assert_eq!(delivery.lines_for("delivered"), ["a", "b"]);
}

/// A claim may become durable once the run was halted. Its call doesn't start any more.
#[test]
fn a_call_that_is_halted_before_its_claim_is_durable_does_not_start() {
    let memory = Arc::new(ScriptedMemory {
        held: Some(Mutex::default()),
        ..ScriptedMemory::default()
    });
    let (mut engine, mut attempts) = engine(&memory);
    let control = engine.control();
    let mut recorder = EventRecorder::default();
    let ends = recorder.clone();
    let calls = calls("A", &writing_tool());
    run_turn_with(&mut engine, calls, &mut recorder, async {
        while memory.told().is_empty() {
            yield_now().await;
        }
        control.halt(HaltCause::OutputLost);
        while ends.lines_for("finished").is_empty() {
            yield_now().await;
        }
        for done in memory.held.as_ref().unwrap().lock().unwrap().drain(..) {
            done(Ok(vec![true]));
        }
    });
    assert!(recorder.has_started("A") && attempts.try_recv().is_err());
    assert_eq!(recorder.lines_for("finished"), ["A not_executed 0"]);
}

/// What a probe finds is on record before anybody acts on it, and the memory says what follows from it.
#[test]
fn a_probe_settles_a_call_before_anything_starts() {
    let probe = || MemoryVerdict::Probe(claim("A"), doubt());
    let run_probe = |code: i32, then: MemoryVerdict, script: &str| {
        let memory = ScriptedMemory::default().says("A", [probe(), then]);
        let memory = Arc::new(memory);
        let (mut engine, mut attempts) = engine(&memory);
        let mut recorder = EventRecorder::default();
        let calls = calls("A", &writing_tool());
        run_turn_with(&mut engine, calls, &mut recorder, async {
            let (_, end) = attempts.recv().await.unwrap();
            end.send(exit_outcome(code)).unwrap();
            play_script(&mut attempts, script).await;
        });
        (memory.told(), recorder)
    };
    let (told, recorder) = run_probe(0, answered(), "");
    assert_eq!(told, ["settle A done"]);
    assert_eq!(recorder.lines_for("probed"), ["A done"]);
    assert!(recorder.lines_for("finished")[0].starts_with("A ok"));
    let (told, recorder) = run_probe(1, MemoryVerdict::Run(claim("A2")), "A");
    assert_eq!(told, ["settle A not done", "claim A2"]);
    assert_eq!(recorder.lines_for("probed"), ["A not_done"]);
    assert!(recorder.lines_for("finished")[0].starts_with("A ok"));
    let (told, recorder) = run_probe(2, in_doubt(), "");
    assert!(told.is_empty(), "{told:?}");
    assert!(recorder.lines_for("finished")[0].starts_with("A in_doubt"));
}

fn exit_outcome(code: i32) -> Outcome {
    let mut outcome = if code == 0 {
        success_outcome()
    } else {
        failure_outcome()
    };
    if let Outcome::Failed { ending, .. } = &mut outcome {
        *ending = CallEnding::ExitCode(code);
    }
    outcome
}
