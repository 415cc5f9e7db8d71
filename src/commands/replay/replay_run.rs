//! Replays one recording after the other, and writes what differs to stderr and into the reports.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::args::InputFormat;
use crate::commands::replay::arguments::ReplayArguments;
use crate::context::{CommandContext, LoadedToolsFile};
use crate::input::{TemporaryFileError, files};
use crate::output::{
    CommandError, Exit, StderrStream, StderrWriter, StdoutError, check_output_file, follow_links,
    stdout,
};
use crate::replay::{
    FileStamp, HtmlReport, JsonReport, JunitReport, MarkdownReport, OpenReport, RecordingEdit,
    RecordingReplayer, ReplayError, ReplayReport, RootCopy, TerminalReport, totals_label,
    update_recording,
};
use crate::session::RunSession;
use toolq_core::text::list_some;
use toolq_core::tools_file::YamlContent;
use toolq_core::transcript::Recording;
use toolq_core::types::Dialect;

/// The state of a replay.
pub(crate) struct ReplayRun<'a> {
    arguments: &'a ReplayArguments,
    replayer: RecordingReplayer,
    /// The copy on which calls run, with `--on-copy`.
    copy: Option<RootCopy>,
    reports: Vec<OpenReport>,
    /// Whether tools may find a recording, because it lies below `root`.
    has_recording_below_root: bool,
    /// The most severe exit so far.
    exit: Exit,
}

impl<'a> ReplayRun<'a> {
    /// Creates a replay of no recordings yet.
    pub(crate) fn new(
        arguments: &'a ReplayArguments,
        replayer: RecordingReplayer,
        copy: Option<RootCopy>,
        reports: Vec<OpenReport>,
    ) -> Self {
        Self {
            arguments,
            replayer,
            copy,
            reports,
            has_recording_below_root: false,
            exit: Exit::Ok,
        }
    }

