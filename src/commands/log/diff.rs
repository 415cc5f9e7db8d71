//! `toolq log diff`: which calls of two logs differ.

use std::path::Path;
use std::time::Duration;

use crate::args::{LogDiffArguments as Arguments, LogFormat};
use crate::commands::log::log_files::{read_timeline, warn_torn};
use crate::commands::log::session_id::find_session;
use crate::context::CommandContext;
use crate::log_view::to_json;
use crate::output::stdout;
use crate::output::{CommandError, Exit};
use crate::timeline::{
    CallDifference, CallDifferenceKind, ComparedCall, LogTimeline, compare_timelines,
};
use toolq_core::text::{escape, format_count, format_duration, paint, truncate_to_columns};

/// Maximum width of an input or a result, in columns.
const MAX_COLUMNS: usize = 60;

/// Prints a line for each call that differs, and exits with 1 if a call is missing, added or changed.
///
/// # Errors
/// A log can't be read, or stdout can't be written.
pub fn diff_logs(arguments: &Arguments, context: &CommandContext) -> Result<Exit, CommandError> {
    let read = |file: &Path| -> Result<LogTimeline, CommandError> {
        let path = find_session(file, context);
        let (timeline, torn_end) = read_timeline(&path)?;
        if let Some(torn_end) = torn_end {
            warn_torn(&path, &torn_end, context);
        }
        Ok(timeline)
    };
    let (before, after) = (read(&arguments.before)?, read(&arguments.after)?);
    let differences = compare_timelines(&before, &after);
    let color = context.stderr.is_stdout_colored();
    if arguments.format == LogFormat::Text && !differences.is_empty() {
        let header = names_line(&arguments.before, &arguments.after);
        stdout::write_line(&context.stderr.own_symbols(header))?;
    }
    for difference in &differences {
        stdout::write_line(&match arguments.format {
            LogFormat::Text => context
                .stderr
                .own_symbols(difference_line(difference, color)),
            LogFormat::Json => to_json(difference),
        })?;
    }
    context
        .stderr
        .print_note(&summary(&before, &after, &differences));
    let is_slower = |difference: &CallDifference| difference.kind == CallDifferenceKind::Slower;
    Ok(if differences.iter().all(is_slower) {
        Exit::Ok
    } else {
        Exit::ProblemsFound
    })
}

/// Says which log is before the arrows and which is after them: `monday.jsonl → tuesday.jsonl`.
fn names_line(before: &Path, after: &Path) -> String {
    let name = |path: &Path| escape(&path.to_string_lossy()).into_owned();
    format!("{} → {}", name(before), name(after))
}

/// Formats a call that differs: `~ other result: lint {"file":"a"}: failed → ok`.
fn difference_line(difference: &CallDifference, color: bool) -> String {
    let (mark, style) = match difference.kind {
        CallDifferenceKind::Missing => ("- missing", "31"),
        CallDifferenceKind::Added => ("+ added", "32"),
        CallDifferenceKind::Input => ("~ other input", "33"),
        CallDifferenceKind::Result => ("~ other result", "33"),
        CallDifferenceKind::Slower => ("> slower", "33"),
    };
    let text = match (&difference.before, &difference.after) {
        (Some(before), Some(after)) => change_text(difference.kind, before, after),
        (Some(call), None) | (None, Some(call)) => {
            format!("{} (turn {})", shorten(&call.input), call.turn)
        }
        (None, None) => String::new(),
    };
    let name = escape(&difference.tool_name);
    paint(&format!("{mark}: {name} {text}"), style, color)
}

fn change_text(kind: CallDifferenceKind, before: &ComparedCall, after: &ComparedCall) -> String {
    let input = shorten(&before.input);
    match kind {
        CallDifferenceKind::Input => format!("{input} → {}", shorten(&after.input)),
        CallDifferenceKind::Slower => {
            let took = |call: &ComparedCall| {
                format_duration(Duration::from_millis(call.duration_ms.unwrap_or_default()))
            };
            format!("{input}: {} → {}", took(before), took(after))
        }
        _ if before.outcome != after.outcome => {
            format!("{input}: {} → {}", before.outcome, after.outcome)
        }
        _ => {
            let result = |call: &ComparedCall| shorten(call.result.as_deref().unwrap_or_default());
            format!("{input}: {} → {}", result(before), result(after))
        }
    }
}

fn shorten(text: &str) -> String {
    // What follows can't be shown anyway.
    let start = &text[..text.floor_char_boundary(4 * MAX_COLUMNS)];
    truncate_to_columns(&escape(start), MAX_COLUMNS).into_owned()
}

/// Formats the counts: `12 calls and 13 calls: 10 same, 1 missing, 2 added`.
fn summary(before: &LogTimeline, after: &LogTimeline, differences: &[CallDifference]) -> String {
    let count = |kinds: &[CallDifferenceKind]| {
        differences
            .iter()
            .filter(|difference| kinds.contains(&difference.kind))
            .count()
    };
    let counts = [
        (count(&[CallDifferenceKind::Missing]), "missing"),
        (count(&[CallDifferenceKind::Added]), "added"),
        (
            count(&[CallDifferenceKind::Input, CallDifferenceKind::Result]),
            "changed",
        ),
        (count(&[CallDifferenceKind::Slower]), "slower"),
    ];
    let with_first = differences
        .iter()
        .filter(|difference| difference.before.is_some())
        .count();
    let mut parts = vec![format!("{} same", before.calls.len() - with_first)];
    parts.extend(
        counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}")),
    );
    let calls = |timeline: &LogTimeline| format_count(timeline.calls.len() as u64, "call");
    format!(
        "{} and {}: {}",
        calls(before),
        calls(after),
        parts.join(", ")
    )
}
