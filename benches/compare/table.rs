//! Prints the results as a Markdown table, each line as soon as it's known.
#![expect(
    clippy::print_stdout,
    reason = "the table is the output of this program"
)]

use std::error::Error;

use crate::bar::PerformanceBar;
use crate::comparison::{ComparisonLine, ComparisonOutcome};

/// Prints the head of the table.
pub fn print_head() {
    println!("| work | toolq | against | figure | bar | verdict | CPU time |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
}

/// Prints a line and returns whether its bar holds. A rival that isn't installed doesn't count as a miss.
pub fn print_line(line: &ComparisonLine) -> bool {
    let ComparisonLine {
        work,
        against,
        bar,
        outcome,
    } = line;
    match outcome {
        ComparisonOutcome::NotInstalled(hint) => {
            println!("| {work} | | {against} | | {bar} | skipped: {hint} | |");
            true
        }
        ComparisonOutcome::Measured(medians) => {
            let ours = format_ms(medians.ours);
            let theirs = medians
                .theirs
                .map(|ms| format!(": {}", format_ms(ms)))
                .unwrap_or_default();
            let figure = bar.format_figure(medians.figure);
            let verdict = verdict_label(bar, medians.figure);
            let cpu_ratio = medians
                .cpu_ratio
                .map(|ratio| format!("{ratio:.2} ×"))
                .unwrap_or_default();
            println!(
                "| {work} | {ours} | {against}{theirs} | {figure} | {bar} | {verdict} | {cpu_ratio} |"
            );
            bar.holds(medians.figure)
        }
    }
}

fn verdict_label(bar: &PerformanceBar, figure: f64) -> &'static str {
    match (bar.holds(figure), bar.reaches_aim(figure)) {
        (true, true) => "holds, aim reached",
        (true, false) => "holds",
        (false, _) => "**missed**",
    }
}

/// Prints a row that couldn't be run. Always returns `false`: its bars don't hold.
pub fn print_broken(row: &str, error: &dyn Error) -> bool {
    println!(
        "| {row} | | | | | **broken**: {} | |",
        error.to_string().replace(['\n', '|'], " ")
    );
    false
}

fn format_ms(ms: f64) -> String {
    match ms {
        1_000.0.. => format!("{:.2} s", ms / 1e3),
        100.0.. => format!("{ms:.0} ms"),
        _ => format!("{ms:.1} ms"),
    }
}
