//! The page of a session that may still be running: it is written again as the log grows.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use crate::commands::log::export::unwritten;
use crate::commands::log::log_files::{read_timeline, warn_torn};
use crate::context::CommandContext;
use crate::output::{CommandError, Exit, check_output_file, replace_file};
use crate::pages::timeline_page;
use crate::timeline::LogTimeline;

/// Time between two checks of a growing log. Also how often its page is loaded again.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
const RELOAD_SECONDS: u32 = 1;

/// Writes the page whenever the log has grown, and once more when its session has ended or its process is gone.
///
/// # Errors
/// The log can't be read, or the page can't be written.
pub(super) fn follow_log(
    path: &Path,
    output: Option<&Path>,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let is_stdin = |path: &Path| path == Path::new("-");
    let Some(output) = output.filter(|output| !is_stdin(output) && !is_stdin(path)) else {
        return Err(
            CommandError::usage("only a page in a file can follow a log")
                .with_hint("name both: `toolq log export --format html --follow LOG -o PAGE`"),
        );
    };
    check_output_file(output, [path], &context.find_tools_files())?;
    let mut written = None;
    loop {
        let state = file_state(path);
        let (timeline, torn_end) = read_timeline(path)?;
        // Until the session has ended, a torn end is expected: its process may be in the middle of writing a record.
        let has_ended = has_ended(&timeline);
        if has_ended || written != Some(state) {
            let reload_after = (!has_ended).then_some(RELOAD_SECONDS);
            let page = timeline_page(&timeline, &path.display().to_string(), reload_after);
            // No browser reads half of it.
            let replaced = replace_file(output, |file| writeln!(file, "{page}"));
            replaced.map_err(|error| unwritten(output, &error))?;
            written = Some(state);
        }
        if has_ended {
            if let Some(torn_end) = torn_end {
                warn_torn(path, &torn_end, context);
            }
            return Ok(Exit::Ok);
        }
        sleep(POLL_INTERVAL);
    }
}

/// Returns what changes with each record.
fn file_state(path: &Path) -> Option<(u64, SystemTime)> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.len(), metadata.modified().ok()?))
}

/// Returns whether nothing more is going to be written.
fn has_ended(timeline: &LogTimeline) -> bool {
    let last = timeline.runs.last();
    last.is_some_and(|run| run.end.is_some() || run.session.process().has_exited())
}
