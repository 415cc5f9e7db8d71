//! Collects the statistics of `toolq log stats`.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::log_view::durations::{DurationSample, DurationStats};
use toolq_core::types::Status;
use toolq_log::{Corruption, Record, RecordKind};

/// Counts the outcomes of calls by tool, over any number of logs. Keeps one number per call that ran.
#[derive(Debug, Default)]
pub struct StatsCollector {
    tools: BTreeMap<Box<str>, ToolCounts>,
    /// Calls of the current log whose outcome isn't final, because a resumed run may continue them; by their
    /// `tool_call` records.
    open_calls: HashMap<Uuid, OpenCall>,
}

/// A call whose outcome isn't final.
#[derive(Debug)]
struct OpenCall {
    tool: Box<str>,
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
struct OutcomeCounts {
    successes: u64,
    failures: u64,
    in_doubt: u64,
    unfinished: u64,
    skipped: u64,
    rejected: u64,
}

/// The statistics of a tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolStats {
    /// The tool's name as in the calls; `None` for all tools together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// Calls that started, however often: the sum of the next four counts.
    pub runs: u64,
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
    /// Durations of successes and failures, from the first start to the end.
    #[serde(flatten)]
    pub durations: DurationStats,
}

#[derive(Deserialize)]
struct StartFields<'a> {
    #[serde(borrow)]
    tool_name: Cow<'a, str>,
}

#[derive(Deserialize)]
struct EndStatsFields<'a> {
    #[serde(borrow)]
    tool_name: Cow<'a, str>,
    is_error: bool,
    status: Status,
    duration_ms: u64,
    attempts: u32,
}

#[derive(Deserialize)]
struct ResolveFields<'a> {
    #[serde(borrow)]
    tool_name: Cow<'a, str>,
    done: bool,
    is_error: Option<bool>,
}

impl StatsCollector {
    /// Adds the next record of a log.
    ///
    /// # Errors
    /// The record's metadata doesn't match its type.
    pub fn add_record(&mut self, record: &Record) -> Result<(), Corruption> {
        match &record.kind {
            RecordKind::ToolStart => {
                let StartFields { tool_name } = record.parse_metadata()?;
                self.set_provisional(record.parent, &tool_name, OutcomeClass::Unfinished, None);
            }
            RecordKind::Resolve => {
                let found: ResolveFields<'_> = record.parse_metadata()?;
                if found.done {
                    let outcome = if found.is_error == Some(true) {
                        OutcomeClass::Failure
                    } else {
                        OutcomeClass::Success
                    };
                    self.count_final(record.parent, &found.tool_name, outcome, None);
                }
            }
            kind if kind.ends_call() => {
                let fields: EndStatsFields<'_> = record.parse_metadata()?;
                let (call, tool) = (record.parent, &fields.tool_name);
                let duration_ms = Some(fields.duration_ms);
                match OutcomeClass::from_record(kind, &fields) {
                    // A resumed run may start it again.
                    OutcomeClass::Failure if fields.status.is_interrupted() => {
                        self.set_provisional(call, tool, OutcomeClass::Failure, duration_ms);
                    }
                    outcome @ (OutcomeClass::Success | OutcomeClass::Failure) => {
                        self.count_final(call, tool, outcome, duration_ms);
                    }
                    outcome => self.set_provisional(call, tool, outcome, None),
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Ends a log: the outcomes so far are final.
    pub fn finish_log(&mut self) {
        for (call, open) in std::mem::take(&mut self.open_calls) {
            self.count_final(Some(call), &open.tool, open.outcome, open.duration_ms);
        }
    }

    /// Sets the outcome of a call, unless a later record changes it.
    fn set_provisional(
        &mut self,
        call: Option<Uuid>,
        tool: &str,
        outcome: OutcomeClass,
        duration_ms: Option<u64>,
    ) {
        let tool = tool.into();
        let open = OpenCall {
            tool,
            outcome,
            duration_ms,
        };
        self.open_calls.insert(call.unwrap_or_default(), open);
    }

    /// Counts the final outcome of a call.
    fn count_final(
        &mut self,
        call: Option<Uuid>,
        tool: &str,
        outcome: OutcomeClass,
        duration_ms: Option<u64>,
    ) {
        self.open_calls.remove(&call.unwrap_or_default());
        let counts = self.counts_of(tool);
        *counts.outcomes.count_mut(outcome) += 1;
        if let Some(duration_ms) = duration_ms {
            counts.durations.push(duration_ms);
        }
    }

    fn counts_of(&mut self, tool: &str) -> &mut ToolCounts {
        self.tools.entry(tool.into()).or_default()
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
        // Can't fail: strings and numbers always have a JSON form.
        serde_json::to_string(&json).unwrap_or_default()
    }
}

impl OutcomeClass {
    fn from_record(kind: &RecordKind, fields: &EndStatsFields<'_>) -> Self {
        match kind {
            RecordKind::ToolSkipped => Self::Skipped,
            RecordKind::ToolInDoubt => Self::InDoubt,
            _ if fields.attempts == 0 => Self::Rejected,
            _ if fields.is_error => Self::Failure,
            _ => Self::Success,
        }
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
        let OutcomeCounts {
            successes,
            failures,
            in_doubt,
            unfinished,
            skipped,
            rejected,
        } = self.outcomes;
        ToolStats {
            tool_name: name.map(str::to_owned),
            runs: successes + failures + in_doubt + unfinished,
            successes,
            failures,
            in_doubt,
            unfinished,
            skipped,
            rejected,
            durations: self.durations.to_stats(),
        }
    }
}
