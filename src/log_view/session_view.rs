//! The first and the last line of a session.

use std::time::Duration;

use jiff::Timestamp;

use toolq_core::text::{escape, format_duration};
use toolq_log::{EndFields as SessionEnd, SessionStart};

/// `session of 2026-01-01 12:00:00 UTC with tools.yaml (toolq 0.1.0)`; `timestamp` is in milliseconds since 1970.
pub(crate) fn title(session: &SessionStart, timestamp: u64) -> String {
    let ms = i64::try_from(timestamp).unwrap_or(i64::MAX);
    let time = Timestamp::from_millisecond(ms).unwrap_or_default();
    format!(
        "session of {} with {} (toolq {})",
        time.strftime("%Y-%m-%d %H:%M:%S UTC"),
        escape(&session.tools.path),
        escape(&session.toolq)
    )
}

/// `exit 0 after 44ms: 3 calls (1 from the log), 1 error`.
pub(crate) fn ending(end: &SessionEnd) -> String {
    let took = format_duration(Duration::from_millis(end.duration_ms));
    let from_log = match end.recalled {
        0 => String::new(),
        recalled => format!(" ({recalled} from the log)"),
    };
    // A resumed run has a `tool_call` of those only that the log had not.
    let calls = one(end.calls.max(end.answered), "call");
    let mut words = vec![format!("{calls}{from_log}")];
    words.extend((end.errors > 0).then(|| one(end.errors, "error")));
    let counts = [(end.skipped, "skipped"), (end.in_doubt, "in doubt")];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    words.extend(counts.map(|(count, word)| format!("{count} {word}")));
    format!("exit {} after {took}: {}", end.exit_code, words.join(", "))
}

/// `1 call`, `2 calls`.
fn one(count: usize, word: &str) -> String {
    match count {
        1 => format!("1 {word}"),
        _ => format!("{count} {word}s"),
    }
}
