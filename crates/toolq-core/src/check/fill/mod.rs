//! Fills a tool's templates with the values of an input. Each value becomes part of exactly one argument, variable,
//! header, query pair or JSON value. It is never split and never expanded twice.

mod command;
pub(crate) mod invocation;
pub(crate) mod path_texts;
mod request;
pub(super) mod template_values;
