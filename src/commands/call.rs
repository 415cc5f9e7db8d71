//! `toolq call`: runs one call of one tool, or one agent until it answers.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _, Read as _};
use std::num::NonZeroUsize;
use std::sync::Arc;

use clap::Args;
use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::args::{ApprovalFlags, BudgetFlags, CallFormat, LogFlags, WatchFlags, parse_jobs};
use crate::context::CommandContext;
use crate::events::Observed;
use crate::output::{CommandError, Exit, stdout};
use crate::session::{CallSource, RunSession};
use crate::settings::{LogSettings, SessionSettings};
use redact::Mask;
use toolq_core::answer::render_answers;
use toolq_core::check::CallChecker;
use toolq_core::json::{Input, MAX_INPUT_BYTES, expect_json, indent_json};
use toolq_core::text::{quote_for_shell, suggest_name, to_millis};
use toolq_core::types::{
    AgentUsage, AnswerForm, Backing, Call, CallAnswer, CallKind, CallRef, CheckedCall, Event,
    EventSink, RejectionReason, ReportedUsage, ResultContent, Status, Tool, ToolsConfig, Verdict,
    format_usd,
};

#[derive(Debug, Args)]
pub struct CallArguments {
    /// Name of a tool
    // The completions change this argument, which would move it after the other without an index.
    #[arg(index = 1)]
    pub name: String,
    /// Its input: JSON, or the text of its only string [default: stdin]
    #[arg(index = 2, value_name = "JSON", allow_hyphen_values = true)]
    pub input: Option<String>,
    /// What to print
    #[arg(long, value_name = "WHAT", default_value = "text")]
    pub to: CallFormat,
    /// Maximum number of calls of an agent to run at once; 1 turns parallelism off [default: `concurrency` in tools.yaml]
    #[arg(short, long, value_name = "N", value_parser = parse_jobs)]
    pub jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    pub approval: ApprovalFlags,
    #[command(flatten)]
    pub log: LogFlags,
    #[command(flatten)]
    pub watch: WatchFlags,
    #[command(flatten)]
    pub budgets: BudgetFlags,
}

/// Calls the named tool with the input.
///
/// # Errors
/// tools.yaml or the input is invalid, there is no such tool, or the log can't be used: then nothing ran. Or stdout
/// can't be written.
pub fn call_tool(
    arguments: &CallArguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let tools = Arc::new(context.load_tools_to_run(None)?);
    let tool = Arc::clone(find_tool(&tools, &arguments.name, context)?);
    let is_agent = matches!(tool.backing, Some(Backing::Agent(_)));
    if arguments.to == CallFormat::Messages && !is_agent {
        let message = format!("{} is no agent, so it has no conversation", tool.name);
        return Err(CommandError::usage(message).with_hint("write `--to text` or `--to json`"));
    }
    stdout::check_open()?;
    let command = format!("toolq call{} {}", context.tools_flag(), tool.name);
    let call = read_call(&tool, arguments.input.as_deref(), &command)?;
    // The schema of a tool with a `describe` program isn't known yet.
    if !tool.needs_describe() {
        check_accepted(&CallChecker::new(Arc::clone(&tools)).check_call(call.clone()))?;
    }
    let log = LogSettings::new(&arguments.log, &context.environment);
    let (watch, budgets) = (&arguments.watch, &arguments.budgets);
    let settings = SessionSettings {
        jobs: arguments.jobs,
        approval: (&arguments.approval).into(),
        prints_results: true,
        ..SessionSettings::new(log, watch, budgets, &context.environment)
    };
    let source = CallSource::Command;
    let mut session = RunSession::begin(context, Arc::clone(&tools), &settings, source)?;
    let mut transcript = AgentTranscript::new(Arc::clone(&session.setup.mask));
    let answer = session.block_on(async |session| run_call(session, call, &mut transcript).await);
    session.sinks.close_screen();
    let is_error = !matches!(&answer, Ok(Some(answer)) if !answer.is_error);
    // Its result is only its last text.
    let is_incomplete = transcript.agent_usage.ran_out_of_turns && !is_error;
    let exits = [
        is_error.then_some(Exit::ProblemsFound),
        is_incomplete.then_some(Exit::Incomplete),
    ];
    let printed = answer.and_then(|answer| {
        let Some(answer) = answer else { return Ok(()) };
        let line = match arguments.to {
            CallFormat::Text => answer_text(&answer),
            CallFormat::Messages => {
                json_line(expect_json(serde_json::to_string(&transcript.conversation)))
            }
            CallFormat::Json if is_agent => {
                let report = AgentReport::new(&transcript, &answer, &tools);
                json_line(expect_json(serde_json::to_string(&report)))
            }
            CallFormat::Json => render_answers(AnswerForm::ResultLines, &[answer]),
        };
        Ok(stdout::write_line(&line)?)
    });
    session.conclude(printed, exits.into_iter().flatten())
}

