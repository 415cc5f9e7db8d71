//! A session in the log of a turn: it begins after the records that the stream has of the turn, and each new record is
//! stored there before the action that it announces.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::connection::{Notices, StopSignal};
use crate::lease::TurnHolder;
use crate::messages::Answer;
use crate::names::TurnName;
use crate::publishing::PublishRefusal;
use crate::record_publisher::{RecordPublisher, StoredRecords};
use crate::turn_log::{DoubtCollector, TurnLogFile, TurnLogSink, TurnNotAnswered};
use crate::turn_queue::TurnQueue;
use toolq_core::answer::AnswerAssembler;
use toolq_core::check::CallChecker;
use toolq_core::exit::Exit;
use toolq_core::os::Clock;
use toolq_core::types::{CallAnswer, CallRef, EmitError, EventSink, HaltCause, InputLayout, Turn};
use toolq_engine::{
    AnswerDelivery, Engine, EngineSettings, RememberedWrites, RunControl, random_task_id,
};
use toolq_log::memory::{MemoryUse, RememberedIn};
use toolq_log::{LockedLog, LogError, SessionLog, SessionRecord};

/// A turn that a worker has taken.
pub(super) struct TakenTurn {
    pub name: TurnName,
    pub records: StoredRecords,
    pub holder: Arc<TurnHolder>,
    /// Why no call may start, if so. The turn is then answered with what is known of it.
    pub halted_by: Option<HaltCause>,
}

/// A session of a worker in the log of a turn.
struct TurnSession {
    engine: Engine,
    sink: TurnLogSink,
    /// The log, removed with the session.
    _file: TurnLogFile,
    halted_by: Option<HaltCause>,
    control: RunControl,
    refused: watch::Receiver<Option<PublishRefusal>>,
    watcher: JoinHandle<()>,
}

impl TurnSession {
    /// Begins a session. `forced` stops it in the middle.
    ///
    /// # Errors
    /// The turn is another worker's, or something is wrong with its log.
    pub(super) async fn begin(
        settings: &TurnSettings,
        queue: &TurnQueue,
        taken: TakenTurn,
        forced: impl Future<Output = u8> + Send + 'static,
    ) -> Result<Self, TurnNotAnswered> {
        let (name, holder, halted_by) = (taken.name, taken.holder, taken.halted_by);
        let refused = holder.watch_refusal();
        let file = TurnLogFile::restore(queue, &taken.records).await?;
        let publisher = RecordPublisher::new(
            queue.clone(),
            (name.log_subject(&queue.name), taken.records.last),
            Arc::clone(&holder),
            file.files(),
            settings.nats_runtime.clone(),
        );
        // A session that can't begin is another worker's, unless something is wrong with the log.
        let log =
            begin_log(settings, &file, publisher).map_err(|error| match &*refused.borrow() {
                Some(refusal) => refusal.clone().into(),
                None => TurnNotAnswered::from(error),
            })?;
        let engine = new_engine(settings, Some(&log), &file);
        let control = engine.control();
        if let Some(cause) = halted_by {
            control.halt(cause);
        }
        let watcher = tokio::spawn(halt_when(control.clone(), refused.clone(), forced));
        Ok(Self {
            engine,
            sink: TurnLogSink::new(log, holder),
            _file: file,
            halted_by,
            control,
            refused,
            watcher,
        })
    }

    /// Ends the session with the line that answers the turn.
    pub(super) fn end(self, line: String) -> Result<Answer, TurnNotAnswered> {
        self.watcher.abort();
        let (engine, mut sink) = (self.engine, self.sink);
        // Servers end with the turn, and the log says so.
        let _ = engine.end_servers(&mut sink);
        engine.close();
        let was_stopped = self.halted_by.is_none() && self.control.halt_cause().is_some();
        let exit = match self.control.halt_cause() {
            Some(HaltCause::Signal(signal)) => Exit::Signal(signal),
            None if !sink.is_incomplete => Exit::Ok,
            _ => Exit::Incomplete,
        };
        let finished = sink.log.finish(exit.code());
        let refused = self.refused.borrow().clone();
        match finished {
            Err(EmitError(why)) => Err(refused.map_or(TurnNotAnswered::Lost(why), Into::into)),
            Ok(()) if sink.holder.was_missed() => {
                let why = "its lease was over before all calls had started";
                Err(TurnNotAnswered::Lost(why.to_owned()))
            }
            Ok(()) if was_stopped => Err("it was stopped".to_owned().into()),
            Ok(()) => Ok(Answer {
                line: line.into(),
                doubts: sink.doubts,
            }),
        }
    }
}

