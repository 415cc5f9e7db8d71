//! Outcomes → results in a dialect, and the texts that a model reads; tools → their declarations.

mod declare;
mod render;
mod texts;

pub use declare::{Declare, declare};
pub use render::{as_text, render};
pub use texts::{answer, without_hint};
