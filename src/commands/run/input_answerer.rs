//! Answers the inputs of a run: passes turn after turn to the engine, or calls as they arrive.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::commands::run::arguments::RunArguments;
use crate::context::CommandContext;
use crate::input::{CommandInput, FollowInput, StreamInput, files};
use crate::output::{
    AnswerPrinter, CommandError, Exit, StderrWriter, check_output_file, replace_file,
};
use crate::plan_file::PlannedCalls;
use crate::session::RunSession;
use toolq_core::transcript::{FollowedLine, InputError, Recording, StreamEvent};
use toolq_core::types::{AnswerForm, HaltCause, InputLayout, Turn, TurnOrigin};
use toolq_engine::{MessageSource as _, RememberedWrites};

/// Answers one input after another.
pub(crate) struct InputAnswerer<'s, 'c> {
    pub(crate) session: &'s mut RunSession<'c>,
    pub(crate) arguments: &'s RunArguments,
    /// The plan that the run applies.
    plan: Option<Arc<PlannedCalls>>,
    /// Number of turns in the earlier inputs.
    pub(crate) turns_before: usize,
    /// The path of the current input.
    input_path: String,
    /// The errors of inputs that broke off.
    pub(super) failures: Vec<CommandError>,
    /// What the messages of streams amount to, if that is kept.
    pub(super) messages: Vec<String>,
}

impl<'s, 'c> InputAnswerer<'s, 'c> {
    pub(crate) fn new(
        session: &'s mut RunSession<'c>,
        arguments: &'s RunArguments,
        plan: Option<Arc<PlannedCalls>>,
    ) -> Self {
        Self {
            session,
            arguments,
            plan,
            turns_before: 0,
            input_path: String::new(),
            failures: Vec::new(),
            messages: Vec::new(),
        }
    }

    /// Answers all inputs, each with its path. An input that breaks off doesn't stop the others.
    pub(crate) async fn answer_inputs(
        &mut self,
        inputs: impl Iterator<Item = (String, CommandInput)>,
    ) -> Result<(), CommandError> {
        for (path, input) in inputs {
            self.input_path = path;
            self.session.writes = RememberedWrites::default();
            self.set_turn_origin(TurnOrigin::default());
            let answered = match input {
                CommandInput::Recording(recording) => self.answer_recording(&recording).await,
                CommandInput::Stream(stream) => self.answer_stream(*stream).await,
                CommandInput::Follow(lines) => self.answer_lines(*lines).await,
            };
            match answered {
                Err(error) if error.exit == Exit::Incomplete => self.failures.push(error),
                answered => answered?,
            }
        }
        Ok(())
    }

    pub(crate) async fn answer_recording(
        &mut self,
        recording: &Recording,
    ) -> Result<(), CommandError> {
        let all = self.arguments.input.all;
        let open = recording.open_turns(all);
        let mut printer = self.new_printer(recording.layout(), open);
        if open > 1 {
            self.find_remembered_writes(recording).await?;
        }
        for index in 0..recording.len() {
            let turn = recording.turn(index, all)?;
            let turn = turn.with_number(self.turns_before + index);
            match (turn.calls.is_empty(), turn.call_count()) {
                (true, 0) => printer.print_empty_list(),
                (true, _) => {}
                (false, _) => self.answer_turn(recording, turn, &mut printer).await?,
            }
            self.check_output(&mut printer)?;
        }
        self.turns_before += recording.len();
        Ok(())
    }

    /// Finds the writes of all turns that have run or may have: what is read in earlier turns must not show what came after.
    async fn find_remembered_writes(&mut self, recording: &Recording) -> Result<(), CommandError> {
        for index in 0..recording.len() {
            let turn = recording.turn(index, self.arguments.input.all)?;
            let mut turn = turn.with_number(self.turns_before + index);
            turn.origin.input = Some(self.input_path.clone());
            let RunSession {
                engine,
                setup,
                writes,
                ..
            } = &mut *self.session;
            let found = engine.find_remembered_writes(turn, &setup.checker, writes);
            found.await;
        }
        Ok(())
    }

    async fn answer_turn(
        &mut self,
        recording: &Recording,
        mut turn: Turn,
        printer: &mut AnswerPrinter,
    ) -> Result<(), CommandError> {
        printer.begin_turn(turn.answer_form);
        turn.origin.input = Some(self.input_path.clone());
        let session = &mut *self.session;
        let (number, sinks) = (turn.number, &mut session.sinks);
        let known = (&*session.setup.checker, &mut session.writes);
        let calls = session.engine.prepare_turn(turn, known, sinks).await;
        if let Some(plan) = &self.plan {
            plan.check_calls(&calls)?;
        }
        let failure = files::misplaced_failure(recording, &calls);
        session.engine.run_turn(number, calls, sinks, printer).await;
        self.failures.extend(failure);
        Ok(())
    }

    /// Sets where the following turns come from, in addition to the current input.
    pub(crate) fn set_turn_origin(&mut self, origin: TurnOrigin) {
        self.session.engine.set_turn_origin(TurnOrigin {
            input: Some(self.input_path.clone()),
            ..origin
        });
    }

    /// Creates a printer for an input of `layout` with `turns` turns.
    pub(crate) fn new_printer(&self, layout: InputLayout, turns: usize) -> AnswerPrinter {
        let screen = self.session.sinks.screen();
        let printer = self.arguments.new_printer(layout, turns, screen);
        printer.with_control(self.session.engine.control())
    }

    /// Returns an error if stdout couldn't be written.
    pub(crate) fn check_output(&self, printer: &mut AnswerPrinter) -> Result<(), CommandError> {
        printer.check_written()?;
        if self.session.engine.control().halt_cause() == Some(HaltCause::OutputLost) {
            return Err(CommandError::silent(Exit::Output));
        }
        Ok(())
    }
}

// The file that `--message` names: the assistant messages that streams amount to, which go back to the API with the results.

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

// Answers inputs that are still arriving: streams, where each call starts as soon as it may, and lines, one by one.

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
        let RunSession {
            engine,
            setup,
            sinks,
            ..
        } = &mut *self.session;
        let end = engine
            .run_message(number, stream, &setup.checker, sinks, &mut printer)
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
