//! Ends a run whose inputs have no calls.

use crate::commands::run::settings::RunSettings;
use crate::context::CommandContext;
use crate::input::CommandInput;
use crate::input::files;
use crate::output::{CommandError, Exit};

/// Ends a run without calls. Lines are answered by empty lists, documents and streams by nothing.
pub(crate) fn finish_without_calls(
    inputs: Vec<CommandInput>,
    settings: RunSettings,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let mut answered = 0;
    let mut exit = Exit::NoCalls;
    for input in inputs {
        let recording = match input {
            CommandInput::Recording(recording) => *recording,
            CommandInput::Stream(mut stream) => {
                if let (_, Some(error)) = stream.read_to_end() {
                    return Err(files::stream_failure(error, stream.message_count()));
                }
                continue;
            }
            CommandInput::Follow(lines) => {
                if lines.has_bad_line() {
                    exit = Exit::Incomplete;
                }
                continue;
            }
        };
        let mut printer = settings.new_printer(recording.layout(), 0, None);
        for index in 0..recording.len() {
            let turn = recording.turn(index, settings.include_answered)?;
            answered += turn.answered_count;
            if turn.answered_count == 0 {
                printer.print_empty_list();
            }
        }
        printer.check_written()?;
    }
    context.stderr.print_note(match answered {
        0 => "the model made no tool calls",
        _ => "every call already has a result in the input; `--all` runs them anyway",
    });
    Ok(exit)
}
