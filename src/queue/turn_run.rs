//! Runs one turn with the ordinary engine. Its log is the one from the stream, so what earlier workers did is known as in
//! `run --resume`.

use std::num::NonZeroUsize;
use std::sync::Arc;

use tokio::runtime::Handle;

use crate::context::CommandContext;
use crate::queue::answers::Answer;
use crate::queue::stop::StopSignal;
use crate::queue::turn_log::{LogFile, StoredRecords};
use crate::queue::turn_queue::TurnQueue;
use crate::queue::turn_session::{TakenTurn, TurnEnd, TurnSession};
use crate::queue::turn_sink::DoubtCollector;
use crate::session::{InputState, default_engine_settings, state_in_input};
use redact::Mask;
use toolq_core::answer::AnswerAssembler;
use toolq_core::check::{CallChecker, undescribed_tools};
use toolq_core::types::{
    Call, CallAnswer, CallRef, CheckedCall, EventSink, HaltCause, InputLayout, ToolsConfig, Turn,
};
use toolq_engine::{AnswerDelivery, Engine, EngineSettings};
use toolq_log::{BeginMode, TaskHistory};

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

/// Runs a turn. `forced` stops it in the middle.
pub(super) async fn run_turn(
    settings: &TurnSettings<'_>,
    queue: &TurnQueue,
    (taken, turn): (TakenTurn, Turn),
    forced: impl Future<Output = u8> + Send + 'static,
) -> TurnEnd {
    let begun = TurnSession::begin(settings, queue, taken, BeginMode::Resume, forced).await;
    let mut session = match begun {
        Ok(session) => session,
        Err(end) => return end,
    };
    let history = session.history.clone();
    let TurnSession { engine, sink, .. } = &mut session;
    let answered = answer_turn(settings, engine, history.as_deref(), turn, sink).await;
    session.end(answered)
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
