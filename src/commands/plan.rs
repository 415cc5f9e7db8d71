//! `toolq plan`: prints what would run, in which batches, and why. Runs no calls, opens no connections, and writes no
//! log. What the memory knows of earlier runs is a part of the plan.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueHint};
use jiff::Timestamp;

use crate::args::{InputArguments, LogFlags, PlanFormat};
use crate::context::CommandContext;
use crate::input::{CommandInput, files};
use crate::log_view::DoubtCollector;
use crate::output::{CommandError, Exit, check_output_file, stdout};
use crate::pages::PlanPage;
use crate::plan_file::{PlanBuilder, PlanFile};
use crate::session::ToolDescriber;
use crate::settings::LogSettings;
use redact::Mask;
use toolq_core::check::{CallChecker, undescribed_tools};
use toolq_core::os::Clock;
use toolq_core::plan::{PlanDetail, PlanStyle, TurnPlan, render_plan_json, render_plan_text};
use toolq_core::text::{parse_duration, quote_path_for_shell};
use toolq_core::transcript::Recording;
use toolq_core::types::{Tool, ToolsConfig, Turn};
use toolq_engine::RememberedWrites;
use toolq_log::memory::{MemoryStore, MemoryUse, Remembered};
use toolq_log::records::blob_dir_for;

#[derive(Debug, Args)]
pub struct PlanArguments {
    #[command(flatten)]
    pub input: InputArguments,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: PlanFormat,
    #[command(flatten)]
    pub log: LogFlags,
    /// Run the `describe` commands of tools that have one, to get their schemas; runs nothing else
    #[arg(long)]
    pub describe: bool,
    /// Also write the plan to a file, for review; `toolq run --plan FILE` applies it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
    /// How long the plan can be applied
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = parse_validity, requires = "out")]
    pub valid: Duration,
    /// Exit 1 if any call is rejected
    #[arg(long)]
    pub strict: bool,
}

/// Parses how long a plan can be applied, which is longer than no time.
fn parse_validity(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        Duration::ZERO => Err("a plan that is valid for no time can't be applied".to_owned()),
        duration => Ok(duration),
    }
}

/// Prints the plan of every turn.
///
/// # Errors
/// tools.yaml or an input is invalid, or stdout can't be written.
pub fn print_plans(
    arguments: &PlanArguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let (mut tools, tools_file) = context.load_tools_file()?;
    let target = LogSettings::new(&arguments.log, &context.environment).target;
    let log = target.path().map(|log| [log.to_owned(), blob_dir_for(log)]);
    tools.own_files.extend(log.into_iter().flatten());
    context.warn_about_root(&tools, &tools_file);
    let tools = Arc::new(tools);
    let describer = arguments
        .describe
        .then(|| ToolDescriber::new(&tools, context));
    let mask = Arc::new(context.build_mask(&tools));
    let inputs = files::open_inputs(&arguments.input, Ok)?;
    files::print_notes(
        files::recordings(&inputs),
        arguments.input.all,
        &context.stderr,
    );
    let mut printer = PlanPrinter::new(arguments, tools, mask, context)?;
    printer.describer = describer.transpose()?;
    if let Some(path) = &arguments.out {
        let inputs = arguments.input.files.iter().map(PathBuf::as_path);
        check_output_file(path, inputs, &tools_file.files())?;
    }
    let mut exit = Exit::Ok;
    for input in inputs {
        exit = exit.max(print_input(input, &mut printer, arguments, context)?);
    }
    let has_rejected = printer.finish()?;
    if arguments.strict && has_rejected {
        exit = exit.max(Exit::ProblemsFound);
    }
    Ok(exit)
}

/// Prints the plans of an input. If it breaks off, or a turn can't be read, the turns before are printed all the same.
fn print_input(
    input: CommandInput,
    printer: &mut PlanPrinter<'_>,
    arguments: &PlanArguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    match input {
        CommandInput::Recording(recording) => {
            printer.begin_recording(&recording)?;
            let all = arguments.input.all;
            let printed = recording.for_each_turn(all, |turn| printer.print_turn(turn));
            printer.flush()?;
            printed?;
        }
        CommandInput::Stream(_) if arguments.out.is_some() => {
            return Err(CommandError::usage(
                "the calls of a stream can't be approved by a plan: `toolq run` starts them before all of them are known",
            )
            .with_hint("plan the complete response instead"));
        }
        CommandInput::Stream(mut stream) => {
            printer.begin_input();
            let (turns, stream_error) = stream.read_to_end();
            let printed = turns
                .into_iter()
                .try_for_each(|turn| printer.print_turn(turn));
            printer.flush()?;
            printed?;
            if let Some(error) = stream_error {
                printer.has_broken_stream = true;
                let failure = files::stream_failure(error, stream.message_count());
                return Ok(context.stderr.print_error(&failure));
            }
        }
        CommandInput::Follow(_) => {}
    }
    Ok(Exit::Ok)
}

