//! `toolq agent`.

mod answer;
mod session;
mod transcript;

pub(crate) use session::agent;
