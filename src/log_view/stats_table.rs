//! The table of `toolq log stats`.

use std::time::Duration;

use crate::log_view::stats::{StatsCollector, ToolStats};
use crate::log_view::table::{left_aligned, render_rows, right_aligned, row_name};
use toolq_core::text::format_duration;

/// A column of the table.
struct StatsColumn {
    title: &'static str,
    /// Left out if all its cells are empty.
    is_optional: bool,
    cell: fn(&ToolStats) -> String,
}

const COLUMNS: [StatsColumn; 12] = [
    required_column("runs", |tool| tool.runs.to_string()),
    required_column("ok", |tool| tool.outcomes.successes.to_string()),
    required_column("failed", |tool| tool.outcomes.failures.to_string()),
    optional_column("in doubt", |tool| count_cell(tool.outcomes.in_doubt)),
    optional_column("unfinished", |tool| count_cell(tool.outcomes.unfinished)),
    optional_column("skipped", |tool| count_cell(tool.outcomes.skipped)),
    optional_column("rejected", |tool| count_cell(tool.outcomes.rejected)),
    required_column("total", |tool| duration_cell(tool.durations.total)),
    required_column("mean", |tool| mean_cell(tool.durations.mean)),
    required_column("p50", |tool| duration_cell(tool.durations.p50)),
    required_column("p95", |tool| duration_cell(tool.durations.p95)),
    required_column("max", |tool| duration_cell(tool.durations.max)),
];

const fn required_column(title: &'static str, cell: fn(&ToolStats) -> String) -> StatsColumn {
    StatsColumn {
        title,
        is_optional: false,
        cell,
    }
}

const fn optional_column(title: &'static str, cell: fn(&ToolStats) -> String) -> StatsColumn {
    StatsColumn {
        title,
        is_optional: true,
        cell,
    }
}

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
        let names = tools.iter().map(name_cell);
        let mut columns = vec![left_aligned("tool", names.collect())];
        for StatsColumn {
            title,
            is_optional,
            cell,
        } in &COLUMNS
        {
            let cells: Vec<String> = tools.iter().map(cell).collect();
            if !is_optional || cells.iter().any(|cell| !cell.is_empty()) {
                columns.push(right_aligned(title, cells));
            }
        }
        render_rows(&columns, color)
    }
}

fn name_cell(tool: &ToolStats) -> String {
    row_name(tool.tool_name.as_deref())
}
