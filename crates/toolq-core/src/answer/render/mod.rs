//! Renders results as the JSON of a dialect. Each vendor has its own file.

mod anthropic;
mod forms;
mod openai;
mod results;

pub use forms::{content_as_text, render_answers};
