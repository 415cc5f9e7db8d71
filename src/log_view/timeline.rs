//! The calls of a session log with their times: read once, for pages and traces.

use std::collections::HashMap;
use std::time::Duration;

use uuid::Uuid;

use crate::log_view::{CostCollector, WAITS_FOR_APPROVAL, approval_label, end_label, end_summary};
use toolq_core::os::Clock;
use toolq_core::text::{content_text, format_duration, keep_beginning};
use toolq_core::types::{Effect, OutcomeKind, Status, safety_text};
use toolq_log::records::{CallContent, CallRecord, SessionEndRecord, SessionRecord, TurnRecord};
use toolq_log::{CallEvent, Corruption, Record, RecordKind};

/// The calls of a log, and the runs that made them.
#[derive(Debug, Default)]
pub(crate) struct LogTimeline {
    pub(crate) runs: Vec<LoggedRun>,
    /// In the order in which they were requested. The calls that an agent made come after the agent's own call.
    pub(crate) calls: Vec<TimelineCall>,
    /// What its agents used.
    pub(crate) cost: CostCollector,
}

/// A run, which the log has a `session` record of.
#[derive(Debug)]
pub(crate) struct LoggedRun {
    pub(crate) session: SessionRecord,
    /// In milliseconds since 1970.
    pub(crate) started_ms: u64,
    /// Where its first turn comes from: a path, or `-` for stdin.
    pub(crate) input: Option<String>,
    /// When it wrote its last record, or now if it still runs.
    pub(crate) last_ms: u64,
    /// `None` if it was killed or still runs.
    pub(crate) end: Option<SessionEndRecord>,
    pub(crate) is_running: bool,
}

/// Collects a timeline from the records of a log, in file order.
#[derive(Debug, Default)]
pub(crate) struct TimelineReader {
    timeline: LogTimeline,
    /// When the last record was written, in milliseconds since 1970.
    last_ms: u64,
    /// The calls by their `tool_call` records.
    calls: HashMap<Uuid, usize>,
    /// The agent's calls by the records of the agent's turns.
    agent_turns: HashMap<Uuid, usize>,
}

impl TimelineReader {
    /// Adds the next record; `content` is called if its content is needed.
    ///
    /// # Errors
    /// The record's metadata doesn't match its type.
    pub(crate) fn add_record(
        &mut self,
        record: &Record,
        content: &mut dyn FnMut() -> Result<String, String>,
    ) -> Result<(), Corruption> {
        let timeline = &mut self.timeline;
        timeline.cost.add_record(record)?;
        // Clocks can go backwards; a picture of that would be no use.
        self.last_ms = self.last_ms.max(record.timestamp);
        // Whoever settles a call or goes on with the log may do so long after its run.
        let is_of_run = !matches!(
            record.kind,
            RecordKind::Session | RecordKind::Resolve | RecordKind::Recovered
        );
        if let Some(run) = timeline.runs.last_mut().filter(|_| is_of_run) {
            run.last_ms = self.last_ms;
        }
        match &record.kind {
            RecordKind::Session => timeline.runs.push(LoggedRun {
                session: record.parse_metadata()?,
                started_ms: self.last_ms,
                input: None,
                last_ms: self.last_ms,
                end: None,
                is_running: false,
            }),
            RecordKind::SessionEnd => {
                if let Some(run) = timeline.runs.last_mut() {
                    run.end = Some(record.parse_metadata()?);
                }
            }
            RecordKind::Turn => self.add_turn(record)?,
            RecordKind::ToolCall => self.add_call(record, content())?,
            kind => {
                let ends_call = kind.ends_call() || *kind == RecordKind::Resolve;
                self.apply_event(record, &mut || {
                    if ends_call {
                        content()
                    } else {
                        Ok(String::new())
                    }
                })?;
            }
        }
        Ok(())
    }

    /// Returns what was collected.
    pub(crate) fn finish(mut self) -> LogTimeline {
        self.timeline.cost.finish_log();
        if let Some(run) = self.timeline.runs.last_mut() {
            run.is_running = run.end.is_none() && !run.session.process().has_exited();
            if run.is_running {
                run.last_ms = run.last_ms.max(Clock::system().now_ms());
            }
        }
        self.timeline
    }

    fn add_turn(&mut self, record: &Record) -> Result<(), Corruption> {
        let turn: TurnRecord = record.parse_metadata()?;
        let agent_call = record
            .parent
            .and_then(|call| self.calls.get(&call).copied());
        if let Some(call) = agent_call.filter(|_| turn.agent.is_some()) {
            self.agent_turns.insert(record.id, call);
        } else if let Some(run) = self.timeline.runs.last_mut() {
            run.input = run.input.take().or(turn.input);
        }
        Ok(())
    }

