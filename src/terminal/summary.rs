//! The one-line summary at the end of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::output::Exit;
use crate::terminal::failure_list::{OutcomeTally, calls_label};
use redact::Mask;
use toolq_core::os::Clock;
use toolq_core::text::{escape, format_count, format_duration, format_time, truncate_to_columns};
use toolq_core::types::{
    CallRef, EmitError, Event, EventSink, Outcome, PicoUsd, PriceTable, ReportedUsage,
    RestoredResult, Status, ToolsConfig, Verdict, format_dollars,
};
use toolq_log::memory::asked_digest;

/// Counts what happens in a run and summarizes it in one line.
#[derive(Default)]
pub struct RunSummary {
    clock: Clock,
    mask: Arc<Mask>,
    /// Number of calls of the input.
    calls: usize,
    /// Number of calls that agents made.
    agent_calls: usize,
    batches: usize,
    /// How all of these calls ended.
    outcomes: OutcomeTally,
    /// Number of calls of the input that succeeded.
    succeeded: usize,
    /// Number of errors by status, among the calls of the input.
    errors: BTreeMap<Status, usize>,
    agents: AgentTotals,
    /// Number of calls with more than one attempt.
    retried: usize,
    /// Number of calls whose output was cut at its limit.
    cut: usize,
    /// Number of calls whose input was coerced.
    coerced: usize,
    /// Number of calls whose input only got defaults.
    defaulted: usize,
    /// The calls that the memory answered.
    remembered: MemoryNote,
    /// Ids that flags name, until a call has them.
    named: BTreeSet<String>,
    /// The most severe exit that an outcome asks for.
    exit: Exit,
    /// What tells the calls of the input apart that wait for an approval.
    waiting: Vec<String>,
    /// Why the approver stopped the run.
    approver_stop: Option<String>,
    /// How many lines servers wrote to stdout that weren't messages, by server.
    noise_lines: BTreeMap<String, u64>,
    /// Sum of the durations of all calls of the input. It has those of agents' calls.
    serial_duration: Duration,
    /// Timestamps of the first and the last event, in milliseconds.
    span_ms: Option<(u64, u64)>,
}

impl RunSummary {
    /// Creates an empty summary of a run. `tools` say what agents cost.
    pub fn new(clock: Clock, tools: &ToolsConfig, mask: Arc<Mask>) -> Self {
        Self {
            clock,
            mask,
            agents: AgentTotals {
                prices: tools.prices.clone(),
                cost: Some(0),
                ..AgentTotals::default()
            },
            ..Self::default()
        }
    }

    /// Returns the number of calls that were answered with an error.
    pub fn errors(&self) -> usize {
        self.errors.values().sum()
    }

    /// Returns the most severe exit that the outcome of a call asks for, whether it ran or the memory answered it.
    pub fn exit(&self) -> Exit {
        self.exit
    }

    /// Returns whether the run stopped before each of its calls had a result of its own.
    pub fn has_unanswered_calls(&self) -> bool {
        let is_stopped = |status: &Status| {
            status.is_stopped_externally()
                || matches!(status, Status::NotExecuted | Status::LogRefused)
        };
        self.errors.keys().any(is_stopped) || self.calls > self.succeeded + self.errors()
    }

    /// Returns the digests of the calls of the input that wait for an approval.
    pub fn waiting(&self) -> &[String] {
        &self.waiting
    }

    /// Returns why the approver stopped the run, if it did.
    pub fn approver_stop(&self) -> Option<&str> {
        self.approver_stop.as_deref()
    }

    /// Says which calls the memory answered, if it answered some.
    pub fn memory_note(&self) -> Option<String> {
        self.remembered.text()
    }

    /// Whether the calls that the memory answered may be repeated without thinking of what they run once for.
    pub fn may_renew(&self) -> bool {
        self.remembered.may_be_renewed()
    }

    /// Adds the ids that flags name.
    pub fn name_calls(&mut self, ids: impl IntoIterator<Item = String>) {
        self.named.extend(ids);
    }

    /// Returns the ids that flags name and that no call had.
    pub fn unknown_ids(&self) -> impl Iterator<Item = &str> {
        self.named.iter().map(String::as_str)
    }

    /// Says which servers wrote to stdout what isn't a message.
    pub fn noise_notes(&self) -> impl Iterator<Item = String> {
        self.noise_lines.iter().map(|(server, lines)| {
            let lines = format_count(*lines, "line");
            format!("{server}: skipped {lines} of noise on its stdout")
        })
    }

