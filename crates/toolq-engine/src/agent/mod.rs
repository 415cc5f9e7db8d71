//! Agents: a model is asked, the calls of its response run in a queue of their own, and their results are sent back, until it gives its answer.

mod budget;
mod conversation;
mod error;
mod history;
mod messages;
mod model_call;
mod model_name;
mod request;
mod request_error;
mod runner;
mod scope;
mod streaming;
mod toolset;

pub(crate) use error::in_doubt;
pub(crate) use runner::Agents;
pub(crate) use scope::Around;
