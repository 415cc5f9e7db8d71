//! `toolq plan`: prints what would run, in which batches, and why. Runs no calls, opens no connections, and writes no
//! log.

mod log_estimates;
mod plan_writer;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::num::NonZeroUsize;
use std::sync::Arc;

use crate::args::{PlanArguments as Arguments, PlanFormat};
use crate::commands::plan::log_estimates::apply_log_estimates;
use crate::commands::plan::plan_writer::PlanWriter;
use crate::context::CommandContext;
use crate::input::CommandInput;
use crate::input::files;
use crate::output::stdout;
use crate::output::{CommandError, DocumentWriter, Exit};
use crate::pages::PlanPage;
use crate::session::ToolDescriber;
use redact::Mask;
use toolq_core::check::{CallChecker, undescribed_tools};
use toolq_core::plan::{
    MERMAID_HEADER, PlanDetail, PlanStyle, TurnPlan, render_plan_mermaid, write_plan_json,
    write_plan_text,
};
use toolq_core::types::{Call, InputState, Tool, ToolsConfig, Turn};

/// Width of a plan if stdout isn't a terminal, in columns.
const FALLBACK_WIDTH: usize = 100;

/// Prints the plan of every turn.
///
/// # Errors
/// tools.yaml or an input is invalid, or stdout can't be written.
pub fn print_plans(arguments: &Arguments, context: &CommandContext) -> Result<Exit, CommandError> {
    let (mut tools, tools_file) = context.load_tools_file()?;
    context.warn_about_root(&tools, &tools_file);
    if let Some(log) = &arguments.estimates {
        apply_log_estimates(&mut tools, log, context)?;
    }
    let tools = Arc::new(tools);
    let describer = arguments
        .describe
        .then(|| ToolDescriber::new(&tools, context));
    let mask = Arc::new(context.build_mask(&tools));
    let file = arguments
        .out
        .as_ref()
        .map(|path| PlanWriter::new(path, (arguments, &tools_file), &tools, &mask, context));
    let inputs = files::open_inputs(&arguments.input, |source| source)?;
    let mut printer = PlanPrinter {
        arguments,
        context,
        checker: CallChecker::new(Arc::clone(&tools)),
        describer: describer.transpose()?,
        undescribed: BTreeSet::new(),
        unlocked: BTreeMap::new(),
        call_count: 0,
        answered_count: 0,
        jobs: arguments.input.jobs.unwrap_or(tools.concurrency),
        tools,
        mask,
        file: file.transpose()?,
        page: PlanPage::default(),
        turns_printed: 0,
        has_rejected: false,
    };
    if arguments.format == PlanFormat::Mermaid {
        stdout::write_line(MERMAID_HEADER.trim_end())?;
    }
    let mut stream_exit = Exit::Ok;
    for input in inputs {
        match input {
            CommandInput::Recording(recording) => {
                for index in 0..recording.len() {
                    printer.print_turn(recording.turn(index, arguments.input.all)?)?;
                }
            }
            CommandInput::Stream(_) if printer.file.is_some() => {
                return Err(CommandError::usage(
                    "the calls of a stream can't be approved by a plan: `toolq run` starts them before all of them are known",
                )
                .with_hint("plan the complete response instead"));
            }
            CommandInput::Stream(mut stream) => {
                let (turns, stream_error) = stream.read_to_end();
                turns
                    .into_iter()
                    .try_for_each(|turn| printer.print_turn(turn))?;
                if let Some(error) = stream_error {
                    let failure = files::stream_failure(error, stream.message_count());
                    stream_exit = stream_exit.max(context.stderr.print_error(&failure));
                }
            }
            CommandInput::Follow(_) => {}
        }
    }
    if arguments.format == PlanFormat::Html {
        let page = std::mem::take(&mut printer.page);
        let tools_path = context.tools_path.display().to_string();
        stdout::write_line(&page.into_html(&tools_path))?;
    }
    printer.note_undescribed();
    // An input that broke off says nothing about the calls that it would have had.
    if stream_exit == Exit::Ok {
        printer.note_why_empty();
    }
    if let Some(file) = printer.file.take() {
        file.write()?;
    }
    let has_problems = arguments.strict && printer.has_rejected;
    Ok(stream_exit.max(if has_problems {
        Exit::ProblemsFound
    } else {
        Exit::Ok
    }))
}

/// Prints plans to stdout.
struct PlanPrinter<'a> {
    arguments: &'a Arguments,
    context: &'a CommandContext,
    tools: Arc<ToolsConfig>,
    checker: CallChecker,
    mask: Arc<Mask>,
    /// The file that the plan is written to.
    file: Option<PlanWriter<'a>>,
    /// The page, with `--format html`.
    page: PlanPage,
    /// Runs the `describe` programs of tools, with `--describe`.
    describer: Option<ToolDescriber<'a>>,
    /// Tools with calls whose `describe` program didn't run.
    undescribed: BTreeSet<String>,
    /// Servers that no plan asks, and those of their tools that have calls.
    unlocked: BTreeMap<String, BTreeSet<String>>,
    /// Number of calls in the plans.
    call_count: usize,
    /// Number of calls that are left out, since the input has their results.
    answered_count: usize,
    jobs: NonZeroUsize,
    /// Number of turns printed.
    turns_printed: usize,
    /// At least one call was rejected.
    has_rejected: bool,
}

