//! The crates without the program: the engine with real programs and servers, the readers of every input format, the library.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

#[path = "../support/mod.rs"]
mod support;

mod command;
mod declarations_import;
mod embedded_functions;
mod embedding;
mod fuzz_corpus;
mod http;
mod inputs;
mod recordings;
mod tools_schema;
mod unsupervised_commands;