    /// Formats the summary: `8 calls, and 4 of agents, in 3 batches: 10 ok, 1 failed (timeout), 1 rejected (unknown tool); took 4s,
    /// 8s if run one after another`.
    pub fn text(&self) -> String {
        if self.calls == 0 {
            return "no calls".to_owned();
        }
        let all = self.calls + self.agent_calls;
        let unfinished = all.saturating_sub(self.outcomes.total());
        let mut labels = self.outcomes.labels();
        labels.extend((unfinished > 0).then(|| format!("{unfinished} without a result")));
        let counts = [
            (self.remembered.count(), "from memory"),
            (self.retried, "retried"),
            (self.cut, "with a cut output"),
            (self.coerced, "with a coerced input"),
            (self.defaulted, "with defaults added"),
        ];
        let counts = counts.into_iter().filter(|(number, _)| *number > 0);
        let remarks: Vec<String> = counts
            .map(|(number, remark)| format!("{number} {remark}"))
            .collect();
        let remarks = match remarks.join(", ") {
            remarks if remarks.is_empty() => remarks,
            remarks => format!("; {remarks}"),
        };
        let agents = self.agents.label();
        let agents = agents.map_or_else(String::new, |agents| format!("; {agents}"));
        let calls = calls_label(self.calls, self.agent_calls);
        let labels = labels.join(", ");
        // Without a batch, nothing ran: each result is from the memory or is a rejection.
        let (batches, durations) = match self.batches {
            0 => (String::new(), String::new()),
            count => {
                let comma = if self.agent_calls > 0 { "," } else { "" };
                let noun = if count == 1 { "batch" } else { "batches" };
                let durations = self.durations_label(unfinished > 0);
                (
                    format!("{comma} in {count} {noun}"),
                    format!("; {durations}"),
                )
            }
        };
        format!("{calls}{batches}: {labels}{remarks}{agents}{durations}")
    }

    /// Formats how long the run took, and would take without parallel calls.
    fn durations_label(&self, is_unfinished: bool) -> String {
        let (first, last) = self.span_ms.unwrap_or_default();
        // Calls without a result ran until now.
        let last = if is_unfinished {
            self.clock.now_ms()
        } else {
            last
        };
        let took = Duration::from_millis(last.saturating_sub(first));
        let (took_text, serial) = (format_duration(took), format_duration(self.serial_duration));
        // It says something only where calls ran beside each other.
        let serial = if self.serial_duration > took && serial != took_text {
            format!(", {serial} if run one after another")
        } else {
            String::new()
        };
        format!("took {took_text}{serial}")
    }

    fn handle_event(&mut self, event: &Event<'_>) {
        self.agents.handle_event(event);
        if let Event::Finished {
            call,
            outcome,
            attempts,
            ..
        } = event
        {
            self.exit = self.exit.max(Exit::of_outcome(outcome));
            self.outcomes.add(outcome.kind(), outcome.status());
            if let Outcome::Restored(result) = &**outcome {
                self.remembered.add(call, result);
            }
            self.retried += usize::from(*attempts > 1 && !outcome.is_restored());
            let captured = outcome.captured();
            self.cut += usize::from(captured.is_some_and(|captured| captured.cut_bytes > 0));
        }
        match event {
            Event::Queued { checked, .. } => {
                self.named.remove(&checked.call.id);
                if checked.call.parent.is_none() {
                    self.calls += 1;
                } else {
                    self.agent_calls += 1;
                }
                if let Verdict::Accepted(accepted) = &checked.verdict
                    && accepted.before_coercion.is_some()
                {
                    self.coerced += usize::from(accepted.is_coerced);
                    self.defaulted += usize::from(!accepted.is_coerced);
                }
            }
            Event::BatchStarted { calls, .. } => {
                let of_input = calls.first().is_none_or(|call| call.parent.is_none());
                self.batches += usize::from(of_input);
            }
            Event::ServerEnded(end) if end.noise_lines > 0 => {
                *self.noise_lines.entry(end.server.clone()).or_default() += end.noise_lines;
            }
            Event::ApproverStopped { why, .. } => self.approver_stop = Some((*why).to_owned()),
            Event::Finished {
                call,
                request,
                outcome,
                duration,
                ..
            } if call.parent.is_none() => {
                self.serial_duration += *duration;
                if matches!(**outcome, Outcome::NeedsApproval) {
                    let input = request.accepted.map_or("", |call| call.input.text());
                    self.waiting.push(asked_digest(call, input, &self.mask));
                }
                if outcome.is_error() {
                    *self.errors.entry(outcome.status()).or_default() += 1;
                } else {
                    self.succeeded += 1;
                }
            }
            _ => {}
        }
    }
}

