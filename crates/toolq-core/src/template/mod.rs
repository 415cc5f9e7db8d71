//! Templates in tools.yaml: their syntax, and where their values may go.

mod placeholders;
mod syntax;
mod target;

pub(crate) use placeholders::{foreign_placeholder_path, is_variable_name, parse_dotted_path};
pub(crate) use syntax::parse_template;
pub use syntax::{MarkKind, ParsedTemplate, TemplateMark, VariableMode, parse_with_marks};
pub(crate) use target::TemplateTarget;
