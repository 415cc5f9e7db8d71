//! Agents: a model gets a task, the calls in its responses run in a queue of their own, and their results are sent
//! back, until the model gives its answer.

mod budget;
mod complete_turn;
mod conversation;
mod endpoint;
mod env_templates;
mod error;
mod messages;
mod model_call;
mod model_name;
mod model_response;
mod prompt_cache;
mod provider;
mod request_body;
mod request_error;
mod runner;
mod scope;
mod toolset;

pub(crate) use error::in_doubt_outcome;
pub(crate) use runner::AgentRunner;
pub(crate) use scope::AgentScope;
