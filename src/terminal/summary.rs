//! The one-line summary at the end of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use toolq_core::os::Clock;
use toolq_core::text::format_duration;
use toolq_core::types::{
    CheckedCall, EmitError, Event, EventSink, PicoUsd, PriceTable, ReportedUsage, Status, Verdict,
    format_dollars,
};

/// Counts what happens in a run and summarizes it in one line.
pub struct RunSummary {
    clock: Clock,
    prices: PriceTable,
    calls: usize,
    batches: usize,
    succeeded: usize,
    /// Number of errors by status.
    errors: BTreeMap<Status, usize>,
    agents: AgentTotals,
    /// Number of calls with more than one attempt.
    retried: usize,
    /// Number of calls whose input was coerced, or got defaults.
    adjusted: usize,
    /// Number of calls whose result was restored from the log.
    restored: usize,
    /// Whether the run stopped before its work was done.
    incomplete: bool,
    /// Whether a call is in doubt.
    has_doubt: bool,
    /// Why whoever approves calls stopped the run.
    approver_stop: Option<String>,
    /// Sum of the durations of all calls.
    serial_duration: Duration,
    /// Timestamps of the first and the last event, in milliseconds.
    span_ms: Option<(u64, u64)>,
}

/// What all agents of a run did.
struct AgentTotals {
    /// Number of calls that they made, without those restored from the log.
    calls: usize,
    /// Whether one of them sent a request to its model.
    has_requests: bool,
    /// Number of responses that they received.
    turns: usize,
    /// Whether a model reported what a response cost.
    has_cost: bool,
    /// Cost of the models' responses; `None` if the price of one is unknown.
    cost: Option<PicoUsd>,
}

impl RunSummary {
    /// Creates an empty summary. `prices` are used to compute the cost of agents.
    pub fn new(clock: Clock, prices: PriceTable) -> Self {
        Self {
            clock,
            prices,
            calls: 0,
            batches: 0,
            succeeded: 0,
            errors: BTreeMap::new(),
            agents: AgentTotals {
                calls: 0,
                has_requests: false,
                turns: 0,
                has_cost: false,
                cost: Some(0),
            },
            retried: 0,
            adjusted: 0,
            restored: 0,
            incomplete: false,
            has_doubt: false,
            approver_stop: None,
            serial_duration: Duration::ZERO,
            span_ms: None,
        }
    }

    /// Returns the number of calls that were answered with an error.
    pub fn errors(&self) -> usize {
        self.errors.values().sum()
    }

    /// Returns whether a call ended in a way that needs attention before the session continues. A call that is in doubt
    /// or over its budget counts even if its result was restored from the log; the other reasons, such as a full disk,
    /// concern only the run in which they occurred.
    pub fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    /// Returns whether the run stopped before each of its calls had a result of its own.
    pub fn has_unanswered_calls(&self) -> bool {
        let is_stopped = |status: &Status| {
            status.is_stopped_externally()
                || matches!(status, Status::NotExecuted | Status::LogRefused)
        };
        self.errors.keys().any(is_stopped) || self.calls > self.succeeded + self.errors()
    }

    /// Returns why whoever approves calls stopped the run, if that happened.
    pub fn approver_stop(&self) -> Option<&str> {
        self.approver_stop.as_deref()
    }

    /// Returns whether a call didn't run because nobody approved it.
    pub fn has_missing_approvals(&self) -> bool {
        self.errors.contains_key(&Status::NeedsApproval)
    }

    /// Returns whether a call is in doubt, here or in an earlier run.
    pub fn has_doubt(&self) -> bool {
        self.has_doubt
    }

