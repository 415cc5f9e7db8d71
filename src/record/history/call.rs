use uuid::Uuid;

use crate::model::Effect;
use crate::record::damage::Damage;
use crate::record::decide::State;
use crate::record::{Kind, Record, metadata};

/// What is kept of a call.
#[derive(Debug)]
pub(in crate::record) struct Entry {
    /// Its `tool_call`.
    pub(in crate::record) record: Uuid,
    pub(in crate::record) tool_use_id: Box<str>,
    pub(in crate::record) tool: Box<str>,
    pub(in crate::record) input_sha256: Option<Box<str>>,
    pub(in crate::record) tool_sha256: Option<Box<str>>,
    pub(in crate::record) state: State,
    /// How many were started.
    pub(in crate::record) attempts: u32,
    /// That of the last start.
    pub(in crate::record) key: Option<Box<str>>,
    /// That of the last start.
    pub(in crate::record) effect: Option<Effect>,
    /// Where its `tool_call` stands.
    pub(in crate::record) asked: Extent,
    /// Where its answer stands.
    pub(in crate::record) answer: Option<Answered>,
    /// The call of the agent that asked for it.
    pub(in crate::record) within: Option<Uuid>,
    /// An agent started to work on it.
    pub(in crate::record) is_agents: bool,
    /// Where it was rejected last, if it was not started since. That moves it nowhere: nothing ran.
    pub(in crate::record) rejected: Option<Extent>,
}

/// A line of the file.
#[derive(Debug, Clone, Copy)]
pub(in crate::record) struct Extent {
    /// Where it begins, in bytes.
    pub(in crate::record) offset: u64,
    /// How many bytes it has, its break included.
    pub(in crate::record) len: u32,
}

/// The record that a call's answer stands in.
#[derive(Debug, Clone, Copy)]
pub(in crate::record) struct Answered {
    pub(in crate::record) at: Extent,
    pub(in crate::record) status: &'static str,
    pub(in crate::record) is_error: bool,
}

impl Extent {
    pub(super) fn of(record: &Record, end: u64) -> Self {
        Self {
            offset: record.offset,
            // No line is longer than 64 KiB.
            len: u32::try_from(end - record.offset).unwrap_or(u32::MAX),
        }
    }
}

impl Entry {
    pub(super) fn new(
        record: &Record,
        call: metadata::Call,
        within: Option<Uuid>,
        end: u64,
    ) -> Self {
        Self {
            record: record.id,
            tool: call.tool_name.into(),
            tool_use_id: call.tool_use_id.into(),
            input_sha256: call.input_sha256.map(Into::into),
            tool_sha256: call.tool_sha256.map(Into::into),
            state: State::Asked,
            attempts: 0,
            key: None,
            effect: None,
            asked: Extent::of(record, end),
            answer: None,
            within,
            is_agents: false,
            rejected: None,
        }
    }

    /// Whether it may have done something that nobody knows, and may be resolved.
    pub(in crate::record) fn is_open(&self) -> bool {
        matches!(self.state, State::Started | State::InDoubt | State::NotDone)
    }

    pub(super) fn is_in_doubt(&self) -> bool {
        self.state == State::InDoubt
    }

    /// Whether nobody knows if it had an effect that it may not have twice.
    pub(super) fn may_have_had_effect(&self) -> bool {
        let writes = self.effect == Some(Effect::Write);
        self.is_in_doubt() || self.state == State::Started && writes
    }

    /// Takes a record of this call.
    pub(super) fn take(&mut self, record: &Record, end: u64) -> Result<(), Damage> {
        match &record.kind {
            Kind::ToolStart => self.start(record),
            Kind::ToolResult | Kind::ToolInDoubt => self.end(record, end),
            Kind::Resolve => self.resolve(record, end),
            Kind::ToolSkipped => self.skip(record),
            Kind::ProbeEnd => self.probed(record),
            _ => Ok(()),
        }
    }

    /// What the probe found to be undone stays so, also where no start came after it. What it found to be done gets its
    /// result next.
    fn probed(&mut self, record: &Record) -> Result<(), Damage> {
        let probed: metadata::ProbeEnd<'_> = record.metadata()?;
        if probed.finding == "not_done" {
            self.state = State::NotDone;
        }
        Ok(())
    }

    fn start(&mut self, record: &Record) -> Result<(), Damage> {
        let start: metadata::Start<'_> = record.metadata()?;
        self.state = State::Started;
        self.attempts = self.attempts.max(start.attempt);
        self.key = Some(start.idempotency_key.into());
        self.effect = Effect::of(&start.effect);
        self.is_agents = start.agent.is_some();
        self.answer = None;
        self.rejected = None;
        Ok(())
    }

    fn end(&mut self, record: &Record, end: u64) -> Result<(), Damage> {
        let ended: metadata::CallEnd<'_> = record.metadata()?;
        let status = known_status(&ended);
        if metadata::is_rejected(status) {
            self.rejected = Some(Extent::of(record, end));
            return Ok(());
        }
        let started = self.state == State::Started;
        self.state = match (&record.kind, status) {
            (Kind::ToolInDoubt, _) => State::InDoubt,
            _ if started && ended.is_cut_short() => State::CutShort,
            _ => State::Ended,
        };
        self.answer = Some(Answered {
            at: Extent::of(record, end),
            status,
            is_error: ended.is_error,
        });
        Ok(())
    }

    /// What was started and called off before anything was sent surely did nothing. What was not come to stands where it
    /// stood.
    fn skip(&mut self, record: &Record) -> Result<(), Damage> {
        let skipped: metadata::CallEnd<'_> = record.metadata()?;
        if self.state == State::Started && skipped.attempts > 0 {
            self.state = State::NotDone;
        }
        Ok(())
    }

    fn resolve(&mut self, record: &Record, end: u64) -> Result<(), Damage> {
        let resolved: metadata::Resolved = record.metadata()?;
        if !resolved.done {
            self.state = State::NotDone;
            self.answer = None;
            return Ok(());
        }
        self.state = State::Done;
        self.answer = Some(Answered {
            at: Extent::of(record, end),
            status: "resolved",
            is_error: resolved.is_error,
        });
        Ok(())
    }
}

/// The statuses of a call that has an end, and was not rejected.
const ENDED: [&str; 13] = [
    "ok",
    "failed",
    "bad_output",
    "timeout",
    "not_started",
    "unavailable",
    "in_doubt",
    "agent_failed",
    "no_backing",
    "cancelled",
    "interrupted",
    "over_budget",
    "internal_error",
];

/// The status as the program has it. Only a newer format has other words, and that can't be continued.
fn known_status(ended: &metadata::CallEnd<'_>) -> &'static str {
    let mut known = metadata::REJECTED.into_iter().chain(ENDED);
    let otherwise = if ended.is_error { "failed" } else { "ok" };
    known
        .find(|word| *word == ended.status)
        .unwrap_or(otherwise)
}
