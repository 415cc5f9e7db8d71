//! Answers a language model's tool calls: `tool_use` JSON in, ordered `tool_result` JSON out.
//!
//! Commands don't decide what happens to a call. They open files and wire up the stages that do.

mod approval;
mod args;
mod cli;
mod commands;
mod context;
mod events;
mod help;
mod input;
mod log_view;
mod otlp;
mod output;
mod pages;
mod plan_file;
mod replay;
mod session;
mod settings;
mod terminal;

use std::ffi::OsString;
use std::panic::{self, PanicHookInfo};
use std::process::ExitCode;

use clap::{ColorChoice, CommandFactory as _};

use crate::cli::{Command, ProgramArguments, parse_arguments};
use crate::commands::{
    approvals, call, check, complete, generate, init, log, plan, queue, run, serve, servers, tools,
};
use crate::context::{CommandContext, read_environment};
use crate::output::{CommandError, Exit, StderrWriter, stdout};
use toolq_core::os::arm_failpoints;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Parses arguments and runs a command; errors become a message and an exit code.
fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if let Some(exit) = procfence::supervise(&arguments) {
        return exit;
    }
    // Tools run as the same user. They must not read undeclared variables from `/proc/PID/environ`, or write forged results
    // to `/proc/PID/fd/1`. Without `/proc`, there is nothing to protect.
    let _ = procfence::make_non_dumpable();
    // Many parallel calls need many descriptors. If the limit can't be raised, fewer calls run at once.
    let _ = procfence::raise_open_file_limit();
    // Some parents pass on blocked signals. toolq would be deaf to them.
    let _ = procfence::unblock_signals();
    install_hook();
    // A write beyond `ulimit -f` fails with an error instead.
    procfence::ignore_file_size_signal();
    let exit = match parse_arguments(&arguments) {
        Ok(arguments) => {
            // Both are needed until the program exits, also by threads that it doesn't wait for.
            let arguments: &'static ProgramArguments = Box::leak(Box::new(arguments));
            let context = Box::leak(Box::new(CommandContext::new(&arguments.common)));
            arm_failpoints(&context.environment);
            run_command(&arguments.command, context)
                .unwrap_or_else(|failure| context.stderr.print_error(&failure))
        }
        Err(message) => stdout::print_clap_message(&message).unwrap_or_else(|lost| {
            let stderr = StderrWriter::new(ColorChoice::Auto, false, &read_environment());
            stderr.print_error(&lost.into())
        }),
    };
    exit.into()
}

fn run_command(
    command: &'static Command,
    context: &'static CommandContext,
) -> Result<Exit, CommandError> {
    match command {
        Command::Run(arguments) => run::run(arguments, context),
        Command::Call(arguments) => call::call_tool(arguments, context),
        Command::Plan(arguments) => plan::print_plans(arguments, context),
        Command::Serve(arguments) => serve::serve_tools(arguments, context),
        Command::Queue(arguments) => queue::run_queue_command(arguments, context),
        Command::Replay(arguments) => commands::replay::replay_recordings(arguments, context),
        Command::Check(arguments) => check::check_tools_file(arguments, context),
        Command::Tools(arguments) => tools::print_declarations(arguments, context),
        Command::Servers(arguments) => servers::run_servers_command(arguments, context),
        Command::Approvals(arguments) => approvals::run_approvals_command(arguments, context),
        Command::Log(arguments) => log::run_log_command(arguments, context),
        Command::Generate(arguments) => {
            generate::print_generated_file(arguments, ProgramArguments::command())
        }
        Command::Complete(arguments) => {
            complete::print_candidates(arguments, ProgramArguments::command(), context)
        }
        Command::Init(arguments) => init::init_tools_file(arguments, context),
    }
}

// Prints panics as one line. It is masked and escaped like all messages, because it can contain a part of the input.

/// Installs the panic hook. It only prints; whether the program ends depends on where the panic is caught.
fn install_hook() {
    panic::set_hook(Box::new(|panic| {
        StderrWriter::print_panic(&panic_message(panic));
    }));
}

/// Formats a message such as `toolq panicked at src/context.rs:12:5: index out of bounds`.
fn panic_message(panic: &PanicHookInfo<'_>) -> String {
    let message = panic.payload_as_str().unwrap_or("no message");
    match panic.location() {
        Some(location) => format!("toolq panicked at {location}: {message}"),
        None => format!("toolq panicked: {message}"),
    }
}
