//! `toolq call`: runs one call of one tool, or one agent until it answers.

mod agent_report;
mod input;
mod session;
mod transcript;

use std::sync::Arc;

use crate::args::call::CallArguments as Arguments;
use crate::args::values::CallFormat;
use crate::commands::call::agent_report::AgentReport;
use crate::commands::call::session::{CallSession, answer_text};
use crate::commands::call::transcript::AgentTranscript;
use crate::context::CommandContext;
use crate::otlp::OtlpSettings;
use crate::output::{CommandError, Exit, stdout};
use crate::settings::{LogSettings, SessionSettings};
use toolq_core::answer::render_answers;
use toolq_core::json::{expect_json, indent_json};
use toolq_core::text::{quote_for_shell, suggest_name};
use toolq_core::types::{AnswerForm, Backing, Tool, ToolsConfig};

/// Calls the named tool with the input.
///
/// # Errors
/// tools.yaml or the input is invalid, there is no such tool, or the log can't be used: then nothing ran. Or stdout
/// can't be written.
pub fn call_tool(arguments: &Arguments, context: &CommandContext) -> Result<Exit, CommandError> {
    let tools = Arc::new(context.load_tools_to_run()?);
    let tool = Arc::clone(find_tool(&tools, &arguments.name, context)?);
    let is_agent = matches!(tool.backing, Some(Backing::Agent(_)));
    if arguments.to == CallFormat::Messages && !is_agent {
        let message = format!("{} is no agent, so it has no conversation", tool.name);
        return Err(CommandError::usage(message).with_hint("write `--to text` or `--to json`"));
    }
    let environment = &context.environment;
    let settings = SessionSettings {
        jobs: arguments.jobs,
        approval: (&arguments.approval).into(),
        otlp: OtlpSettings::new(&arguments.watch.otlp, environment),
        prints_results: true,
        ..SessionSettings::new(
            LogSettings::new(&arguments.log, environment),
            (&arguments.watch).into(),
            &arguments.budgets,
        )
    };
    let input = arguments.input.as_deref();
    let mut call = CallSession::begin(context, tools, &tool, input, &settings)?;
    let mut transcript = AgentTranscript::new(Arc::clone(&call.session.setup.mask));
    let result = call.run(|event| transcript.record_event(event));
    // Its result is only its last text.
    let is_incomplete = transcript.agent_usage.ran_out_of_turns && !call.is_error();
    let incomplete = is_incomplete.then_some(Exit::Incomplete);
    call.finish(result, incomplete, |answer, tools| {
        let line = match arguments.to {
            CallFormat::Text => answer_text(answer),
            CallFormat::Messages => {
                json_line(expect_json(serde_json::to_string(&transcript.conversation)))
            }
            CallFormat::Json if is_agent => {
                let report = AgentReport::new(&transcript, answer, tools);
                json_line(expect_json(serde_json::to_string(&report)))
            }
            CallFormat::Json => {
                render_answers(AnswerForm::ResultLines, std::slice::from_ref(answer))
            }
        };
        Ok(stdout::write_line(&line)?)
    })
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
