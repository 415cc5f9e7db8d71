//! `toolq replay`: checks recordings against the current tools. Differences go to stderr and into reports.

pub(crate) mod arguments;
pub(crate) mod replay_run;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::args::{InputFormat, ProgressFlag, WatchFlags};
use crate::commands::replay::arguments::ReplayArguments;
use crate::commands::replay::replay_run::{ReplayRun, open_reports};
use crate::context::CommandContext;
use crate::output::{CommandError, Exit};
use crate::replay::{
    CopiedTools, ExecutePolicy, RecordingReplayer, ReplaySettings, RootCopy, find_recordings,
};
use crate::session::{CallSource, RunSession};
use crate::settings::{LogTarget, SessionSettings};
use toolq_core::os::Environment;
use toolq_core::types::{SandboxNetwork, ToolsConfig};
use toolq_engine::find_sandbox_gaps;

/// Replays all named recordings.
///
/// # Errors
/// tools.yaml is invalid, a path has no recordings, or the log or a report can't be written.
pub fn replay_recordings(
    arguments: &'static ReplayArguments,
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
    let reports = open_reports(arguments, context, &file, &recordings)?;
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
        copied_tools,
        session.engine.control(),
        Arc::clone(&session.setup.mask),
    );
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
fn session_settings(arguments: &ReplayArguments, environment: &Environment) -> SessionSettings {
    let log = arguments.log.clone();
    let log = log.map_or(LogTarget::Disabled, LogTarget::File);
    let watch = WatchFlags {
        events: None,
        progress: ProgressFlag::None,
        otlp: arguments.otlp.clone(),
    };
    SessionSettings {
        jobs: arguments.jobs,
        ..SessionSettings::new(log.into(), &watch, &arguments.budgets, environment)
    }
}

fn replay_settings(arguments: &ReplayArguments) -> ReplaySettings {
    ReplaySettings {
        execute: if arguments.on_copy {
            ExecutePolicy::OnCopy
        } else {
            arguments.execute
        },
        strict: arguments.strict,
        ignored: arguments.ignore.clone(),
        normalizers: arguments.ignore_text.clone(),
        update_recordings: arguments.update,
        fail_fast: arguments.fail_fast,
    }
}

// `--on-copy`: prepares the copy of `root`.

/// Prepares a place for copies of `root`.
///
/// # Errors
/// The system can't confine programs to a copy, `root` is the whole file system, or the place can't be created.
fn prepare_copy(
    context: &CommandContext,
    tools: &ToolsConfig,
    keep: bool,
) -> Result<RootCopy, CommandError> {
    let gaps = find_sandbox_gaps(&SandboxNetwork::None);
    if !gaps.is_empty() {
        let failure = CommandError::usage(format!(
            "`--on-copy` runs programs in a sandbox, and this system can't confine {}",
            gaps.join(", or ")
        ));
        return Err(failure.with_hint("leave it out: only reads run then, and writes are served"));
    }
    let root = &tools.root;
    let failed = |error: io::Error| {
        CommandError::usage(format!("{} can't be copied: {error}", root.display()))
            .with_hint("set TMPDIR to a directory with enough space")
    };
    let original = root.canonicalize().map_err(failed)?;
    if original == Path::new("/") {
        return Err(CommandError::usage("`root` is /, which can't be copied")
            .with_hint("name the directory that the tools work on as `root` in tools.yaml"));
    }
    if root.join(".git").is_file() {
        context.stderr.print_warning(
            "`.git` is a file: the git directory lies outside `root` and isn't copied, so git can't write",
        );
    }
    let place = context.environment.get_os("TMPDIR").map(PathBuf::from);
    let place = place.unwrap_or_else(|| PathBuf::from("/tmp"));
    RootCopy::new(&original, &place, keep).map_err(failed)
}
