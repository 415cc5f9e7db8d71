//! Renders outcomes as results in a dialect, with the texts that models read; and tools as declarations.

mod answer_assembler;
mod declare;
mod render;
mod texts;

pub use answer_assembler::AnswerAssembler;
pub use declare::{DeclarationFormat, mcp_declaration, render_declarations};
pub use render::{content_as_text, content_for_model, render_answers};
pub(crate) use texts::describe_failure;
pub use texts::{AnswerWording, build_answer, empty_output_text, failure_cause, max_turns_text};