    fn add_call(
        &mut self,
        record: &Record,
        content: Result<String, String>,
    ) -> Result<(), Corruption> {
        let call: CallRecord<'_> = record.parse_metadata()?;
        let (name, input) = match content {
            Ok(json) => read_content(&json),
            Err(reason) => (None, format!("({reason})")),
        };
        let parent = record.parent.and_then(|turn| self.agent_turns.get(&turn));
        self.calls.insert(record.id, self.timeline.calls.len());
        self.timeline.calls.push(TimelineCall {
            line: record.line,
            tool_use_id: call.tool_use_id.into_owned(),
            tool_name: name.unwrap_or_else(|| call.tool_name.into_owned()),
            run: self.timeline.runs.len().saturating_sub(1),
            turn: call.turn,
            position: call.position,
            batch: call.batch,
            safety: call
                .reason
                .map(|reason| safety_text(call.concurrency_safe == Some(true), &reason)),
            effect: None,
            parent: parent.copied(),
            input: keep_beginning(input),
            requested_ms: self.last_ms,
            waits_for_approval: call.needs_approval,
            approval: None,
            attempts: Vec::new(),
            outcome: OutcomeKind::Unfinished,
            end: None,
        });
        Ok(())
    }

    fn apply_event(
        &mut self,
        record: &Record,
        content: &mut dyn FnMut() -> Result<String, String>,
    ) -> Result<(), Corruption> {
        let call = record.parent.and_then(|call| self.calls.get(&call));
        let call = call.and_then(|index| self.timeline.calls.get_mut(*index));
        if let (Some(call), Some(event)) = (call, CallEvent::from_record(record)?) {
            let run = self.timeline.runs.get(call.run);
            let place = RecordPlace {
                line: record.line,
                // A person who settles it does so after its run, which may have been killed.
                at_ms: run.map_or(self.last_ms, |run| match record.kind {
                    RecordKind::Resolve => run.last_ms,
                    _ => self.last_ms,
                }),
            };
            let output =
                content().map_or_else(|reason| format!("({reason})"), |json| content_text(&json));
            call.apply(&event, place, keep_beginning(output));
        }
        Ok(())
    }
}

impl LogTimeline {
    /// Returns when a call ended. One without an end counts as ended with its run.
    pub(crate) fn end_of(&self, call: &TimelineCall) -> u64 {
        let run_last_ms = || self.runs.get(call.run).map(|run| run.last_ms);
        let ended = call.end.as_ref().map(|end| end.at_ms);
        ended.or_else(run_last_ms).unwrap_or(call.requested_ms)
    }

    /// Returns how long a call took, `None` if it never started. Without a duration on record, the times of its records
    /// say.
    pub(crate) fn duration_of(&self, call: &TimelineCall) -> Option<u64> {
        let started = call.started_ms()?;
        let recorded = call.end.as_ref().and_then(|end| end.duration_ms);
        Some(recorded.unwrap_or_else(|| self.end_of(call).saturating_sub(started)))
    }

    /// Says how long a call took, if it started: `12ms`, or `≥ 12ms` if its run was killed some time after its last record.
    pub(crate) fn took(&self, call: &TimelineCall) -> Option<String> {
        let ms = self.duration_of(call)?;
        let recorded = call.end.as_ref().map(|end| end.duration_ms.is_some());
        let took = format_duration(Duration::from_millis(ms));
        if recorded.unwrap_or_else(|| self.is_open(call)) {
            return Some(took);
        }
        (ms > 0).then(|| format!("≥ {took}"))
    }

    /// Returns whether a call has no end yet because its run goes on.
    pub(crate) fn is_open(&self, call: &TimelineCall) -> bool {
        call.end.is_none() && self.runs.get(call.run).is_some_and(|run| run.is_running)
    }

    /// Returns the word for how a call ended, or for where it is while its run goes on.
    pub(crate) fn state(&self, call: &TimelineCall) -> &'static str {
        match self.is_open(call) {
            true if call.attempts.is_empty() => "waiting",
            true => "running",
            false => call.outcome.label(),
        }
    }

    /// Says in a few words how a call ended, or what it waits for.
    pub(crate) fn summary<'c>(&self, call: &'c TimelineCall) -> &'c str {
        match &call.end {
            Some(end) => &end.summary,
            None if call.waits_for_approval => WAITS_FOR_APPROVAL,
            None => self.state(call),
        }
    }
}

/// Returns the tool's name and the input as JSON.
fn read_content(json: &str) -> (Option<String>, String) {
    match serde_json::from_str::<CallContent<'_>>(json) {
        Ok(CallContent { name, input, .. }) => {
            let input = input.map_or("null", |raw| raw.get());
            (Some(name.into_owned()), input.to_owned())
        }
        Err(error) => (None, format!("({error})")),
    }
}

// A call in a session log, with the times at which things happened to it.

