//! `toolq log stats`: prints statistics of each tool over all logs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use uuid::Uuid;

use crate::args::LogFormat;
use crate::commands::log::log_files::{for_each_record, select_logs};
use crate::commands::log::{LogCostArguments, LogStatsArguments};
use crate::context::CommandContext;
use crate::log_view::CostCollector;
use crate::log_view::table::{left_aligned, render_rows, right_aligned, row_name};
use crate::output::{CommandError, Exit, stdout};
use toolq_core::json::expect_json;
use toolq_core::text::{escape, format_duration};
use toolq_core::types::PriceTable;
use toolq_log::records::CallEndRecord;
use toolq_log::{CallEvent, CallLog, Corruption, Record};

/// Prints the statistics.
///
/// # Errors
/// A log can't be read, or stdout can't be written.
pub fn print_stats(
    arguments: &LogStatsArguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let mut stats = StatsCollector::default();
    for path in select_logs(&arguments.logs, context)? {
        for_each_record(&path, context, |record| stats.add_record(record))?;
        stats.finish_log();
    }
    match arguments.format {
        LogFormat::Text => {
            let table = stats.to_table(context.stderr.is_stdout_colored());
            stdout::write_line(&context.stderr.own_symbols(table))?;
        }
        LogFormat::Json => stdout::write_line(&stats.to_json())?,
    }
    Ok(Exit::Ok)
}

// `toolq log cost`: prints the usage and cost of agents over all logs, by the prices in tools.yaml.

/// Prints the costs. Warns about models without a price.
///
/// # Errors
/// A log can't be read, tools.yaml is invalid, or missing although it was named, or stdout can't be written.
pub fn print_cost(
    arguments: &LogCostArguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let prices = load_prices(context)?;
    let mut cost = CostCollector::default();
    for path in select_logs(&arguments.logs, context)? {
        for_each_record(&path, context, |record| cost.add_record(record))?;
        cost.finish_log();
    }
    match arguments.format {
        LogFormat::Text => {
            let table = cost.to_table(&prices, context.stderr.is_stdout_colored());
            stdout::write_line(&context.stderr.own_symbols(table))?;
        }
        LogFormat::Json => stdout::write_line(&cost.to_json(&prices))?,
    }
    let unpriced = format_models(&cost.unpriced_models(&prices));
    if !unpriced.is_empty() {
        let (models, path) = (unpriced, context.tools_path.display());
        context.stderr.print_warning(&format!(
            "`prices` in {path} doesn't cover all tokens of {models}, so their cost is unknown"
        ));
    }
    let uncounted = format_models(&cost.uncounted_models());
    if !uncounted.is_empty() {
        context.stderr.print_warning(&format!(
            "the API didn't report the tokens of some responses of {uncounted}, so usage and cost are unknown"
        ));
    }
    Ok(Exit::Ok)
}

/// Formats the names of models, separated by commas.
fn format_models(models: &BTreeSet<&str>) -> String {
    let names = models.iter().map(|model| match *model {
        "" => "a model without a name".into(),
        model => escape(model),
    });
    names.collect::<Vec<_>>().join(", ")
}

/// Loads the prices from tools.yaml. Without a tools.yaml, the log can still be read, but has no prices.
pub(super) fn load_prices(context: &CommandContext) -> Result<PriceTable, CommandError> {
    let path = &context.tools_path;
    if path == Path::new(crate::args::DEFAULT_TOOLS_FILE) && !path.exists() {
        return Ok(PriceTable::default());
    }
    Ok(context.load_tools()?.prices)
}

// Collects the statistics of `toolq log stats`.

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
    counted_as: CountedAs,
    /// Duration of a success or a failure, in milliseconds.
    duration_ms: Option<u64>,
}

/// The outcome of a call, as it is counted.
type CountedAs = fn(&mut OutcomeCounts) -> &mut u64;

/// The calls of one tool.
#[derive(Debug, Default)]
struct ToolCounts {
    outcomes: OutcomeCounts,
    durations: DurationSample,
}

