//! `toolq run`: answers tool calls. Inputs other than streams are read to their end, and the first call is awaited, before
//! a session begins.

mod control;
mod input_answerer;
mod message_file;
mod no_calls;
mod plan_application;
mod settings;
mod streaming;

use std::sync::Arc;

use crate::args::run::RunArguments as Arguments;
use crate::commands::run::input_answerer::InputAnswerer;
use crate::commands::run::message_file::MessageFile;
use crate::commands::run::no_calls::finish_without_calls;
use crate::commands::run::plan_application::read_plan;
use crate::commands::run::settings::{RunSettings, session_settings};
use crate::context::CommandContext;
use crate::input::files;
use crate::output::{CommandError, Exit, stdout};
use crate::session::{CallSource, RunSession};
use crate::settings::LogTarget;
use toolq_core::transcript::InputSource;

/// Answers all calls of all inputs.
///
/// # Errors
/// tools.yaml or an input is invalid, or the log can't be used: then nothing ran. Or stdout can't be written: then the
/// results are in the log.
pub fn run(
    arguments: &'static Arguments,
    context: &'static CommandContext,
) -> Result<Exit, CommandError> {
    stdout::check_open()?;
    if arguments.control {
        return control::run(arguments, context);
    }
    let tools = Arc::new(context.load_tools_to_run()?);
    let paths = arguments.input.paths();
    let mut inputs = if arguments.follow {
        files::open_follow_inputs(&arguments.input)?
    } else {
        files::open_inputs(&arguments.input, InputSource::copied)?
    };
    let run_settings = RunSettings::from(arguments);
    let message_file = arguments.message.as_deref();
    let message_file = message_file
        .map(|path| MessageFile::open(path, &mut inputs, &paths, context))
        .transpose()?;
    let recordings = files::recordings(&inputs);
    files::print_notes(recordings, arguments.input.all, &context.stderr);
    if !streaming::wait_for_call(&mut inputs, run_settings, &context.stderr)? {
        return finish_without_calls(inputs, run_settings, message_file, context);
    }
    let mut settings = session_settings(arguments, &context.environment);
    if let Some(path) = &arguments.plan {
        settings.plan = Some(read_plan(path, &inputs, run_settings, &tools, context)?);
    }
    let plan = settings.plan.clone();
    let session = RunSession::begin(context, tools, &settings, CallSource::Inputs)?;
    let paths = paths.into_iter().map(|path| path.display().to_string());
    let inputs = paths.zip(inputs);
    let (session, answered) = session.run_on_worker(move |session| {
        Box::pin(async move {
            let mut answerer = InputAnswerer::new(session, run_settings, plan);
            let result = answerer.answer_inputs(inputs).await;
            (result, answerer.failures, answerer.messages)
        })
    });
    let has_log = settings.log.target != LogTarget::Disabled;
    let (result, failures, messages) = answered;
    let exit = finish(session, run_settings, has_log, (result, failures));
    message_file.map_or(Ok(()), |file| file.write(&messages))?;
    exit
}

/// Closes the session and returns the most severe exit. `answered` is the error that ended the run, and those of inputs
/// that broke off.
fn finish(
    session: RunSession<'_>,
    settings: RunSettings,
    has_log: bool,
    (result, input_failures): (Result<(), CommandError>, Vec<CommandError>),
) -> Result<Exit, CommandError> {
    let context = session.context;
    let failed = settings.fail_on_error && session.sinks.summary().errors() > 0;
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