/// A call, as its records tell it. Times are in milliseconds since 1970.
#[derive(Debug)]
pub(crate) struct TimelineCall {
    /// Line of its `tool_call` in the log, counted from 1.
    pub(crate) line: u64,
    pub(crate) tool_use_id: String,
    pub(crate) tool_name: String,
    /// The run that it belongs to, as an index into those of the log.
    pub(crate) run: usize,
    /// Its turn: of the input, or of the agent that made it.
    pub(crate) turn: usize,
    pub(crate) position: usize,
    /// `None` for a call that wasn't going to run.
    pub(crate) batch: Option<usize>,
    /// Whether it may run together with others, and what decided that: `parallel by effect`.
    pub(crate) safety: Option<String>,
    /// What its tool may do. `None` before it has started.
    pub(crate) effect: Option<Effect>,
    /// The agent's call that made it, as an index into the calls of the log.
    pub(crate) parent: Option<usize>,
    /// The input as JSON, or in parentheses why it can't be shown.
    pub(crate) input: String,
    pub(crate) requested_ms: u64,
    /// Nobody has said yet whether it may start.
    waits_for_approval: bool,
    /// Who approved or denied it, and why.
    pub(crate) approval: Option<String>,
    pub(crate) attempts: Vec<TimelineAttempt>,
    pub(crate) outcome: OutcomeKind,
    pub(crate) end: Option<TimelineEnd>,
}

/// An attempt at a call.
#[derive(Debug)]
pub(crate) struct TimelineAttempt {
    pub(crate) started_ms: u64,
    /// How it failed and when, if another attempt followed.
    pub(crate) failure: Option<(Status, u64)>,
}

/// The place of a record in a log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordPlace {
    /// Counted from 1.
    pub(super) line: u64,
    at_ms: u64,
}

/// The end of a call.
#[derive(Debug)]
pub(crate) struct TimelineEnd {
    /// Line of the record in the log, counted from 1.
    pub(crate) line: u64,
    at_ms: u64,
    /// How long the call took by the engine's clock, from its first start. `None` if that isn't on record.
    pub(crate) duration_ms: Option<u64>,
    /// How it ended: `failed: exit 3, 12ms`.
    pub(crate) label: String,
    /// The same in a few words, for a row: `failed: exit 3`.
    pub(crate) summary: String,
    /// What the model read, or in parentheses why it can't be shown.
    pub(crate) output: String,
    pub(crate) status: Status,
    pub(crate) is_from_memory: bool,
}

impl TimelineCall {
    /// Applies a record of the call. `output` is its content.
    pub(super) fn apply(&mut self, event: &CallEvent<'_>, place: RecordPlace, output: String) {
        let RecordPlace { line, at_ms } = place;
        match event {
            CallEvent::Started(start) => {
                if let Some((last, failure)) = self.attempts.last_mut().zip(start.after.as_ref()) {
                    let ended_ms = at_ms.saturating_sub(failure.wait_ms).max(last.started_ms);
                    last.failure = Some((failure.status.clone(), ended_ms));
                }
                self.effect = Some(start.effect);
                self.attempts.push(TimelineAttempt {
                    started_ms: at_ms,
                    failure: None,
                });
                (self.end, self.outcome) = (None, OutcomeKind::Unfinished);
            }
            CallEvent::Result(_)
            | CallEvent::Skipped(_)
            | CallEvent::InDoubt(_)
            | CallEvent::Resolved(_) => {
                // The time until a person resolved the call isn't part of its duration.
                let (end, before) = (event.end(), self.end.take());
                let before = before.filter(|_| end.is_none());
                let ended_ms = before.as_ref().map_or(at_ms, |before| before.at_ms);
                self.outcome = event.outcome_kind();
                self.end = end_label(event).map(|label| TimelineEnd {
                    line,
                    at_ms: ended_ms.max(self.requested_ms),
                    duration_ms: end
                        .map(|end| end.duration_ms)
                        .or(before.and_then(|before| before.duration_ms)),
                    label,
                    summary: end_summary(event),
                    output,
                    status: end.map_or(Status::Resolved, |end| end.status.clone()),
                    is_from_memory: end.is_some_and(|end| end.memory.is_some()),
                });
            }
            CallEvent::Approved(approval) => {
                self.waits_for_approval = false;
                self.approval = Some(approval_label(approval));
            }
            CallEvent::Probed(_) => {}
        }
    }

    /// Returns when it began to run, if it did.
    pub(crate) fn started_ms(&self) -> Option<u64> {
        self.attempts.first().map(|attempt| attempt.started_ms)
    }

    /// Returns whether a person said what became of it after its run.
    pub(crate) fn was_settled(&self) -> bool {
        let end = self.end.as_ref();
        end.is_some_and(|end| end.status == Status::Resolved && !end.is_from_memory)
    }

    /// Returns whether more than one attempt was started.
    pub(crate) fn was_retried(&self) -> bool {
        self.attempts.len() > 1
    }
}