fn find_tool<'t>(
    tools: &'t ToolsConfig,
    name: &str,
    context: &CommandContext,
) -> Result<&'t Arc<Tool>, CommandError> {
    tools.get(name).ok_or_else(|| {
        let flag = context.tools_flag();
        let known: Vec<&str> = tools.tools.iter().map(|tool| tool.name.as_str()).collect();
        let hint = match suggest_name(name, known.iter().copied()) {
            Some(near) => format!("did you mean {near}?"),
            None if !tools.unlocked.is_empty() => {
                let servers = tools.unlocked.iter();
                let servers = servers.map(|unlocked| quote_for_shell(&unlocked.server.name));
                let servers = servers.collect::<Vec<_>>().join(" ");
                format!("if it is a tool of a server: `toolq servers lock{flag} {servers}` asks for its tools first")
            }
            None => format!("`toolq tools{flag} --format table` lists the tools"),
        };
        CommandError::usage(format!("no tool is called {name}")).with_hint(hint)
    })
}

/// Returns JSON as a line, or as several for a person.
fn json_line(compact: String) -> String {
    if stdout::is_terminal() {
        indent_json(&compact)
    } else {
        compact
    }
}

// What `--to json` prints of an agent.

/// The answer of an agent with what it took.
#[derive(Serialize)]
struct AgentReport<'a> {
    text: String,
    is_error: bool,
    status: &'a Status,
    /// Whether the text is a final answer, rather than an error or the last text when the turns were used up.
    done: bool,
    agent_name: &'a str,
    turns_used: u64,
    /// `None` if an API didn't report them.
    tokens_used: Option<u64>,
    tool_calls_made: u64,
    tools_called: &'a [String],
    corrections: u64,
    /// Usage by model, including that of agents it called.
    usage: &'a BTreeMap<String, ReportedUsage>,
    /// `None` if a price is unknown, or if no model responded.
    estimated_cost_usd: Option<Box<RawValue>>,
    duration_ms: u64,
}

impl<'a> AgentReport<'a> {
    fn new(transcript: &'a AgentTranscript, answer: &CallAnswer, tools: &ToolsConfig) -> Self {
        Self {
            text: answer_text(answer),
            is_error: answer.is_error,
            status: &transcript.status,
            done: !answer.is_error && !transcript.agent_usage.ran_out_of_turns,
            agent_name: &transcript.agent_usage.agent_name,
            turns_used: transcript.agent_usage.turns,
            tokens_used: transcript.agent_usage.total_tokens(),
            tool_calls_made: transcript.agent_usage.requested_calls,
            tools_called: &transcript.agent_usage.tools_called,
            corrections: transcript.agent_usage.rejected_calls,
            usage: &transcript.total_usage,
            estimated_cost_usd: estimate_cost(transcript, tools),
            duration_ms: transcript.duration_ms,
        }
    }
}

/// Returns the total cost as a JSON number, or `None` if a price is unknown.
fn estimate_cost(transcript: &AgentTranscript, tools: &ToolsConfig) -> Option<Box<RawValue>> {
    if transcript.total_usage.is_empty() {
        return None;
    }
    let parts = transcript
        .total_usage
        .iter()
        .map(|(model, usage)| tools.prices.cost(model, usage));
    let sum = parts.sum::<Option<u128>>()?;
    RawValue::from_string(format_usd(sum)).ok()
}

