//! Templates in tools.yaml: their syntax, and where their values may go.

mod syntax;

pub use syntax::{MarkKind, ParsedTemplate, TemplateMark, VariableMode, parse_with_marks};
pub(crate) use syntax::{
    TemplateTarget, foreign_placeholder_path, is_variable_name, parse_dotted_path, parse_template,
};
