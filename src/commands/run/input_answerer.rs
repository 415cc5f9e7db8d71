//! Answers the inputs of a run: passes turn after turn to the engine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::commands::run::RunArguments;
use crate::context::CommandContext;
use crate::input::{CommandInput, files};
use crate::output::{AnswerPrinter, CommandError, Exit, check_output_file, replace_file};
use crate::plan_file::PlannedCalls;
use crate::session::RunSession;
use toolq_core::transcript::Recording;
use toolq_core::types::{HaltCause, InputLayout, Turn, TurnOrigin};
use toolq_engine::RememberedWrites;

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
            let parts = self.session.turn_parts();
            let found = parts
                .engine
                .find_remembered_writes(turn, parts.checker, parts.writes);
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
        let mut parts = self.session.turn_parts();
        let (number, sink) = (turn.number, &mut parts.sink);
        let known = (parts.checker, parts.writes);
        let calls = parts.engine.prepare_turn(turn, known, sink).await;
        if let Some(plan) = &self.plan {
            plan.check_calls(&calls)?;
        }
        let failure = files::misplaced_failure(recording, &calls);
        parts.engine.run_turn(number, calls, sink, printer).await;
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
