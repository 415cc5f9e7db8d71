//! Runs one turn with the ordinary engine. Its log is the one from the stream, which is its memory of what earlier workers did.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::runtime::Handle;

use crate::answers::Answer;
use crate::session::Notices;
use crate::stop::StopSignal;
use crate::stored_records::StoredRecords;
use crate::turn_log::TurnLogFile;
use crate::turn_log_sink::DoubtCollector;
use crate::turn_queue::TurnQueue;
use crate::turn_session::{TakenTurn, TurnEnd, TurnSession, new_engine};
use toolq_core::answer::AnswerAssembler;
use toolq_core::check::CallChecker;
use toolq_core::types::{CallAnswer, CallRef, EventSink, HaltCause, InputLayout, Turn};
use toolq_engine::{AnswerDelivery, Engine, EngineSettings, RememberedWrites};

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
    let TurnSession { engine, sink, .. } = &mut session;
    let line = answer_turn(settings, engine, turn, sink).await;
    session.end(line)
}

/// Answers a turn whose log can't be continued, without running anything.
pub(super) async fn answer_unrun(settings: &TurnSettings, mut turn: Turn) -> Option<Answer> {
    // It isn't known which of its calls took effect.
    turn.in_doubt_positions = (0..turn.calls.len()).collect();
    let file = TurnLogFile::create(&StoredRecords::default()).ok()?;
    let mut engine = new_engine(settings, None, &file);
    engine.control().halt(HaltCause::WorkersLost);
    let mut sink = DoubtCollector::default();
    let line = answer_turn(settings, &mut engine, turn, &mut sink).await;
    engine.close();
    Some(Answer {
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
