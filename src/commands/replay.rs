//! `toolq replay`: checks recordings against the current tools. Differences go to stderr and into reports.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::args::{DialectFlag, IdsFlag, ReplayArguments as Arguments};
use crate::context::CommandContext;
use crate::input::files;
use crate::output::{CommandError, Exit, StdoutError};
use crate::replay::{
    FileStamp, FindRecordingsError, RecordingEdit, RecordingReplayer, ReplayError, ReplayReport,
    ReplaySettings, find_recordings, totals_label, update_recording,
};
use crate::session::replay_reports;
use crate::session::{DescribeWarningSink, LogSubject, RunSession};
use crate::settings::SessionSettings;
use toolq_core::transcript::Recording;
use toolq_core::types::Dialect;

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
    let reports = replay_reports::open_reports(arguments, context, &file)?;
    let settings = SessionSettings::of_replay(arguments);
    let tools = Arc::new(tools);
    let mut session = RunSession::begin(context, tools, &settings, LogSubject::Recordings)?;
    let mut replay = ReplayRun {
        arguments,
        replayer: RecordingReplayer::new(
            replay_settings(arguments),
            Arc::clone(&session.tools),
            session.engine.control(),
            Arc::clone(&session.mask),
        ),
        reports,
        exit: Exit::Ok,
    };
    let result = session.block_on(async |session| replay.replay_all(session, &recordings).await);
    replay.finish(session, result)
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
struct ReplayRun<'a> {
    arguments: &'a Arguments,
    replayer: RecordingReplayer,
    reports: Vec<Box<dyn ReplayReport>>,
    /// The most severe exit so far.
    exit: Exit,
}

impl ReplayRun<'_> {
    async fn replay_all(
        &mut self,
        session: &mut RunSession<'_>,
        recordings: &[PathBuf],
    ) -> Result<(), CommandError> {
        let context = session.context;
        for path in recordings {
            match self.replay_one(session, path).await {
                Ok(()) => {}
                Err(ReplayError::Input(error)) => {
                    self.report_unreadable(path, &error.into(), context)
                        .map_err(unwritten_report)?;
                }
                Err(ReplayError::Report(error)) => return Err(unwritten_report(error)),
            }
            if self.replayer.is_over() || self.exit == Exit::Usage && self.arguments.fail_fast {
                break;
            }
        }
        let totals = self.replayer.totals();
        self.reports.finish(&totals).map_err(unwritten_report)
    }

    async fn replay_one(
        &mut self,
        session: &mut RunSession<'_>,
        path: &Path,
    ) -> Result<(), ReplayError> {
        let context = session.context;
        let name = path.display().to_string();
        let stamp = FileStamp::from_path(path);
        let source = match files::open_source(path) {
            Ok(source) => source,
            Err(failure) => return Ok(self.report_unreadable(path, &failure, context)?),
        };
        let from = self.arguments.from.map(Into::into);
        let recording = Recording::read(source, from, self.arguments.max_document)?;
        let recording = match recording.dialect() {
            Dialect::Toolq => match files::verify_session_log(recording, path) {
                Ok(recording) => recording,
                Err(failure) => return Ok(self.report_unreadable(path, &failure, context)?),
            },
            _ => recording,
        };
        let differing_before = self.replayer.totals().differing;
        let RunSession { engine, sinks, .. } = session;
        let mut sink = DescribeWarningSink::new(sinks, &context.stderr, None);
        let (replayer, reports) = (&mut self.replayer, &mut self.reports);
        let edits = replayer.replay_recording(&name, &recording, engine, &mut sink, reports);
        let edits = edits.await?;
        let is_log = recording.dialect() == Dialect::Toolq;
        if is_log && self.arguments.update && self.replayer.totals().differing > differing_before {
            let message = format!("{name} is not updated: a session log is never rewritten");
            context.stderr.print_warning(&message);
        }
        if let (Ok(stamp), false) = (stamp, edits.is_empty()) {
            self.update_recording(path, stamp, edits, context);
        }
        Ok(())
    }

    /// Writes new results into a recording. If that fails, they still count as differences.
    fn update_recording(
        &mut self,
        path: &Path,
        stamp: FileStamp,
        edits: Vec<RecordingEdit>,
        context: &CommandContext,
    ) {
        match update_recording(path, stamp, edits) {
            Ok(count) => self.replayer.count_updated(count),
            Err(error) => {
                let message = format!("{} is not updated: {error}", path.display());
                context.stderr.print_warning(&message);
            }
        }
    }

    /// Reports that a recording can't be read. The replay continues with the next one.
    fn report_unreadable(
        &mut self,
        path: &Path,
        failure: &CommandError,
        context: &CommandContext,
    ) -> std::io::Result<()> {
        let name = path.display().to_string();
        self.exit = self.exit.max(context.stderr.print_error(failure));
        self.reports.add_unreadable(&name, &failure.message)
    }

    /// Closes the session and prints the totals. Returns the most severe exit.
    fn finish(
        self,
        session: RunSession<'_>,
        result: Result<(), CommandError>,
    ) -> Result<Exit, CommandError> {
        let context = session.context;
        let totals = self.replayer.totals();
        let exits = [
            Some(self.exit),
            result.as_ref().err().map(|failure| failure.exit),
            self.replayer.is_incomplete().then_some(Exit::Incomplete),
            (totals.differing > totals.updated).then_some(Exit::ProblemsFound),
        ];
        let exit = session.finish_quietly(exits.into_iter().flatten());
        result.map_err(|failure| CommandError { exit, ..failure })?;
        if totals.calls == 0 && exit == Exit::Ok && self.arguments.shard.is_none() {
            return Err(CommandError::usage(
                "there is nothing to compare: no recording contains a call",
            ));
        }
        if self.replayer.was_halted() {
            let message = "the replay was stopped early: later calls were not compared";
            context.stderr.print_warning(message);
        }
        context.stderr.print_note(&totals_label(&totals));
        Ok(exit)
    }
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
