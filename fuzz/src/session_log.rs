//! The session log: no bytes make its readers panic, and a call that a log shows as done isn't run again.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redact::Mask;
use tempfile::TempDir;
use toolq_core::os::Clock;
use toolq_core::types::{
    CallRef, CheckedCall, Effect, Event, EventSink as _, ResultContent, ResumeState, Tool,
    TurnOrigin, Verdict,
};
use toolq_log::{
    BeginMode, PreparedLog, RecordReader, SequenceChecker, SessionHeader, SessionLog, SyncPolicy,
    TaskHistory, TaskKey,
};
use toolq_testing::{accepted_call, emit_finished, sample_tool, success_outcome};

use crate::choices::Choices;

mod logged_facts;
mod record_script;
mod sealed_lines;

use logged_facts::LoggedFacts;

const EFFECTS: [Effect; 3] = [Effect::Read, Effect::Idempotent, Effect::Write];
/// Calls of the only turn.
const CALLS: usize = 3;
/// Maximum number of sessions in a log.
const MAX_SESSIONS: usize = 3;

/// Reads a log that the first byte selects: one that is written as the engine does and then damaged, records in any
/// order, or the bytes themselves as lines, with valid seals.
pub fn session_log(data: &[u8]) {
    let mut choices = Choices::new(data);
    let dir = tempfile::tempdir().unwrap();
    let lines = match choices.byte() {
        0 => return check_scripted_log(&dir, &mut choices),
        1 => record_script::write_records(&mut choices),
        _ => data.to_vec(),
    };
    let path = dir.path().join("log.jsonl");
    fs::write(&path, sealed_lines::seal(&lines)).unwrap();
    check_any_log(&path);
}

/// Reads a log in every way. If its records are in a valid order, resuming repeats nothing that it shows as done.
fn check_any_log(path: &Path) {
    let bytes = fs::read(path).unwrap();
    let mut checker = SequenceChecker::default();
    let mut is_valid = true;
    for record in RecordReader::open(path).unwrap() {
        match record {
            Ok(record) => is_valid &= checker.check_record(&record).is_ok(),
            Err(corruption) => is_valid &= corruption.is_torn_end(),
        }
    }
    for mode in [BeginMode::NewTask, BeginMode::ForceNewTask] {
        let _ = PreparedLog::open(
            path,
            mode,
            TaskKey {
                input_sha256: Some("00"),
                plan: Some("00"),
                keeps_results: true,
            },
        );
    }
    if let Ok(log) = PreparedLog::open(path, BeginMode::Resume, TaskKey::default()) {
        if is_valid {
            LoggedFacts::read(&bytes).check(log.history());
        }
        assert_eq!(fs::read(path).unwrap(), bytes, "opening a log changed it");
    }
}

/// What happened to a call, and how long the log was afterwards.
struct ScriptedEvent {
    log_bytes: u64,
    kind: ScriptedEventKind,
}

#[derive(Clone, Copy)]
enum ScriptedEventKind {
    TaskBegan,
    Started(usize),
    Finished(usize),
}

/// What the log should show of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ExpectedState {
    NotStarted,
    Started,
    Done,
}

/// A log that is written like the engine does, by choices.
struct LogScript {
    path: PathBuf,
    calls: Vec<CheckedCall>,
    events: Vec<ScriptedEvent>,
}

fn check_scripted_log(dir: &TempDir, choices: &mut Choices<'_>) {
    let calls = (0..CALLS).map(|position| {
        let effect = *choices.pick(&EFFECTS);
        let tool = Tool {
            effect,
            ..sample_tool(effect.name())
        };
        accepted_call(position, tool, effect == Effect::Read, "{}")
    });
    let mut script = LogScript {
        path: dir.path().join("log.jsonl"),
        calls: calls.collect(),
        events: Vec::new(),
    };
    let sessions = 1 + choices.below(MAX_SESSIONS);
    for _ in 0..sessions {
        script.run_session(choices);
    }
    script.check_damaged(choices);
}

impl LogScript {
    fn run_session(&mut self, choices: &mut Choices<'_>) {
        let mode = if choices.byte().is_multiple_of(4) {
            BeginMode::ForceNewTask
        } else {
            BeginMode::Resume
        };
        let opened = PreparedLog::open(&self.path, mode, TaskKey::default()).unwrap();
        let is_new_task = mode != BeginMode::Resume || opened.history().task_id().is_none();
        let mut log = opened
            .begin_session(
                &session_header(),
                Arc::new(Mask::default()),
                Clock::new(|| 1),
            )
            .unwrap();
        if is_new_task {
            self.note(ScriptedEventKind::TaskBegan);
        }
        log.emit(&[Event::TurnStarted {
            turn: 0,
            parent: None,
            origin: &TurnOrigin::default(),
        }])
        .unwrap();
        for index in 0..CALLS {
            let state = self.resume_state(log.history().as_deref(), index);
            let queued = Event::Queued {
                checked: &self.calls[index],
                batch: Some(index),
            };
            log.emit(&[queued]).unwrap();
            match choices.byte() % 8 {
                0 => {}
                1 => return, // Killed.
                choice => self.run_call(&mut log, index, &state, choice > 3),
            }
        }
        if choices.flag() {
            log.finish(0).unwrap();
        }
    }

