//! The arguments of `toolq run`, and the session that they ask for.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::approval::approve_waiting;
use crate::args::{
    ApprovalFlags, BudgetFlags, InputArguments, LogFlags, WatchFlags, answer_form_parser,
};
use crate::output::AnswerPrinter;
use crate::settings::{LogSettings, SessionSettings};
use crate::terminal::ProgressScreen;
use toolq_core::os::Environment;
use toolq_core::types::{AnswerForm, InputLayout};

#[derive(Debug, Args)]
pub struct RunArguments {
    #[command(flatten)]
    pub input: InputArguments,
    /// Answer each JSON line as it arrives, with one line; for use as a coprocess
    #[arg(long)]
    pub follow: bool,
    /// With `--follow`: each line is a message of the control protocol, which has turns, approvals, and cancellation
    #[arg(long, requires = "follow", conflicts_with = "files")]
    pub control: bool,
    /// Output format [default: mirrors the input]
    #[arg(long, value_name = "FORM", value_parser = answer_form_parser())]
    pub to: Option<AnswerForm>,
    /// Write the assistant message that a stream amounts to to this file, to send back with the results
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "follow")]
    pub message: Option<PathBuf>,
    /// Apply a plan: approve the calls in it, and run nothing if they aren't exactly those of the input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["no_log", "new", "follow"])]
    pub plan: Option<PathBuf>,
    #[command(flatten)]
    pub approval: ApprovalFlags,
    #[command(flatten)]
    pub log: LogFlags,
    #[command(flatten)]
    pub watch: WatchFlags,
    /// Exit 1 if any result is an error
    #[arg(long)]
    pub(super) fail_on_error: bool,
    #[command(flatten)]
    pub budgets: BudgetFlags,
}

/// Returns the settings of the session of a run.
pub(crate) fn session_settings(
    arguments: &RunArguments,
    environment: &Environment,
) -> SessionSettings {
    let files = arguments.input.files.iter().chain(&arguments.plan);
    let log = LogSettings::new(&arguments.log, environment);
    SessionSettings {
        jobs: arguments.input.jobs,
        approval: approve_waiting((&arguments.approval).into(), &log.target, environment),
        inputs: files.cloned().collect(),
        prints_results: true,
        ..SessionSettings::new(log, &arguments.watch, &arguments.budgets, environment)
    }
}

impl RunArguments {
    /// Returns a printer for an input of `layout` with `turns` turns.
    pub(super) fn new_printer(
        &self,
        layout: InputLayout,
        turns: usize,
        screen: Option<ProgressScreen>,
    ) -> AnswerPrinter {
        let printer = AnswerPrinter::new(self.to, layout, turns, screen);
        if self.follow {
            return printer.with_compact_output();
        }
        printer
    }
}
