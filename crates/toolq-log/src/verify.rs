//! Verifies a log: which records may follow which, and the files that they refer to. Memory use is proportional to the number of
//! calls.

use std::collections::{HashMap, HashSet};
use std::fs::{File, TryLockError};
use std::io::Read as _;
use std::path::Path;

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::call_log::{CallEvent, CallLog};
use crate::error::{Corruption, CorruptionKind, LogError};
use crate::reader::RecordReader;
use crate::records::{
    BlobError, CallEndRecord, CallRecord, ModelResponseRecord, Record, RecordKind, ServerEndRecord,
    TurnRecord, blob_dir_for, is_file_extension, is_sha256_hex, open_regular_file, read_error_text,
};
use toolq_core::types::Effect;

/// Checks records in their order, against the state that the previous ones led to.
#[derive(Debug, Default)]
pub struct SequenceChecker {
    /// The session that hasn't ended yet.
    open_session: Option<Uuid>,
    /// All turns by the id of their record.
    turns: HashMap<Uuid, LoggedTurn>,
    /// All calls by the id of their `tool_call`.
    calls: HashMap<Uuid, CallLog>,
    /// The `describe_start`, `list_start` and `server_start` records of the open session that have no end yet.
    open_starts: HashMap<Uuid, RecordKind>,
    /// The turns in which agents requested their calls.
    agent_turns: HashMap<Uuid, LoggedTurn>,
    /// The turns in which a model has responded since its agent started to work on a call.
    answered_turns: HashMap<Uuid, HashSet<usize>>,
}

/// The call that an agent works on, if one does, and the number of the turn.
type LoggedTurn = (Option<Uuid>, usize);

fn require(is_met: bool, record: &Record, why: &'static str) -> Result<(), Corruption> {
    if is_met {
        return Ok(());
    }
    Err(violation(record, why))
}

fn violation(record: &Record, why: &'static str) -> Corruption {
    Corruption {
        line: record.line,
        offset: record.offset,
        kind: CorruptionKind::SequenceViolation(why),
    }
}

impl SequenceChecker {
    /// Checks the next record.
    ///
    /// # Errors
    /// The record can't follow the previous ones: its writer broke a promise, or wasn't toolq.
    pub fn check_record(&mut self, record: &Record) -> Result<(), Corruption> {
        let session = self.open_session;
        match &record.kind {
            RecordKind::Session => {
                self.begin_session(record);
                Ok(())
            }
            RecordKind::Recovered => Ok(()),
            RecordKind::Resolve => self.check_call_record(record),
            _ if session.is_none() => Err(violation(record, "it follows the end of its session")),
            RecordKind::SessionEnd => self.check_session_end(record),
            RecordKind::ToolsChange => require_in_session(record, session),
            RecordKind::DescribeStart | RecordKind::ListStart | RecordKind::ServerStart => {
                self.open_starts.insert(record.id, record.kind.clone());
                require_in_session(record, session)
            }
            RecordKind::DescribeEnd => {
                let is_open = self.end_start(record, &RecordKind::DescribeStart);
                require(is_open, record, "it has no open describe_start")
            }
            RecordKind::ListEnd => {
                let is_open = self.end_start(record, &RecordKind::ListStart);
                require(is_open, record, "it has no open list_start")
            }
            RecordKind::ServerEnd => {
                let is_open = self.end_start(record, &RecordKind::ServerStart);
                require(is_open, record, "it has no open server_start")
            }
            RecordKind::Turn => self.check_turn(record),
            RecordKind::ToolCall => self.check_call(record),
            RecordKind::ModelResponse => self.check_model_response(record),
            RecordKind::Approval
            | RecordKind::ToolStart
            | RecordKind::ToolResult
            | RecordKind::ToolSkipped
            | RecordKind::ToolInDoubt
            | RecordKind::ProbeStart
            | RecordKind::ProbeEnd
            | RecordKind::Other(_) => self.check_call_record(record),
        }
    }

    /// A run that was killed before leaves starts without an end.
    fn begin_session(&mut self, record: &Record) {
        self.open_session = Some(record.id);
        self.open_starts.clear();
        self.calls.values_mut().for_each(CallLog::forget_approval);
    }

