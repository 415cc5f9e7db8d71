//! `toolq replay`: does yesterday's recording hold with today's tools? What differs goes to stderr and into reports.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::args::{FromDialect, Ids, Replay as Arguments};
use crate::context::Context;
use crate::input::files;
use crate::output::{Exit, Failure, OutputLost};
use crate::replay::{
    Edit, FilesError, Replay, ReplayError, Report, Settings, Stamp, files, summary, update,
};
use crate::session::replay_reports;
use crate::session::runtime;
use crate::session::{Signals, Warned, any_task, build_runtime};
use redact::Mask;
use toolq_core::os::Clock;
use toolq_core::transcript::Recording;
use toolq_core::types::{Dialect, Event, Refused, Sink, Tools};
use toolq_engine::{Engine, EngineSettings};
use toolq_log::{Session as SessionFacts, SessionLog, Sync, Wish};

/// Replays every recording that was named.
///
/// # Errors
/// A wrong tools.yaml, a path that names no recording, or a log or report that can't be written.
pub fn replay(arguments: &Arguments, context: &Context) -> Result<Exit, Failure> {
    if arguments.from.and_then(FromDialect::vendor).is_some() {
        let failure = Failure::usage("a stream of events holds no results to replay");
        return Err(failure.with_hint(
            "`toolq plan` checks its inputs; `toolq run --log FILE` makes a recording of it",
        ));
    }
    let (tools, file) = context.load_tools_file()?;
    let mut recordings = files(&arguments.paths)?;
    if let Some(shard) = arguments.shard {
        recordings = shard.of(recordings);
    }
    if arguments.update && recordings.iter().any(|path| path == Path::new("-")) {
        return Err(Failure::usage("stdin can't be updated").with_hint("name the file"));
    }
    let tools = Arc::new(tools);
    let runtime = build_runtime()?;
    let entered = runtime.enter();
    let signals = Signals::catch()
        .map_err(|error| Failure::usage(format!("signals can't be heard: {error}")))?;
    let mask = Arc::new(context.mask(&tools));
    let log = open_log(arguments, context, &tools, &mask)?;
    let engine = Engine::new(EngineSettings {
        jobs: arguments.jobs.unwrap_or(tools.concurrency),
        outputs: log.as_ref().map(|log| log.folder().to_owned()),
        task: log.as_ref().map_or_else(any_task, SessionLog::task),
        budgets: (&arguments.budgets).into(),
        ..runtime::settings(&tools, &mask, context)
    });
    let ended_by = signals.ended_by();
    tokio::spawn(signals.obey(engine.control(), None));
    drop(entered);
    let mut session = Session {
        arguments,
        context,
        reports: replay_reports::open(arguments, context, &file)?,
        replay: Replay::new(settings(arguments), tools, engine, mask),
        log: Log(log),
        exit: Exit::Ok,
        ended_by,
    };
    runtime.block_on(session.all(&recordings))?;
    session.finish()
}

fn settings(arguments: &Arguments) -> Settings {
    Settings {
        execute: arguments.execute.into(),
        ignored: arguments.ignore.clone(),
        tolerance: arguments.tolerance,
        rename: arguments.ids == Ids::Rename,
        update: arguments.update,
        fail_fast: arguments.fail_fast,
    }
}

/// A replay from its first recording to its end.
struct Session<'a> {
    pub(crate) arguments: &'a Arguments,
    pub(crate) context: &'a Context,
    replay: Replay,
    reports: Vec<Box<dyn Report>>,
    log: Log,
    /// The gravest so far.
    exit: Exit,
    /// The signal that ended it.
    ended_by: Arc<OnceLock<u8>>,
}

