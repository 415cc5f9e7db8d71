//! The news of a run for people and programs. One stream of events comes in; here are its readers.
//!
//! [`EventStream`] writes it as JSON lines, [`Bars`] and [`Lines`] show it on a terminal and in a build's output,
//! [`Summary`] counts. [`Fanout`] passes it to all of them and to the session log. What a reader shows is escaped and
//! masked, and no reader can stop or slow down a run; only the log may.

mod background_writer;
mod fanout;
mod line;
mod ndjson;
pub(crate) mod target;

pub(crate) use fanout::Fanout;
pub(crate) use ndjson::EventStream;
