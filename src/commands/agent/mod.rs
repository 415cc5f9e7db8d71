//! `toolq agent`: runs one agent.

mod answer;
mod session;
mod transcript;

pub(crate) use session::run_agent;