/// Numbers of calls by outcome. Each call is counted once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct OutcomeCounts {
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
pub(crate) struct ToolStats {
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
            counted_as: |counts| &mut counts.unfinished,
            duration_ms: None,
        };
        let open = self.unsettled_calls.entry(call).or_insert_with(new_call);
        // `toolq log verify` is what reports a record that can't follow the others.
        let _ = open.log.apply(&event);
        if let Some(counted_as) = counted_as(&event) {
            open.counted_as = counted_as;
            open.duration_ms = match &event {
                CallEvent::Result(end) if !is_rejected(end) && end.cached.is_none() => {
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
        *(call.counted_as)(&mut counts.outcomes) += 1;
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

/// Returns how a call is counted after this record, or `None` if the record doesn't change it.
fn counted_as(event: &CallEvent<'_>) -> Option<CountedAs> {
    Some(match event {
        CallEvent::Started(_) => |counts| &mut counts.unfinished,
        CallEvent::Skipped(_) => |counts| &mut counts.skipped,
        CallEvent::InDoubt(_) => |counts| &mut counts.in_doubt,
        CallEvent::Result(end) if is_rejected(end) => |counts| &mut counts.rejected,
        CallEvent::Resolved(resolve) if !resolve.done => return None,
        CallEvent::Result(_) | CallEvent::Resolved(_) if event.is_error() => {
            |counts| &mut counts.failures
        }
        CallEvent::Result(_) | CallEvent::Resolved(_) => |counts| &mut counts.successes,
        CallEvent::Approved(_) | CallEvent::Probed(_) => return None,
    })
}

fn is_rejected(end: &CallEndRecord<'_>) -> bool {
    end.attempts == 0 && end.cached.is_none()
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

// The table of `toolq log stats`.

/// The title of a column, whether it is left out if all its cells are empty, and its cells.
type StatsColumn = (&'static str, bool, fn(&ToolStats) -> String);

const COLUMNS: [StatsColumn; 12] = [
    ("runs", false, |tool| tool.runs.to_string()),
    ("ok", false, |tool| tool.outcomes.successes.to_string()),
    ("failed", false, |tool| tool.outcomes.failures.to_string()),
    ("in doubt", true, |tool| count_cell(tool.outcomes.in_doubt)),
    ("unfinished", true, |tool| {
        count_cell(tool.outcomes.unfinished)
    }),
    ("skipped", true, |tool| count_cell(tool.outcomes.skipped)),
    ("rejected", true, |tool| count_cell(tool.outcomes.rejected)),
    ("total", false, |tool| duration_cell(tool.durations.total)),
    ("mean", false, |tool| mean_cell(tool.durations.mean)),
    ("p50", false, |tool| duration_cell(tool.durations.p50)),
    ("p95", false, |tool| duration_cell(tool.durations.p95)),
    ("max", false, |tool| duration_cell(tool.durations.max)),
];

fn count_cell(count: u64) -> String {
    match count {
        0 => String::new(),
        _ => count.to_string(),
    }
}

fn duration_cell(ms: Option<u64>) -> String {
    ms.map_or_else(String::new, |ms| format_duration(Duration::from_millis(ms)))
}

/// Formats a mean. Tenths of a millisecond matter only for short durations.
fn mean_cell(ms: Option<f64>) -> String {
    match ms {
        Some(ms) if ms < 10.0 => format!("{ms}ms"),
        Some(ms) => format_duration(Duration::from_secs_f64(ms / 1_000.0)),
        None => String::new(),
    }
}

impl StatsCollector {
    /// Formats a row per tool and one for all of them, without a trailing newline.
    pub fn to_table(&self, color: bool) -> String {
        let mut tools: Vec<ToolStats> = self.tools().collect();
        if tools.is_empty() {
            return "no calls".to_owned();
        }
        if tools.len() > 1 {
            tools.push(self.total());
        }
        let names = tools.iter().map(|tool| row_name(tool.tool_name.as_deref()));
        let mut columns = vec![left_aligned("tool", names.collect())];
        for (title, is_optional, cell) in &COLUMNS {
            let cells: Vec<String> = tools.iter().map(cell).collect();
            if !is_optional || cells.iter().any(|cell| !cell.is_empty()) {
                columns.push(right_aligned(title, cells));
            }
        }
        render_rows(&columns, color)
    }
}

// Statistics of durations.

/// A collection of durations in milliseconds.
#[derive(Debug, Clone, Default)]
pub(crate) struct DurationSample(Vec<u64>);

/// The statistics of a sample, in milliseconds. All are `None` for an empty sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct DurationStats {
    /// The sum.
    #[serde(rename = "total_ms")]
    pub total: Option<u64>,
    /// The mean, rounded to tenths.
    #[serde(rename = "mean_ms")]
    pub mean: Option<f64>,
    /// The median. Percentiles use the nearest-rank method: the smallest value that at least p percent of the values
    /// don't exceed.
    #[serde(rename = "p50_ms")]
    pub p50: Option<u64>,
    /// The 95th percentile.
    #[serde(rename = "p95_ms")]
    p95: Option<u64>,
    /// The maximum.
    #[serde(rename = "max_ms")]
    pub max: Option<u64>,
}

impl DurationSample {
    pub(crate) fn push(&mut self, ms: u64) {
        self.0.push(ms);
    }

    pub(super) fn extend(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    /// Computes the statistics.
    pub(crate) fn to_stats(&self) -> DurationStats {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let Some(max) = sorted.last() else {
            return DurationStats::default();
        };
        let total = sorted.iter();
        let total = total.fold(0_u64, |total, ms| total.saturating_add(*ms));
        let rank = |percent: usize| sorted[(sorted.len() * percent).div_ceil(100) - 1];
        DurationStats {
            total: Some(total),
            mean: Some(mean(total, sorted.len())),
            p50: Some(rank(50)),
            p95: Some(rank(95)),
            max: Some(*max),
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a mean of more than 2^53 ms needs no tenths"
)]
fn mean(total: u64, count: usize) -> f64 {
    (total as f64 * 10.0 / count as f64).round() / 10.0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stats_of(values: impl IntoIterator<Item = u64>) -> DurationStats {
        DurationSample(values.into_iter().collect()).to_stats()
    }

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let numbers = |values: &[u64]| {
            let durations = stats_of(values.iter().copied());
            serde_json::to_string(&durations).unwrap()
        };
        for (values, expected) in [
            (&[][..], [None; 4]),
            (&[7], [Some(7); 4]),
            (&[40, 10, 30, 20], [Some(100), Some(20), Some(40), Some(40)]),
        ] {
            let DurationStats {
                total,
                p50,
                p95,
                max,
                ..
            } = stats_of(values.iter().copied());
            assert_eq!([total, p50, p95, max], expected, "{values:?}");
        }
        let hundred = stats_of((1..=100).rev());
        assert_eq!((hundred.p50, hundred.p95), (Some(50), Some(95)));
        assert_eq!(
            numbers(&[1, 1, 2]),
            r#"{"total_ms":4,"mean_ms":1.3,"p50_ms":1,"p95_ms":2,"max_ms":2}"#
        );
        assert_eq!(stats_of([u64::MAX, 1]).total, Some(u64::MAX));
    }

    proptest! {
        /// Checks the definition literally: the smallest value that at least p percent of the values don't exceed.
        #[test]
        fn percentiles_follow_the_nearest_rank_definition(values in prop::collection::vec(0_u64..50, 1..40)) {
            let durations = stats_of(values.clone());
            for (rank, percent) in [(durations.p50, 50), (durations.p95, 95)] {
                let rank = rank.unwrap();
                let below = |limit: u64| values.iter().filter(|value| **value <= limit).count() * 100;
                let enough = values.len() * percent;
                prop_assert!(values.contains(&rank) && below(rank) >= enough);
                prop_assert!(values.iter().all(|value| *value >= rank || below(*value) < enough));
            }
        }
    }
}
