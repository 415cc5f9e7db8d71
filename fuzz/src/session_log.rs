//! The session log: no bytes make its readers panic, and the memory runs nothing again that a log shows as done.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redact::Mask;
use tempfile::TempDir;
use toolq_core::os::Clock;
use toolq_core::tools_file::parse_tools_file;
use toolq_core::types::{
    CallMemory as _, CallRef, CheckedCall, Effect, Event, EventSink as _, MemoryVerdict, Outcome,
    RecalledCall, ResultContent, Tool, TurnOrigin, Verdict,
};
use toolq_log::memory::{MemoryUse, RememberedIn};
use toolq_log::{LockedLog, LogError, RecordReader, SequenceChecker, SessionLog, SessionRecord};
use toolq_testing::{accepted_call, emit_finished, sample_tool, success_outcome};

use crate::choices::Choices;

mod record_script;
mod sealed_lines;

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

/// Reads a log in every way. Opening it changes nothing.
fn check_any_log(path: &Path) {
    let bytes = fs::read(path).unwrap();
    let mut checker = SequenceChecker::default();
    for record in RecordReader::open(path).unwrap().flatten() {
        let _ = checker.check_record(&record);
    }
    let _ = LockedLog::open(path);
    assert_eq!(fs::read(path).unwrap(), bytes, "opening a log changed it");
}

/// Begins a session in a log that is the memory.
fn begin_session(path: &Path) -> Result<SessionLog, LogError> {
    let memory = (RememberedIn::log(path), MemoryUse::default());
    let mask = Arc::new(Mask::default());
    LockedLog::open(path)?.begin_session(session_record(), memory, mask, Clock::new(|| 1))
}

/// What happened to a call, and how long the log was afterwards.
struct ScriptedEvent {
    log_bytes: u64,
    kind: ScriptedEventKind,
}

#[derive(Clone, Copy)]
enum ScriptedEventKind {
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
        let mut log = begin_session(&self.path).unwrap();
        log.emit(&[Event::TurnStarted {
            turn: 0,
            parent: None,
            origin: &TurnOrigin::default(),
        }])
        .unwrap();
        for index in 0..CALLS {
            let verdict = self.recall(&log, index, u64::MAX);
            let queued = Event::Queued {
                checked: &self.calls[index],
                batch: Some(index),
            };
            log.emit(&[queued]).unwrap();
            match choices.byte() % 8 {
                0 => {}
                1 => return, // Killed.
                choice => self.run_call(&mut log, index, &verdict, choice > 3),
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
        verdict: &MemoryVerdict,
        finishes: bool,
    ) {
        let claim = match verdict {
            MemoryVerdict::Run(claim) => Some(claim),
            MemoryVerdict::Forgettable => None,
            _ => return,
        };
        let checked = self.calls[index].clone();
        let Verdict::Accepted(accepted) = &checked.verdict else {
            panic!("every call is accepted");
        };
        let call = CallRef::new(&checked.call, Some(index));
        let started = Event::Started {
            call: &call,
            accepted,
            attempt: 1,
            idempotency_key: "key",
            claim,
            waited: None,
        };
        log.emit(&[started]).unwrap();
        let claims = claim.map(|claim| (call.key(), claim.clone()));
        let claims = claims.into_iter().collect();
        log.commit(claims, Box::new(|claimed| assert!(claimed.is_ok())));
        self.note(ScriptedEventKind::Started(index));
        if finishes {
            let text = result_text(index);
            emit_finished(log, &call, &success_outcome(&text), &text, (0, 1)).unwrap();
            self.note(ScriptedEventKind::Finished(index));
        }
    }

    fn note(&mut self, kind: ScriptedEventKind) {
        let log_bytes = fs::metadata(&self.path).unwrap().len();
        self.events.push(ScriptedEvent { log_bytes, kind });
    }

    /// Asks the memory about a call, and compares that with what happened before. Calls that only read are new each time.
    fn recall(&self, log: &SessionLog, index: usize, log_bytes: u64) -> MemoryVerdict {
        let checked = &self.calls[index];
        if *checked.call.name == *Effect::Read.name() {
            return MemoryVerdict::Forgettable;
        }
        let request = RecalledCall {
            call: &checked.call,
            accepted: checked.verdict.accepted(),
            origin: &TurnOrigin::default(),
        };
        let verdict = log.history().recall(&request).unwrap().verdict;
        self.check_verdict(&verdict, index, log_bytes);
        verdict
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
                ScriptedEventKind::Started(at) if at == index => state = ExpectedState::Started,
                ScriptedEventKind::Finished(at) if at == index => state = ExpectedState::Done,
                _ => {}
            }
        }
        state
    }

    fn check_verdict(&self, verdict: &MemoryVerdict, index: usize, log_bytes: u64) {
        let expected = self.expected_state(index, log_bytes);
        let is_write = *self.calls[index].call.name == *Effect::Write.name();
        let is_right = match (expected, verdict) {
            (ExpectedState::NotStarted, MemoryVerdict::Run(_)) => true,
            (ExpectedState::Started, MemoryVerdict::Run(_)) => !is_write,
            (ExpectedState::Started, MemoryVerdict::Known(outcome)) => {
                is_write && matches!(&**outcome, Outcome::InDoubt { .. })
            }
            (ExpectedState::Done, MemoryVerdict::Known(outcome)) => {
                let Outcome::Restored(result) = &**outcome else {
                    panic!("the log shows the result, the memory says {outcome:?}");
                };
                matches!(&result.content, ResultContent::Text(text) if *text == result_text(index))
            }
            _ => false,
        };
        assert!(
            is_right,
            "the log shows {expected:?}, the memory says {verdict:?}"
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
            assert!(
                LockedLog::open(&self.path).is_err(),
                "bit {} of byte {place} isn't missed",
                kind >> 1 & 7
            );
        }
    }

    fn check_cut(&self, log_bytes: u64) {
        let log = begin_session(&self.path).unwrap();
        for index in 0..CALLS {
            self.recall(&log, index, log_bytes);
        }
        // The log continues, and is valid afterwards.
        log.finish(0).unwrap();
        drop(log);
        let mut checker = SequenceChecker::default();
        for record in RecordReader::open(&self.path).unwrap() {
            checker.check_record(&record.unwrap()).unwrap();
        }
    }
}

fn result_text(index: usize) -> String {
    format!("result {index}")
}

fn session_record() -> SessionRecord {
    let (path, dir) = (Path::new("/work/tools.yaml"), Path::new("/work"));
    let tools = parse_tools_file("version: 1\ntools: {}\n", dir, dir)
        .tools
        .unwrap();
    let mut session = SessionRecord::new(path, &tools, NonZeroUsize::MIN);
    session.tools.sha256 = "ab".repeat(32);
    "/work".clone_into(&mut session.cwd);
    session
}
