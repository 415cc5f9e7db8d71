//! A tool's templates and an input → what the call runs. A value becomes part of exactly one argument, variable, header,
//! query pair or JSON value. It is never split and never expanded twice.

mod body;
mod command;
pub(crate) mod dispatch;
mod request;
mod values;
