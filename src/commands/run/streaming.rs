//! Answers inputs that are still arriving: streams, where each call starts as soon as it may, and lines, one by one.

use crate::commands::run::RunArguments;
use crate::commands::run::input_answerer::InputAnswerer;
use crate::input::{CommandInput, FollowInput, StreamInput, files};
use crate::output::{AnswerPrinter, CommandError, Exit, StderrWriter};
use toolq_core::transcript::{FollowedLine, InputError, StreamEvent};
use toolq_core::types::{AnswerForm, InputLayout};
use toolq_engine::MessageSource as _;

/// Blocks until an input has a call. Returns false if no input has one. Lines without calls are answered right away.
///
/// # Errors
/// The input can't be read, or stdout can't be written.
pub(crate) fn wait_for_call(
    inputs: &mut [CommandInput],
    arguments: &RunArguments,
    stderr: &StderrWriter,
) -> Result<bool, CommandError> {
    let all = arguments.input.all;
    let recorded = |input: &CommandInput| matches!(input, CommandInput::Recording(known) if known.open_calls(all) > 0);
    if inputs.iter().any(recorded) {
        return Ok(true);
    }
    for input in inputs {
        let has_call = match input {
            CommandInput::Recording(_) => false,
            CommandInput::Stream(stream) => stream.wait_for_call(),
            CommandInput::Follow(lines) => wait_for_call_in_lines(lines, arguments, stderr)?,
        };
        if has_call {
            return Ok(true);
        }
    }
    Ok(false)
}

fn wait_for_call_in_lines(
    lines: &mut FollowInput,
    arguments: &RunArguments,
    stderr: &StderrWriter,
) -> Result<bool, CommandError> {
    let mut printer = arguments.new_printer(InputLayout::Lines, 0, None);
    while let Some(line) = lines.next_blocking()? {
        if has_call(&line, arguments) {
            lines.put_back(line);
            return Ok(true);
        }
        report_bad_line(&line, stderr);
        lines.skip_turns(answer_line_without_calls(&line, &mut printer));
        printer.check_written()?;
    }
    Ok(false)
}

fn has_call(line: &FollowedLine, arguments: &RunArguments) -> bool {
    matches!(line, FollowedLine::Recording(line) if line.open_calls(arguments.input.all) > 0)
}

/// Answers a line in which nothing is to run, with an empty list or an error. Returns the number of its turns.
fn answer_line_without_calls(line: &FollowedLine, printer: &mut AnswerPrinter) -> usize {
    match line {
        FollowedLine::Recording(recording) => {
            printer.print_empty_list();
            recording.len()
        }
        FollowedLine::ApiError(_) => {
            printer.print_empty_list();
            0
        }
        FollowedLine::Invalid(error) => {
            printer.print_error_line(&error.to_string());
            0
        }
    }
}

/// Tells people about a line that isn't a message.
fn report_bad_line(line: &FollowedLine, stderr: &StderrWriter) {
    match line {
        FollowedLine::Recording(_) => {}
        FollowedLine::ApiError(error) => stderr.print_note(&error.to_string()),
        FollowedLine::Invalid(error) => {
            stderr.print_error(&error.clone().into());
        }
    }
}

impl InputAnswerer<'_, '_> {
    /// Answers the messages of a stream, one after another.
    pub(crate) async fn answer_stream(
        &mut self,
        mut stream: StreamInput,
    ) -> Result<(), CommandError> {
        stream.read_in_background().map_err(CommandError::usage)?;
        let answered = self.answer_messages(&mut stream).await;
        self.messages.append(&mut stream.take_messages());
        let kinds = stream.unknown_kinds().map(|(kind, _)| kind).collect();
        files::print_unknown_kinds(&kinds, &self.session.context.stderr);
        answered
    }

