use std::sync::Arc;

use crate::json::{Input, InputFault};
use crate::types::dialect::Form;

/// The calls of one assistant message. Turns run one after another.
#[derive(Debug, Clone)]
pub struct Turn {
    /// Counted from 0 over the whole input; answered turns count too, so that a number stays the same on resume.
    pub number: usize,
    /// In the order in which they were asked.
    pub calls: Vec<Call>,
    /// Calls of this turn that are left out here because the input holds their results.
    pub answered: usize,
    /// The form in which this turn asked, and so the form of its answer.
    pub form: Form,
    /// The answer ended at a token limit (`max_tokens`, `length`, `incomplete`) and a call was its last block:
    /// that call's input may be half of what was meant.
    pub cut_off: bool,
    /// Positions of calls that the input, a session log, saw start and not end.
    pub started: Vec<usize>,
}

impl Turn {
    /// The same turn as the one of this number: the turns of several inputs are counted on.
    #[must_use]
    pub fn numbered(mut self, number: usize) -> Self {
        self.number = number;
        for call in &mut self.calls {
            call.turn = number;
        }
        self
    }
}

/// One `tool_use` block (Anthropic), `tool_calls` entry (`OpenAI` chat) or `function_call` item (`OpenAI` responses).
#[derive(Debug, Clone)]
pub struct Call {
    /// The number of its turn; those of an agent are counted from 0.
    pub turn: usize,
    /// Counted from 0 among all calls of its turn.
    pub position: usize,
    /// As given. Where none was given, one made from turn, position, name and input: the same on every run.
    pub id: String,
    /// The name that was asked for; it need not be the name of a tool.
    pub name: String,
    /// The input, or why what stood in its place is none.
    pub input: Result<Input, InputFault>,
    /// The call of the agent that asked for it; none where the input did.
    pub within: Option<Arc<CallRef>>,
}

/// Which call an event is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CallRef {
    /// The number of its turn.
    pub turn: usize,
    /// Its position in the turn.
    pub position: usize,
    /// Its id.
    pub tool_use_id: String,
    /// The name that it asked for.
    pub tool_name: String,
    /// The number of its batch in the turn, where it has one.
    pub batch: Option<usize>,
    /// The call of the agent that asked for it; none where the input did.
    pub within: Option<Arc<CallRef>>,
}

impl CallRef {
    /// The reference to `call`, which runs in `batch`.
    pub fn new(call: &Call, batch: Option<usize>) -> Self {
        Self {
            turn: call.turn,
            position: call.position,
            tool_use_id: call.id.clone(),
            tool_name: call.name.clone(),
            batch,
            within: call.within.clone(),
        }
    }

    /// What tells it from every other call of the run.
    pub fn key(&self) -> CallKey {
        CallKey {
            turn: self.turn,
            position: self.position,
            within: self.within.clone(),
        }
    }

    /// The calls of the agents that it stands within, the outermost last.
    pub fn agents(&self) -> impl Iterator<Item = &CallRef> {
        std::iter::successors(self.within.as_deref(), |call| call.within.as_deref())
    }
}

/// Which call of a run: its place in its turn, and in whose work.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CallKey {
    turn: usize,
    position: usize,
    within: Option<Arc<CallRef>>,
}
