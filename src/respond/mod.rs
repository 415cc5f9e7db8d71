//! Outcomes → results in a dialect, and the texts that a model reads; tools → their declarations.

mod declare;
mod forms;
mod texts;
mod tools_file;

pub use declare::{Declare, declare};
pub use forms::{as_text, render};
pub use texts::{answer, without_hint};
pub use tools_file::tools_file;
