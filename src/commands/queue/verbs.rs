//! `toolq queue`: turns that workers on any machine answer.

use std::sync::Arc;

use crate::args::{InputArguments, LogFormat};
use crate::commands::log::resolve::load_mask;
use crate::commands::queue::{
    NatsFlags, QueueArguments, QueueCommand, QueueNameArguments, QueueResolveArguments,
    SubmitArguments, WorkArguments,
};
use crate::context::CommandContext;
use crate::input::{CommandInput, files};
use crate::output::{CommandError, Exit, stdout};
use crate::session::signals::handled_termination_signals;
use crate::session::{build_runtime, set_up_calls};
use toolq_queue::{
    CallSettings, CollectSettings, NatsSettings, Notices, QueueSession, Submission, SubmitSettings,
    SubmittedInput, WorkerSettings,
};

/// The default address of NATS.
const DEFAULT_URL: &str = "nats://127.0.0.1:4222";

/// Runs a verb of `toolq queue`.
///
/// # Errors
/// The queue can't be used, or stdout can't be written.
pub(crate) fn run_queue_command(
    arguments: &QueueArguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let begin = |at: &QueueNameArguments| begin_session(&at.queue, &at.nats, context);
    match &arguments.command {
        QueueCommand::Submit(arguments) => submit_turns(arguments, context)?,
        QueueCommand::Work(arguments) => return work_on_queue(arguments, context),
        QueueCommand::Collect {
            at,
            until_empty,
            from_start,
        } => {
            stdout::check_open()?;
            let settings = CollectSettings {
                until_empty: *until_empty,
                from_start: *from_start,
            };
            let print = |lines: &[u8]| Ok(stdout::write_lines(lines)?);
            return begin(at)?.collect(settings, &handled_termination_signals(), print);
        }
        QueueCommand::Status { at, format } => {
            let status = begin(at)?.status()?;
            stdout::write_line(&match format {
                LogFormat::Text => status.text(),
                LogFormat::Json => status.json(),
            })?;
        }
        QueueCommand::Dead(at) => {
            for line in begin(at)?.dead_turns()? {
                stdout::write_line(&line)?;
            }
        }
        QueueCommand::Log { at, turn } => stdout::write_lines(&begin(at)?.turn_log(turn)?)?,
        QueueCommand::Cancel { at, turn } => {
            let turn = begin(at)?.cancel(turn)?;
            let note = format!("{turn} is canceled; its answer says so");
            context.stderr.print_note(&note);
        }
        QueueCommand::Resolve(arguments) => resolve_call(arguments, context)?,
        QueueCommand::Purge { at, force } => {
            let bytes = begin(at)?.purge(*force)?;
            let note = format!("the queue {} is gone, with {bytes} bytes", at.queue);
            context.stderr.print_note(&note);
        }
    }
    Ok(Exit::Ok)
}

/// As usual for a variable, an empty `NATS_URL` is unset.
fn begin_session(
    queue: &str,
    flags: &NatsFlags,
    context: &CommandContext,
) -> Result<QueueSession, CommandError> {
    let from_environment = || {
        let url = context.environment.get_os("NATS_URL")?;
        url.to_str().map(str::to_owned)
    };
    let url = flags.url.clone().or_else(from_environment);
    let url = url.filter(|url| !url.is_empty());
    let settings = NatsSettings {
        url: url.unwrap_or_else(|| DEFAULT_URL.to_owned()),
        credentials: flags.credentials.clone(),
        tls_ca: flags.tls_ca.clone(),
        tls_identity: flags.tls_cert.clone().zip(flags.tls_key.clone()),
    };
    let (for_notes, for_warnings) = (context.stderr.clone(), context.stderr.clone());
    let notices = Notices::new(
        move |note| for_notes.print_note(note),
        move |warning| for_warnings.print_warning(warning),
    );
    QueueSession::begin(queue, &settings, notices)
}

fn submit_turns(arguments: &SubmitArguments, context: &CommandContext) -> Result<(), CommandError> {
    let tools = context.load_tools()?;
    let inputs = files::open_inputs(&arguments.input, |source| Ok(source.with_digest()))?;
    let paths = arguments.input.paths().into_iter();
    let paths = paths.map(|path| path.display().to_string());
    let settings = SubmitSettings {
        tools_sha256: tools.digest,
        form: arguments.to,
        is_new: arguments.new,
        replicas: arguments.replicas.get(),
    };
    let inputs = paths
        .zip(inputs)
        .map(|(path, input)| read_input(path, input, &arguments.input));
    let session = begin_session(&arguments.queue, &arguments.nats, context)?;
    let Submission { new, known } = session.submit(settings, inputs)?;
    let turns = |count: usize| match count {
        1 => "1 turn".to_owned(),
        _ => format!("{count} turns"),
    };
    let known = match known {
        0 => String::new(),
        _ => format!(
            "; the queue had {} already (`--new` submits again)",
            turns(known)
        ),
    };
    let note = format!("{} submitted{known}", turns(new));
    context.stderr.print_note(&note);
    Ok(())
}

/// Reads a stream to its end. The turns of a recording are read as they are submitted.
fn read_input(
    path: String,
    input: CommandInput,
    arguments: &InputArguments,
) -> Result<SubmittedInput, CommandError> {
    match input {
        CommandInput::Recording(recording) => {
            let includes_answered = arguments.all;
            let digest = recording.sha256().to_owned();
            let turns = (0..recording.len())
                .map(move |index| Ok(recording.turn(index, includes_answered)?));
            Ok(SubmittedInput {
                path,
                digest,
                turns: Box::new(turns),
            })
        }
        CommandInput::Stream(mut stream) => {
            let (turns, broken) = stream.read_to_end();
            match broken {
                Some(error) => Err(files::stream_failure(error, stream.message_count())),
                None => Ok(SubmittedInput::of_turns(path, turns)),
            }
        }
        CommandInput::Follow(_) => Ok(SubmittedInput::of_turns(path, Vec::new())),
    }
}

fn work_on_queue(
    arguments: &WorkArguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let tools = Arc::new(context.load_tools_to_run(None)?);
    let setup = set_up_calls(tools, arguments.jobs, context)?;
    let session = begin_session(&arguments.queue, &arguments.nats, context)?;
    let runtime = build_runtime(false)?;
    let settings = WorkerSettings {
        replicas: arguments.replicas.get(),
        ack_wait: arguments.ack_wait,
        drain: arguments.drain,
        max_deliveries: arguments.max_deliveries.get(),
        until_empty: arguments.until_empty,
    };
    let calls = CallSettings {
        engine: setup.engine_settings(),
        checker: setup.checker,
        tools_path: context.tools_path.clone(),
    };
    session.work(settings, calls, runtime, &handled_termination_signals())
}

fn resolve_call(
    arguments: &QueueResolveArguments,
    context: &CommandContext,
) -> Result<(), CommandError> {
    let settlement = arguments.finding.settlement(&load_mask(context));
    let id = &arguments.id;
    let session = begin_session(&arguments.at.queue, &arguments.at.nats, context)?;
    let turn = session.resolve(id, arguments.turn.as_deref(), &settlement)?;
    let becomes = if settlement.done {
        "has this result now"
    } else {
        "will run"
    };
    let note = format!("{id} {becomes}; {turn} is answered again, and `collect` prints that, too");
    context.stderr.print_note(&note);
    Ok(())
}
