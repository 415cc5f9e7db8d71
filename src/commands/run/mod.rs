//! `toolq run`.

mod session;
mod streaming;

pub(crate) use session::run;
