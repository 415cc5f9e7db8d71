//! `toolq replay --queue`: the workers of a queue replay the recordings, and their reports are merged.

use std::path::{Path, PathBuf};

use futures_util::future::try_join;

use crate::args::ReplayArguments as Arguments;
use crate::commands::queue::session::{NatsSession, parse_queue_name};
use crate::commands::replay::messages::unwritten_report;
use crate::commands::replay::replay_outcome::{ReplayOutcome, lies_below};
use crate::commands::replay::replay_settings;
use crate::context::{CommandContext, LoadedToolsFile};
use crate::output::{CommandError, Exit};
use crate::queue::{
    RecordingReplay, RecordingReport, RecordingSettings, StopSignal, SubmittedRecording, TurnQueue,
};
use crate::replay::{ReplayReport, ReplayTotals};
use crate::session::replay_reports;
use toolq_core::types::ToolsConfig;

/// How many copies a queue has that a replay creates.
const REPLICAS: usize = 1;

/// Replays recordings on the workers of the queue `name`.
///
/// # Errors
/// The queue can't be used, or a report can't be written.
pub(super) fn replay_on_queue(
    name: &str,
    arguments: &Arguments,
    context: &CommandContext,
    tools: &ToolsConfig,
    file: &LoadedToolsFile,
    recordings: Vec<PathBuf>,
) -> Result<Exit, CommandError> {
    let queue_name = parse_queue_name(name)?;
    let reports = replay_reports::open_reports(arguments, context, file, &recordings)?;
    let settings = replay_settings(arguments, true);
    let dialect = arguments.from.map(Into::into);
    let settings = RecordingSettings::new(&settings, dialect, arguments.max_document);
    let session = NatsSession::begin(&arguments.nats, context)?;
    let (readable, unreadable) = read_recordings(recordings);
    let mut merger = ReportMerger::new(context, reports, unreadable);
    let recordings_below_root = count_below(&readable, &tools.root);
    let stopped_by = session.runtime.block_on(async {
        let stop = StopSignal::install()?;
        let client = &session.client;
        let queue = TurnQueue::open_or_create(client, &queue_name, REPLICAS).await?;
        let replay = RecordingReplay::new((&queue, client), &tools.digest, settings, &readable);
        let collecting = replay.collect(&stop, |number, report| {
            merger.add(number, &readable[number].name, report)
        });
        // A signal ends both.
        let collecting = async {
            match collecting.await {
                Ok(true) => Ok(()),
                Ok(false) => Err(None),
                Err(failure) => Err(Some(failure)),
            }
        };
        let submitting = async { replay.submit().await.map_err(Some) };
        match try_join(submitting, collecting).await {
            Ok(_) => {}
            Err(None) => return Ok(stop.first()),
            Err(Some(failure)) => return Err(failure),
        }
        merger.finish()?;
        replay.remove().await?;
        Ok(None)
    })?;
    session.end();
    if let Some(signal) = stopped_by {
        let note = "the replay was stopped; run the same command again to continue with what workers replay meanwhile";
        context.stderr.print_warning(note);
        return Ok(Exit::Signal(signal));
    }
    let outcome = ReplayOutcome {
        totals: merger.totals,
        exit: merger.exit(),
        was_halted: false,
        recordings_below_root,
    };
    outcome.conclude(arguments, context)
}

/// A recording that can't be read, and how many readable ones come before it.
struct UnreadableFile {
    after: usize,
    name: String,
    failure: CommandError,
}

fn read_recordings(paths: Vec<PathBuf>) -> (Vec<SubmittedRecording>, Vec<UnreadableFile>) {
    let (mut readable, mut unreadable) = (Vec::new(), Vec::new());
    for path in paths {
        let name = path.display().to_string();
        match SubmittedRecording::read(path) {
            Ok(recording) => readable.push(recording),
            Err(failure) => unreadable.push(UnreadableFile {
                after: readable.len(),
                name,
                failure,
            }),
        }
    }
    (readable, unreadable)
}

fn count_below(recordings: &[SubmittedRecording], root: &Path) -> usize {
    let is_below = |recording: &&SubmittedRecording| lies_below(&recording.path, root);
    recordings.iter().filter(is_below).count()
}

/// Merges what workers report, as if one replay had found it all.
struct ReportMerger<'a> {
    context: &'a CommandContext,
    reports: Vec<Box<dyn ReplayReport>>,
    /// Recordings that weren't submitted, in order.
    unreadable: std::iter::Peekable<std::vec::IntoIter<UnreadableFile>>,
    totals: ReplayTotals,
    is_incomplete: bool,
    exit: Exit,
}

impl<'a> ReportMerger<'a> {
    fn new(
        context: &'a CommandContext,
        reports: Vec<Box<dyn ReplayReport>>,
        unreadable: Vec<UnreadableFile>,
    ) -> Self {
        Self {
            context,
            reports,
            unreadable: unreadable.into_iter().peekable(),
            totals: ReplayTotals::default(),
            is_incomplete: false,
            exit: Exit::Ok,
        }
    }

    /// Adds the report of a recording, and those of unreadable ones before it.
    fn add(
        &mut self,
        number: usize,
        name: &str,
        report: RecordingReport,
    ) -> Result<(), CommandError> {
        self.add_unreadable_up_to(number)?;
        if let Some(unreadable) = &report.unreadable {
            let exit = if unreadable.is_log {
                Exit::Log
            } else {
                Exit::Usage
            };
            let failure = CommandError::new(exit, &unreadable.message);
            let hint = unreadable.hint.clone();
            self.print(&CommandError { hint, ..failure });
        }
        self.is_incomplete |= report.is_incomplete;
        let added = report.add_to(name, &mut self.reports, &mut self.totals);
        added.map_err(unwritten_report)
    }

    fn finish(&mut self) -> Result<(), CommandError> {
        self.add_unreadable_up_to(usize::MAX)?;
        self.reports.finish(&self.totals).map_err(unwritten_report)
    }

    fn add_unreadable_up_to(&mut self, number: usize) -> Result<(), CommandError> {
        while let Some(file) = self.unreadable.next_if(|file| file.after <= number) {
            self.print(&file.failure);
            let added = self
                .reports
                .add_unreadable(&file.name, &file.failure.message);
            added.map_err(unwritten_report)?;
        }
        Ok(())
    }

    fn print(&mut self, failure: &CommandError) {
        self.exit = self.exit.max(self.context.stderr.print_error(failure));
    }

    /// Returns the most severe exit.
    fn exit(&self) -> Exit {
        let exits = [
            Some(self.exit),
            self.is_incomplete.then_some(Exit::Incomplete),
            (self.totals.differing > 0).then_some(Exit::ProblemsFound),
        ];
        exits.into_iter().flatten().max().unwrap_or(Exit::Ok)
    }
}