    /// Runs a call as the engine does, if it may run.
    fn run_call(
        &mut self,
        log: &mut SessionLog,
        index: usize,
        state: &ResumeState,
        finishes: bool,
    ) {
        let earlier_attempts = match state {
            ResumeState::NotStarted => 0,
            ResumeState::Started(prior) => prior.count,
            ResumeState::NeedsProbe(_) | ResumeState::InDoubt(_) | ResumeState::Answered(_) => {
                return;
            }
        };
        let checked = self.calls[index].clone();
        let Verdict::Accepted(accepted) = &checked.verdict else {
            panic!("every call is accepted");
        };
        let call = CallRef::new(&checked.call, Some(index));
        let attempt = earlier_attempts + 1;
        let started = Event::Started {
            call: &call,
            accepted,
            attempt,
            idempotency_key: "key",
            waited: None,
        };
        log.emit(&[started]).unwrap();
        self.note(ScriptedEventKind::Started(index));
        if finishes {
            let text = result_text(index);
            emit_finished(log, &call, &success_outcome(&text), &text, (0, attempt)).unwrap();
            self.note(ScriptedEventKind::Finished(index));
        }
    }

    fn note(&mut self, kind: ScriptedEventKind) {
        let log_bytes = fs::metadata(&self.path).unwrap().len();
        self.events.push(ScriptedEvent { log_bytes, kind });
    }

    /// Asks the history about a call, and compares that with what happened before.
    fn resume_state(&self, history: Option<&TaskHistory>, index: usize) -> ResumeState {
        let Some(history) = history else {
            return ResumeState::NotStarted;
        };
        let state = history.resume_state(&self.calls[index]).unwrap();
        self.check_state(&state, index, u64::MAX);
        state
    }

    /// Returns what the first `log_bytes` bytes of the log show of a call.
    fn expected_state(&self, index: usize, log_bytes: u64) -> ExpectedState {
        let mut state = ExpectedState::NotStarted;
        for event in self
            .events
            .iter()
            .take_while(|event| event.log_bytes <= log_bytes)
        {
            match event.kind {
                ScriptedEventKind::TaskBegan => state = ExpectedState::NotStarted,
                ScriptedEventKind::Started(at) if at == index => state = ExpectedState::Started,
                ScriptedEventKind::Finished(at) if at == index => state = ExpectedState::Done,
                _ => {}
            }
        }
        state
    }

    fn check_state(&self, state: &ResumeState, index: usize, log_bytes: u64) {
        let expected = self.expected_state(index, log_bytes);
        let is_write = *self.calls[index].call.name == *Effect::Write.name();
        let is_right = match (expected, state) {
            (ExpectedState::NotStarted, ResumeState::NotStarted) => true,
            (ExpectedState::Started, ResumeState::Started(_)) => !is_write,
            (ExpectedState::Started, ResumeState::InDoubt(_)) => is_write,
            (ExpectedState::Done, ResumeState::Answered(result)) => {
                matches!(&result.content, ResultContent::Text(text) if *text == result_text(index))
            }
            _ => false,
        };
        assert!(
            is_right,
            "the log shows {expected:?}, the history says {state:?}"
        );
    }

    /// Damages the log: a cut anywhere loses only what comes after it, and a flipped bit is found.
    fn check_damaged(&self, choices: &mut Choices<'_>) {
        let whole = fs::read(&self.path).unwrap();
        let (kind, high, low) = (choices.byte(), choices.byte(), choices.byte());
        let place = usize::from(u16::from_be_bytes([high, low])) % (whole.len() + 1);
        if kind & 1 == 0 {
            fs::write(&self.path, &whole[..place]).unwrap();
            self.check_cut(place as u64);
        } else if let Some(byte) = whole.get(place) {
            let mut flipped = whole.clone();
            flipped[place] = byte ^ (1 << (kind >> 1 & 7));
            fs::write(&self.path, flipped).unwrap();
            for mode in [BeginMode::Resume, BeginMode::ForceNewTask] {
                let opened = PreparedLog::open(&self.path, mode, TaskKey::default());
                assert!(
                    opened.is_err(),
                    "bit {} of byte {place} isn't missed",
                    kind >> 1 & 7
                );
            }
        }
    }

    fn check_cut(&self, log_bytes: u64) {
        let log = PreparedLog::open(&self.path, BeginMode::Resume, TaskKey::default()).unwrap();
        for index in 0..CALLS {
            let state = log.history().resume_state(&self.calls[index]).unwrap();
            self.check_state(&state, index, log_bytes);
        }
        // The log continues, and is valid afterwards.
        let log = log.begin_session(
            &session_header(),
            Arc::new(Mask::default()),
            Clock::new(|| 1),
        );
        log.unwrap().finish(0).unwrap();
        let mut checker = SequenceChecker::default();
        for record in RecordReader::open(&self.path).unwrap() {
            checker.check_record(&record.unwrap()).unwrap();
        }
    }
}

fn result_text(index: usize) -> String {
    format!("result {index}")
}

fn session_header() -> SessionHeader {
    SessionHeader {
        tools_path: "/work/tools.yaml".to_owned(),
        tools_sha256: "ab".repeat(32),
        input_sha256: Some("cd".repeat(32)),
        plan: None,
        cwd: "/work".to_owned(),
        root: "/work".to_owned(),
        jobs: NonZeroUsize::MIN,
        sync: SyncPolicy::Auto,
    }
}
