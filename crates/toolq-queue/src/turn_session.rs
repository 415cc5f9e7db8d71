//! A session in the log of a turn: it begins after the records that the stream has of the turn, and each new record is
//! stored there before the action that it announces.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::answers::Answer;
use crate::names::TurnName;
use crate::ordered_publishing::PublishRefusal;
use crate::record_publisher::RecordPublisher;
use crate::stored_records::StoredRecords;
use crate::turn_failure::TurnFailure;
use crate::turn_holder::{TurnHolder, describe_loss};
use crate::turn_log::TurnLogFile;
use crate::turn_log_sink::TurnLogSink;
use crate::turn_queue::TurnQueue;
use crate::turn_run::TurnSettings;
use toolq_core::exit::Exit;
use toolq_core::os::Clock;
use toolq_core::types::{EmitError, HaltCause};
use toolq_engine::{Engine, EngineSettings, RunControl, random_task_id};
use toolq_log::memory::{MemoryUse, RememberedIn};
use toolq_log::{LockedLog, LogError, SessionHeader, SessionLog};

/// What became of a turn.
#[derive(Debug)]
pub(super) enum TurnEnd {
    Answered(Answer),
    /// It stopped before all calls were answered for good. Another worker continues it.
    Stopped,
    /// It can't be run.
    Failed(TurnFailure),
    /// Another worker has it, or this worker can't tell whether it still has it.
    Lost(String),
}

/// A turn that a worker has taken.
pub(super) struct TakenTurn {
    pub name: TurnName,
    pub records: StoredRecords,
    pub holder: Arc<TurnHolder>,
    /// Why no call may start, if so. The turn is then answered with what is known of it.
    pub halted_by: Option<HaltCause>,
}

/// A session of a worker in the log of a turn.
pub(super) struct TurnSession {
    pub engine: Engine,
    pub sink: TurnLogSink,
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
    ) -> Result<Self, TurnEnd> {
        let (name, holder, halted_by) = (taken.name, taken.holder, taken.halted_by);
        let refused = holder.watch_refusal();
        let file = TurnLogFile::restore(queue, &taken.records).await;
        let file = file.map_err(TurnEnd::Failed)?;
        let publisher = RecordPublisher::new(
            queue.clone(),
            (name.log_subject(&queue.name), taken.records.last),
            Arc::clone(&holder),
            file.files(),
            settings.nats_runtime.clone(),
        );
        let log = begin_log(settings, &file, publisher);
        let log = log.map_err(|error| not_begun(&refused, error))?;
        let engine = new_engine(settings, Some(&log), &file);
        let control = engine.control();
        if let Some(cause) = halted_by {
            control.halt(cause);
        }
        let watcher = tokio::spawn(halt_when(control.clone(), refused.clone(), forced));
        Ok(Self {
            engine,
            sink: TurnLogSink::new(log, holder.lease.clone()),
            _file: file,
            halted_by,
            control,
            refused,
            watcher,
        })
    }

    /// Ends the session with the line that answers the turn.
    pub(super) fn end(self, line: String) -> TurnEnd {
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
            Err(EmitError(why)) => {
                TurnEnd::Lost(refused.map_or(why, |refusal| describe_loss(&refusal)))
            }
            Ok(()) if sink.lease.was_missed() => {
                TurnEnd::Lost("its lease was over before all calls had started".to_owned())
            }
            Ok(()) if was_stopped => TurnEnd::Stopped,
            Ok(()) => TurnEnd::Answered(Answer {
                line: line.into(),
                doubts: sink.doubts,
            }),
        }
    }
}

/// A session that can't begin is another worker's, unless something is wrong with the log.
fn not_begun(refused: &watch::Receiver<Option<PublishRefusal>>, error: LogError) -> TurnEnd {
    match &*refused.borrow() {
        Some(refusal) => TurnEnd::Lost(describe_loss(refusal)),
        None => TurnEnd::Failed(error.into()),
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
    let header = SessionHeader::new(&calls.tools_path, tools, *jobs);
    let log = LockedLog::open(&path)?.with_replica(Box::new(publisher));
    let memory = (RememberedIn::log(&path), MemoryUse::default());
    log.begin_session(&header, memory, Arc::clone(mask), Clock::system())
}

/// Creates an engine. What it would keep beside the log is gone with it, so outputs that are cut aren't saved.
pub(super) fn new_engine(
    settings: &TurnSettings,
    log: Option<&SessionLog>,
    file: &TurnLogFile,
) -> Engine {
    Engine::new(EngineSettings {
        log_files: vec![file.dir().to_owned()],
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