    async fn answer_messages(&mut self, stream: &mut StreamInput) -> Result<(), CommandError> {
        let (control, turns_before) = (self.session.engine.control(), self.turns_before);
        loop {
            let event = tokio::select! {
                biased;
                () = control.wait_for_external_halt() => None,
                event = stream.next() => event,
            };
            self.turns_before = turns_before + stream.message_count();
            let stream_error = match event {
                None => return Ok(()),
                Some(StreamEvent::CallStarted { turn, form, origin }) => {
                    self.set_turn_origin(origin);
                    self.answer_message(stream, turns_before + turn, form)
                        .await?
                }
                Some(StreamEvent::Aborted { error, .. }) => Some(error),
                Some(StreamEvent::Broken { error, .. }) => {
                    self.note_broken(error);
                    None
                }
                Some(
                    StreamEvent::PartialInput(_)
                    | StreamEvent::CallComplete(_)
                    | StreamEvent::MessageEnd { .. },
                ) => None,
            };
            if let Some(error) = stream_error {
                // Pass 1, so that this counts as breaking off: calls ran, if only those of another input.
                return Err(files::stream_failure(error, 1));
            }
        }
    }

    /// Answers the calls of a message whose first call has started to arrive. Returns the error if the stream broke
    /// off.
    async fn answer_message(
        &mut self,
        stream: &mut StreamInput,
        number: usize,
        form: AnswerForm,
    ) -> Result<Option<InputError>, CommandError> {
        let mut printer = self.new_printer(InputLayout::Document, 1);
        printer.begin_turn(form);
        let mut parts = self.session.turn_parts();
        let end = parts
            .engine
            .run_message(number, stream, parts.checker, &mut parts.sink, &mut printer)
            .await;
        self.check_output(&mut printer)?;
        if let Some(error) = end.broken {
            self.note_broken(error);
        }
        Ok(end.stream_error)
    }

    /// Keeps what is wrong with a message, which doesn't stop those after it.
    fn note_broken(&mut self, error: InputError) {
        self.failures.push(files::stream_failure(error, 1));
    }

    /// Answers each line as it arrives.
    pub(crate) async fn answer_lines(
        &mut self,
        mut lines: FollowInput,
    ) -> Result<(), CommandError> {
        lines.read_in_background().map_err(CommandError::usage)?;
        let include_answered = self.arguments.input.all;
        let control = self.session.engine.control();
        self.turns_before += lines.skipped_turns();
        loop {
            let line = tokio::select! {
                biased;
                () = control.wait_for_external_halt() => return Ok(()),
                line = lines.next() => line?,
            };
            match line {
                None if lines.has_bad_line() => {
                    // Each of them was reported when it was answered.
                    return Err(CommandError::silent(Exit::Incomplete));
                }
                None => return Ok(()),
                Some(FollowedLine::Recording(line)) if line.open_calls(include_answered) > 0 => {
                    if let Err(error) = self.answer_recording(&line).await {
                        self.answer_refused_line(&error)?;
                        return Err(error);
                    }
                }
                Some(line) => self.answer_line_without_calls(&line)?,
            }
        }
    }

    /// Answers a line that can't be run, since its sender waits for an answer.
    fn answer_refused_line(&mut self, error: &CommandError) -> Result<(), CommandError> {
        if error.exit != Exit::Usage {
            return Ok(());
        }
        let mut printer = self.new_printer(InputLayout::Lines, 0);
        printer.print_error_line(&error.message);
        self.check_output(&mut printer)
    }

    fn answer_line_without_calls(&mut self, line: &FollowedLine) -> Result<(), CommandError> {
        let stderr = &self.session.context.stderr;
        match self.session.sinks.screen() {
            Some(screen) => screen.suspend(|| report_bad_line(line, stderr)),
            None => report_bad_line(line, stderr),
        }
        let mut printer = self.new_printer(InputLayout::Lines, 0);
        self.turns_before += answer_line_without_calls(line, &mut printer);
        self.check_output(&mut printer)
    }
}
