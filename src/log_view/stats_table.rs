//! Numbers of tools as a table for people.

use std::time::Duration;

use crate::log_view::stats::{Stats, ToolStats};
use crate::log_view::table::{left, right, row_name, rows};
use toolq_core::text::format_duration;

/// A column: its title, whether it is left out where it says nothing, and its cell for a tool.
struct Column {
    title: &'static str,
    is_optional: bool,
    cell: fn(&ToolStats) -> String,
}

const COLUMNS: [Column; 12] = [
    column("runs", |tool| tool.runs.to_string()),
    column("ok", |tool| tool.successes.to_string()),
    column("failed", |tool| tool.failures.to_string()),
    optional("in doubt", |tool| count(tool.in_doubt)),
    optional("unfinished", |tool| count(tool.unfinished)),
    optional("skipped", |tool| count(tool.skipped)),
    optional("rejected", |tool| count(tool.rejected)),
    column("total", |tool| took(tool.durations.total)),
    column("mean", |tool| mean(tool.durations.mean)),
    column("p50", |tool| took(tool.durations.p50)),
    column("p95", |tool| took(tool.durations.p95)),
    column("max", |tool| took(tool.durations.max)),
];

const fn column(title: &'static str, cell: fn(&ToolStats) -> String) -> Column {
    Column {
        title,
        is_optional: false,
        cell,
    }
}

const fn optional(title: &'static str, cell: fn(&ToolStats) -> String) -> Column {
    Column {
        title,
        is_optional: true,
        cell,
    }
}

fn count(count: u64) -> String {
    match count {
        0 => String::new(),
        _ => count.to_string(),
    }
}

fn took(ms: Option<u64>) -> String {
    ms.map_or_else(String::new, |ms| format_duration(Duration::from_millis(ms)))
}

/// Tenths say something of a few milliseconds only.
fn mean(ms: Option<f64>) -> String {
    match ms {
        Some(ms) if ms < 10.0 => format!("{ms}ms"),
        Some(ms) => format_duration(Duration::from_secs_f64(ms / 1_000.0)),
        None => String::new(),
    }
}

impl Stats {
    /// A row for each tool and one for all, without a line break at the end.
    pub fn table(&self, color: bool) -> String {
        let mut tools: Vec<ToolStats> = self.tools().collect();
        if tools.is_empty() {
            return "no calls".to_owned();
        }
        if tools.len() > 1 {
            tools.push(self.total());
        }
        let names = tools.iter().map(name);
        let mut columns = vec![left("tool", names.collect())];
        for Column {
            title,
            is_optional,
            cell,
        } in &COLUMNS
        {
            let cells: Vec<String> = tools.iter().map(cell).collect();
            if !is_optional || cells.iter().any(|cell| !cell.is_empty()) {
                columns.push(right(title, &cells));
            }
        }
        rows(&columns, color)
    }
}

fn name(tool: &ToolStats) -> String {
    row_name(tool.tool_name.as_deref())
}
