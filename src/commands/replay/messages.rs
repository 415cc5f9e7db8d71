//! The errors and warnings of `toolq replay`.

use crate::input::TemporaryFileError;
use crate::output::{CommandError, Exit, StdoutError};
use crate::replay::FindRecordingsError;
use crate::session::ReportFileError;

/// Returns the error of a replay that compared nothing, so that it doesn't pass for a success.
pub(crate) fn nothing_to_compare(calls: usize) -> CommandError {
    let why = match calls {
        0 => "no recording contains a call",
        _ => "no call has a recorded result",
    };
    let failure = CommandError::usage(format!("there is nothing to compare: {why}"));
    match calls {
        0 => failure,
        _ => failure.with_hint(
            "`toolq plan` checks calls without results; `toolq run --log FILE` runs and records them",
        ),
    }
}

/// Says that a tool has found a recording.
pub(crate) const BELOW_ROOT_WARNING: &str = "a result names a recording: recordings that lie below `root` are found by tools that search or list files, \
and change their results; keep them elsewhere, or let these tools leave them out";

/// Converts the error of a report. A closed pipe was the reader's choice, so it prints no message.
pub(crate) fn unwritten_report(error: std::io::Error) -> CommandError {
    let inner = error.get_ref();
    let cause = inner.and_then(|inner| inner.downcast_ref::<TemporaryFileError>());
    if let Some(cause) = cause {
        let message = format!("a report can't be written: {cause}");
        return CommandError::new(Exit::Output, message)
            .with_hint("set TMPDIR to a directory in which you can create files");
    }
    if let Some(cause) = inner.and_then(|inner| inner.downcast_ref::<ReportFileError>()) {
        return CommandError::new(Exit::Output, cause);
    }
    StdoutError::from(error).into()
}

impl From<FindRecordingsError> for CommandError {
    fn from(error: FindRecordingsError) -> Self {
        let hint = match &error {
            FindRecordingsError::Unreadable { .. } => "name a file, a directory, or a quoted glob",
            FindRecordingsError::InvalidGlob { .. } => {
                "`**` matches any directories, `*` any name, `{a,b}` either of two"
            }
            FindRecordingsError::Empty { .. } => {
                "in a directory, only files ending in .json, .jsonl, .ndjson, or .traj are read"
            }
        };
        Self::usage(&error).with_hint(hint)
    }
}
