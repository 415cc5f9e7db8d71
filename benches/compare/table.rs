//! The table, in Markdown, a line as soon as it is known.
#![expect(clippy::print_stdout, reason = "the table is what this program prints")]

use std::error::Error;

use crate::bar::Bar;
use crate::race::{Found, Line};

/// The head of the table.
pub fn head() {
    println!("| work | toolq | against | figure | bar | verdict | CPU time |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
}

/// One line; whether its bar holds (what is not installed breaks none).
pub fn line(line: &Line) -> bool {
    let Line {
        work,
        against,
        bar,
        found,
    } = line;
    match found {
        Found::Missing(cure) => {
            println!("| {work} | | {against} | | {bar} | skipped: {cure} | |");
            true
        }
        Found::Measured(medians) => {
            let ours = time(medians.ours);
            let theirs = medians
                .theirs
                .map(|ms| format!(": {}", time(ms)))
                .unwrap_or_default();
            let figure = bar.show(medians.figure);
            let verdict = verdict(bar, medians.figure);
            let processor = medians
                .processor
                .map(|times| format!("{times:.2} ×"))
                .unwrap_or_default();
            println!(
                "| {work} | {ours} | {against}{theirs} | {figure} | {bar} | {verdict} | {processor} |"
            );
            bar.holds(medians.figure)
        }
    }
}

fn verdict(bar: &Bar, figure: f64) -> &'static str {
    match (bar.holds(figure), bar.reaches_aim(figure)) {
        (true, true) => "holds, aim reached",
        (true, false) => "holds",
        (false, _) => "**missed**",
    }
}

/// A row that could not be run; it holds nothing.
pub fn broken(row: &str, error: &dyn Error) -> bool {
    println!(
        "| {row} | | | | | **broken**: {} | |",
        error.to_string().replace(['\n', '|'], " ")
    );
    false
}

fn time(ms: f64) -> String {
    match ms {
        1_000.0.. => format!("{:.2} s", ms / 1e3),
        100.0.. => format!("{ms:.0} ms"),
        _ => format!("{ms:.1} ms"),
    }
}
