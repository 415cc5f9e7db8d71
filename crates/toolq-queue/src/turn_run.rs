//! Runs one turn with the ordinary engine. Its log is the one from the stream, so what earlier workers did is known as in
//! `run --resume`.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::runtime::Handle;

use crate::answers::Answer;
use crate::session::Notices;
use crate::stop::StopSignal;
use crate::stored_records::StoredRecords;
use crate::turn_failure::TurnFailure;
use crate::turn_log::TurnLogFile;
use crate::turn_log_sink::DoubtCollector;
use crate::turn_queue::TurnQueue;
use crate::turn_session::{TakenTurn, TurnEnd, TurnSession, new_engine};
use redact::Mask;
use toolq_core::answer::AnswerAssembler;
use toolq_core::check::CallChecker;
use toolq_core::types::{
    Call, CallAnswer, CallRef, CheckedCall, EventSink, HaltCause, InputLayout, ResumeState, Turn,
};
use toolq_engine::{AnswerDelivery, Engine, EngineSettings, PriorCalls};
use toolq_log::TaskHistory;

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
) -> TurnEnd {
    let begun = TurnSession::begin(settings, queue, taken, forced).await;
    let mut session = match begun {
        Ok(session) => session,
        Err(end) => return end,
    };
    let history = session.history.clone();
    let TurnSession { engine, sink, .. } = &mut session;
    let answered = answer_turn(settings, engine, history.as_deref(), turn, sink).await;
    session.end(answered.map_err(TurnFailure::Permanent))
}

/// Answers a turn whose log can't be continued, without running anything.
pub(super) async fn answer_unrun(settings: &TurnSettings, mut turn: Turn) -> Option<Answer> {
    // It isn't known which of its calls took effect.
    turn.in_doubt_positions = (0..turn.calls.len()).collect();
    let file = TurnLogFile::create(&StoredRecords::default()).ok()?;
    let mut engine = new_engine(settings, None, &file);
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
///
/// # Errors
/// A call contradicts what earlier workers recorded. Nothing ran.
async fn answer_turn(
    settings: &TurnSettings,
    engine: &mut Engine,
    history: Option<&TaskHistory>,
    turn: Turn,
    sink: &mut dyn EventSink,
) -> Result<String, String> {
    let calls = &settings.calls;
    let mut answer = AnswerLine::new(&turn);
    let prior = EarlierWorkers {
        history,
        mask: &calls.engine.mask,
    };
    let prior = (&*calls.checker, &prior);
    engine.answer_turn(turn, prior, sink, &mut answer).await?;
    Ok(answer.line)
}

/// What earlier workers recorded about the calls of a turn.
struct EarlierWorkers<'a> {
    history: Option<&'a TaskHistory>,
    mask: &'a Mask,
}

impl PriorCalls for EarlierWorkers<'_> {
    type Conflict = String;

    fn open_calls<'c>(&self, calls: &'c [Call]) -> Vec<&'c Call> {
        let is_open = |call: &&Call| {
            self.history
                .is_none_or(|history| history.is_undecided(call))
        };
        calls.iter().filter(is_open).collect()
    }

    fn resume_state(&self, checked: &CheckedCall) -> Result<ResumeState, String> {
        let Some(history) = self.history else {
            return Ok(checked.resume_state.clone());
        };
        let is_known = history.check_call(&checked.call, self.mask);
        if !is_known.map_err(|conflict| conflict.to_string())? {
            return Ok(checked.resume_state.clone());
        }
        let state = history.resume_state(checked);
        state.map_err(|error| error.to_string())
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
