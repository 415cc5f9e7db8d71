//! Ends a run whose inputs have no calls.

use crate::commands::run::message_file::MessageFile;
use crate::commands::run::settings::RunSettings;
use crate::context::CommandContext;
use crate::input::CommandInput;
use crate::input::files;
use crate::output::{CommandError, Exit};

/// Ends a run without calls. Lines are answered by empty lists, documents and streams by nothing.
pub(crate) fn finish_without_calls(
    inputs: Vec<CommandInput>,
    settings: RunSettings,
    message_file: Option<MessageFile<'_>>,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let mut messages = Vec::new();
    let (mut answered, mut abandoned) = (0, 0);
    let mut exit = Exit::NoCalls;
    for input in inputs {
        let recording = match input {
            CommandInput::Recording(recording) => *recording,
            CommandInput::Stream(mut stream) => {
                let (_, error) = stream.read_to_end();
                messages.append(&mut stream.take_messages());
                if let Some(error) = error {
                    return Err(files::stream_failure(error, stream.message_count()));
                }
                files::check_unknown_kinds(&stream, &context.stderr)?;
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
            abandoned += turn.abandoned.len();
            if turn.call_count() == 0 {
                printer.print_empty_list();
            }
        }
        printer.check_written()?;
    }
    message_file.map_or(Ok(()), |file| file.write(&messages))?;
    match (answered, abandoned) {
        (0, 0) => context.stderr.print_note("the model made no tool calls"),
        // The note about abandoned calls says enough.
        (0, _) => {}
        _ => context
            .stderr
            .print_note("every call already has a result in the input; `--all` runs them anyway"),
    }
    Ok(exit)
}
