//! `toolq log export`: a session log in another form: a page, trace events, or a recording in the form of a vendor's API.

mod page;
mod recording;
mod trace;

use std::io;
use std::path::{Path, PathBuf};

use crate::args::{ExportFormat, LogExportArguments as Arguments};
use crate::commands::log::export::recording::{RecordingForm, export_recording};
use crate::commands::log::export::trace::write_trace_events;
use crate::commands::log::log_files::{read_timeline, select_logs, warn_torn};
use crate::context::CommandContext;
use crate::output::stdout;
use crate::output::{CommandError, Exit, check_output_file, replace_file};
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
        return page::follow_log(only_log(&logs)?, output, context);
    }
    write_export(output, &logs, context, |write_line| {
        let form = match arguments.format {
            ExportFormat::Html => {
                let (timeline, name) = read_only_log(&logs, context)?;
                return write_line(&timeline_page(&timeline, &name, None));
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