impl PlanPrinter<'_> {
    /// Prints the plan of the next turn.
    fn print_turn(&mut self, turn: Turn) -> Result<(), CommandError> {
        self.note_started(&turn);
        self.call_count += turn.calls.len();
        self.answered_count += turn.answered_count;
        let (number, format) = (self.turns_printed, self.arguments.format);
        // Only tools called directly: a plan doesn't know which tools an agent will call.
        let is_called = |tool: &Arc<Tool>| turn.calls.iter().any(|call| *call.name == *tool.name);
        let mut undescribed = undescribed_tools(&self.tools, &turn.calls);
        undescribed.retain(is_called);
        for tool in undescribed.extract_if(.., |tool| tool.awaits_list) {
            for server in self.tools.servers_to_ask(&tool) {
                let called = self.unlocked.entry(server.server.name.clone());
                called.or_default().insert(tool.name.clone());
            }
        }
        match &self.describer {
            Some(describer) => describer.describe_tools(&undescribed),
            None => self
                .undescribed
                .extend(undescribed.iter().map(|tool| tool.name.clone())),
        }
        let calls = self.checker.check_turn(turn.with_number(number));
        if let Some(file) = &mut self.file {
            file.add_turn(number, &calls)?;
        }
        let plan = TurnPlan::new(number, &calls, &self.tools, self.jobs);
        self.has_rejected |= !plan.rejected.is_empty();
        self.turns_printed += 1;
        let mut out = DocumentWriter::default();
        let made = match format {
            PlanFormat::Html => {
                self.page.add_turn(&plan, &self.mask);
                Ok(())
            }
            PlanFormat::Json => write_plan_json(&mut out, &plan, &self.mask)
                .map_err(|_| fmt::Error)
                .and_then(|()| out.write_char('\n')),
            PlanFormat::Mermaid => out.write_str(&render_plan_mermaid(&plan, &self.mask)),
            PlanFormat::Text => {
                if number > 0 {
                    stdout::write_line("")?;
                }
                write_plan_text(&mut out, &plan, plan_style(self.context), &self.mask)
            }
        };
        Ok(out.finish(made)?)
    }

    /// Says why no call is planned, unless the plan of a turn does.
    fn note_why_empty(&self) {
        let why = match (self.call_count, self.answered_count, self.turns_printed) {
            (0, 0, 0) => "the model made no tool calls",
            (0, 1.., _) => {
                "every call already has a result in the input; `--all` plans them anyway"
            }
            _ => return,
        };
        self.context.stderr.print_note(why);
    }

    fn note_undescribed(&self) {
        if !self.undescribed.is_empty() {
            let names: Vec<&str> = self.undescribed.iter().map(String::as_str).collect();
            self.context.stderr.print_note(&format!(
                "any input is accepted for {}; use --describe to check it against the tool's own schema",
                names.join(", ")
            ));
        }
        for (server, called) in &self.unlocked {
            let names: Vec<&str> = called.iter().map(String::as_str).collect();
            self.context.stderr.print_note(&format!(
                "any input is accepted for {}, and not checked: tools.lock doesn't have the server {server}, and a plan asks none; `toolq servers lock{} {server}` does",
                names.join(", "),
                self.context.tools_flag(),
            ));
        }
    }
}

impl PlanPrinter<'_> {
    /// Notes calls that another run has started, because a plan can't tell whether they will run again.
    fn note_started(&self, turn: &Turn) {
        let listed = |state: InputState| {
            let is_listed = |call: &&Call| turn.input_state(call.position) == state;
            let ids = turn.calls.iter().filter(is_listed).map(|call| &*call.id);
            let ids = ids.collect::<Vec<_>>().join(", ");
            (!ids.is_empty()).then_some(ids)
        };
        let stderr = &self.context.stderr;
        if let Some(ids) = listed(InputState::Started) {
            stderr.print_note(&format!(
                "started before, without a result: {ids}; `run` repeats only those that can safely run again"
            ));
        }
        if let Some(ids) = listed(InputState::InDoubt) {
            stderr.print_note(&format!(
                "in doubt: {ids}; `run` repeats none of those, and later calls of the turn wait until they are settled"
            ));
        }
    }
}

fn plan_style(context: &CommandContext) -> PlanStyle {
    PlanStyle {
        width: stdout::width().unwrap_or(FALLBACK_WIDTH),
        color: context.stderr.is_stdout_colored(),
        is_unicode: context.stderr.is_unicode,
        detail: match stdout::width() {
            _ if context.verbose => PlanDetail::Whole,
            Some(_) => PlanDetail::OneLine,
            None => PlanDetail::FoldedScripts,
        },
    }
}