// Prints the plans of turns, one after another, and what a reader has to know about them.

/// Width of a plan if stdout isn't a terminal, in columns.
const FALLBACK_WIDTH: usize = 100;

/// How much is collected before it is written, in bytes. A pipe holds twice as much, so it takes a piece while its reader is still
/// busy with the one before.
const PIECE_BYTES: usize = 32 * 1024;

/// Prints plans to stdout.
struct PlanPrinter<'a> {
    arguments: &'a PlanArguments,
    context: &'a CommandContext,
    tools: Arc<ToolsConfig>,
    checker: CallChecker,
    /// What earlier runs say of the calls.
    memory: Option<MemoryStore>,
    /// The writes of the current input that have run or may have.
    writes: RememberedWrites,
    /// The calls in doubt.
    doubts: DoubtCollector,
    mask: Arc<Mask>,
    /// Plans that are going to be written together.
    unwritten: String,
    /// Each plan is written as soon as it is made.
    writes_each_plan: bool,
    /// What goes to the file that `--out` names.
    file: Option<PlanBuilder>,
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
    /// Number of calls that are left out, since the conversation went past them.
    abandoned_count: usize,
    jobs: NonZeroUsize,
    /// Number of turns printed.
    turns_printed: usize,
    /// At least one call was rejected.
    has_rejected: bool,
    /// A stream broke off, so nobody knows which calls it would have had.
    has_broken_stream: bool,
}

impl<'a> PlanPrinter<'a> {
    /// Creates a printer that describes no tools.
    ///
    /// # Errors
    /// The memory can't be read.
    fn new(
        arguments: &'a PlanArguments,
        tools: Arc<ToolsConfig>,
        mask: Arc<Mask>,
        context: &'a CommandContext,
    ) -> Result<Self, CommandError> {
        let log = LogSettings::new(&arguments.log, &context.environment);
        let memory = open_memory(&log, &tools, &mask, context)?;
        let builder = || PlanBuilder::new(Arc::clone(&tools), Arc::clone(&mask));
        let file = arguments.out.is_some().then(builder);
        Ok(Self {
            arguments,
            context,
            checker: CallChecker::new(Arc::clone(&tools)),
            memory,
            writes: RememberedWrites::default(),
            doubts: DoubtCollector::new(log.target.path().map(Into::into)),
            mask,
            unwritten: String::new(),
            // Somebody at a terminal, or who waits while tools are described, sees each plan at once.
            writes_each_plan: stdout::is_terminal() || arguments.describe,
            file,
            page: PlanPage::default(),
            describer: None,
            undescribed: BTreeSet::new(),
            unlocked: BTreeMap::new(),
            call_count: 0,
            answered_count: 0,
            abandoned_count: 0,
            jobs: arguments.input.jobs.unwrap_or(tools.concurrency),
            tools,
            turns_printed: 0,
            has_rejected: false,
            has_broken_stream: false,
        })
    }

    /// Prints what follows the last turn, and writes the file. Returns whether a call was rejected.
    fn finish(mut self) -> Result<bool, CommandError> {
        if self.arguments.format == PlanFormat::Html {
            let page = std::mem::take(&mut self.page);
            let tools_path = self.context.tools_path.display().to_string();
            stdout::write_line(&page.into_html(&tools_path))?;
        }
        self.note_undescribed();
        if !self.has_broken_stream {
            self.note_why_empty();
        }
        for notice in self.doubts.into_notices() {
            self.context.stderr.print_needed_warning(&notice.line());
        }
        if let (Some(builder), Some(path)) = (self.file, &self.arguments.out) {
            write_plan(builder, path, self.arguments.valid, self.context)?;
        }
        Ok(self.has_rejected)
    }
}

