//! An outcome → the text that the model reads. One file for each kind of cause.

mod agent;
mod command;
mod dispatch;
mod error_text;
mod halted;
mod hints;
mod http;
mod leftovers;
mod limits;
mod rejected;
mod signals;
mod truncation;

pub use dispatch::{answer, without_hint};
