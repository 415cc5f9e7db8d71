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
use toolq_log::{
    BeginMode, LogError, PreparedLog, SessionHeader, SessionLog, SyncPolicy, TaskHistory, TaskKey,
    combine_digests,
};

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
    /// What earlier workers did.
    pub history: Option<Arc<TaskHistory>>,
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
        let log = begin_log(settings, &name, &file, publisher);
        let log = log.map_err(|error| not_begun(&refused, error))?;
        let history = log.history();
        let engine = new_engine(settings, Some(&log), &file);
        let control = engine.control();
        if let Some(cause) = halted_by {
            control.halt(cause);
        }
        let watcher = tokio::spawn(halt_when(control.clone(), refused.clone(), forced));
        Ok(Self {
            engine,
            sink: TurnLogSink::new(log, holder.lease.clone()),
            history,
            _file: file,
            halted_by,
            control,
            refused,
            watcher,
        })
    }

    /// Ends the session with the line that answers the turn, or with the reason why there is no such line.
    pub(super) fn end(self, answered: Result<String, TurnFailure>) -> TurnEnd {
        self.watcher.abort();
        let (engine, mut sink) = (self.engine, self.sink);
        // Servers end with the turn, and the log says so.
        let _ = engine.end_servers(&mut sink);
        engine.close();
        let was_stopped = self.halted_by.is_none() && self.control.halt_cause().is_some();
        let exit = match self.control.halt_cause() {
            Some(HaltCause::Signal(signal)) => Exit::Signal(signal),
            None if !sink.is_incomplete && answered.is_ok() => Exit::Ok,
            _ => Exit::Incomplete,
        };
        let finished = sink.log.finish(exit.code());
        let refused = self.refused.borrow().clone();
        match (answered, finished) {
            (Err(failure), _) => TurnEnd::Failed(failure),
            (Ok(_), Err(EmitError(why))) => {
                TurnEnd::Lost(refused.map_or(why, |refusal| describe_loss(&refusal)))
            }
            (Ok(_), Ok(())) if sink.lost_lease => {
                TurnEnd::Lost("its lease was over before all calls had started".to_owned())
            }
            (Ok(_), Ok(())) if was_stopped => TurnEnd::Stopped,
            (Ok(line), Ok(())) => TurnEnd::Answered(Answer {
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
    name: &TurnName,
    file: &TurnLogFile,
    publisher: RecordPublisher,
) -> Result<SessionLog, LogError> {
    let number = name.number.to_string();
    let digest = combine_digests([name.input.as_str(), &number].into_iter());
    let calls = &settings.calls;
    let EngineSettings {
        tools, jobs, mask, ..
    } = &calls.engine;
    let header = SessionHeader {
        input_sha256: Some(digest.clone()),
        sync: SyncPolicy::All,
        ..SessionHeader::new(&calls.tools_path, tools, *jobs)
    };
    let key = TaskKey {
        input_sha256: Some(&digest),
        ..TaskKey::default()
    };
    let log = PreparedLog::open(&file.path(), BeginMode::Resume, key)?;
    let log = log.with_replica(Box::new(publisher));
    log.begin_session(&header, Arc::clone(mask), Clock::system())
}

/// Creates an engine. What it would keep beside the log is gone with it, so outputs that are cut aren't saved.
pub(super) fn new_engine(
    settings: &TurnSettings,
    log: Option<&SessionLog>,
    file: &TurnLogFile,
) -> Engine {
    Engine::new(EngineSettings {
        log_files: vec![file.dir().to_owned()],
        task_id: log.map_or_else(random_task_id, SessionLog::task_id),
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
