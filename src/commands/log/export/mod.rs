//! `toolq log export`: a session log in another form: a page, trace events, or a recording in the form of a vendor's API.

mod recording;
mod trace;

use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, SystemTime};
use std::{fs, io};

use crate::args::log::{ExportFormat, LogExportArguments as Arguments};
use crate::commands::log::cost::load_prices;
use crate::commands::log::export::recording::{RecordingForm, export_recording};
use crate::commands::log::export::trace::write_trace_events;
use crate::commands::log::log_files::{read_timeline, select_logs, warn_torn};
use crate::context::CommandContext;
use crate::output::{CommandError, Exit, check_output_file, replace_file, stdout};
use crate::pages::timeline_page;
use crate::timeline::LogTimeline;

/// Writes a line of an export.
type WriteLine<'w> = dyn FnMut(&str) -> Result<(), CommandError> + 'w;

/// Prints the logs in another form, or writes them to a file.
///
/// # Errors
/// A file isn't a session log or is damaged, or the export can't be written.
pub fn export_logs(arguments: &Arguments, context: &CommandContext) -> Result<Exit, CommandError> {
    let logs = select_logs(&arguments.logs, context)?;
    let output = arguments.output.as_deref();
    if arguments.follow {
        if arguments.format != ExportFormat::Html {
            return Err(CommandError::usage("only a page can follow a log")
                .with_hint("add `--format html`, or leave out `--follow`"));
        }
        return follow_log(only_log(&logs)?, output, context);
    }
    write_export(output, &logs, context, |write_line| {
        let form = match arguments.format {
            ExportFormat::Html => {
                let (timeline, name) = read_only_log(&logs, context)?;
                let prices = load_prices(context).unwrap_or_default();
                return write_line(&timeline_page(&timeline, &name, &prices, None));
            }
            ExportFormat::Trace => {
                let (timeline, name) = read_only_log(&logs, context)?;
                return write_line(&write_trace_events(&timeline, &name));
            }
            ExportFormat::Messages => RecordingForm::Messages,
            ExportFormat::OpenaiChat => RecordingForm::OpenAiChat,
            ExportFormat::OpenaiResponses => RecordingForm::OpenAiResponses,
        };
        logs.iter()
            .try_for_each(|log| export_recording(log, form, context, write_line))
    })?;
    Ok(Exit::Ok)
}

/// Returns the log that a page or a trace shows.
fn only_log(logs: &[PathBuf]) -> Result<&Path, CommandError> {
    match logs {
        [log] => Ok(log),
        _ => {
            Err(CommandError::usage("a page or a trace has one log").with_hint("name one of them"))
        }
    }
}

/// Reads the calls of the only log, and warns if it ends in an incomplete record. Returns its name, too.
fn read_only_log(
    logs: &[PathBuf],
    context: &CommandContext,
) -> Result<(LogTimeline, String), CommandError> {
    let log = only_log(logs)?;
    let (timeline, torn_end) = read_timeline(log)?;
    if let Some(torn_end) = torn_end {
        warn_torn(log, &torn_end, context);
    }
    Ok((timeline, log.display().to_string()))
}

/// Writes what `export` makes of `logs` to a file, or to stdout without one or for `-`.
///
/// # Errors
/// `export` fails, or the file can't be written, is a log, or part of the tools file.
fn write_export(
    file: Option<&Path>,
    logs: &[PathBuf],
    context: &CommandContext,
    export: impl FnOnce(&mut WriteLine<'_>) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let Some(path) = file.filter(|file| *file != Path::new("-")) else {
        return export(&mut |line| Ok(stdout::write_line(line)?));
    };
    let inputs = logs.iter().map(PathBuf::as_path);
    check_output_file(path, inputs, &context.find_tools_files())?;
    let mut exported = Ok(());
    let replaced = replace_file(path, |file| {
        exported =
            export(&mut |line| writeln!(file, "{line}").map_err(|error| unwritten(path, &error)));
        // An export that failed doesn't replace the file.
        match exported {
            Ok(()) => Ok(()),
            Err(_) => Err(io::ErrorKind::Other.into()),
        }
    });
    exported?;
    replaced.map_err(|error| unwritten(path, &error))
}

fn unwritten(path: &Path, error: &io::Error) -> CommandError {
    let message = format!("{} can't be written: {error}", path.display());
    CommandError::new(Exit::Output, message)
}

// The page of a session that may still be running: it is written again as the log grows.

/// Time between two checks of a growing log. Also how often its page is loaded again.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
const RELOAD_SECONDS: u32 = 1;

/// Writes the page whenever the log has grown, and once more when its session has ended or its process is gone.
///
/// # Errors
/// The log can't be read, or the page can't be written.
fn follow_log(
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
    // Without prices, the page has all but the cost.
    let prices = load_prices(context).unwrap_or_default();
    let mut written = None;
    loop {
        let state = file_state(path);
        let (timeline, torn_end) = read_timeline(path)?;
        // Until the session has ended, a torn end is expected: its process may be in the middle of writing a record.
        let has_ended = has_ended(&timeline);
        if has_ended || written != Some(state) {
            let reload_after = (!has_ended).then_some(RELOAD_SECONDS);
            let name = path.display().to_string();
            let page = timeline_page(&timeline, &name, &prices, reload_after);
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