    /// Formats the summary: `5 calls in 3 batches: 3 ok, 1 timeout, 1 unknown tool; 8s in series, 4s as run`.
    pub fn text(&self) -> String {
        let count = |number: usize, one: &str, many: &str| {
            format!("{number} {}", if number == 1 { one } else { many })
        };
        if self.calls == 0 {
            return "no calls".to_owned();
        }
        let errors = self.errors.iter();
        let errors = errors.map(|(status, number)| format!("{number} {}", status.label()));
        let succeeded = (self.succeeded > 0).then(|| format!("{} ok", self.succeeded));
        let unfinished = self.calls - self.succeeded - self.errors();
        let unfinished = (unfinished > 0).then(|| format!("{unfinished} without a result"));
        let (first, last) = self.span_ms.unwrap_or_default();
        // Calls without a result ran until now.
        let last = unfinished.as_ref().map_or(last, |_| self.clock.now_ms());
        let outcome_labels: Vec<_> = succeeded
            .into_iter()
            .chain(errors)
            .chain(unfinished)
            .collect();
        let remarks = [
            (self.restored, "from the log"),
            (self.retried, "retried"),
            (self.adjusted, "with a coerced or completed input"),
        ];
        let remarks = remarks.into_iter().filter(|(number, _)| *number > 0);
        let remarks: Vec<String> = remarks
            .map(|(number, remark)| format!("{number} {remark}"))
            .collect();
        let remarks = match remarks.join(", ") {
            remarks if remarks.is_empty() => remarks,
            remarks => format!(" ({remarks})"),
        };
        let agents = if self.agents.has_requests {
            format!(
                "; agents: {}, {}{}",
                count(self.agents.turns, "turn", "turns"),
                count(self.agents.calls, "call", "calls"),
                self.cost_label()
            )
        } else {
            String::new()
        };
        let calls = count(self.calls, "call", "calls");
        let outcome_labels = outcome_labels.join(", ");
        if self.batches == 0 {
            // Nothing ran: each result is from the log or is a rejection.
            return format!("{calls}: {outcome_labels}{remarks}{agents}");
        }
        format!(
            "{calls} in {}: {outcome_labels}{remarks}{agents}; {} in series, {} as run",
            count(self.batches, "batch", "batches"),
            format_duration(self.serial_duration),
            format_duration(Duration::from_millis(last.saturating_sub(first))),
        )
    }

    /// Formats the cost as `, $0.0105`, or as nothing if tools.yaml has no `prices` or no model responded.
    fn cost_label(&self) -> String {
        match self.agents.cost {
            _ if self.prices.0.is_empty() || !self.agents.has_cost => String::new(),
            Some(cost) => format!(", {}", format_dollars(cost)),
            None => ", cost unknown".to_owned(),
        }
    }

    fn add_cost(&mut self, model: &str, tokens: &ReportedUsage) {
        self.agents.has_cost = true;
        let cost = self.prices.cost(model, tokens);
        self.agents.cost = self.agents.cost.zip(cost).map(|(sum, cost)| sum + cost);
    }

    fn handle_event(&mut self, event: &Event<'_>) {
        if let Event::Finished {
            outcome,
            agent_usage: Some(agent),
            ..
        } = event
            && !outcome.is_restored()
        {
            for (model, tokens) in &agent.aborted_usage {
                self.add_cost(model, tokens);
            }
        }
        if let Event::Finished { outcome, .. } = event {
            self.has_doubt |= outcome.is_in_doubt();
        }
        match event {
            Event::Queued { checked, .. } if checked.call.parent.is_some() => {
                self.agents.calls += 1;
            }
            Event::Queued { checked, .. } => {
                self.calls += 1;
                self.adjusted += usize::from(has_adjusted_input(checked));
            }
            Event::BatchStarted { calls, .. } => {
                let of_input = calls.first().is_none_or(|call| call.parent.is_none());
                self.batches += usize::from(of_input);
            }
            Event::AgentProgress { .. } => self.agents.has_requests = true,
            Event::ApproverStopped { why, .. } => self.approver_stop = Some((*why).to_owned()),
            Event::AgentMessage {
                response: Some((response, _)),
                ..
            } => {
                self.agents.turns += 1;
                let model = response.model.as_deref().unwrap_or_default();
                self.add_cost(model, &response.usage);
            }
            Event::Finished { call, outcome, .. } if call.parent.is_some() => {
                self.incomplete |= outcome.status().stops_run();
                // Restored calls weren't made by this run, just as their turns weren't.
                self.agents.calls -= usize::from(outcome.is_restored()).min(self.agents.calls);
            }
            Event::Finished {
                outcome,
                duration,
                attempts,
                ..
            } => {
                let is_restored = outcome.is_restored();
                self.retried += usize::from(*attempts > 1 && !is_restored);
                self.restored += usize::from(is_restored);
                let is_lasting = outcome.is_in_doubt() || outcome.status() == Status::OverBudget;
                self.incomplete |= is_lasting || !is_restored && outcome.status().stops_run();
                self.serial_duration += *duration;
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

fn has_adjusted_input(checked: &CheckedCall) -> bool {
    match &checked.verdict {
        Verdict::Accepted(accepted) => accepted.before_coercion.is_some(),
        Verdict::Rejected(_) => false,
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
