//! Runs one turn with the ordinary engine. Its log is the one from the stream, so what earlier workers did is known as in
//! `run --resume`.

use std::num::NonZeroUsize;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::context::CommandContext;
use crate::queue::answers::Answer;
use crate::queue::names::TurnName;
use crate::queue::record_publisher::{PublishRefusal, RecordPublisher};
use crate::queue::stop::StopSignal;
use crate::queue::turn_holder::TurnHolder;
use crate::queue::turn_log::{LogFile, RestoreFailure, StoredRecords};
use crate::queue::turn_queue::TurnQueue;
use crate::queue::turn_sink::{DoubtCollector, TurnSink};
use crate::session::{InputState, default_engine_settings, state_in_input};
use redact::Mask;
use toolq_core::answer::AnswerAssembler;
use toolq_core::check::{CallChecker, undescribed_tools};
use toolq_core::os::Clock;
use toolq_core::types::{
    Call, CallAnswer, CallRef, CheckedCall, EmitError, EventSink, HaltCause, InputLayout,
    ToolsConfig, Turn,
};
use toolq_engine::{AnswerDelivery, Engine, EngineSettings, RunControl};
use toolq_log::{
    BeginMode, LogAgentHistory, PreparedLog, SessionHeader, SessionLog, SyncPolicy, TaskHistory,
    TaskKey, combine_digests,
};

/// What all turns of a worker run with.
pub(crate) struct TurnSettings<'a> {
    pub context: &'a CommandContext,
    pub tools: Arc<ToolsConfig>,
    pub checker: CallChecker,
    pub mask: Arc<Mask>,
    pub jobs: NonZeroUsize,
    /// The runtime of the connection.
    pub nats_runtime: Handle,
    pub stop: StopSignal,
}

/// What became of a turn.
#[derive(Debug)]
pub(super) enum TurnEnd {
    Answered(Answer),
    /// It stopped before all calls were answered for good. Another worker goes on.
    Stopped,
    /// What the stream has of it can't be continued.
    Unusable(String),
    /// It is another worker's, or nobody knows.
    Lost(String),
}

/// A turn that a worker has taken.
pub(super) struct TakenTurn {
    pub name: TurnName,
    pub turn: Turn,
    pub records: StoredRecords,
    pub holder: Arc<TurnHolder>,
    /// Why nothing may start, if so: the turn is answered with what is known of it.
    pub halted_by: Option<HaltCause>,
}