/// Runs the `describe` programs that the call needs, checks the call, asks the memory about it, and runs it.
async fn run_call(
    session: &mut RunSession<'_>,
    call: Call,
    transcript: &mut AgentTranscript,
) -> Result<Option<CallAnswer>, CommandError> {
    session.describe_tools(std::slice::from_ref(&call)).await;
    let checked = session.setup.checker.check_call(call);
    check_accepted(&checked)?;
    let RunSession {
        engine,
        sinks,
        writes,
        ..
    } = session;
    let calls = engine.recall(vec![checked], writes).await;
    let mut answer = None;
    let mut delivery = |_: &Arc<CallRef>, only: CallAnswer, _: &mut dyn EventSink| {
        answer = Some(only);
    };
    let mut sink = Observed {
        sink: sinks,
        observe: |event: &Event<'_>| transcript.record_event(event),
    };
    engine.run_turn(0, calls, &mut sink, &mut delivery).await;
    Ok(answer)
}

/// Returns the text of an answer. Several blocks, or one that isn't text, are a JSON array.
fn answer_text(answer: &CallAnswer) -> String {
    match &answer.content {
        ResultContent::Text(text) => text.clone(),
        ResultContent::Blocks(blocks) => {
            let blocks: Vec<&str> = blocks.iter().map(|block| block.get()).collect();
            format!("[{}]", blocks.join(","))
        }
    }
}

// A call that a person types: the tool's name as an argument, its input as an argument or on stdin.

/// Returns the call of `tool` with this input, or the one on stdin: a JSON object, or the text of the tool's only string. If there is no text and
/// the tool requires no properties, the input is empty. `command` is how the command line of the call begins, for hints.
///
/// # Errors
/// stdin is a terminal, or can't be read, or the text isn't an input for this tool.
fn read_call(tool: &Tool, argument: Option<&str>, command: &str) -> Result<Call, CommandError> {
    let hint = match argument {
        Some(_) => format!("write it as in `{command} '{}'`", example(tool)),
        None => format!("pipe it in: `echo '{}' | {command}`", example(tool)),
    };
    let text = match argument {
        Some(text) => text.to_owned(),
        None if !io::stdin().is_terminal() => read_stdin()?,
        None if requires_nothing(tool) => "{}".to_owned(),
        None => {
            let message = "no input: stdin is a terminal";
            return Err(CommandError::usage(message).with_hint(hint));
        }
    };
    Ok(Call {
        turn: 0,
        position: 0,
        id: format!("toolq_{}", tool.name),
        name: tool.name.as_str().into(),
        input: Ok(parse_input(tool, &text).map_err(|error| {
            // JSON that breaks a limit, for example by a duplicate key, needs no hint: the error says what is wrong.
            let is_json = serde_json::from_str::<IgnoredAny>(&text).is_ok();
            let is_object = is_json && text.trim_start().starts_with('{');
            if is_object {
                error
            } else {
                error.with_hint(hint)
            }
        })?),
        parent: None,
        has_number_id: false,
        kind: CallKind::Function,
    })
}

/// Reads stdin to its end, or to the largest input that can be valid.
fn read_stdin() -> Result<String, CommandError> {
    let mut text = String::new();
    io::stdin()
        .take(MAX_INPUT_BYTES as u64 + 1)
        .read_to_string(&mut text)
        .map_err(|error| CommandError::usage(format!("stdin can't be read: {error}")))?;
    Ok(text)
}

fn parse_input(tool: &Tool, text: &str) -> Result<Input, CommandError> {
    let is_plain_text = !text.trim().is_empty() && !text.trim_start().starts_with('{');
    let text = match only_string(tool) {
        Some(property) if is_plain_text => {
            serde_json::json!({ property: text.trim_end() }).to_string()
        }
        _ if text.trim().is_empty() && requires_nothing(tool) => "{}".to_owned(),
        None if is_plain_text => {
            let name = &tool.name;
            return Err(CommandError::usage(format!(
                "the input of {name} is a JSON object, and this is none"
            )));
        }
        _ if text.trim().is_empty() => return Err(CommandError::usage("the input is empty")),
        _ => text.to_owned(),
    };
    Input::parse(&text).map_err(CommandError::usage)
}