/// Begins a session in the log.
fn begin_log(
    settings: &TurnSettings,
    file: &TurnLogFile,
    publisher: RecordPublisher,
) -> Result<SessionLog, LogError> {
    let path = file.path();
    let calls = &settings.calls;
    let EngineSettings {
        tools, jobs, mask, ..
    } = &calls.engine;
    let session = SessionRecord::new(&calls.tools_path, tools, *jobs);
    let log = LockedLog::open(&path)?.with_replica(Box::new(publisher));
    let memory = (RememberedIn::log(&path), MemoryUse::default());
    log.begin_session(session, memory, Arc::clone(mask), Clock::system())
}

/// Creates an engine. What it would keep beside the log is gone with it, so outputs that are cut aren't saved.
fn new_engine(settings: &TurnSettings, log: Option<&SessionLog>, file: &TurnLogFile) -> Engine {
    Engine::new(EngineSettings {
        log_files: [&*settings.calls.engine.log_files, &[file.dir().to_owned()]].concat(),
        task_id: log.map_or_else(random_task_id, SessionLog::session_id),
        held_file: log.and_then(SessionLog::lock),
        memory: log.map(|log| Arc::new(log.clone()) as Arc<_>),
        ..settings.calls.engine.clone()
    })
}

/// Stops the run when `forced` completes, or when the stream refuses its records, since another worker has the turn then.
async fn halt_when(
    control: RunControl,
    mut refused: watch::Receiver<Option<PublishRefusal>>,
    forced: impl Future<Output = u8>,
) {
    tokio::select! {
        refusal = refused.wait_for(Option::is_some) => {
            // Without a sender, the log is closed, and nothing runs.
            if refusal.is_ok() {
                control.halt(HaltCause::OutputLost);
            }
        }
        signal = forced => control.halt(HaltCause::Signal(signal)),
    }
}

// Runs one turn with the ordinary engine. Its log is the one from the stream, which is its memory of what earlier workers did.

/// What the calls of a worker run with.
#[derive(Debug)]
pub struct CallSettings {
    /// The settings of engines, with the tools. Each turn has an engine and a log of its own.
    pub engine: EngineSettings,
    /// Checks the calls.
    pub checker: Arc<CallChecker>,
    /// The path of the tools file.
    pub tools_path: PathBuf,
}

/// What all turns of a worker run with.
pub(crate) struct TurnSettings {
    pub calls: CallSettings,
    /// The runtime of the connection.
    pub nats_runtime: Handle,
    pub stop: StopSignal,
    pub notices: Notices,
}

/// Runs a turn. `forced` stops it in the middle.
pub(super) async fn run_turn(
    settings: &TurnSettings,
    queue: &TurnQueue,
    taken: TakenTurn,
    turn: Turn,
    forced: impl Future<Output = u8> + Send + 'static,
) -> Result<Answer, TurnNotAnswered> {
    let mut session = TurnSession::begin(settings, queue, taken, forced).await?;
    let TurnSession { engine, sink, .. } = &mut session;
    let line = answer_turn(settings, engine, turn, sink).await;
    session.end(line)
}

/// Answers a turn whose log can't be continued, without running anything.
pub(super) async fn answer_unrun(
    settings: &TurnSettings,
    mut turn: Turn,
) -> Result<Answer, TurnNotAnswered> {
    // It isn't known which of its calls took effect.
    turn.in_doubt_positions = (0..turn.calls.len()).collect();
    let file = TurnLogFile::create(&StoredRecords::default())?;
    let mut engine = new_engine(settings, None, &file);
    engine.control().halt(HaltCause::WorkersLost);
    let mut sink = DoubtCollector::default();
    let line = answer_turn(settings, &mut engine, turn, &mut sink).await;
    engine.close();
    Ok(Answer {
        line: line.into(),
        doubts: sink.0,
    })
}

/// Answers all calls. Returns the answer as one line.
async fn answer_turn(
    settings: &TurnSettings,
    engine: &mut Engine,
    turn: Turn,
    sink: &mut dyn EventSink,
) -> String {
    let mut answer = AnswerLine::new(&turn);
    let mut writes = RememberedWrites::default();
    let known = (&*settings.calls.checker, &mut writes);
    engine.answer_turn(turn, known, sink, &mut answer).await;
    answer.line
}

/// The answer of a turn, as one line.
struct AnswerLine {
    assembler: AnswerAssembler,
    line: String,
}

impl AnswerLine {
    fn new(turn: &Turn) -> Self {
        let mut assembler = AnswerAssembler::new(None, InputLayout::Lines, 1);
        assembler.begin_turn(turn.answer_form);
        Self {
            assembler,
            line: String::new(),
        }
    }

    fn take_json(&mut self) {
        if !self.line.is_empty() {
            self.line.push('\n');
        }
        self.line += &self.assembler.take_json();
    }
}

impl AnswerDelivery for AnswerLine {
    fn deliver(&mut self, _: &Arc<CallRef>, answer: CallAnswer, _: &mut dyn EventSink) {
        if self.assembler.push(answer) {
            self.take_json();
        }
    }

    fn finish_turn(&mut self, _: &mut dyn EventSink) {
        if self.assembler.finish_turn() {
            self.take_json();
        }
    }
}
