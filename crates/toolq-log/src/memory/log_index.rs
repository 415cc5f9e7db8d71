//! What a log says about the calls that the memory may be asked about. It is read once, and again from its end where it has
//! grown.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::call_log::CallEvent;
use crate::claims::{EntryName, Settlement};
use crate::error::{Corruption, CorruptionKind, LogError};
use crate::identity::MemoryKey;
use crate::memory::decision::{AttemptEnd, LogAccess, ResultKind};
use crate::reader::{LineExtent, RecordReader};
use crate::records::PRUNED_RESULT;
use crate::records::{
    CallContent, CallEndRecord, CallRecord, Record, RecordKind, ResolveRecord, SessionRecord,
    StartRecord, TurnRecord,
};
use crate::sessions;
use toolq_core::types::{CallContext, ContextDigest, Effect, Reach, RestoredResult, ResultContent};

/// A log, and what is known of its calls.
pub(crate) struct LogIndex {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    pub(crate) reader: RecordReader,
    pub(crate) calls: CallFacts,
}

/// What is known of the calls of a log.
#[derive(Debug, Default)]
pub(crate) struct CallFacts {
    /// The attempts at calls that are remembered, by key, in the order of their starts.
    attempts: HashMap<MemoryKey, Vec<AttemptFacts>>,
    /// The results of calls that only read, by key, in their order.
    reads: HashMap<MemoryKey, Vec<ReadFacts>>,
    /// The calls that ended in doubt, or in a way that leaves their effect open.
    doubted: Vec<OpenCall>,
    /// The calls that have no end yet, by their `tool_call`.
    open: HashMap<Uuid, OpenCall>,
    /// The calls that agents work on, by the `turn`s of the agents.
    agents: HashMap<Uuid, Uuid>,
    /// The run that the records belong to.
    session: Option<Uuid>,
    /// The latest run, if it has no end.
    unfinished: Option<Uuid>,
}

/// What is known of an attempt.
#[derive(Debug, Clone, Default)]
pub(crate) struct AttemptFacts {
    pub(crate) instance: u32,
    pub(crate) number: u32,
    pub(crate) generation: u32,
    pub(crate) context: CallContext,
    pub(crate) tool_use_id: String,
    pub(crate) tool: String,
    pub(crate) input_digest: String,
    pub(crate) executed_digest: Option<String>,
    pub(crate) end: AttemptEnd,
    /// The run that made it.
    pub(crate) session: Option<Uuid>,
    /// When it was started, in milliseconds since 1970.
    pub(crate) started_ms: u64,
    /// The `tool_call`, and where it is.
    pub(crate) record: Uuid,
    pub(crate) call: LineExtent,
    /// The record of its result, or of what was said about its doubt, and when that was written.
    pub(crate) result: Option<(LineExtent, u64)>,
    /// What was said about it, if the log has that.
    pub(crate) settlement: Option<Settlement>,
    /// An agent works on it.
    is_agent: bool,
    /// A call of that agent that isn't `read` has started.
    has_nested_effects: bool,
}

/// The result of a call that only read.
#[derive(Debug, Clone)]
pub(crate) struct ReadFacts {
    pub(crate) context: CallContext,
    pub(crate) session: Option<Uuid>,
    pub(crate) result: LineExtent,
    pub(crate) ended_ms: u64,
}

/// A call without an end, or in doubt.
#[derive(Debug, Clone)]
pub(crate) struct OpenCall {
    key: Option<MemoryKey>,
    /// What will be known of an attempt at it, before that starts.
    pub(crate) facts: AttemptFacts,
    /// The agent's call that requested it.
    agent: Option<Uuid>,
    /// Where its attempt is.
    attempt: Option<(MemoryKey, usize)>,
    /// It has started, and only reads.
    is_reading: bool,
}

