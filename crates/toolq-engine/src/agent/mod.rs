//! Agents: a model gets a task, the calls in its responses run in a queue of their own, and their results are sent
//! back, until the model gives its answer.

mod conversation;
mod endpoint;
mod error;
mod model_client;
mod runner;

pub(crate) use error::in_doubt_outcome;
pub(crate) use runner::AgentRunner;
