//! Templates in tools.yaml: their syntax, and where their values may go.

mod syntax;
mod target;

pub(crate) use syntax::{
    MarkKind, TemplateMark, VariableMode, foreign_placeholder_path, is_variable_name,
    parse_dotted_path, parse_template, parse_with_marks,
};
pub(crate) use target::TemplateTarget;
