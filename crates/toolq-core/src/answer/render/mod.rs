//! Renders results as the JSON of a dialect. Each vendor has its own file.

mod bedrock;
mod forms;
mod gemini;
mod model_content;
mod openai;

pub use forms::{content_as_text, render_answers};
pub use model_content::content_for_model;
