//! Fills a tool's templates with the values of an input. Each value becomes part of exactly one argument, variable,
//! header, query pair or JSON value. It is never split and never expanded twice.

mod body;
mod command;
pub(crate) mod invocation;
mod path_anchor;
pub(crate) mod path_texts;
mod request;
pub(crate) mod template_values;
