//! `toolq replay`: checks recordings against the current tools. Differences go to stderr and into reports.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::args::{DialectFlag, IdsFlag, ReplayArguments as Arguments};
use crate::context::CommandContext;
use crate::input::files;
use crate::output::{CommandError, Exit, StdoutError};
use crate::replay::{
    FileStamp, FindRecordingsError, RecordingEdit, RecordingReplayer, ReplayError, ReplayReport,
    ReplaySettings, find_recordings, totals_label, update_recording,
};
use crate::session::replay_reports;
use crate::session::runtime;
use crate::session::{DescribeWarningSink, SignalHandler, build_runtime};
use redact::Mask;
use toolq_core::os::Clock;
use toolq_core::transcript::Recording;
use toolq_core::types::{Dialect, EmitError, Event, EventSink, ToolsConfig};
use toolq_engine::{Engine, EngineSettings, random_task_id};
use toolq_log::{Access, SessionHeader, SessionLog, SyncPolicy};

/// Replays all named recordings.
///
/// # Errors
/// tools.yaml is invalid, a path has no recordings, or the log or a report can't be written.
pub fn replay_recordings(
    arguments: &Arguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    if arguments
        .from
        .and_then(DialectFlag::stream_vendor)
        .is_some()
    {
        let failure = CommandError::usage("a stream of events has no results to replay");
        return Err(failure.with_hint(
            "`toolq plan` checks its inputs; `toolq run --log FILE` turns it into a recording",
        ));
    }
    let (tools, file) = context.load_tools_file()?;
    let mut recordings = find_recordings(&arguments.paths)?;
    if let Some(shard) = arguments.shard {
        recordings = shard.select(recordings);
    }
    if arguments.update && recordings.iter().any(|path| path == Path::new("-")) {
        return Err(CommandError::usage("stdin can't be updated").with_hint("name the file"));
    }
    let tools = Arc::new(tools);
    let runtime = build_runtime()?;
    let entered = runtime.enter();
    let signals = SignalHandler::install().map_err(|error| {
        CommandError::usage(format!("failed to install signal handlers: {error}"))
    })?;
    let mask = Arc::new(context.build_mask(&tools));
    let log = open_log(arguments, context, &tools, &mask)?;
    let engine = Engine::new(EngineSettings {
        jobs: arguments.jobs.unwrap_or(tools.concurrency),
        output_dir: log.as_ref().map(|log| log.blob_dir().to_owned()),
        task_id: log
            .as_ref()
            .map_or_else(random_task_id, SessionLog::task_id),
        budget_limits: (&arguments.budgets).into(),
        ..runtime::default_engine_settings(&tools, &mask, context)
    });
    let termination_signal = signals.termination_signal();
    tokio::spawn(signals.handle_signals(engine.control(), None));
    drop(entered);
    let mut session = ReplaySession {
        arguments,
        context,
        reports: replay_reports::open_reports(arguments, context, &file)?,
        replay: RecordingReplayer::new(replay_settings(arguments), tools, engine, mask),
        log: OptionalLogSink(log),
        exit: Exit::Ok,
        termination_signal,
    };
    runtime.block_on(session.replay_all(&recordings))?;
    session.finish()
}

fn replay_settings(arguments: &Arguments) -> ReplaySettings {
    ReplaySettings {
        execute: arguments.execute.into(),
        ignored: arguments.ignore.clone(),
        tolerance: arguments.tolerance,
        rename_ids: arguments.ids == IdsFlag::Rename,
        update_recordings: arguments.update,
        fail_fast: arguments.fail_fast,
    }
}

/// The state of a replay.
struct ReplaySession<'a> {
    pub(crate) arguments: &'a Arguments,
    pub(crate) context: &'a CommandContext,
    replay: RecordingReplayer,
    reports: Vec<Box<dyn ReplayReport>>,
    log: OptionalLogSink,
    /// The most severe exit so far.
    exit: Exit,
    /// The signal that stopped the replay.
    termination_signal: Arc<OnceLock<u8>>,
}

