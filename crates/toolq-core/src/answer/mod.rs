//! Renders outcomes as results in a dialect, with the texts that models read; and tools as declarations.

mod declare;
mod render;
mod texts;

pub use declare::{DeclarationFormat, render_declarations};
pub use render::{content_as_text, render_answers};
pub use texts::{build_answer, strip_hint};
