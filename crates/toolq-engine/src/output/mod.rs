//! The bytes of a program or a response → the content of a result.

mod capture;
mod collector;
mod document;

pub(crate) use capture::Tail;
pub(crate) use collector::Output;
