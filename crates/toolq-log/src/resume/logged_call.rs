use uuid::Uuid;

use crate::read::Damage;
use crate::records::metadata;
use crate::records::{Kind, Record};
use crate::resume::policy::State;
use toolq_core::types::Effect;

/// What is kept of a call.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Its `tool_call`.
    pub(crate) record: Uuid,
    pub(crate) tool_use_id: Box<str>,
    pub(crate) tool: Box<str>,
    pub(crate) input_sha256: Option<Box<str>>,
    pub(crate) tool_sha256: Option<Box<str>>,
    pub(crate) state: State,
    /// How many were started.
    pub(crate) attempts: u32,
    /// That of the last start.
    pub(crate) key: Option<Box<str>>,
    /// That of the last start.
    pub(crate) effect: Option<Effect>,
    /// Where its `tool_call` stands.
    pub(crate) asked: Extent,
    /// Where its answer stands.
    pub(crate) answer: Option<Answered>,
    /// The call of the agent that asked for it.
    pub(crate) within: Option<Uuid>,
    /// An agent started to work on it.
    pub(crate) is_agents: bool,
    /// Where it was rejected last, if it was not started since. That moves it nowhere: nothing ran.
    pub(crate) rejected: Option<Extent>,
}

/// A line of the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    /// Where it begins, in bytes.
    pub(crate) offset: u64,
    /// How many bytes it has, its break included.
    pub(crate) len: u32,
}

/// The record that a call's answer stands in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answered {
    pub(crate) at: Extent,
    pub(crate) status: &'static str,
    pub(crate) is_error: bool,
}

impl Extent {
    pub(crate) fn of(record: &Record, end: u64) -> Self {
        Self {
            offset: record.offset,
            // No line is longer than 64 KiB.
            len: u32::try_from(end - record.offset).unwrap_or(u32::MAX),
        }
    }
}

impl Entry {
    pub(crate) fn new(
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
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state, State::Started | State::InDoubt | State::NotDone)
    }

    pub(crate) fn is_in_doubt(&self) -> bool {
        self.state == State::InDoubt
    }

    /// Whether nobody knows if it had an effect that it may not have twice.
    pub(crate) fn may_have_had_effect(&self) -> bool {
        let writes = self.effect == Some(Effect::Write);
        self.is_in_doubt() || self.state == State::Started && writes
    }

    /// Takes a record of this call.
    pub(crate) fn take(&mut self, record: &Record, end: u64) -> Result<(), Damage> {
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
