//! The news of a run for people and programs. One stream of events comes in; here are its readers.
//!
//! [`EventStream`] writes it as JSON lines, [`Bars`] and [`Lines`] show it on a terminal and in a build's output,
//! [`Summary`] counts. [`Fanout`] passes it to all of them and to the session log. What a reader shows is escaped and
//! masked, and no reader can stop or slow down a run; only the log may.

mod ending;
mod events;
mod fanout;
mod log;
mod outbox;
mod progress;
mod summary;
mod words;

pub use events::EventStream;
pub use fanout::Fanout;
pub use log::{AgentCost, Cost, Durations, Filter, Names, Page as LogPage, Show, Stats, ToolStats};
pub use progress::{Bars, Lines, Look, Screen};
pub use summary::Summary;

#[cfg(test)]
mod tests;
