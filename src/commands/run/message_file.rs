//! The file that `--message` names: the assistant messages that streams amount to, which go back to the API with the results.

use std::path::{Path, PathBuf};

use crate::context::CommandContext;
use crate::input::CommandInput;
use crate::output::{CommandError, Exit, check_output_file, replace_file};

/// Where the messages of streams are written, a line for each.
pub(crate) struct MessageFile<'p>(&'p Path);

impl<'p> MessageFile<'p> {
    /// Lets the inputs keep their messages.
    ///
    /// # Errors
    /// An input isn't a stream, or the command reads the file.
    pub(crate) fn open(
        path: &'p Path,
        inputs: &mut [CommandInput],
        input_paths: &[PathBuf],
        context: &CommandContext,
    ) -> Result<Self, CommandError> {
        let input_paths = input_paths.iter().map(PathBuf::as_path);
        check_output_file(path, input_paths, &context.find_tools_files())?;
        for input in inputs {
            let CommandInput::Stream(stream) = input else {
                let message = "--message is for streams: another input has its message already";
                return Err(CommandError::usage(message)
                    .with_hint("take it from there, as `jq .choices[0].message` does"));
            };
            stream.keep_messages();
        }
        Ok(Self(path))
    }

    /// Writes the messages that have ended.
    ///
    /// # Errors
    /// The file can't be written.
    pub(crate) fn write(&self, messages: &[String]) -> Result<(), CommandError> {
        let write = |file: &mut dyn std::io::Write| {
            let mut messages = messages.iter();
            messages.try_for_each(|message| writeln!(file, "{message}"))
        };
        replace_file(self.0, write).map_err(|error| CommandError {
            exit: Exit::Output,
            ..CommandError::usage(format!("{} can't be written: {error}", self.0.display()))
        })
    }
}
