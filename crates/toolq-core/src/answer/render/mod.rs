//! Answers → the JSON of a dialect. One file for each vendor.

mod anthropic;
mod dispatch;
mod openai;

pub use dispatch::{as_text, render};
