//! `toolq run`: answers tool calls.

mod session;
mod streaming;

pub(crate) use session::run;