    /// Checks that no program of a `describe` outlives the session. A server may, for a moment, and asking it for its tools
    /// has no effect, so neither needs an end.
    fn check_session_end(&mut self, record: &Record) -> Result<(), Corruption> {
        let ends_open_session = record.parent == self.open_session.take();
        require(
            ends_open_session,
            record,
            "it ends a session that isn't open",
        )?;
        let mut open = self.open_starts.values();
        let has_ended = open.all(|kind| *kind != RecordKind::DescribeStart);
        require(has_ended, record, "a describe_start has no describe_end")
    }

    /// Removes the start of this type that a record is the end of. Returns whether it was open.
    fn end_start(&mut self, record: &Record, kind: &RecordKind) -> bool {
        let start = record
            .parent
            .and_then(|start| self.open_starts.remove(&start));
        start.as_ref() == Some(kind)
    }

    fn check_turn(&mut self, record: &Record) -> Result<(), Corruption> {
        let turn: TurnRecord = record.parse_metadata()?;
        let agent = record.parent.filter(|_| turn.agent.is_some());
        self.turns.insert(record.id, (agent, turn.turn));
        require(
            record.parent == self.open_session || self.parent_call(record).is_some(),
            record,
            "it belongs neither to the open session nor to an agent's call",
        )
    }

    /// Checks that a call has its turn.
    fn check_call(&mut self, record: &Record) -> Result<(), Corruption> {
        let turn = record
            .parent
            .and_then(|turn| self.turns.get(&turn).copied());
        let found = turn.is_some() || self.parent_call(record).is_some();
        self.calls.insert(record.id, CallLog::default());
        match turn {
            Some((None, turn)) if record.parse_metadata::<CallRecord<'_>>()?.turn != turn => {
                return Err(violation(record, "its turn has another number"));
            }
            Some(turn) if turn.0.is_some() => drop(self.agent_turns.insert(record.id, turn)),
            _ => {}
        }
        require(found, record, "its turn isn't in the log")
    }

    /// Checks that a model responds only once in each turn of its agent.
    fn check_model_response(&mut self, record: &Record) -> Result<(), Corruption> {
        let Some(agent) = self.parent_call(record) else {
            return Err(violation(record, "its call isn't in the log"));
        };
        let turn = record.parse_metadata::<ModelResponseRecord<'_>>()?.turn;
        let is_first = self.answered_turns.entry(agent).or_default().insert(turn);
        require(is_first, record, "its turn already has a model response")
    }

    /// Returns the parent of the record if it is a call.
    fn parent_call(&self, record: &Record) -> Option<Uuid> {
        record.parent.filter(|call| self.calls.contains_key(call))
    }

    /// Returns whether a `write` call of an agent starts before the model response that requested it is in the log.
    fn starts_without_response(&self, call: Uuid, event: &CallEvent<'_>) -> bool {
        let CallEvent::Started(start) = event else {
            return false;
        };
        let is_answered = |(agent, turn): &LoggedTurn| {
            let turns = agent.and_then(|agent| self.answered_turns.get(&agent));
            turns.is_some_and(|turns| turns.contains(turn))
        };
        let turn = self.agent_turns.get(&call);
        start.effect == Effect::Write && turn.is_some_and(|turn| !is_answered(turn))
    }

    /// Checks a record that belongs to a call.
    fn check_call_record(&mut self, record: &Record) -> Result<(), Corruption> {
        let Some(call) = self.parent_call(record) else {
            let is_unknown = matches!(record.kind, RecordKind::Other(_));
            return require(is_unknown, record, "its call isn't in the log");
        };
        let Some(event) = CallEvent::from_record(record)? else {
            return Ok(());
        };
        require(
            !self.starts_without_response(call, &event),
            record,
            "a `write` call starts before its model response is in the log",
        )?;
        if matches!(&event, CallEvent::Started(start) if start.agent.is_some()) {
            // The agent begins anew.
            self.answered_turns.remove(&call);
        }
        let applied = self.calls.entry(call).or_default().apply(&event);
        applied.map_err(|why| violation(record, why))
    }
}

