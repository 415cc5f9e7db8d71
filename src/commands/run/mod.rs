//! `toolq run`: answers tool calls. Inputs other than streams are read to their end, and the first call is awaited, before
//! a session begins.

pub(crate) mod arguments;
mod control;
mod input_answerer;

use std::path::Path;
use std::sync::Arc;

use crate::approval::user_name;
use crate::commands::run::arguments::{RunArguments, session_settings};
use crate::commands::run::input_answerer::{InputAnswerer, MessageFile};
use crate::context::CommandContext;
use crate::input::{CommandInput, files};
use crate::output::{CommandError, Exit, stdout};
use crate::plan_file::{PlanFile, PlannedCalls};
use crate::session::{CallSource, RunSession};
use crate::settings::LogTarget;
use toolq_core::check::CallChecker;
use toolq_core::transcript::{InputSource, Recording};
use toolq_core::types::{CheckedCall, ToolsConfig};

/// Answers all calls of all inputs.
///
/// # Errors
/// tools.yaml or an input is invalid, or the log can't be used: then nothing ran. Or stdout can't be written: then the
/// results are in the log.
pub fn run(
    arguments: &'static RunArguments,
    context: &'static CommandContext,
) -> Result<Exit, CommandError> {
    stdout::check_open()?;
    if arguments.control {
        return control::run(arguments, context);
    }
    let tools = Arc::new(context.load_tools_to_run(None)?);
    let paths = arguments.input.paths();
    let mut inputs = if arguments.follow {
        files::open_follow_inputs(&arguments.input)?
    } else {
        files::open_inputs(&arguments.input, InputSource::copied)?
    };
    let message_file = arguments.message.as_deref();
    let message_file = message_file
        .map(|path| MessageFile::open(path, &mut inputs, &paths, context))
        .transpose()?;
    let recordings = files::recordings(&inputs);
    files::print_notes(recordings, arguments.input.all, &context.stderr);
    if !input_answerer::wait_for_call(&mut inputs, arguments, &context.stderr)? {
        return finish_without_calls(inputs, arguments, message_file, context);
    }
    let mut settings = session_settings(arguments, &context.environment);
    if let Some(path) = &arguments.plan {
        settings.plan = Some(read_plan(path, &inputs, arguments, &tools, context)?);
    }
    let plan = settings.plan.clone();
    let session = RunSession::begin(context, tools, &settings, CallSource::Inputs)?;
    let paths = paths.into_iter().map(|path| path.display().to_string());
    let inputs = paths.zip(inputs);
    let (session, answered) = session.run_on_worker(move |session| {
        Box::pin(async move {
            let mut answerer = InputAnswerer::new(session, arguments, plan);
            let result = answerer.answer_inputs(inputs).await;
            (result, answerer.failures, answerer.messages)
        })
    });
    let has_log = settings.log.target != LogTarget::Disabled;
    let (result, failures, messages) = answered;
    let exit = finish(session, arguments, has_log, (result, failures));
    message_file.map_or(Ok(()), |file| file.write(&messages))?;
    exit
}

/// Closes the session and returns the most severe exit. `answered` is the error that ended the run, and those of inputs
/// that broke off.
fn finish(
    session: RunSession<'_>,
    arguments: &RunArguments,
    has_log: bool,
    (result, input_failures): (Result<(), CommandError>, Vec<CommandError>),
) -> Result<Exit, CommandError> {
    let context = session.context;
    let failed = arguments.fail_on_error && session.sinks.summary().errors() > 0;
    let exits = [
        result.as_ref().err().map(|failure| failure.exit),
        input_failures.first().map(|failure| failure.exit),
        failed.then_some(Exit::ProblemsFound),
    ];
    let exit = session.finish(exits.into_iter().flatten());
    for failure in &input_failures {
        context.stderr.print_error(failure);
    }
    result.map_err(|failure| match failure.exit {
        Exit::Output if has_log => failure.with_hint("the results are in the session log"),
        _ => CommandError { exit, ..failure },
    })?;
    Ok(exit)
}

// Applies a plan: reads it, and compares it with what would run.

/// Reads the plan and compares it with all calls of the inputs.
///
/// # Errors
/// The plan can't be used, or isn't what would run. Nothing ran.
fn read_plan(
    path: &Path,
    inputs: &[CommandInput],
    arguments: &RunArguments,
    tools: &Arc<ToolsConfig>,
    context: &CommandContext,
) -> Result<Arc<PlannedCalls>, CommandError> {
    let file = PlanFile::read(path)?;
    let mut recordings = Vec::new();
    for input in inputs {
        let CommandInput::Recording(recording) = input else {
            return Err(CommandError::usage(
                "the calls of a stream aren't known before they run, so no plan can hold them; nothing ran",
            ));
        };
        recordings.push(&**recording);
    }
    let mask = Arc::new(context.build_mask(tools));
    let user = user_name(&context.environment);
    let plan = PlannedCalls::new(file, mask, user);
    let checker = CallChecker::new(Arc::clone(tools));
    let turns = checked_turns(&recordings, arguments.input.all, &checker);
    plan.compare(tools, turns)?;
    Ok(Arc::new(plan))
}

/// Reads and checks turn after turn, as the run will.
fn checked_turns<'a>(
    recordings: &'a [&'a Recording],
    include_answered: bool,
    checker: &'a CallChecker,
) -> impl Iterator<Item = Result<(usize, Vec<CheckedCall>), CommandError>> + 'a {
    let turns = recordings.iter().flat_map(move |recording| {
        (0..recording.len()).map(move |index| recording.turn(index, include_answered))
    });
    turns.enumerate().map(|(number, turn)| {
        let turn = turn?.with_number(number);
        Ok((number, checker.check_turn(turn)))
    })
}

// Ends a run whose inputs have no calls.

/// Ends a run without calls. Lines are answered by empty lists, documents and streams by nothing.
fn finish_without_calls(
    inputs: Vec<CommandInput>,
    arguments: &RunArguments,
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
        let mut printer = arguments.new_printer(recording.layout(), 0, None);
        for index in 0..recording.len() {
            let turn = recording.turn(index, arguments.input.all)?;
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
