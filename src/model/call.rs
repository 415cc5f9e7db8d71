use std::sync::Arc;

use super::{CallRef, Form, Input, InputFault};

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
