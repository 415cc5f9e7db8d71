//! Templates of tools.yaml: their syntax, and what a value may become part of.

mod syntax;
mod target;

pub(crate) use syntax::{
    Mark, MarkKind, Variables, dotted_path, is_variable_name, other_name, parse, parse_template,
};
pub(crate) use target::Sink;
