//! Tracks the calls in doubt over all runs of a log: calls of the input that may have done their work and have no result. The
//! calls of an agent don't count by themselves, since the agent runs again as a whole.

use std::collections::HashMap;
use std::path::Path;

use uuid::Uuid;

use crate::agent_calls::AgentCalls;
use crate::call_event::CallEvent;
use crate::call_log::CallLog;
use crate::error::LogError;
use crate::read::{Corruption, RecordReader};
use crate::records::{
    CallContent, Record, RecordContent, RecordKind, SessionRecord, TurnRecord, recorded_text,
};
use redact::Mask;
use toolq_core::os::ProcessIdentity;
use toolq_core::types::Call;

/// The calls that are in doubt after the records applied so far.
#[derive(Debug, Default)]
pub struct InDoubtCalls {
    /// By the id of the `tool_call`. Of the calls that are settled, only those that agents work on are kept.
    calls: HashMap<Uuid, InDoubtCall>,
    agent_calls: AgentCalls,
    /// All sessions so far.
    sessions: Vec<SessionFate>,
}

/// A call in doubt.
#[derive(Debug, Clone)]
pub struct InDoubtCall {
    /// The id of its `tool_call`.
    pub record_id: Uuid,
    /// Its id, as recorded in the log.
    pub tool_use_id: String,
    /// The tool of the call.
    pub tool_name: String,
    /// When its last attempt started, in milliseconds since 1970.
    pub started_ms: u64,
    log: CallLog,
    /// The number of its start.
    seq: u64,
    /// Index of the session in which it started.
    session: usize,
}

/// What became of a session.
#[derive(Debug)]
struct SessionFate {
    process: ProcessIdentity,
    has_end: bool,
    /// It begins a task rather than resuming one.
    begins_task: bool,
}

/// A call in doubt, described for people.
#[derive(Debug)]
pub struct DoubtReport {
    /// The id to pass to `toolq log resolve`.
    pub resolve_id: String,
    /// Its id, as recorded in the log.
    pub tool_use_id: String,
    /// The tool of the call.
    pub tool_name: String,
    /// Its input as JSON, if the record has it.
    pub input: Option<String>,
    /// When its last attempt started, in milliseconds since 1970.
    pub started_ms: u64,
    /// Whether the run that started it was killed.
    pub was_killed: bool,
}

/// Lists the calls that the last task in the log at `path` left in doubt, in the order of their starts. The log may be
/// in use, or have a torn end.
///
/// # Errors
/// The log can't be read, or is damaged.
pub fn list_calls_in_doubt(path: &Path) -> Result<Vec<DoubtReport>, LogError> {
    let mut calls = InDoubtCalls::default();
    visit_records(path, |record| calls.apply_record(record))?;
    let first_session = calls
        .sessions
        .iter()
        .rposition(|session| session.begins_task);
    let mut open = calls.in_log_order();
    open.retain(|call| Some(call.session) >= first_session);
    // Rarely is any call in doubt, so its input is read only then.
    let mut inputs: HashMap<Uuid, String> = HashMap::new();
    if !open.is_empty() {
        visit_records(path, |record| {
            if open.iter().any(|call| call.record_id == record.id)
                && let RecordContent::Inline(content) = &record.content
                && let Ok(content) = serde_json::from_str::<CallContent<'_>>(content.get())
                && let Some(input) = content.input
            {
                inputs.insert(record.id, input.as_raw().get().to_owned());
            }
            Ok(())
        })?;
    }
    let described = open.into_iter().map(|call| DoubtReport {
        resolve_id: calls.resolve_id(call),
        tool_use_id: call.tool_use_id.clone(),
        tool_name: call.tool_name.clone(),
        input: inputs.remove(&call.record_id),
        started_ms: call.started_ms,
        was_killed: calls.was_killed(call),
    });
    Ok(described.collect())
}

/// Passes each whole record of a log to `visit`.
fn visit_records(
    path: &Path,
    mut visit: impl FnMut(&Record) -> Result<(), Corruption>,
) -> Result<(), LogError> {
    let mut records = RecordReader::open(path)?;
    while let Some(record) = records.next_borrowed() {
        match record.and_then(|record| visit(&record)) {
            Err(corruption) if !corruption.is_torn_end() => {
                return Err(LogError::from_corruption(path, corruption));
            }
            _ => {}
        }
    }
    Ok(())
}

