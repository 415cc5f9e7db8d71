//! Answers a language model's tool calls: `tool_use` JSON in, ordered `tool_result` JSON out.

mod approval;
mod args;
mod cli;
mod commands;
mod context;
mod events;
mod input;
mod log_view;
mod otlp;
mod output;
mod pages;
mod plan_file;
mod program;
mod replay;
mod session;
mod settings;
mod terminal;
mod timeline;

use std::process::ExitCode;

fn main() -> ExitCode {
    program::main(std::env::args_os())
}