impl EventSink for RunSummary {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        let now = self.clock.now_ms();
        let (from, _) = self.span_ms.unwrap_or((now, now));
        self.span_ms = Some((from, now));
        for event in events {
            self.handle_event(event);
        }
        Ok(())
    }
}

// What all agents of a run did.

/// Counts what agents do, and what it costs.
#[derive(Default)]
struct AgentTotals {
    prices: PriceTable,
    /// Whether one of them sent a request to its model.
    has_requests: bool,
    /// Number of responses that they received.
    turns: usize,
    /// Whether a model reported what a response cost.
    has_cost: bool,
    /// Cost of the models' responses; `None` if the price of one is unknown.
    cost: Option<PicoUsd>,
}

impl AgentTotals {
    pub(super) fn handle_event(&mut self, event: &Event<'_>) {
        match event {
            Event::AgentProgress { .. } => self.has_requests = true,
            Event::AgentMessage {
                response: Some(response),
                ..
            } => {
                self.turns += 1;
                let model = response.model.as_deref().unwrap_or_default();
                self.add_cost(model, &response.usage);
            }
            _ => {}
        }
    }

    /// Formats the totals as `agents: 2 turns, $0.0105`, or returns `None` if no agent ran.
    pub(super) fn label(&self) -> Option<String> {
        self.has_requests.then(|| {
            format!(
                "agents: {}{}",
                format_count(self.turns as u64, "turn"),
                self.cost_label()
            )
        })
    }

    /// Formats the cost as `, $0.0105`, or as nothing if tools.yaml has no `prices` or no model responded.
    fn cost_label(&self) -> String {
        match self.cost {
            _ if self.prices.0.is_empty() || !self.has_cost => String::new(),
            Some(cost) => format!(", {}", format_dollars(cost)),
            None => ", cost unknown".to_owned(),
        }
    }

    fn add_cost(&mut self, model: &str, tokens: &ReportedUsage) {
        self.has_cost = true;
        let cost = self.prices.cost(model, tokens);
        self.cost = self.cost.zip(cost).map(|(sum, cost)| sum + cost);
    }
}

// What the memory answered in a run, in one line for people.

/// How many calls the note names.
const MAX_NAMED_CALLS: usize = 3;
/// Maximum width of the name of a call, in columns.
const MAX_COLUMNS: usize = 60;

/// The calls that the memory answered.
#[derive(Debug, Default)]
struct MemoryNote {
    count: usize,
    named: Vec<String>,
    /// What happened to the first of them and when, and the log that says so.
    first: Option<(&'static str, u64, PathBuf)>,
    /// Whether one of them is known by its values: it runs once, whatever its id.
    has_once: bool,
}

impl MemoryNote {
    /// Adds a call.
    pub(super) fn add(&mut self, call: &CallRef, result: &RestoredResult) {
        let source = result.source.as_deref();
        self.count += 1;
        self.has_once |= source.is_some_and(|source| source.other_id.is_some());
        if self.named.len() < MAX_NAMED_CALLS {
            let name = format!("{} {}", call.tool_name, call.tool_use_id);
            let name = truncate_to_columns(&name, MAX_COLUMNS);
            self.named.push(escape(&name).into_owned());
        }
        if let (None, Some(source)) = (&self.first, source) {
            let happened = match result.status {
                Status::Resolved => "was settled",
                _ => "ran",
            };
            self.first = Some((happened, source.ended_ms, source.log.clone()));
        }
    }

    /// Returns how many calls there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Whether it may be said how they run again.
    fn may_be_renewed(&self) -> bool {
        !self.has_once
    }

    /// Formats the note: `2 calls from memory: pay toolu_1, pay toolu_2, the first of them ran 2026-01-01 12:03:00 UTC (LOG)`.
    pub(super) fn text(&self) -> Option<String> {
        let more = match self.count - self.named.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let ran = self.first.as_ref().map(|(happened, ms, log)| {
            let which = if self.count == 1 {
                ""
            } else {
                "the first of them "
            };
            let time = format_time(*ms);
            format!(", {which}{happened} {time} ({})", log.display())
        });
        let calls = format_count(self.count as u64, "call");
        let named = self.named.join(", ");
        let ran = ran.unwrap_or_default();
        (self.count > 0).then(|| format!("{calls} from memory: {named}{more}{ran}"))
    }
}