impl ReplaySession<'_> {
    async fn replay_all(&mut self, recordings: &[PathBuf]) -> Result<(), CommandError> {
        for path in recordings {
            match self.replay_one(path).await {
                Ok(()) => {}
                Err(ReplayError::Input(error)) => {
                    self.report_unreadable(path, &error.into())
                        .map_err(unwritten_report)?;
                }
                Err(ReplayError::Report(error)) => return Err(unwritten_report(error)),
            }
            if self.replay.is_over() || self.exit == Exit::Usage && self.arguments.fail_fast {
                break;
            }
        }
        let totals = self.replay.totals();
        self.reports.finish(&totals).map_err(unwritten_report)
    }

    async fn replay_one(&mut self, path: &Path) -> Result<(), ReplayError> {
        let name = path.display().to_string();
        let stamp = FileStamp::from_path(path);
        let source = match files::open_source(path) {
            Ok(source) => source,
            Err(failure) => return Ok(self.report_unreadable(path, &failure)?),
        };
        let from = self.arguments.from.map(Into::into);
        let recording = Recording::read(source, from, self.arguments.max_document)?;
        let recording = match recording.dialect() {
            Dialect::Toolq => match files::verify_session_log(recording, path) {
                Ok(recording) => recording,
                Err(failure) => return Ok(self.report_unreadable(path, &failure)?),
            },
            _ => recording,
        };
        let Self {
            replay,
            log,
            reports,
            ..
        } = self;
        let differing_before = replay.totals().differing;
        let mut log = DescribeWarningSink::new(log, &self.context.stderr, None);
        let edits = replay.replay_recording(&name, &recording, &mut log, reports);
        let edits = edits.await?;
        let is_log = recording.dialect() == Dialect::Toolq;
        if is_log && self.arguments.update && self.replay.totals().differing > differing_before {
            let message = format!("{name} is not updated: a session log is never rewritten");
            self.context.stderr.print_warning(&message);
        }
        if let (Ok(stamp), false) = (stamp, edits.is_empty()) {
            self.update_recording(path, stamp, edits);
        }
        Ok(())
    }

    /// Writes new results into a recording. If that fails, they still count as differences.
    fn update_recording(&mut self, path: &Path, stamp: FileStamp, edits: Vec<RecordingEdit>) {
        match update_recording(path, stamp, edits) {
            Ok(count) => self.replay.count_updated(count),
            Err(error) => {
                let message = format!("{} is not updated: {error}", path.display());
                self.context.stderr.print_warning(&message);
            }
        }
    }

    /// Reports that a recording can't be read. The replay continues with the next one.
    fn report_unreadable(&mut self, path: &Path, failure: &CommandError) -> std::io::Result<()> {
        let name = path.display().to_string();
        self.exit = self.exit.max(self.context.stderr.print_error(failure));
        self.reports.add_unreadable(&name, &failure.message)
    }

    /// Closes the log and prints the totals. Returns the most severe exit.
    fn finish(mut self) -> Result<Exit, CommandError> {
        let totals = self.replay.totals();
        let exits = [
            self.termination_signal
                .get()
                .map(|signal| Exit::Signal(*signal)),
            self.replay.is_incomplete().then_some(Exit::Incomplete),
            (totals.differing > totals.updated).then_some(Exit::ProblemsFound),
        ];
        let mut exit = exits.into_iter().flatten().fold(self.exit, Exit::max);
        if let Some(Err(error)) = self.log.0.as_mut().map(|log| log.finish(exit.code())) {
            let failure = CommandError::new(Exit::Log, error);
            exit = exit.max(self.context.stderr.print_error(&failure));
        }
        if totals.calls == 0 && exit == Exit::Ok && self.arguments.shard.is_none() {
            return Err(CommandError::usage(
                "there is nothing to compare: no recording contains a call",
            ));
        }
        if self.replay.was_halted() {
            let message = "the replay was stopped early: later calls were not compared";
            self.context.stderr.print_warning(message);
        }
        self.context.stderr.print_note(&totals_label(&totals));
        Ok(exit)
    }
}

/// The session log of the calls that run, if `--log` is given.
struct OptionalLogSink(Option<SessionLog>);

impl EventSink for OptionalLogSink {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        self.0.as_mut().map_or(Ok(()), |log| log.emit(events))
    }

    fn flush(&mut self) -> Result<(), EmitError> {
        self.0.as_mut().map_or(Ok(()), SessionLog::flush)
    }
}

fn open_log(
    arguments: &Arguments,
    context: &CommandContext,
    tools: &ToolsConfig,
    mask: &Arc<Mask>,
) -> Result<Option<SessionLog>, CommandError> {
    let Some(path) = &arguments.log else {
        return Ok(None);
    };
    let current_dir = std::env::current_dir().unwrap_or_default();
    let header = SessionHeader {
        tools_path: context.tools_path.display().to_string(),
        tools_sha256: tools.digest.clone(),
        input_sha256: None,
        cwd: current_dir.display().to_string(),
        root: tools.root.display().to_string(),
        jobs: arguments.jobs.unwrap_or(tools.concurrency),
        sync: SyncPolicy::default(),
    };
    let log = SessionLog::create(path, &header, Arc::clone(mask), Clock::system());
    let log = log.map_err(|error| CommandError::from_log_error(&error, Access::Replay))?;
    for recovered in log.recovered() {
        context.stderr.print_note(&recovered.message(log.path()));
    }
    Ok(Some(log))
}

/// Converts the error of a report. A closed pipe was the reader's choice, so it prints no message.
fn unwritten_report(error: std::io::Error) -> CommandError {
    StdoutError::from(error).into()
}

impl From<FindRecordingsError> for CommandError {
    fn from(error: FindRecordingsError) -> Self {
        let hint = match &error {
            FindRecordingsError::Unreadable { .. } => "name a file, a directory, or a quoted glob",
            FindRecordingsError::InvalidGlob { .. } => {
                "`**` matches any directories, `*` any name, `{a,b}` either of two"
            }
            FindRecordingsError::Empty { .. } => {
                "in a directory, only files ending in .json, .jsonl, .ndjson, or .traj are read"
            }
        };
        Self::usage(&error).with_hint(hint)
    }
}
