//! Collects the statistics of `toolq log stats`.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use uuid::Uuid;

use crate::log_view::durations::{DurationSample, DurationStats};
use toolq_core::json::expect_json;
use toolq_log::{CallEvent, CallLog, Corruption, Record};

/// Counts the outcomes of calls by tool, over any number of logs. Keeps one number per call that ran.
#[derive(Debug, Default)]
pub struct StatsCollector {
    tools: BTreeMap<Box<str>, ToolCounts>,
    /// Calls of the current log whose outcome isn't final, because a resumed run may continue them; by their
    /// `tool_call` records.
    unsettled_calls: HashMap<Uuid, UnsettledCall>,
}

/// A call whose outcome isn't final.
#[derive(Debug)]
struct UnsettledCall {
    tool: Box<str>,
    log: CallLog,
    outcome: OutcomeClass,
    /// Duration of a success or a failure, in milliseconds.
    duration_ms: Option<u64>,
}

/// The outcome of a call, as it is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutcomeClass {
    Success,
    Failure,
    InDoubt,
    Unfinished,
    Skipped,
    Rejected,
}

/// The calls of one tool.
#[derive(Debug, Default)]
struct ToolCounts {
    outcomes: OutcomeCounts,
    durations: DurationSample,
}

/// Numbers of calls by outcome. Each call is counted once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct OutcomeCounts {
    /// Calls that succeeded.
    pub successes: u64,
    /// Calls that ran and ended with an error.
    pub failures: u64,
    /// Calls that may have had their effect.
    pub in_doubt: u64,
    /// Calls with a start but no end in the log: their run was killed, or is still going.
    pub unfinished: u64,
    /// Calls that were answered but never started, for example because an earlier call failed or the run was stopped.
    pub skipped: u64,
    /// Calls that could not run, because of an unknown tool or an invalid input.
    pub rejected: u64,
}

/// The statistics of a tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolStats {
    /// The tool's name as in the calls; `None` for all tools together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// Calls that started, however often: the sum of the next four counts.
    pub runs: u64,
    /// What came of its calls.
    #[serde(flatten)]
    pub outcomes: OutcomeCounts,
    /// Durations of successes and failures, from the first start to the end.
    #[serde(flatten)]
    pub durations: DurationStats,
}

impl StatsCollector {
    /// Adds the next record of a log.
    ///
    /// # Errors
    /// The record's metadata doesn't match its type.
    pub fn add_record(&mut self, record: &Record) -> Result<(), Corruption> {
        let (Some(call), Some(event)) = (record.parent, CallEvent::from_record(record)?) else {
            return Ok(());
        };
        let new_call = || UnsettledCall {
            tool: event.tool_name().into(),
            log: CallLog::default(),
            outcome: OutcomeClass::Unfinished,
            duration_ms: None,
        };
        let open = self.unsettled_calls.entry(call).or_insert_with(new_call);
        // `toolq log verify` is what reports a record that can't follow the others.
        let _ = open.log.apply(&event);
        if let Some(outcome) = OutcomeClass::from_event(&event) {
            open.outcome = outcome;
            open.duration_ms = match &event {
                CallEvent::Result(end) if outcome.has_duration() && end.cached.is_none() => {
                    Some(end.duration_ms)
                }
                _ => None,
            };
        }
        if open.log.is_final()
            && let Some(open) = self.unsettled_calls.remove(&call)
        {
            self.count(&open);
        }
        Ok(())
    }

    /// Ends a log: the outcomes so far are final.
    pub fn finish_log(&mut self) {
        for open in std::mem::take(&mut self.unsettled_calls).into_values() {
            self.count(&open);
        }
    }

    /// Counts the final outcome of a call.
    fn count(&mut self, call: &UnsettledCall) {
        let counts = self.tools.entry(call.tool.clone()).or_default();
        *counts.outcomes.count_mut(call.outcome) += 1;
        if let Some(duration_ms) = call.duration_ms {
            counts.durations.push(duration_ms);
        }
    }

    /// Returns the statistics of each tool, sorted by name.
    pub fn tools(&self) -> impl Iterator<Item = ToolStats> {
        let tools = self.tools.iter();
        tools.map(|(name, counts)| counts.to_stats(Some(name)))
    }

    /// Returns the statistics of all tools together.
    pub fn total(&self) -> ToolStats {
        let mut total = ToolCounts::default();
        for counts in self.tools.values() {
            total.merge(counts);
        }
        total.to_stats(None)
    }

    /// Formats the statistics as one line: `{"tools":[…],"total":{…}}`.
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct StatsReportJson {
            tools: Vec<ToolStats>,
            total: ToolStats,
        }
        let json = StatsReportJson {
            tools: self.tools().collect(),
            total: self.total(),
        };
        expect_json(serde_json::to_string(&json))
    }
}

impl OutcomeClass {
    /// Returns the outcome of a call after this record, or `None` if the record doesn't change it.
    fn from_event(event: &CallEvent<'_>) -> Option<Self> {
        Some(match event {
            CallEvent::Started(_) => Self::Unfinished,
            CallEvent::Skipped(_) => Self::Skipped,
            CallEvent::InDoubt(_) => Self::InDoubt,
            CallEvent::Result(end) if end.attempts == 0 && end.cached.is_none() => Self::Rejected,
            CallEvent::Resolved(resolve) if !resolve.done => return None,
            CallEvent::Result(_) | CallEvent::Resolved(_) if event.is_error() => Self::Failure,
            CallEvent::Result(_) | CallEvent::Resolved(_) => Self::Success,
            CallEvent::Approved(_) | CallEvent::Probed(_) => return None,
        })
    }

    /// Whether calls with this outcome have a duration that counts.
    fn has_duration(self) -> bool {
        matches!(self, Self::Success | Self::Failure)
    }
}

impl OutcomeCounts {
    fn count_mut(&mut self, outcome: OutcomeClass) -> &mut u64 {
        match outcome {
            OutcomeClass::Success => &mut self.successes,
            OutcomeClass::Failure => &mut self.failures,
            OutcomeClass::InDoubt => &mut self.in_doubt,
            OutcomeClass::Unfinished => &mut self.unfinished,
            OutcomeClass::Skipped => &mut self.skipped,
            OutcomeClass::Rejected => &mut self.rejected,
        }
    }
}

impl ToolCounts {
    fn merge(&mut self, other: &Self) {
        let (sum, counts) = (&mut self.outcomes, &other.outcomes);
        sum.successes += counts.successes;
        sum.failures += counts.failures;
        sum.in_doubt += counts.in_doubt;
        sum.unfinished += counts.unfinished;
        sum.skipped += counts.skipped;
        sum.rejected += counts.rejected;
        self.durations.extend(&other.durations);
    }

    fn to_stats(&self, name: Option<&str>) -> ToolStats {
        let outcomes = self.outcomes;
        ToolStats {
            tool_name: name.map(str::to_owned),
            runs: outcomes.successes + outcomes.failures + outcomes.in_doubt + outcomes.unfinished,
            outcomes,
            durations: self.durations.to_stats(),
        }
    }
}