impl InDoubtCalls {
    /// Applies the next record.
    ///
    /// # Errors
    /// Its metadata doesn't match its type.
    pub fn apply_record(&mut self, record: &Record) -> Result<(), Corruption> {
        match record.kind {
            RecordKind::Session => {
                let session: SessionRecord = record.parse_metadata()?;
                self.sessions.push(SessionFate {
                    process: session.process(),
                    has_end: false,
                    begins_task: session.resumes.is_none(),
                });
            }
            RecordKind::SessionEnd => {
                if let Some(session) = self.sessions.last_mut() {
                    session.has_end = true;
                }
            }
            RecordKind::Turn => {
                let turn: TurnRecord = record.parse_metadata()?;
                if let Some(call) = record.parent.filter(|_| turn.agent.is_some()) {
                    self.agent_calls.add_turn(record.id, call);
                }
            }
            RecordKind::ToolCall => drop(self.agent_calls.add_call(record.id, record.parent)),
            _ => self.apply_call_record(record)?,
        }
        Ok(())
    }

    fn apply_call_record(&mut self, record: &Record) -> Result<(), Corruption> {
        let Some(call_id) = record.parent else {
            return Ok(());
        };
        let may_begin_doubt =
            matches!(record.kind, RecordKind::ToolStart | RecordKind::ToolInDoubt);
        if !may_begin_doubt && !self.calls.contains_key(&call_id) {
            return Ok(());
        }
        let Some(event) = CallEvent::from_record(record)? else {
            return Ok(());
        };
        if self.agent_calls.is_of_agent(call_id) {
            self.note_agents_start(call_id, &event);
            return Ok(());
        }
        let session = self.sessions.len().saturating_sub(1);
        let call = self.calls.entry(call_id).or_insert_with(|| InDoubtCall {
            record_id: call_id,
            tool_use_id: event.tool_use_id().to_owned(),
            tool_name: event.tool_name().to_owned(),
            started_ms: record.timestamp,
            log: CallLog::default(),
            seq: record.seq,
            session,
        });
        // `toolq log verify` is what reports a record that can't follow the others.
        let _ = call.log.apply(&event);
        if matches!(event, CallEvent::Started(_)) {
            (call.started_ms, call.seq, call.session) = (record.timestamp, record.seq, session);
        }
        if !call.log.is_unsettled() && !call.log.is_agent_call() {
            self.calls.remove(&call_id);
        }
        Ok(())
    }

    fn note_agents_start(&mut self, call: Uuid, event: &CallEvent<'_>) {
        let CallEvent::Started(start) = event else {
            return;
        };
        for agent in self.agent_calls.agents_above(call) {
            if start.agent.is_none()
                && let Some(agent) = self.calls.get_mut(&agent)
            {
                agent.log.note_inner_start(start.effect);
            }
        }
    }

    fn iter(&self) -> impl Iterator<Item = &InDoubtCall> {
        self.calls.values().filter(|call| call.log.is_unsettled())
    }

    /// Returns whether any call is in doubt.
    pub fn has_any(&self) -> bool {
        self.iter().next().is_some()
    }

    /// Returns the call in doubt that `call` would repeat: one with its id, of its tool.
    pub fn find_repeated(&self, call: &Call, mask: &Mask) -> Option<&InDoubtCall> {
        let (id, tool) = (
            recorded_text(&call.id, mask),
            recorded_text(&call.name, mask),
        );
        self.iter()
            .find(|other| other.tool_use_id == *id && other.tool_name == *tool)
    }

    /// Returns all calls in doubt, in the order of their starts.
    pub fn in_log_order(&self) -> Vec<&InDoubtCall> {
        let mut all: Vec<_> = self.iter().collect();
        all.sort_by_key(|call| call.seq);
        all
    }

    /// Returns whether the run that started the call was killed: it has no end, and its process is gone.
    fn was_killed(&self, call: &InDoubtCall) -> bool {
        let is_last = call.session + 1 == self.sessions.len();
        self.sessions
            .get(call.session)
            .is_some_and(|session| !session.has_end && (!is_last || session.process.has_exited()))
    }

    /// Returns the id to pass to `toolq log resolve`: the id of the call if it is a plain word and no other call in
    /// doubt has it, otherwise the id of the call's record.
    pub fn resolve_id(&self, call: &InDoubtCall) -> String {
        let id = &call.tool_use_id;
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let same_id = self.iter().filter(|other| other.tool_use_id == *id);
        if same_id.count() == 1 && id.chars().all(is_word) && !id.starts_with('-') {
            return id.clone();
        }
        call.record_id.to_string()
    }
}
