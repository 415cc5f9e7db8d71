use crate::types::call::CallRef;
use crate::types::resume::Past;
use crate::types::sink::Refused;
use crate::types::usage::Tokens;
use crate::types::verdict::Checked;
use serde_json::value::RawValue;
use std::fmt::Debug;

/// Who knows what earlier runs made of the work of agents. The engine asks for what an agent is about to do, so that an
/// agent that goes on does nothing twice.
pub trait Memory: Debug + Send + Sync {
    /// What is known of a call that an agent asks for.
    ///
    /// # Errors
    /// The session log has another call in its place, or its answer can't be read: why, as a sentence.
    fn past(&self, checked: &Checked) -> Result<Past, Refused>;

    /// What the model of the agent that works on `call` answered in this turn of its own, counted from 0, if it did.
    ///
    /// # Errors
    /// The session log has an answer that can't be used: why, as a sentence.
    fn told(&self, call: &CallRef, turn: usize) -> Result<Option<Told>, Refused>;

    /// What the answers took that agents heard for `call`, which one of them asked for, by the model that gave them.
    fn taken(&self, call: &CallRef) -> Vec<(String, Tokens)>;
}

/// An answer of a model that the session log holds.
#[derive(Debug, Clone)]
pub struct Told {
    /// As it came.
    pub body: Box<RawValue>,
    /// Who answered.
    pub model: Option<String>,
}