impl PlanPrinter<'_> {
    /// Begins with the next input.
    fn begin_input(&mut self) {
        self.writes = RememberedWrites::default();
    }

    /// Begins with an input that is known as a whole.
    ///
    /// # Errors
    /// A turn can't be read.
    fn begin_recording(&mut self, recording: &Recording) -> Result<(), CommandError> {
        self.begin_input();
        let all = self.arguments.input.all;
        // What is read in turns before a write must not show what came after it.
        if let Some(memory) = &self.memory
            && recording.open_turns(all) > 1
        {
            recording.for_each_turn(all, |turn| {
                let number = self.turns_printed + turn.number;
                let turn = turn.with_number(number);
                let origin = turn.origin.clone();
                let calls = self.checker.check_turn(turn);
                self.writes.find(memory, &self.tools, &calls, &origin);
                Ok::<(), CommandError>(())
            })?;
        }
        Ok(())
    }

    /// Prints the plan of the next turn.
    fn print_turn(&mut self, turn: Turn) -> Result<(), CommandError> {
        self.call_count += turn.calls.len();
        self.answered_count += turn.answered_count;
        self.abandoned_count += turn.abandoned.len();
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
        let turn = turn.with_number(number);
        let abandoned = turn.abandoned.clone();
        let origin = turn.origin.clone();
        let mut calls = self.checker.check_turn(turn);
        if let Some(file) = &mut self.file {
            file.add_turn(number, &calls)?;
        }
        if let Some(memory) = &self.memory {
            self.writes.recall(memory, &self.tools, &mut calls, &origin);
        }
        for checked in &calls {
            if let Some(outcome) = checked.known.as_deref().filter(|known| known.is_in_doubt()) {
                let call = &checked.call;
                self.doubts.add((&call.name, &call.id), outcome, None);
            }
        }
        let mut plan = TurnPlan::new(number, &calls, &self.tools, self.jobs);
        plan.abandoned = &abandoned;
        self.has_rejected |= !plan.rejected.is_empty();
        self.turns_printed += 1;
        match format {
            PlanFormat::Html => self.page.add_turn(&plan, &self.mask),
            PlanFormat::Json => {
                self.unwritten += &render_plan_json(&plan, &self.mask);
                self.unwritten.push('\n');
            }
            PlanFormat::Text => {
                let gap = if number > 0 { "\n" } else { "" };
                self.unwritten += gap;
                self.unwritten += &render_plan_text(&plan, plan_style(self.context), &self.mask);
            }
        }
        if self.writes_each_plan || self.unwritten.len() >= PIECE_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes the plans of the turns so far to stdout.
    fn flush(&mut self) -> Result<(), CommandError> {
        if !self.unwritten.is_empty() {
            stdout::write_lines(self.unwritten.as_bytes())?;
            self.unwritten.clear();
        }
        Ok(())
    }

    /// Says why no call is planned, unless the plan of a turn does.
    fn note_why_empty(&self) {
        let left_out = (self.answered_count, self.abandoned_count);
        let why = match (self.call_count, left_out, self.turns_printed) {
            (0, (0, 0), 0) => "the model made no tool calls",
            (0, (1.., _), _) => {
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
                "any input is accepted for {}, and not checked: the server {server} isn't locked, and a plan asks none; `toolq servers lock{} {server}` does",
                names.join(", "),
                self.context.tools_flag(),
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

// What the memory says of the planned calls: which don't run, since it is known what became of them.

/// Opens the memory that `toolq run` would have with the same flags. `None` if it would have none, or if nothing is in it.
///
/// # Errors
/// The named log can't be read.
fn open_memory(
    settings: &LogSettings,
    tools: &ToolsConfig,
    mask: &Arc<Mask>,
    context: &CommandContext,
) -> Result<Option<MemoryStore>, CommandError> {
    // Without a folder for its state, toolq remembers nothing.
    let Ok(Some(place)) = settings.target.memory(&context.environment) else {
        return Ok(None);
    };
    let named = settings.target.path();
    Ok(MemoryStore::open_history(
        (place, named.unwrap_or("".as_ref())),
        MemoryUse {
            remembered: Remembered::ById,
            again: settings.again.clone(),
        },
        tools.root.clone(),
        Arc::clone(mask),
        Clock::system(),
    )?)
}

// Writes a plan to a file, for review.

/// Writes the plan to the file that `--out` names, and says which plan it holds.
///
/// # Errors
/// What would run can't be known, or the file can't be written.
fn write_plan(
    builder: PlanBuilder,
    path: &Path,
    valid: Duration,
    context: &CommandContext,
) -> Result<(), CommandError> {
    let described = builder.described_tools().join(", ");
    if !described.is_empty() {
        return Err(CommandError::usage(format!(
            "no plan can be written: what the calls of {described} mean is only known when `describe` has run"
        ))
        .with_hint("approve such calls when they run, with `--approve ask` or `--approve-with PROGRAM`"));
    }
    let stderr = &context.stderr;
    let unplanned = builder.unplanned_tools().join(", ");
    if !unplanned.is_empty() {
        stderr.print_warning(&format!(
            "the plan doesn't approve the calls of {unplanned} that agents make, since they aren't known yet; `run --plan` with `--approve ask` or `--approve-with PROGRAM` asks about them"
        ));
    }
    let count = builder.call_count();
    let created = Timestamp::now();
    // The file has whole milliseconds, like the log.
    let created = Timestamp::from_millisecond(created.as_millisecond()).unwrap_or(created);
    let valid_until = created
        .checked_add(valid)
        .map_err(|error| CommandError::usage(format!("`--valid`: {error}")))?;
    let body = builder.finish(created, valid_until);
    let file = PlanFile::new(body).map_err(CommandError::usage)?;
    file.write(path).map_err(|error| {
        CommandError::usage(format!("{} can't be written: {error}", path.display()))
    })?;
    let path = quote_path_for_shell(path);
    let calls = if count == 1 { "call" } else { "calls" };
    stderr.print_note(&format!(
        "plan {} of {count} {calls}, valid until {valid_until}: `toolq run{} --plan {path}` with the same input runs exactly this",
        file.id,
        context.tools_flag(),
    ));
    Ok(())
}