fn requires_nothing(tool: &Tool) -> bool {
    let schema = tool.input_schema();
    schema["required"].as_array().is_none_or(Vec::is_empty)
}

/// Returns the property that a plain text sets: the only required one, if it is a string, or else the only one.
fn only_string(tool: &Tool) -> Option<&str> {
    let schema = tool.input_schema();
    let properties = schema["properties"].as_object()?;
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    let name = match required {
        [name] => name.as_str()?,
        [] if properties.len() == 1 => properties.keys().next()?,
        _ => return None,
    };
    (properties.get(name)?["type"] == "string").then_some(name)
}

/// Returns an example of an input with the properties that this tool requires.
fn example(tool: &Tool) -> String {
    if only_string(tool).is_some() {
        return "TEXT".to_owned();
    }
    let schema = tool.input_schema();
    let required = schema["required"].as_array().into_iter().flatten();
    let required = required.filter_map(|property| property.as_str());
    let members: Vec<String> = required
        .map(|property| {
            let is_string = schema["properties"][property]["type"] == "string";
            format!("\"{property}\":{}", if is_string { "\"…\"" } else { "…" })
        })
        .collect();
    format!("{{{}}}", members.join(","))
}

/// Returns an error with every problem of the input if the call is rejected.
fn check_accepted(checked: &CheckedCall) -> Result<(), CommandError> {
    let Verdict::Rejected(rejection) = &checked.verdict else {
        return Ok(());
    };
    let problems = rejection
        .details
        .iter()
        .map(|detail| match detail.path.as_str() {
            "" => detail.message.clone(),
            path => format!("{path}: {}", detail.message),
        });
    let problems: Vec<String> = problems.collect();
    // What leads nowhere in the input may be about the tool or the root.
    let is_about_input = rejection
        .details
        .iter()
        .any(|detail| !detail.path.is_empty());
    let name = &checked.call.name;
    let what = match rejection.reason {
        RejectionReason::UnusableTool => format!("{name} can't run"),
        RejectionReason::PathOutsideRoot if !is_about_input => format!("{name} can't run"),
        _ => format!("invalid input for {name}"),
    };
    Err(CommandError::usage(format!(
        "{what}: {}",
        problems.join("; ")
    )))
}

// Collects an agent's conversation and usage for the final output.

/// Collects what the final output needs from the events of a run.
struct AgentTranscript {
    mask: Arc<Mask>,
    conversation: Vec<Box<RawValue>>,
    /// The status of the agent's call.
    status: Status,
    duration_ms: u64,
    agent_usage: AgentUsage,
    /// Usage by model, including that of agents it called.
    total_usage: BTreeMap<String, ReportedUsage>,
}

impl AgentTranscript {
    fn new(mask: Arc<Mask>) -> Self {
        Self {
            mask,
            conversation: Vec::new(),
            status: Status::NotExecuted,
            duration_ms: 0,
            agent_usage: AgentUsage::default(),
            total_usage: BTreeMap::new(),
        }
    }

    /// Adds a message to the conversation, unless it is one of an agent that the agent called.
    fn record_message(&mut self, call: &CallRef, message: &RawValue) {
        if call.parent.is_none() {
            // Messages to the model may contain secrets.
            let masked = self.mask.apply_to_json(message.get()).into_owned();
            self.conversation.extend(RawValue::from_string(masked));
        }
    }

    fn record_event(&mut self, event: &Event<'_>) {
        match event {
            Event::AgentMessage { call, message, .. } => self.record_message(call, message),
            Event::Finished {
                call,
                outcome,
                duration,
                agent_usage,
                ..
            } => {
                let usage_by_model = agent_usage.iter().flat_map(|agent| &agent.usage);
                for (model, usage) in usage_by_model {
                    *self.total_usage.entry(model.clone()).or_default() += *usage;
                }
                if call.parent.is_none() {
                    self.agent_usage = agent_usage.cloned().unwrap_or_default();
                    for name in &mut self.agent_usage.tools_called {
                        *name = self.mask.apply(name).into_owned();
                    }
                    self.status = outcome.status();
                    self.duration_ms = to_millis(*duration);
                }
            }
            _ => {}
        }
    }
}
