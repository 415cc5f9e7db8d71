//! `toolq replay`: checks recordings against the current tools. Differences go to stderr and into reports.

mod replay_run;
pub(crate) mod report_files;

use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueHint};

use crate::args::shared_flags::{BudgetFlags, OtlpFlags, WatchFlags};
use crate::args::values::{InputFormat, ProgressFlag, parse_jobs, recording_format_parser};
use crate::commands::replay::replay_run::ReplayRun;
use crate::commands::replay::report_files::open_reports;
use crate::context::CommandContext;
use crate::output::{CommandError, Exit};
use crate::replay::{
    CopiedTools, ExecutePolicy, RecordingReplayer, ReplaySettings, RootCopy, Shard, find_recordings,
};
use crate::session::{CallSource, RunSession};
use crate::settings::{LogTarget, SessionSettings};
use toolq_core::os::Environment;
use toolq_core::text::parse_bytes;
use toolq_core::types::{IgnorePattern, SandboxNetwork, TextNormalizer, ToolsConfig};
use toolq_engine::find_sandbox_gaps;

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate flag")]
pub struct ReplayArguments {
    /// Recordings: files, directories (searched recursively), or globs; `-` is stdin
    #[arg(value_name = "PATH", required = true, value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Which calls to run; the results of the others are served from the recording
    #[arg(long, value_name = "WHICH", default_value = "read")]
    pub execute: ExecutePolicy,
    /// Run commands with all their effects on a throw-away copy of `root`, one for each recording
    #[arg(long, conflicts_with = "execute")]
    on_copy: bool,
    /// With --on-copy: keep the copies, and print where they are
    #[arg(long, requires = "on_copy")]
    pub keep: bool,
    /// Let stale results count as differences: those of reads after a call that would have changed something, but was
    /// served
    #[arg(long)]
    pub strict: bool,
    /// Ignore differences in this part of each result: `/pointer`, or `//name` at any depth; can be repeated
    #[arg(long, value_name = "PART", value_parser = IgnorePattern::parse)]
    pub ignore: Vec<IgnorePattern>,
    /// Ignore text that matches this regular expression, such as times and hashes; can be repeated
    #[arg(long, value_name = "REGEX", value_parser = TextNormalizer::removing)]
    ignore_text: Vec<TextNormalizer>,
    /// Write a JSON report; `-` is stdout
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,
    /// Write a JUnit report: a suite per recording, a case per call
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub junit: Option<PathBuf>,
    /// Write a Markdown summary, for the page of a CI run
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub markdown: Option<PathBuf>,
    /// Write a page with what holds and what differs, for a reviewer (HTML)
    ///
    /// Recorded and current results stand side by side. The page needs no network and no other file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    /// Write new results into the recordings
    ///
    /// Only the results that differ are edited; every other byte of a recording stays.
    #[arg(long)]
    pub update: bool,
    /// Replay only part K of N of the sorted recordings
    #[arg(long, value_name = "K/N")]
    pub shard: Option<Shard>,
    /// Stop after the first turn in which a call differs
    #[arg(long)]
    pub fail_fast: bool,
    /// Format of the recordings [default: auto-detect]
    #[arg(long, value_name = "DIALECT", value_parser = recording_format_parser())]
    pub from: Option<InputFormat>,
    /// Largest JSON document to accept
    #[arg(long = "max-input", value_name = "SIZE", default_value = "256MiB", value_parser = parse_bytes)]
    pub max_document: u64,
    /// Maximum number of calls to run at once; 1 turns parallelism off [default: `concurrency` in tools.yaml]
    #[arg(short, long, value_name = "N", value_parser = parse_jobs)]
    pub jobs: Option<NonZeroUsize>,
    /// Append a session log of the calls that run to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub log: Option<PathBuf>,
    #[command(flatten)]
    pub otlp: OtlpFlags,
    #[command(flatten)]
    pub budgets: BudgetFlags,
}

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