impl Session<'_> {
    async fn all(&mut self, recordings: &[PathBuf]) -> Result<(), Failure> {
        for path in recordings {
            match self.one(path).await {
                Ok(()) => {}
                Err(ReplayError::Input(error)) => {
                    self.unreadable(path, &error.into()).map_err(unwritten)?;
                }
                Err(ReplayError::Report(error)) => return Err(unwritten(error)),
            }
            if self.replay.is_over() || self.exit == Exit::Usage && self.arguments.fail_fast {
                break;
            }
        }
        let totals = self.replay.totals();
        self.reports.finish(&totals).map_err(unwritten)
    }

    async fn one(&mut self, path: &Path) -> Result<(), ReplayError> {
        let name = path.display().to_string();
        let stamp = Stamp::of(path);
        let source = match files::source(path) {
            Ok(source) => source,
            Err(failure) => return Ok(self.unreadable(path, &failure)?),
        };
        let from = self.arguments.from.map(Into::into);
        let recording = Recording::read(source, from, self.arguments.max_document)?;
        let recording = match recording.dialect() {
            Dialect::Toolq => match files::of_log(recording, path) {
                Ok(recording) => recording,
                Err(failure) => return Ok(self.unreadable(path, &failure)?),
            },
            _ => recording,
        };
        let Self {
            replay,
            log,
            reports,
            ..
        } = self;
        let before = replay.totals().differing;
        let mut log = Warned::new(log, &self.context.stderr, None);
        let edits = replay.recording(&name, &recording, &mut log, reports);
        let edits = edits.await?;
        let is_log = recording.dialect() == Dialect::Toolq;
        if is_log && self.arguments.update && self.replay.totals().differing > before {
            let message = format!("{name} is not updated: a session log says what was");
            self.context.stderr.warning(&message);
        }
        if let (Ok(stamp), false) = (stamp, edits.is_empty()) {
            self.update(path, stamp, edits);
        }
        Ok(())
    }

    /// Writes new results into a recording. Those that can't be written stay differences.
    fn update(&mut self, path: &Path, stamp: Stamp, edits: Vec<Edit>) {
        match update(path, stamp, edits) {
            Ok(count) => self.replay.updated(count),
            Err(error) => {
                let message = format!("{} is not updated: {error}", path.display());
                self.context.stderr.warning(&message);
            }
        }
    }

    /// Says why a recording can't be read, and goes on with the next.
    fn unreadable(&mut self, path: &Path, failure: &Failure) -> std::io::Result<()> {
        let name = path.display().to_string();
        self.exit = self.exit.max(self.context.stderr.failure(failure));
        self.reports.unreadable(&name, &failure.message)
    }

    /// Says what was found; the gravest of what happened is the exit.
    fn finish(mut self) -> Result<Exit, Failure> {
        let totals = self.replay.totals();
        let exits = [
            self.ended_by.get().map(|signal| Exit::Signal(*signal)),
            self.replay.stopped().then_some(Exit::Stopped),
            (totals.differing > totals.updated).then_some(Exit::Found),
        ];
        let mut exit = exits.into_iter().flatten().fold(self.exit, Exit::max);
        if let Some(Err(refused)) = self.log.0.as_mut().map(|log| log.finish(exit.code())) {
            let failure = Failure::new(Exit::Log, refused);
            exit = exit.max(self.context.stderr.failure(&failure));
        }
        if totals.calls == 0 && exit == Exit::Ok && self.arguments.shard.is_none() {
            return Err(Failure::usage(
                "there is nothing to compare: no recording holds a call",
            ));
        }
        if self.replay.is_ended() {
            let message = "the replay was ended: what came behind was not compared";
            self.context.stderr.warning(message);
        }
        self.context.stderr.note(&summary(&totals));
        Ok(exit)
    }
}

/// The session log of the calls that run, where one is wanted.
struct Log(Option<SessionLog>);

impl Sink for Log {
    fn tell(&mut self, events: &[Event<'_>]) -> Result<(), Refused> {
        self.0.as_mut().map_or(Ok(()), |log| log.tell(events))
    }

    fn settle(&mut self) -> Result<(), Refused> {
        self.0.as_mut().map_or(Ok(()), SessionLog::settle)
    }
}

fn open_log(
    arguments: &Arguments,
    context: &Context,
    tools: &Tools,
    mask: &Arc<Mask>,
) -> Result<Option<SessionLog>, Failure> {
    let Some(path) = &arguments.log else {
        return Ok(None);
    };
    let here = std::env::current_dir().unwrap_or_default();
    let facts = SessionFacts {
        tools_path: context.tools_path.display().to_string(),
        tools_sha256: tools.digest.clone(),
        input_sha256: None,
        cwd: here.display().to_string(),
        root: tools.root.display().to_string(),
        jobs: arguments.jobs.unwrap_or(tools.concurrency),
        sync: Sync::default(),
    };
    let log = SessionLog::create(path, &facts, Arc::clone(mask), Clock::system());
    let log = log.map_err(|error| Failure::of_log(&error, Wish::Replay))?;
    for recovered in log.recovered() {
        context.stderr.note(&recovered.words(log.path()));
    }
    Ok(Some(log))
}

/// A report that can't be written; a closed pipe is its reader's choice.
fn unwritten(error: std::io::Error) -> Failure {
    OutputLost::from(error).into()
}

impl From<FilesError> for Failure {
    fn from(error: FilesError) -> Self {
        let hint = match &error {
            FilesError::Unreadable { .. } => "name a file, a folder, or a glob between quotes",
            FilesError::NoGlob { .. } => "`**` is any folders, `*` any name, `{a,b}` one of two",
            FilesError::Empty { .. } => {
                "of a folder, files that end in .json, .jsonl, .ndjson or .traj are read"
            }
        };
        Self::usage(&error).with_hint(hint)
    }
}