impl LogIndex {
    /// Opens a log. `None` if it is gone.
    ///
    /// # Errors
    /// It can't be opened.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, LogError> {
        let file = match sessions::open_to_read(path) {
            Ok(file) => file,
            Err(LogError::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        Self::from_file(path, file).map(Some)
    }

    /// Reads a log that is open already.
    pub(crate) fn from_file(path: &Path, file: File) -> Result<Self, LogError> {
        let clone = file.try_clone().map_err(LogError::io(path, "read"))?;
        Ok(Self {
            path: path.to_owned(),
            reader: RecordReader::from_file(clone),
            file,
            calls: CallFacts::default(),
        })
    }

    /// Reads what has been added, and returns what is known of the calls.
    ///
    /// # Errors
    /// The log is damaged.
    pub(crate) fn update(&mut self) -> Result<&CallFacts, LogError> {
        // A run that was killed, or that is writing, leaves a torn end.
        self.read_to_end()?;
        Ok(&self.calls)
    }

    /// Reads what has been added. Returns the size of its end in bytes, if that is torn.
    ///
    /// # Errors
    /// The log is damaged elsewhere.
    pub(crate) fn read_to_end(&mut self) -> Result<Option<u64>, LogError> {
        self.reader.continue_reading();
        while let Some(record) = self.reader.next_borrowed() {
            match record.and_then(|record| self.calls.apply(&record, &self.path)) {
                Err(Corruption {
                    kind: CorruptionKind::Torn { bytes },
                    ..
                }) => return Ok(Some(bytes)),
                applied => applied.map_err(|error| LogError::from_corruption(&self.path, error))?,
            }
        }
        Ok(None)
    }

    /// Reads the result of a call again. `None` if a file that holds it is gone.
    ///
    /// # Errors
    /// It has changed since.
    pub(crate) fn read_result(
        &self,
        extent: LineExtent,
    ) -> Result<Option<RestoredResult>, LogError> {
        let corrupt = |corruption| LogError::from_corruption(&self.path, corruption);
        let record = RecordReader::read_again(&self.file, extent).map_err(corrupt)?;
        let end: CallEndRecord<'_> = record.parse_metadata().map_err(corrupt)?;
        let Ok(json) = record.content.load(&self.path) else {
            return Ok(None);
        };
        Ok(content_of(json.get()).map(|content| RestoredResult {
            status: end.status.clone(),
            is_error: end.is_error,
            cut_output: end.cut_output().map(Box::new),
            agent_usage: end.agent.map(|agent| Box::new(agent.into())),
            content,
            source: None,
        }))
    }

    /// Reads the directory in which its first run was started. `None` if it begins with something else.
    pub(crate) fn first_directory(&self) -> Option<String> {
        let record = RecordReader::read_at(&self.file, 0).ok()?;
        let session: SessionRecord = record.parse_metadata().ok()?;
        Some(session.cwd)
    }

    /// Reads the call that the record at `offset` holds. `None` if it holds none.
    pub(crate) fn read_call(&self, offset: u64) -> Option<AskedCall> {
        let record = RecordReader::read_at(&self.file, offset).ok()?;
        let call: CallRecord<'_> = record.parse_metadata().ok()?;
        let json = record.content.load(&self.path).ok();
        let content = json.as_ref();
        let content =
            content.and_then(|json| serde_json::from_str::<CallContent<'_>>(json.get()).ok());
        let input = content.and_then(|content| content.input);
        Some(AskedCall {
            tool_use_id: call.tool_use_id.into_owned(),
            tool: call.tool_name.into_owned(),
            input: input.map(|input| input.get().to_owned()),
            timestamp: record.timestamp,
        })
    }

    /// Reads the input of a call again, as JSON.
    pub(crate) fn read_input(&self, extent: LineExtent) -> Option<String> {
        let record = RecordReader::read_again(&self.file, extent).ok()?;
        let json = record.content.load(&self.path).ok()?;
        let content: CallContent<'_> = serde_json::from_str(json.get()).ok()?;
        content.input.map(|input| input.get().to_owned())
    }
}

impl CallFacts {
    /// Applies the next record of `log`.
    ///
    /// # Errors
    /// Its metadata doesn't fit its type.
    pub(crate) fn apply(&mut self, record: &Record<'_>, log: &Path) -> Result<(), Corruption> {
        match record.kind {
            RecordKind::Session => {
                let _: SessionRecord = record.parse_metadata()?;
                (self.session, self.unfinished) = (Some(record.id), Some(record.id));
                self.open.clear();
                self.agents.clear();
            }
            RecordKind::SessionEnd => self.unfinished = None,
            RecordKind::Turn => self.apply_turn(record)?,
            RecordKind::ToolCall => self.apply_call(record)?,
            _ => self.apply_event(record, log)?,
        }
        Ok(())
    }

    /// Returns the attempts at calls with a key, in the order of their starts.
    pub(crate) fn attempts(&self, key: &MemoryKey) -> &[AttemptFacts] {
        self.attempts.get(key).map_or(&[], Vec::as_slice)
    }

    /// Returns an attempt.
    pub(crate) fn attempt(
        &self,
        key: &MemoryKey,
        instance: u32,
        number: u32,
    ) -> Option<&AttemptFacts> {
        let is_named =
            |attempt: &&AttemptFacts| (attempt.instance, attempt.number) == (instance, number);
        let named = self.attempts(key).iter().filter(is_named).rev();
        // Of calls that wanted to make it at once, one has.
        named.max_by_key(|attempt| attempt.end != AttemptEnd::Nothing)
    }

    /// Returns the keys of the calls that were started under an id which `is_asked`.
    pub(crate) fn keys_of(&self, is_asked: &dyn Fn(&str) -> bool) -> Vec<MemoryKey> {
        let is_asked = |attempt: &AttemptFacts| is_asked(&attempt.tool_use_id);
        self.attempts
            .iter()
            .filter(|(_, attempts)| attempts.iter().any(is_asked))
            .map(|(key, _)| key.clone())
            .collect()
    }

    /// Returns the calls that somebody may have settled: those whose effect this log leaves open, with their keys.
    pub(crate) fn doubts(&self) -> impl Iterator<Item = (&MemoryKey, &OpenCall)> {
        let doubts = self.doubted.iter().chain(self.open.values());
        doubts.filter_map(|call| Some((call.key.as_ref()?, call)))
    }

    /// Returns the results of calls with a key that only read, in their order.
    pub(crate) fn reads(&self, key: &MemoryKey) -> &[ReadFacts] {
        self.reads.get(key).map_or(&[], Vec::as_slice)
    }

    /// Returns the latest run, if it has no end.
    pub(crate) fn unfinished_session(&self) -> Option<Uuid> {
        self.unfinished
    }

    fn apply_turn(&mut self, record: &Record<'_>) -> Result<(), Corruption> {
        let turn: TurnRecord = record.parse_metadata()?;
        if let Some(agent) = record.parent.filter(|_| turn.agent.is_some()) {
            self.agents.insert(record.id, agent);
        }
        Ok(())
    }

    fn apply_call(&mut self, record: &Record<'_>) -> Result<(), Corruption> {
        let call: CallRecord<'_> = record.parse_metadata()?;
        let agent = record
            .parent
            .and_then(|turn| self.agents.get(&turn).copied());
        let key = call.key.as_deref().and_then(MemoryKey::parse);
        let digest = |text: Option<&str>| text.and_then(ContextDigest::parse);
        let open = OpenCall {
            key,
            facts: AttemptFacts {
                context: CallContext {
                    message: digest(call.message.as_deref()),
                    before: digest(call.before.as_deref()),
                },
                tool_use_id: call.tool_use_id.to_string(),
                tool: call.tool_name.to_string(),
                input_digest: call.input_digest.unwrap_or_default().into_owned(),
                executed_digest: call.executed_digest.map(Cow::into_owned),
                record: record.id,
                call: LineExtent::from_record(record, record.end_offset),
                ..AttemptFacts::default()
            },
            agent,
            attempt: None,
            is_reading: false,
        };
        self.open.insert(record.id, open);
        Ok(())
    }

    fn apply_event(&mut self, record: &Record<'_>, log: &Path) -> Result<(), Corruption> {
        let Some(id) = record.parent else {
            return Ok(());
        };
        if record.kind != RecordKind::Resolve && !self.open.contains_key(&id) {
            return Ok(());
        }
        let Some(event) = CallEvent::from_record(record)? else {
            return Ok(());
        };
        match event {
            CallEvent::Started(start) => self.start(id, &start, record.timestamp),
            CallEvent::Resolved(resolve) => self.settle(record, &resolve, log),
            CallEvent::Result(end) => self.end(id, record, end_of_result(&end), true),
            CallEvent::Skipped(_) => self.end(id, record, AttemptEnd::Nothing, false),
            CallEvent::InDoubt(_) => self.end(id, record, AttemptEnd::InDoubt, true),
            CallEvent::Approved(_) | CallEvent::Probed(_) => {}
        }
        Ok(())
    }

    /// Applies what was said about an attempt that may have no end.
    fn settle(&mut self, record: &Record<'_>, resolve: &ResolveRecord<'_>, log: &Path) {
        let Some((name, _)) = resolve.key.as_deref().and_then(EntryName::parse) else {
            return;
        };
        let attempts = self.attempts.get_mut(&name.key).into_iter().flatten();
        for attempt in attempts {
            if (attempt.instance, attempt.number) == (name.instance, name.attempt) {
                let result = match record.content.load(log) {
                    Ok(json) => serde_json::from_str::<Option<serde_json::Value>>(json.get())
                        .ok()
                        .flatten(),
                    Err(_) => Some(PRUNED_RESULT.into()),
                };
                attempt.settlement.get_or_insert(Settlement {
                    done: resolve.done,
                    result,
                    is_error: resolve.is_error == Some(true),
                    by: resolve.by.as_deref().unwrap_or("person").to_owned(),
                    note: resolve.note.as_deref().map(str::to_owned),
                    timestamp: record.timestamp,
                });
            }
        }
    }

    fn start(&mut self, id: Uuid, start: &StartRecord<'_>, started_ms: u64) {
        if start.effect != Effect::Read {
            self.note_nested_effect(id);
        }
        let session = self.session;
        let Some(open) = self.open.get_mut(&id) else {
            return;
        };
        if open.attempt.is_some() {
            // It is tried again, under the same claim.
            return;
        }
        let Some((name, _)) = start.key.as_deref().and_then(EntryName::parse) else {
            open.is_reading = start.effect == Effect::Read;
            return;
        };
        let facts = AttemptFacts {
            instance: name.instance,
            number: name.attempt,
            generation: start.generation.unwrap_or(1),
            session,
            started_ms,
            is_agent: start.agent.is_some(),
            ..open.facts.clone()
        };
        let attempts = self.attempts.entry(name.key.clone()).or_default();
        open.attempt = Some((name.key, attempts.len()));
        attempts.push(facts);
    }

    /// Notes for the agents that requested a call that it has started and isn't `read`.
    fn note_nested_effect(&mut self, id: Uuid) {
        let mut agent = self.open.get(&id).and_then(|open| open.agent);
        while let Some(id) = agent {
            let Some(open) = self.open.get(&id) else {
                return;
            };
            if let Some((key, index)) = &open.attempt
                && let Some(attempt) = self
                    .attempts
                    .get_mut(key)
                    .and_then(|all| all.get_mut(*index))
            {
                attempt.has_nested_effects = true;
            }
            agent = open.agent;
        }
    }

    fn end(&mut self, id: Uuid, record: &Record<'_>, end: AttemptEnd, has_result: bool) {
        let Some(open) = self.open.remove(&id) else {
            return;
        };
        let result = has_result.then(|| {
            let extent = LineExtent::from_record(record, record.end_offset);
            (extent, record.timestamp)
        });
        if matches!(
            end,
            AttemptEnd::InDoubt | AttemptEnd::Result(ResultKind::Open)
        ) {
            self.doubted.push(open.clone());
        }
        if let Some((key, index)) = open.attempt {
            let attempts = self.attempts.get_mut(&key);
            if let Some(attempt) = attempts.and_then(|all| all.get_mut(index)) {
                (attempt.end, attempt.result) = (end, result);
            }
        } else if let (Some(key), Some((result, ended_ms))) = (open.key, result)
            // One that never ran has shown nothing.
            && open.is_reading
            && matches!(end, AttemptEnd::Result(_))
        {
            let read = ReadFacts {
                context: open.facts.context,
                session: self.session,
                result,
                ended_ms,
            };
            self.reads.entry(key).or_default().push(read);
        }
    }
}

impl AttemptFacts {
    /// Returns what is known of its end. The effects of an agent are those of its calls, once its run is over.
    pub(crate) fn known_end(&self, log: LogAccess) -> AttemptEnd {
        let is_over = matches!(log, LogAccess::Free | LogAccess::Gone);
        match self.end {
            AttemptEnd::Unknown if is_over && self.is_agent && !self.has_nested_effects => {
                AttemptEnd::Nothing
            }
            end => end,
        }
    }
}

/// Reads the content of a result, which is JSON. `None` if there is none.
pub(crate) fn content_of(json: &str) -> Option<ResultContent> {
    let text = serde_json::from_str(json).map(ResultContent::Text);
    let content = text.or_else(|_| serde_json::from_str(json).map(ResultContent::Blocks));
    content.ok()
}

/// Returns what a result says. One that only says that the run ended is none.
fn end_of_result(end: &CallEndRecord<'_>) -> AttemptEnd {
    if end.status.is_rejected() {
        return AttemptEnd::Nothing;
    }
    if end.is_interrupted() || end.status.is_stopped_externally() && end.budget_of.is_none() {
        return AttemptEnd::Unknown;
    }
    match end.reach.as_deref().map_or(Reach::Done, Reach::from_name) {
        Reach::Nothing => AttemptEnd::Nothing,
        Reach::Refused => AttemptEnd::Result(ResultKind::Refused),
        Reach::Open => AttemptEnd::Result(ResultKind::Open),
        Reach::Done => AttemptEnd::Result(ResultKind::Done),
    }
}

/// A call as its record says it.
#[derive(Debug, Clone)]
pub(crate) struct AskedCall {
    pub(crate) tool_use_id: String,
    pub(crate) tool: String,
    pub(crate) input: Option<String>,
    pub(crate) timestamp: u64,
}
