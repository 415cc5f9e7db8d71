//! Turns, calls, and references to calls.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::json::{Input, InvalidInput};
use crate::types::call_context::ContextDigest;
use crate::types::dialect::AnswerForm;
use crate::types::trace_context::CallPath;
use crate::types::traceparent::Traceparent;

/// The calls of one assistant message. Turns run one after another.
#[derive(Debug, Clone)]
pub struct Turn {
    /// Counted from 0 over the whole input. Answered turns count too, so a turn keeps its number when its input is run again.
    pub number: usize,
    /// In the order in which the model requested them.
    pub calls: Vec<Call>,
    /// Number of calls left out here because the input already holds their results.
    pub answered_count: usize,
    /// Calls left out here because the conversation went on without their results.
    pub abandoned: Vec<Call>,
    /// The form to answer in, which mirrors the form of the turn.
    pub answer_form: AnswerForm,
    /// How the response ended.
    pub ending: ResponseEnding,
    /// The position of the first call of which it isn't certain what was sent. It doesn't run, nor does any after it.
    pub broken_from: Option<usize>,
    /// Positions of calls that started but didn't end, or only because their run did, if the input is a session log.
    pub started_positions: Vec<usize>,
    /// Positions of calls that are in doubt, if the input is a session log that says so.
    pub in_doubt_positions: Vec<usize>,
    /// Positions of calls that may have a result in the input, which doesn't say whose it is. They run only if they change nothing.
    pub unsure_positions: Vec<usize>,
    /// Where it comes from.
    pub origin: TurnOrigin,
}

/// Where a turn comes from, as far as that is known. It changes nothing about how the turn runs, but tells calls apart that look
/// the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnOrigin {
    /// The path of the input as it was given, or `-` for stdin.
    pub input: Option<String>,
    /// The id of the message or response that requested the calls.
    pub message_id: Option<String>,
    /// The model that wrote it.
    pub model: Option<String>,
    /// The span in which the calls were requested, if they belong to a trace of their own.
    pub traceparent: Option<Traceparent>,
    /// What stands before the message in its conversation, if it is part of one.
    pub before: Option<ContextDigest>,
    /// The ids that calls with different inputs share in the conversation.
    pub shared_ids: Arc<BTreeSet<String>>,
}

/// How a model's response ended, as far as it decides which of its calls may run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ResponseEnding {
    /// It is complete.
    #[default]
    Complete,
    /// It hit a token limit (`max_tokens`, `length`, `incomplete`), and its last block is a call, whose input may be
    /// incomplete.
    CutOff,
    /// It was refused (`refusal`, `content_filter`), has failed, or was canceled. None of its calls may run.
    Refused,
}

impl ResponseEnding {
    /// Returns how a response ended, given whether its last part is a call: a limit anywhere else cut off no call.
    #[must_use]
    pub(crate) fn after(self, last_is_call: bool) -> Self {
        match self {
            Self::CutOff if !last_is_call => Self::Complete,
            ending => ending,
        }
    }
}

/// What the input says about a call, if it is a session log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputState {
    /// Nothing: as far as is known, the call has never started.
    Open,
    /// The call started, but didn't end.
    Started,
    /// The call is in doubt.
    InDoubt,
}

impl Turn {
    /// Creates a turn of which only these calls are known.
    pub fn of_calls(number: usize, calls: Vec<Call>, answer_form: AnswerForm) -> Self {
        Self {
            number,
            calls,
            answered_count: 0,
            abandoned: Vec::new(),
            answer_form,
            ending: ResponseEnding::Complete,
            broken_from: None,
            started_positions: Vec::new(),
            in_doubt_positions: Vec::new(),
            unsure_positions: Vec::new(),
            origin: TurnOrigin::default(),
        }
    }

    /// Returns the number of its calls, including those that are left out here.
    pub fn call_count(&self) -> usize {
        self.calls.len() + self.answered_count + self.abandoned.len()
    }

    /// Returns what the input says about the call at `position`.
    pub fn input_state(&self, position: usize) -> InputState {
        if self.in_doubt_positions.contains(&position) {
            InputState::InDoubt
        } else if self.started_positions.contains(&position) {
            InputState::Started
        } else {
            InputState::Open
        }
    }

    /// Renumbers the turn and its calls. Turns are numbered consecutively across all inputs.
    #[must_use]
    pub fn with_number(mut self, number: usize) -> Self {
        self.number = number;
        for call in self.calls.iter_mut().chain(&mut self.abandoned) {
            call.turn = number;
        }
        self
    }
}

/// How the model writes the input of a call, and how the call is answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CallKind {
    /// As a JSON object.
    #[default]
    Function,
    /// As text, for a custom tool of `OpenAI`'s APIs.
    Custom,
}

/// What a model's message asks for: a `tool_use` block, a `tool_calls` entry, a `function_call` item or part, and so on.
#[derive(Debug, Clone)]
pub struct Call {
    /// The number of its turn. Every agent counts its turns from 0.
    pub turn: usize,
    /// Counted from 0 among all calls of the turn.
    pub position: usize,
    /// The id from the input. A missing id is derived from turn, position, name, and input, so it is the same on every
    /// run.
    pub id: String,
    /// Its id came as a number, and goes back as one.
    pub has_number_id: bool,
    /// How its input was written.
    pub kind: CallKind,
    /// The requested name, which may not be the name of any tool. The calls of a turn share it.
    pub name: Arc<str>,
    /// The input, or why it is invalid.
    pub input: Result<Input, Box<InvalidInput>>,
    /// The call of the agent that made this call, or `None` if the call comes from the input.
    pub parent: Option<Arc<CallRef>>,
}

/// Identifies the call that an event is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CallRef {
    /// The number of its turn.
    pub turn: usize,
    /// Its position in the turn.
    pub position: usize,
    /// Its id.
    pub tool_use_id: String,
    /// The requested name.
    pub tool_name: Arc<str>,
    /// The number of its batch in the turn, if it has one.
    pub batch: Option<usize>,
    /// The call of the agent that made this call, or `None` if the call comes from the input.
    pub parent: Option<Arc<CallRef>>,
}

impl CallRef {
    /// Creates a reference to `call`, which runs in `batch`.
    pub fn new(call: &Call, batch: Option<usize>) -> Self {
        Self {
            turn: call.turn,
            position: call.position,
            tool_use_id: call.id.clone(),
            tool_name: Arc::clone(&call.name),
            batch,
            parent: call.parent.clone(),
        }
    }

    /// Returns the key that distinguishes this call from every other call of the run.
    pub fn key(&self) -> CallKey {
        CallKey {
            turn: self.turn,
            position: self.position,
            parent: self.parent.clone(),
        }
    }

    /// Returns the agent calls that this call is nested in, the outermost last.
    pub fn ancestors(&self) -> impl Iterator<Item = &CallRef> {
        std::iter::successors(self.parent.as_deref(), |call| call.parent.as_deref())
    }

    /// Returns its turn and position, followed by those of the agent calls that it is nested in.
    pub fn path(&self) -> CallPath {
        let calls = std::iter::once(self).chain(self.ancestors());
        calls.map(|call| (call.turn, call.position)).collect()
    }
}

/// Identifies a call within a run: its turn and position, and the agent call it is nested in.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CallKey {
    turn: usize,
    position: usize,
    parent: Option<Arc<CallRef>>,
}
