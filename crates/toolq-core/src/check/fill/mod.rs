//! Fills a tool's templates with the values of an input. Each value becomes part of exactly one argument, variable,
//! header, query pair or JSON value. It is never split and never expanded twice.

mod body;
mod command;
mod finished_text;
pub(crate) mod invocation;
mod output_request;
mod path_anchor;
pub(crate) mod path_texts;
mod request;
mod sandbox;
pub(crate) mod template_values;