/// Runs a turn. `forced` stops it in the middle.
pub(super) async fn run_turn(
    settings: &TurnSettings<'_>,
    queue: &TurnQueue,
    taken: TakenTurn,
    forced: impl Future<Output = u8> + Send + 'static,
) -> TurnEnd {
    let (name, turn, holder, halted_by) = (taken.name, taken.turn, taken.holder, taken.halted_by);
    let refused = holder.watch_refusal();
    let file = match LogFile::restore(queue, &taken.records).await {
        Ok(file) => file,
        Err(RestoreFailure::Passing(why)) => return TurnEnd::Lost(why),
        Err(why) => return TurnEnd::Unusable(why.to_string()),
    };
    let publisher = RecordPublisher::new(
        queue.clone(),
        (name.log_subject(&queue.name), taken.records.last),
        Arc::clone(&holder),
        file.files(),
        settings.nats_runtime.clone(),
    );
    let log = match begin_log(settings, &name, &file, publisher) {
        Ok(log) => log,
        Err(why) => return not_begun(&refused, why),
    };
    let history = log.history();
    let mut engine = new_engine(settings, &log, history.as_ref(), &file);
    let control = engine.control();
    if let Some(cause) = halted_by {
        control.halt(cause);
    }
    let watcher = tokio::spawn(halt_when(control.clone(), refused.clone(), forced));
    let mut sink = TurnSink::new(log, holder.lease.clone());
    let answered = answer_turn(settings, &mut engine, history.as_deref(), turn, &mut sink).await;
    watcher.abort();
    // Servers end with the turn, and the log says so.
    let _ = engine.end_servers(&mut sink);
    engine.close();
    let was_stopped = halted_by.is_none() && control.halt_cause().is_some();
    let finished = sink.log.finish(0);
    let refused = refused.borrow().clone();
    match (answered, finished) {
        (Err(why), _) => TurnEnd::Unusable(why),
        (Ok(_), Err(EmitError(why))) => {
            TurnEnd::Lost(refused.map_or(why, |refusal| refusal.to_string()))
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

/// A session that can't begin is another worker's, unless something is wrong with the log.
fn not_begun(refused: &watch::Receiver<Option<PublishRefusal>>, why: String) -> TurnEnd {
    match &*refused.borrow() {
        Some(refusal) => TurnEnd::Lost(refusal.to_string()),
        None => TurnEnd::Unusable(why),
    }
}

/// Answers a turn whose log can't be continued, without running anything.
pub(super) async fn answer_unrun(settings: &TurnSettings<'_>, mut turn: Turn) -> Option<Answer> {
    // Nobody knows what was done of it.
    turn.in_doubt_positions = (0..turn.calls.len()).collect();
    let file = LogFile::create(&StoredRecords::default()).ok()?;
    let engine = EngineSettings {
        jobs: settings.jobs,
        log_files: vec![file.dir().to_owned()],
        ..default_engine_settings(&settings.tools, &settings.mask, settings.context)
    };
    let mut engine = Engine::new(engine);
    engine.control().halt(HaltCause::WorkersLost);
    let mut sink = DoubtCollector::default();
    let line = answer_turn(settings, &mut engine, None, turn, &mut sink).await;
    engine.close();
    Some(Answer {
        line: line.ok()?.into(),
        doubts: sink.0,
    })
}

/// Begins a session in the log, which resumes those of earlier workers.
fn begin_log(
    settings: &TurnSettings<'_>,
    name: &TurnName,
    file: &LogFile,
    publisher: RecordPublisher,
) -> Result<SessionLog, String> {
    let number = name.number.to_string();
    let digest = combine_digests([name.input.as_str(), &number].into_iter());
    let path = &settings.context.tools_path;
    let header = SessionHeader {
        input_sha256: Some(digest.clone()),
        sync: SyncPolicy::All,
        ..SessionHeader::new(path, &settings.tools, settings.jobs)
    };
    let key = TaskKey {
        input_sha256: Some(&digest),
        ..TaskKey::default()
    };
    let log = PreparedLog::open(&file.path(), BeginMode::Resume, key);
    let log = log.map_err(|error| error.to_string())?;
    let log = log.with_replica(Box::new(publisher));
    let log = log.begin_session(&header, Arc::clone(&settings.mask), Clock::system());
    log.map_err(|error| error.to_string())
}

fn new_engine(
    settings: &TurnSettings<'_>,
    log: &SessionLog,
    history: Option<&Arc<TaskHistory>>,
    file: &LogFile,
) -> Engine {
    let agents = history
        .map(|history| LogAgentHistory::new(Arc::clone(history), Arc::clone(&settings.mask)));
    Engine::new(EngineSettings {
        jobs: settings.jobs,
        log_files: vec![file.dir().to_owned()],
        task_id: log.task_id(),
        agent_history: agents.map(|agents| Arc::new(agents) as _),
        ..default_engine_settings(&settings.tools, &settings.mask, settings.context)
    })
}

/// Answers all calls. Returns the answer as one line.
async fn answer_turn(
    settings: &TurnSettings<'_>,
    engine: &mut Engine,
    history: Option<&TaskHistory>,
    turn: Turn,
    sink: &mut dyn EventSink,
) -> Result<String, String> {
    let is_open = |call: &&Call| history.is_none_or(|history| history.is_undecided(call));
    let undescribed = undescribed_tools(&settings.tools, turn.calls.iter().filter(is_open));
    let discovery = engine.schema_discovery();
    discovery.discover(&undescribed, sink).await;
    let mut answer = AnswerLine::new(&turn);
    engine.set_turn_origin(turn.origin.clone());
    let number = turn.number;
    let calls = check_turn(settings, history, turn)?;
    engine.run_turn(number, calls, sink, &mut answer).await;
    Ok(answer.line)
}

/// Checks the calls of a turn, and adds what earlier workers recorded about them.
fn check_turn(
    settings: &TurnSettings<'_>,
    history: Option<&TaskHistory>,
    turn: Turn,
) -> Result<Vec<CheckedCall>, String> {
    let state = |call: &Call| InputState::of_call(&turn, call.position);
    let states: Vec<InputState> = turn.calls.iter().map(state).collect();
    let mut calls = settings.checker.check_turn(turn);
    for (checked, state) in calls.iter_mut().zip(states) {
        let known = match history {
            Some(history) => history.check_call(&checked.call, &settings.mask),
            None => Ok(false),
        };
        checked.resume_state = match (history, known.map_err(|conflict| conflict.to_string())?) {
            (Some(history), true) => history
                .resume_state(checked)
                .map_err(|error| error.to_string())?,
            _ => state_in_input(checked, state),
        };
    }
    Ok(calls)
}

/// Stops the run when it is told to, or when the stream refuses its records: the turn is another worker's then.
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
    fn deliver(&mut self, _: &CallRef, answer: CallAnswer, _: &mut dyn EventSink) {
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