fn require_in_session(record: &Record, session: Option<Uuid>) -> Result<(), Corruption> {
    let is_in_session = record.parent == session;
    require(
        is_in_session,
        record,
        "it doesn't belong to the open session",
    )
}

// Verifies a log that is used as an input. Its records decide what runs, so all of them must be intact.

/// Verifies a log from its first line to its last. `file` is the open log, `path` its name in messages. A torn end left
/// by a killed run isn't damage: it is returned.
///
/// # Errors
/// The log is damaged, has a newer format, or is still being written, so that it doesn't show yet what will run.
pub fn verify_log(path: &Path, file: File) -> Result<Option<Corruption>, LogError> {
    let read_error = LogError::io(path, "read");
    // A writer's lock belongs to its own file description, so it conflicts with ours. Piped input has no writer.
    match file.try_lock_shared() {
        Ok(()) => file.unlock().map_err(read_error)?,
        Err(TryLockError::WouldBlock) => return Err(LogError::InUse(path.to_owned())),
        Err(TryLockError::Error(source)) => return Err(read_error(source)),
    }
    let mut torn_end = None;
    for record in RecordReader::from_file(file) {
        match record {
            Err(corruption) if corruption.is_torn_end() => torn_end = Some(corruption),
            Err(corruption) => return Err(LogError::from_corruption(path, corruption)),
            Ok(_) => {}
        }
    }
    Ok(torn_end)
}

// Verifies the files in a log's blob directory that a record refers to, in its content or in its metadata.

/// How much of a saved output is read at a time, in bytes.
const READ_CHUNK_BYTES: usize = 64 << 10;

impl Record<'_> {
    /// Verifies every file in the blob directory of `log` that this record refers to, and returns how many there are.
    ///
    /// # Errors
    /// A file is missing, isn't a regular file, or doesn't match its SHA-256.
    pub fn check_referenced_files(&self, log: &Path) -> Result<u64, BlobError> {
        let dir = blob_dir_for(log);
        let blob_error = |file: &str, problem| BlobError {
            dir: dir.clone(),
            file: file.to_owned(),
            problem,
        };
        let invalid = |error: Corruption| blob_error("of the metadata", error.to_string());
        let (mut input_before, mut saved) = (None, Vec::new());
        match &self.kind {
            RecordKind::ToolCall => {
                let call: CallRecord<'_> = self.parse_metadata().map_err(invalid)?;
                input_before = call.input_before_coercion;
            }
            RecordKind::ServerEnd => {
                let end: ServerEndRecord<'_> = self.parse_metadata().map_err(invalid)?;
                saved.extend(end.stderr_saved);
            }
            kind if kind.ends_call() => {
                let end: CallEndRecord<'_> = self.parse_metadata().map_err(invalid)?;
                saved.extend(end.saved);
                saved.extend(end.attachments);
            }
            _ => {}
        }
        let contents = input_before.iter().chain([&self.content]);
        let mut file_count = 0;
        for content in contents.filter(|content| content.is_stored()) {
            content.load(log)?;
            file_count += 1;
        }
        for saved in &saved {
            // The log may be read from another directory than it was written from, so only the file name counts.
            let name = saved.rsplit('/').next().unwrap_or(saved);
            check_saved_output(&dir, name).map_err(|problem| blob_error(name, problem))?;
            file_count += 1;
        }
        Ok(file_count)
    }
}

/// Verifies a saved output or an attachment, which is named after its digest. It is read in chunks, since it may be large.
fn check_saved_output(dir: &Path, name: &str) -> Result<(), String> {
    let digest = match name.split_once('.') {
        Some((digest, extension)) if is_file_extension(extension) && is_sha256_hex(digest) => {
            digest
        }
        _ => return Err("doesn't have a name that toolq generates".to_owned()),
    };
    let (mut file, _) = open_regular_file(dir, name)?;
    let (mut hash, mut chunk) = (Sha256::new(), vec![0; READ_CHUNK_BYTES]);
    loop {
        match file
            .read(&mut chunk)
            .map_err(|error| read_error_text(&error))?
        {
            0 => break,
            read => hash.update(&chunk[..read]),
        }
    }
    if HEXLOWER.encode(&hash.finalize()) != digest {
        return Err("doesn't match its SHA-256".to_owned());
    }
    Ok(())
}
