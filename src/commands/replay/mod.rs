//! `toolq replay`: checks recordings against the current tools. Differences go to stderr and into reports.

mod messages;
mod on_copy;
mod replay_run;

use std::path::Path;
use std::sync::Arc;

use crate::args::replay::ReplayArguments as Arguments;
use crate::args::values::{IdsFlag, InputFormat, ProgressFlag};
use crate::commands::replay::on_copy::prepare_copy;
use crate::commands::replay::replay_run::ReplayRun;
use crate::context::CommandContext;
use crate::otlp::OtlpSettings;
use crate::output::{CommandError, Exit};
use crate::replay::{
    CopiedTools, ExecutePolicy, RecordingReplayer, ReplaySettings, find_recordings,
};
use crate::session::{CallSource, RunSession, replay_reports};
use crate::settings::{LogTarget, SessionSettings, WatchSettings};
use toolq_core::os::Environment;

/// Replays all named recordings.
///
/// # Errors
/// tools.yaml is invalid, a path has no recordings, or the log or a report can't be written.
pub fn replay_recordings(
    arguments: &'static Arguments,
    context: &'static CommandContext,
) -> Result<Exit, CommandError> {
    if arguments
        .from
        .and_then(InputFormat::stream_vendor)
        .is_some()
    {
        let failure = CommandError::usage("a stream of events has no results to replay");
        return Err(failure.with_hint(
            "`toolq plan` checks its inputs; `toolq run --log FILE` turns it into a recording",
        ));
    }
    let (tools, file) = context.load_tools_file()?;
    context.warn_about_root(&tools, &file);
    let mut recordings = find_recordings(&arguments.paths)?;
    if let Some(shard) = arguments.shard {
        recordings = shard.select(recordings);
    }
    if arguments.update && recordings.iter().any(|path| path == Path::new("-")) {
        return Err(CommandError::usage("stdin can't be updated").with_hint("name the file"));
    }
    let reports = replay_reports::open_reports(arguments, context, &file, &recordings)?;
    let tools = Arc::new(tools);
    let copy = arguments
        .on_copy
        .then(|| prepare_copy(context, &tools, arguments.keep))
        .transpose()?;
    let copied_tools = copy
        .as_ref()
        .map(|copy| CopiedTools::new(&tools, &copy.path()));
    let tools_that_run = copied_tools.as_ref().map_or(&tools, CopiedTools::tools);
    let session = RunSession::begin(
        context,
        Arc::clone(tools_that_run),
        &session_settings(arguments, &context.environment),
        CallSource::Recordings,
    )?;
    let replayer = RecordingReplayer::new(
        replay_settings(arguments),
        tools,
        session.engine.control(),
        Arc::clone(&session.setup.mask),
    );
    let replayer = replayer.with_copied_tools(copied_tools);
    let mut replay = ReplayRun::new(arguments, replayer, copy, reports);
    let (session, (replay, result)) = session.run_on_worker(move |session| {
        Box::pin(async move {
            let result = replay.replay_all(session, &recordings).await;
            (replay, result)
        })
    });
    replay.finish(session, result)
}

/// A replay writes a log only on request.
fn session_settings(arguments: &Arguments, environment: &Environment) -> SessionSettings {
    let log = arguments.log.clone();
    let log = log.map_or(LogTarget::Disabled, LogTarget::File);
    let watch = WatchSettings {
        events: None,
        inputs: Vec::new(),
        progress: ProgressFlag::None,
    };
    SessionSettings {
        jobs: arguments.jobs,
        otlp: OtlpSettings::new(&arguments.otlp, environment),
        ..SessionSettings::new(log.into(), watch, &arguments.budgets)
    }
}

fn replay_settings(arguments: &Arguments) -> ReplaySettings {
    ReplaySettings {
        execute: if arguments.on_copy {
            ExecutePolicy::OnCopy
        } else {
            arguments.execute.into()
        },
        strict: arguments.strict,
        ignored: arguments.ignore.clone(),
        normalizers: arguments.ignore_text.clone(),
        tolerance: arguments.tolerance,
        rename_ids: arguments.ids == IdsFlag::Rename,
        update_recordings: arguments.update,
        fail_fast: arguments.fail_fast,
    }
}
