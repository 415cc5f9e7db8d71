//! Run checked calls in order: commands, HTTP requests and agents, with timeouts, retries and budgets.
//!
//! Checked calls come in; events go to an [`Sink`](toolq_core::types::Sink) and answers to a [`Delivery`], in call
//! order. One dispatcher for each turn owns all state; attempts are tasks that send it messages. Nothing here knows logs,
//! screens or dialects.

mod agent;
mod attempt;
mod backends;
mod clock;
mod command;
mod control;
mod digests;
mod discovery;
mod dispatcher;
mod engine;
mod http;
mod output;
mod progress;
mod run_budget;
mod scheduler;
mod settings;
mod state;
#[cfg(test)]
mod tests;

pub use control::Control;
pub use discovery::Asking;
pub use engine::Engine;
pub use http::Resolver;
pub use run_budget::Budgets;
pub use settings::{Delivery, EngineSettings};