    /// Replays recordings one after the other, and finishes the reports.
    ///
    /// # Errors
    /// A report can't be written, or the copy can't be used. A recording that can't be read is reported, and not an
    /// error.
    pub(crate) async fn replay_all(
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
                        .map_err(|error| unwritten_report(error, Path::new("-")))?;
                }
                Err(ReplayError::Report(error)) => {
                    return Err(unwritten_report(error, Path::new("-")));
                }
                Err(error @ (ReplayError::Copy(_) | ReplayError::EndCopy(_))) => {
                    let failure = CommandError::usage(error.to_string());
                    return Err(failure.with_hint("is there enough space? TMPDIR says where it is"));
                }
            }
            if self.replayer.is_over() || self.exit == Exit::Usage && self.arguments.fail_fast {
                break;
            }
        }
        let totals = self.replayer.totals();
        for OpenReport { path, out, report } in &mut self.reports {
            let written = report.finish(&totals, out).and_then(|()| out.flush());
            written.map_err(|error| unwritten_report(error, path))?;
        }
        Ok(())
    }

    async fn replay_one(
        &mut self,
        session: &mut RunSession<'_>,
        path: &Path,
    ) -> Result<(), ReplayError> {
        let context = session.context;
        let name = path.display().to_string();
        self.has_recording_below_root |= lies_below(path, self.replayer.root());
        let stamp = FileStamp::from_path(path);
        let source = match files::open_source(path) {
            Ok(source) => source,
            Err(failure) => return Ok(self.report_unreadable(path, &failure, context)?),
        };
        let from = self.arguments.from.and_then(InputFormat::dialect);
        let recording = Recording::read(source, from, self.arguments.max_document)?;
        let recording = match recording.dialect() {
            Dialect::Toolq => match files::verify_session_log(recording, path) {
                Ok((recording, _)) => recording,
                Err(failure) => return Ok(self.report_unreadable(path, &failure, context)?),
            },
            _ => recording,
        };
        if let Some(damage) = recording.damage() {
            context.stderr.print_warning(&damage.to_string());
        }
        if let Some(copy) = &self.copy {
            let control = session.engine.control();
            match copy.make(&|| control.halt_cause().is_some()) {
                Ok(unreadable) => warn_about_unreadable(&unreadable, context),
                Err(_) if control.halt_cause().is_some() => return Ok(()),
                Err(error) => return Err(ReplayError::Copy(error)),
            }
        }
        let differing_before = self.replayer.totals().differing;
        let RunSession { engine, sinks, .. } = session;
        let (replayer, reports) = (&mut self.replayer, &mut self.reports);
        let edits = replayer.replay_recording(&name, &recording, engine, sinks, reports);
        let edits = edits.await;
        if let Some(copy) = &mut self.copy
            && let Some(place) = copy.end_recording().map_err(ReplayError::EndCopy)?
        {
            let place = place.display();
            let note = format!("the copy on which {name} was replayed: {place}");
            context.stderr.print_needed_note(&note);
        }
        let edits = edits?;
        let is_log = recording.dialect() == Dialect::Toolq;
        if is_log && self.arguments.update && self.replayer.totals().differing > differing_before {
            let failure = CommandError::usage(format!(
                "{name} is not updated: a session log is never rewritten"
            ));
            // This doesn't decide the exit code: the results remain differences.
            context.stderr.print_error(
                &failure
                    .with_hint("`toolq log export` makes a recording of it, which can be updated"),
            );
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
    ) -> io::Result<()> {
        let name = path.display().to_string();
        self.exit = self.exit.max(context.stderr.print_error(failure));
        let mut reports = self.reports.iter_mut();
        reports.try_for_each(|open| open.report.add_unreadable(&name, &failure.message))
    }

    /// Closes the session and prints the totals. Returns the most severe exit.
    pub(crate) fn finish(
        mut self,
        session: RunSession<'_>,
        result: Result<(), CommandError>,
    ) -> Result<Exit, CommandError> {
        let context = session.context;
        let root = self.replayer.root().to_owned();
        let totals = self.replayer.totals();
        let exits = [
            Some(self.exit),
            result.as_ref().err().map(|failure| failure.exit),
            self.replayer.is_incomplete().then_some(Exit::Incomplete),
            (totals.differing > totals.updated).then_some(Exit::ProblemsFound),
        ];
        let exit = session.finish_quietly(exits.into_iter().flatten());
        // Nothing uses the copy any more.
        if let Some(Err(error)) = self.copy.take().map(RootCopy::remove) {
            let message = format!("the copy of {} can't be removed: {error}", root.display());
            context.stderr.print_warning(&message);
        }
        result.map_err(|failure| CommandError { exit, ..failure })?;
        self.conclude(exit, context)
    }

    /// Prints the totals. Returns how the command ends.
    ///
    /// # Errors
    /// There was nothing to compare.
    fn conclude(&self, exit: Exit, context: &CommandContext) -> Result<Exit, CommandError> {
        let (arguments, totals) = (self.arguments, self.replayer.totals());
        if !totals.has_comparison() && exit == Exit::Ok && arguments.shard.is_none() {
            return Err(nothing_to_compare(totals.calls));
        }
        if self.replayer.was_halted() {
            let message = "the replay was stopped early: later calls were not compared";
            context.stderr.print_warning(message);
        }
        context.stderr.print_note(&totals_label(&totals));
        if totals.has_found_recording && self.has_recording_below_root {
            context.stderr.print_warning(BELOW_ROOT_WARNING);
        }
        if totals.stale > 0 && !arguments.strict && !arguments.on_copy {
            context.stderr.print_note(
                "`--on-copy` replays writes, too, on a copy; `--strict` lets stale results count as differences",
            );
        }
        Ok(exit)
    }
}

/// Returns whether the file at `path` lies below `root`.
fn lies_below(path: &Path, root: &Path) -> bool {
    let canonical = path.canonicalize().ok().zip(root.canonicalize().ok());
    canonical.is_some_and(|(path, root)| path.starts_with(root))
}

fn warn_about_unreadable(unreadable: &[PathBuf], context: &CommandContext) {
    if !unreadable.is_empty() {
        let shown = list_some(unreadable.iter().map(|path| path.display()), 1);
        context.stderr.print_warning(&format!(
            "not in the copy, because you can't read it: {shown}"
        ));
    }
}

// The errors and warnings of `toolq replay`.

/// Returns the error of a replay that compared nothing, so that it doesn't pass for a success.
fn nothing_to_compare(calls: usize) -> CommandError {
    let why = match calls {
        0 => "no recording contains a call",
        _ => "no call has a recorded result",
    };
    let failure = CommandError::usage(format!("there is nothing to compare: {why}"));
    match calls {
        0 => failure,
        _ => failure.with_hint(
            "`toolq plan` checks calls without results; `toolq run --log FILE` runs and records them",
        ),
    }
}

/// Says that a tool has found a recording.
const BELOW_ROOT_WARNING: &str = "a result names a recording: recordings that lie below `root` are found by tools that search or list files, \
and change their results; keep them elsewhere, or let these tools leave them out";

