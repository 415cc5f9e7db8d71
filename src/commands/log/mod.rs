//! `toolq log`, one module per verb. `log_files` finds and opens the files; `log_view` renders their records.

mod cost;
mod export;
mod list;
pub(crate) mod log_files;
mod log_printer;
mod prune;
pub(crate) mod resolve;
pub(crate) mod session_id;
mod show;
mod stats;
mod verify;

use crate::args::log::{LogArguments as Arguments, LogCommand};
use crate::context::CommandContext;
use crate::output::{CommandError, Exit};

/// Runs a verb of `toolq log`.
///
/// # Errors
/// A log can't be read, or stdout can't be written.
pub fn run_log_command(
    arguments: &Arguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    match &arguments.command {
        LogCommand::List(arguments) => list::list_sessions(arguments, context),
        LogCommand::Show(arguments) => show::show_logs(arguments, context),
        LogCommand::Stats(arguments) => stats::print_stats(arguments, context),
        LogCommand::Cost(arguments) => cost::print_cost(arguments, context),
        LogCommand::Export(arguments) => export::export_logs(arguments, context),
        LogCommand::Verify(arguments) => verify::verify_logs(arguments, context),
        LogCommand::Resolve(arguments) => resolve::resolve_call(arguments, context),
        LogCommand::Prune(arguments) => prune::prune_sessions(arguments, context),
    }
}