/// Converts the error of a report that goes to `path`. A closed pipe was the reader's choice, so it prints no message.
fn unwritten_report(error: io::Error, path: &Path) -> CommandError {
    let inner = error.get_ref();
    let cause = inner.and_then(|inner| inner.downcast_ref::<TemporaryFileError>());
    if let Some(cause) = cause {
        let message = format!("a report can't be written: {cause}");
        return CommandError::new(Exit::Output, message)
            .with_hint("set TMPDIR to a directory in which you can create files");
    }
    if path == Path::new("-") {
        return StdoutError::from(error).into();
    }
    let message = format!("{} can't be written: {error}", path.display());
    CommandError::new(Exit::Output, message)
}

// Opens the reports of a replay.

/// Opens the report on the terminal and each one that the arguments name. Existing files are truncated right away, so
/// that an old report can't be mistaken for a new one.
///
/// # Errors
/// A file can't be written, is a recording, tools.yaml or a session log, or several reports would go to stdout.
pub fn open_reports(
    arguments: &ReplayArguments,
    context: &CommandContext,
    tools: &LoadedToolsFile,
    recordings: &[PathBuf],
) -> Result<Vec<OpenReport>, CommandError> {
    let wanted = [
        &arguments.json,
        &arguments.junit,
        &arguments.markdown,
        &arguments.html,
    ];
    let to_stdout = |path: &&PathBuf| path.as_path() == Path::new("-");
    if wanted.into_iter().flatten().filter(to_stdout).count() > 1 {
        return Err(CommandError::usage("only one report can go to stdout")
            .with_hint("name a file for each of the others"));
    }
    let stderr = Box::new(StderrStream);
    check_report_files(&wanted, arguments, tools, recordings)?;
    let screen = TerminalReport::new(
        stderr,
        context.stderr.is_colored(),
        StderrWriter::width(),
        StderrWriter::is_terminal(),
        !context.stderr.quiet,
    );
    let mut reports = vec![OpenReport {
        path: PathBuf::from("-"),
        out: Box::new(io::sink()),
        report: Box::new(screen),
    }];
    let mut open = |path: &Option<PathBuf>, report: Box<dyn ReplayReport>| {
        if let Some(path) = path.clone() {
            let out = open_writer(&path)?;
            reports.push(OpenReport { path, out, report });
        }
        Ok::<(), CommandError>(())
    };
    open(&arguments.json, Box::<JsonReport>::default())?;
    let junit = JunitReport::new(tool_locations(tools));
    open(&arguments.junit, Box::new(junit))?;
    open(&arguments.markdown, Box::<MarkdownReport>::default())?;
    open(&arguments.html, Box::<HtmlReport>::default())?;
    Ok(reports)
}

/// Checks that each report gets a file of its own, and that nothing else in that file is lost.
fn check_report_files(
    wanted: &[&Option<PathBuf>],
    arguments: &ReplayArguments,
    tools: &LoadedToolsFile,
    recordings: &[PathBuf],
) -> Result<(), CommandError> {
    let mut taken = vec![arguments.log.as_deref().and_then(follow_links)];
    for path in wanted.iter().filter_map(|path| path.as_deref()) {
        let inputs = recordings.iter().map(PathBuf::as_path);
        check_output_file(path, inputs, &tools.files())?;
        let file = follow_links(path);
        // What has no path, and devices, may get several.
        let is_new = file
            .as_ref()
            .is_some_and(|file| !file.exists() || file.is_file());
        if is_new && taken.contains(&file) {
            let error = format!("two outputs would go to {}", path.display());
            return Err(CommandError::usage(error).with_hint("name a file for each of them"));
        }
        taken.push(file);
    }
    Ok(())
}

fn open_writer(path: &Path) -> Result<Box<dyn Write + Send>, CommandError> {
    if path == Path::new("-") {
        stdout::check_open()?;
        return Ok(stdout::buffered_writer());
    }
    let file = File::create(path).map_err(|error| {
        CommandError::usage(format!("{} can't be written: {error}", path.display()))
    })?;
    Ok(Box::new(BufWriter::new(file)))
}

/// Maps each tool to the file and the line on which it starts.
fn tool_locations(file: &LoadedToolsFile) -> HashMap<String, String> {
    let Some(tree) = &file.loaded.tree else {
        return HashMap::new();
    };
    let YamlContent::Table(entries) = &tree.content else {
        return HashMap::new();
    };
    let tools = entries.iter().find(|entry| entry.key == "tools");
    let Some(YamlContent::Table(tools)) = tools.map(|tools| &tools.value.content) else {
        return HashMap::new();
    };
    let tools = tools.iter();
    let locations = tools.map(|tool| (tool.key.clone(), file.place_of(tool.key_span)));
    locations.collect()
}
